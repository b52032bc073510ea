//! A client cannot make the server take more memory than it has.

use crate::client::{Client, Reply, items};
use crate::dumps::dump;
use crate::replicas::{check_equal, follow};
use crate::server::{Kind, Server, await_that, each_client, each_server, limit_address_space};
use koel::StableHash;

/// The memory that a server counts.
fn used(client: &mut Client) -> i64 {
    client.info("memory", "used_memory").parse().expect("a number")
}

#[test]
fn a_large_filter_takes_no_memory_until_it_has_items() {
    each_server(|kind| {
        let server = Server::start(kind);
        let mut client = server.client();
        client.ask("CF.RESERVE k 1000000000 EXPANSION 0 ERROR_RATE 0.01").ok();
        client.ask("CF.ADD k a");
        let bytes = client.memory("k");
        assert!(bytes > 1_000_000_000, "{bytes}");
        let status = std::fs::read_to_string(format!("/proc/{}/status", server.process_id()));
        let resident = status.expect("a process").lines().find_map(|line| {
            line.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB")?.parse::<u64>().ok()
        });
        assert!(resident.expect("a size") < 200_000, "{resident:?} kB");
        // And is counted all the same.
        assert!(used(&mut client) > bytes);
        // The first of a thousand pieces says how large the filter is, and takes no memory for the others.
        let reply = client.ask("CF.SCANDUMP k 0");
        client.ask("DEL k");
        client.load_chunk("x", 1, reply.array()[1].bytes()).ok();
        assert!(client.memory("x") < 20_000_000);
        // A server may free what was deleted in another thread.
        await_that("little memory is used", || used(&mut client) < 50_000_000);
    });
}

#[test]
fn small_keys_take_as_little_as_told() {
    each_client(|kind, client| {
        for (count, most) in
            [(10, 300), (100, 1_200), (1_000, 9_500), (4_096, 38_000), (5_000, 140_000)]
        {
            client.insert("key", 0..count);
            assert!(client.has_all("key", 0..count), "{kind:?}: {count}");
            let bytes = client.memory("key");
            assert!(bytes <= most, "{kind:?}: {bytes} bytes for {count} items");
            client.ask("DEL key");
        }
        // And as the server counts.
        let before = used(client);
        (0..1_000).for_each(|key| client.insert(&format!("key:{key}"), 0..10));
        let each = (used(client) - before) / 1_000;
        assert!(each <= 400, "{kind:?}: {each} bytes");
    });
}

/// (Set later: `replies.txt`.)
#[test]
fn a_server_starts_with_settings() {
    each_server(|kind| {
        let server = Server::with(kind, &["--koel.error-rate", "0.01", "--koel.capacity", "50"]);
        let mut client = server.client();
        client.ask("CF.ADD k a");
        assert_eq!(client.ask("CF.INFO k").field("Error rate").text(), "0.01");
        assert_eq!(client.ask("CF.INFO k").field("Capacity").integer(), 50);
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

/// An empty filter is made anew.
#[test]
fn to_compact_asks_for_memory_as_a_reserve_does() {
    each_client(|kind, client| {
        client.ask("CF.RESERVE k 30000000").ok();
        for item in ["a", "b"] {
            client.ask(&format!("CF.ADD k {item}"));
            client.ask(&format!("CF.DEL k {item}"));
        }
        let (before, most) = (client.digest("k"), used(client) + (1 << 20));
        for (setting, limit) in [("maxmemory", most), ("koel.max-bytes", 1 << 20)] {
            client.ask(&format!("CONFIG SET {setting} {limit}")).ok();
            let refused = client.ask("CF.COMPACT k");
            assert!(refused.error().starts_with("OOM"), "{kind:?} {setting}: {refused:?}");
            assert_eq!(client.digest("k"), before);
            client.ask(&format!("CONFIG SET {setting} 0")).ok();
        }
        client.ask("CF.COMPACT k").ok();
        assert_eq!(client.ask("CF.INFO k").field("Number of items deleted").integer(), 0);
    });
}

#[test]
fn no_client_makes_a_key_take_more_than_its_limit() {
    let size = |client: &mut Client, key: &str| match client.ask(&format!("CF.INFO {key}")) {
        Reply::Error(_) => 0,
        info => info.field("Size").integer(),
    };
    each_client(|kind, client| {
        client.ask("CF.RESERVE source 1000 SEED 7").ok();
        client.insert("source", 0..40_000);
        client.ask("CF.RESERVE other 1000 SEED 7").ok();
        client.insert("other", 40_000..80_000);
        let chunks = dump(client, "source");
        for limit in [1_000, 30_000, 66_000, 140_000, 200_000, 300_000, 1_000_000] {
            client.ask(&format!("CONFIG SET koel.max-bytes {limit}")).ok();
            let context = |what: &str| format!("{kind:?}: {what} of {limit}");
            for (key, made) in [
                ("small", "CF.RESERVE small 1000"),
                ("large", "CF.RESERVE large 17000"),
                ("fixed", "CF.RESERVE fixed 40000 EXPANSION 0"),
                ("window", "CF.RESERVE window 1000 FORGETAFTER 9999"),
                ("merged", "CF.MERGE merged source other"),
                ("filled", "CF.RESERVE filled 1000 SEED 7"),
            ] {
                client.ask(made);
                assert!(size(client, key) <= limit, "{}", context(made));
                let mut added = 0;
                for first in (0..100_000).step_by(1_000) {
                    let some = items(first..first + 1_000);
                    client.ask(&format!("CF.INSERT {key} NOCREATE ITEMS {some}"));
                    client.ask(&format!("CF.ADD {key} {first}"));
                    let new = client.ask(&format!("CF.ADDNX {key} x{first}"));
                    added += i64::from(matches!(new, Reply::Integer(1)));
                    assert!(size(client, key) <= limit, "{}", context(key));
                }
                client.ask(&format!("CF.MERGE {key} source"));
                assert!(size(client, key) <= limit, "{}", context(key));
                // It grows to two thirds of what it may take.
                if key == "small" && limit == 300_000 {
                    assert!(added > 10 && 3 * size(client, key) > 2 * limit, "{}", context(key));
                }
                client.ask(&format!("DEL {key}"));
            }
            for (cursor, chunk) in &chunks {
                client.load_chunk("loaded", *cursor, chunk);
                assert!(size(client, "loaded") <= limit, "{}", context("loading"));
            }
            client.ask("DEL loaded");
        }
        client.ask("CONFIG SET koel.max-bytes 0").ok();
    });
}

#[test]
fn what_a_primary_refuses_within_an_insert_is_not_on_its_replicas() {
    each_server(|kind| {
        let (primary, replica) = (Server::start(kind), Server::start(kind));
        follow(&replica, &primary);
        let mut client = primary.client();
        // Items of shards that have room still go in, in between.
        client.ask("CONFIG SET koel.max-bytes 400kb").ok();
        let mut refused = 0;
        for first in (0..300_000).step_by(3_000) {
            let some = items(first..first + 3_000);
            for command in ["CF.INSERT a", "CF.INSERTNX b"] {
                let answers = client.ask(&format!("{command} ITEMS {some}"));
                refused += answers.array().iter().filter(|answer| answer.integer() == -1).count();
            }
        }
        assert!(refused > 10_000, "{kind:?}: {refused}");
        client.ask("CONFIG SET koel.max-bytes 0").ok();
        check_equal(&primary, &replica, "with a limit");

        // Only Valkey asks the system whether it has so much memory. Redis 7.0 ends.
        if kind == Kind::Redis {
            return;
        }
        // Its tables take megabytes, so that the server's own memory is not what is lacking.
        client.ask("CF.RESERVE c 3600000 ERROR_RATE 0.000001").ok();
        client.insert("c", 0..3_000_000);
        if limit_address_space(&primary, 1 << 20).is_none() {
            return;
        }
        let mut lacking = 0;
        for first in (3_000_000..6_000_000).step_by(500) {
            let answers = client.ask(&format!("CF.INSERT c ITEMS {}", items(first..first + 500)));
            lacking += answers.array().iter().filter(|answer| answer.integer() == -1).count();
            if lacking > 1_000 {
                break;
            }
        }
        assert!(lacking > 1_000, "{kind:?}");
        // A digest takes memory, too.
        limit_address_space(&primary, 1 << 40);
        check_equal(&primary, &replica, "where memory is lacking");
    });
}

#[test]
fn a_save_that_lacks_memory_keeps_the_file_of_before() {
    each_server(|kind| {
        let mut server = Server::start(kind);
        let mut client = server.client();
        client.ask("CF.RESERVE k 1000000 ERROR_RATE 0.000001").ok();
        for first in (0..100_000).step_by(500) {
            client.insert("k", first..first + 500);
        }
        client.ask("SET s before").ok();
        // In a child: the server itself has had no memory for a save, which it would still have.
        client.ask("BGSAVE");
        await_that("it is saved", || client.info("persistence", "rdb_bgsave_in_progress") == "0");
        let file = server.path().join("dump.rdb");
        let before = std::fs::read(&file).expect("a file");
        client.ask("SET s after").ok();
        let Some(()) = limit_address_space(&server, 0) else { return };
        let refused = client.ask("SAVE");
        assert!(matches!(refused, Reply::Error(_)), "{kind:?}: {refused:?}");
        assert!(std::fs::read(&file).expect("a file") == before, "{kind:?}");
        assert!(server.log().contains("koel: cannot save a filter"));
        let left = std::fs::read_dir(server.path()).expect("a folder").count();
        assert_eq!(left, 2, "{kind:?}: a log and the file");

        // With memory, it saves.
        limit_address_space(&server, 1 << 40);
        client.ask("SAVE").ok();
        server.kill_and_restart();
        assert_eq!(server.client().ask("GET s"), "after".into());
        assert!(server.client().has_all("k", 0..100_000));
    });
}
