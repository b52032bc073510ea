//! A client cannot make the server take more memory than it has.

use crate::client::{Client, Reply};
use crate::server::{Server, await_that, each_client, each_server};
use koel::StableHash;

/// The memory that a server counts.
fn used(client: &mut Client) -> i64 {
    client.info("memory", "used_memory").parse().expect("a number")
}

#[test]
fn a_large_filter_takes_no_pages_until_it_has_items() {
    each_server(|kind| {
        let server = Server::start(kind);
        let mut client = server.client();
        client.ask("CF.RESERVE k 1000000000 EXPANSION 0 ERROR_RATE 0.01").ok();
        let bytes = client.memory("k");
        assert!(bytes > 1_000_000_000, "{bytes}");
        let status = std::fs::read_to_string(format!("/proc/{}/status", server.process_id()));
        let resident = status.expect("a process").lines().find_map(|line| {
            line.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB")?.parse::<u64>().ok()
        });
        assert!(resident.expect("a size") < 200_000, "{resident:?} kB");
        // And is counted all the same.
        assert!(used(&mut client) > bytes);
        client.ask("UNLINK k");
    });
}

#[test]
fn a_made_up_header_takes_no_memory() {
    each_client(|_, client| {
        client.ask("CF.RESERVE k 1000000000 EXPANSION 0").ok();
        client.ask("CF.ADD k a");
        // The first of a thousand pieces says how large the filter is.
        let reply = client.ask("CF.SCANDUMP k 0");
        let piece = reply.array()[1].bytes().to_vec();
        client.ask("DEL k");
        client.load_chunk("x", 1, &piece).ok();
        assert!(client.memory("x") < 20_000_000);
        // A server may free what was deleted in another thread.
        await_that("little memory is used", || used(client) < 50_000_000);
        assert!(matches!(client.ask("CF.EXISTS x a"), Reply::Error(_)));
    });
}

#[test]
fn a_hundred_thousand_small_keys_are_small() {
    each_server(|kind| {
        let server = Server::start(kind);
        let (keys, mut client) = (10_000, server.client());
        (0..keys).for_each(|key| drop(client.ask(&format!("SET key:{key} {key}"))));
        let before = used(&mut client);
        client.ask("FLUSHALL").ok();
        (0..keys).for_each(|key| client.insert(&format!("key:{key}"), 0..10));
        let each = (used(&mut client) - before) / keys;
        assert!(each <= 300, "{kind:?}: {each} bytes more than a key with a number");
    });
}

#[test]
fn a_key_of_some_thousand_items_takes_nine_bytes_for_each() {
    each_client(|kind, client| {
        for (count, most) in [(100, 1_200), (1_000, 9_500), (4_096, 38_000), (5_000, 140_000)] {
            client.insert("key", 0..count);
            assert!(client.has_all("key", 0..count), "{kind:?}: {count}");
            let bytes = client.memory("key");
            assert!(bytes <= most, "{kind:?}: {bytes} bytes for {count} items");
            client.ask("DEL key");
        }
    });
}

#[test]
fn settings_are_checked() {
    each_server(|kind| {
        let server = Server::with(kind, &["--koel.error-rate", "0.01", "--koel.capacity", "50"]);
        let mut client = server.client();
        client.ask("CF.ADD k a");
        assert_eq!(client.ask("CF.INFO k").field("Error rate").text(), "0.01");
        assert_eq!(client.ask("CF.INFO k").field("Capacity").integer(), 50);
        for (name, value, told) in [
            ("error-rate", "0.002", "0.002"),
            ("max-bytes", "2kb", "2048"),
            ("max-bytes", "1gb", "1073741824"),
        ] {
            client.ask(&format!("CONFIG SET koel.{name} {value}")).ok();
            assert_eq!(client.ask(&format!("CONFIG GET koel.{name}")).array()[1].text(), told);
        }
    });
}

/// A chunk of few items that says this of its set.
fn few(capacity: u64, expansion: u64, forget_after: u64) -> Vec<u8> {
    let rate = 0.001_f64.to_bits();
    let words = [1, 1, capacity, rate, 7, 2, 20, expansion, forget_after, 0, 1, 2, 3];
    let mut bytes = b"\x89koelr\r\n".to_vec();
    bytes.extend(words.iter().flat_map(|word: &u64| word.to_le_bytes()));
    let checksum = StableHash::with_seed(0).hash_bytes(&bytes);
    bytes.extend(checksum.to_le_bytes());
    bytes
}

#[test]
fn a_made_up_set_of_few_items_takes_no_memory() {
    each_client(|kind, client| {
        client.load_chunk("x", 1, &few(1_000, 1, 0)).ok();
        assert_eq!(client.ask("CF.ADDNX x a").integer(), 1);
        for (capacity, expansion, forget_after) in [
            (1 << 47, 0, 0),
            (1 << 39, 1, 0),
            (1 << 20, 1, 0),
            (10, 0, 0),
            (1_000, 1, 10),
            (0, 1, 0),
        ] {
            let chunk = few(capacity, expansion, forget_after);
            let reply = client.load_chunk("y", 1, &chunk);
            assert!(matches!(reply, Reply::Error(_)), "{kind:?}: {capacity}");
        }
        assert_eq!(client.ask("EXISTS y").integer(), 0);
    });
}
