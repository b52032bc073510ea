//! What was added survives: saves, append-only files, copies, dumps of single keys. What is damaged is refused.

use crate::client::{Client, Reply};
use crate::replicas::Random;
use crate::server::{Server, appending, each_client, each_server, long, rewrite_file};

/// Keys of every kind and size.
const KEYS: [(&str, &str, usize); 9] = [
    ("none", "1000", 0),
    ("few", "1000", 10),
    ("hundreds", "1000 ERROR_RATE 0.01", 1_000),
    ("shard", "1000 ERROR_RATE 0.01", 6_000),
    ("narrow", "1000 ERROR_RATE 0.01", 100_000),
    ("wide", "1000 ERROR_RATE 0.0001", 100_000),
    ("four", "4 EXPANSION 0", 4),
    ("fixed", "300000 EXPANSION 0 ERROR_RATE 0.01", 250_000),
    ("large", "2000000", 10_000),
];

pub fn fill(client: &mut Client) {
    for (key, options, items) in KEYS {
        client.ask(&format!("CF.RESERVE {key} {options}")).ok();
        client.insert(key, 0..items);
        if key != "none" {
            assert_eq!(client.ask(&format!("CF.DEL {key} 3")).integer(), 1);
        }
    }
}

/// All that is to be seen of all keys.
pub fn state(client: &mut Client) -> Vec<Reply> {
    let mut state = vec![client.ask("DEBUG DIGEST")];
    for (key, ..) in KEYS {
        let Reply::Array(mut info) = client.ask(&format!("CF.INFO {key}")) else { continue };
        // Few items may be in a table already. All else is the same.
        info.drain(..4);
        info.truncate(16);
        state.push(Reply::Array(info));
    }
    state
}

fn check(client: &mut Client) {
    for (key, _, items) in KEYS {
        let found = client.many(&format!("CF.MEXISTS {key}"), 0..items);
        let lost = found.iter().enumerate().position(|(item, found)| *found == 0 && item != 3);
        assert_eq!(lost, None, "{key}");
    }
}

#[test]
fn a_saved_file_has_everything() {
    each_server(|kind| {
        let mut server = Server::start(kind);
        let mut client = server.client();
        fill(&mut client);
        let before = state(&mut client);
        server.save_and_restart();
        let mut client = server.client();
        assert_eq!(state(&mut client), before);
        check(&mut client);
    });
}

#[test]
fn an_append_only_file_has_everything() {
    each_server(|kind| {
        for preamble in ["yes", "no"] {
            let mut server = Server::with(kind, &appending(preamble));
            let mut client = server.client();
            fill(&mut client);
            // What was appended,
            let before = state(&mut client);
            server.kill_and_restart();
            let mut client = server.client();
            assert_eq!(state(&mut client), before, "{kind:?}, {preamble}");
            // and what was rewritten.
            rewrite_file(&mut client);
            assert_eq!(client.ask("CF.ADDNX after x").integer(), 1);
            let before = state(&mut client);
            server.kill_and_restart();
            let mut client = server.client();
            assert_eq!(state(&mut client), before, "{kind:?}, {preamble}");
            check(&mut client);
        }
    });
}

#[test]
fn keys_are_dumped_restored_and_copied() {
    each_client(|kind, client| {
        fill(client);
        let before = state(client);
        for (key, ..) in KEYS {
            let digest = client.digest(key);
            let dump = client.ask(&format!("DUMP {key}"));
            assert_eq!(client.ask(&format!("COPY {key} copy")).integer(), 1);
            assert_eq!(client.digest("copy"), digest, "{kind:?}: {key}");
            client.ask("DEL copy");
            client.ask(&format!("DEL {key}"));
            client.call(&[&"RESTORE", &key, &"0", &dump.bytes()]).ok();
            assert_eq!(client.digest(key), digest, "{kind:?}: {key}");
        }
        assert_eq!(state(client), before);
        check(client);
    });
}

#[test]
fn a_copy_lives_on_its_own() {
    each_client(|_, client| {
        for items in [5, 50_000] {
            client.ask("FLUSHALL").ok();
            client.insert("a", 0..items);
            client.ask("COPY a b");
            assert_eq!(client.ask("CF.DEL a 2").integer(), 1);
            assert_eq!(client.ask("CF.EXISTS b 2").integer(), 1);
            assert_eq!(client.ask("UNLINK a").integer(), 1);
            assert_eq!(client.ask("CF.DEL b 2").integer(), 1);
        }
    });
}

/// The checksum that ends a dumped key: CRC-64 of Jones, bit by bit.
fn crc64(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |crc: u64, byte| {
        (0..8).fold(crc ^ u64::from(*byte), |crc, _| {
            let shifted = crc >> 1;
            if crc & 1 == 1 { shifted ^ 0x95AC_9329_AC4B_C9B5 } else { shifted }
        })
    })
}

#[test]
fn damaged_dumps_are_refused_and_the_server_stays_up() {
    each_client(|kind, client| {
        client.ask("CF.INSERT few CAPACITY 100 ITEMS a b c");
        client.insert("shard", 0..6_000);
        client.ask("CF.RESERVE fixed 1000 EXPANSION 0").ok();
        client.ask("CF.ADD fixed a");
        let mut random = Random(1);
        for key in ["few", "shard", "fixed"] {
            let whole = client.ask(&format!("DUMP {key}")).bytes().to_vec();
            // Its end is the version of the format, and the checksum.
            let body = &whole[..whole.len() - 10];
            let version = &whole[whole.len() - 10..whole.len() - 8];
            let rounds = if long() { 20_000 } else { 1_000 };
            let mut refused = 0;
            for _ in 0..rounds {
                let mut body = body.to_vec();
                random.damage(&mut body, 4);
                body.extend(version);
                body.extend(crc64(&body).to_le_bytes());
                let reply = client.call(&[&"RESTORE", &"x", &"0", &body, &"REPLACE"]);
                // Other bytes may say the same, or name another type.
                refused += u32::from(matches!(reply, Reply::Error(_)));
            }
            assert!(refused > rounds * 8 / 10, "{kind:?}, {key}: {refused} of {rounds}");
            client.call(&[&"RESTORE", &"again", &"0", &whole, &"REPLACE"]).ok();
        }
        assert_eq!(client.ask("CF.EXISTS again a").integer(), 1);
    });
}
