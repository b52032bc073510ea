//! What was added survives: saves, append-only files, copies, dumps of single keys, chunks. What is damaged is refused.

use crate::client::{Client, Reply};
use crate::dumps::{self, dump, load};
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

fn fill(client: &mut Client) {
    for (key, options, items) in KEYS {
        client.ask(&format!("CF.RESERVE {key} {options}")).ok();
        client.insert(key, 0..items);
        if key != "none" {
            assert_eq!(client.ask(&format!("CF.DEL {key} 3")).integer(), 1);
        }
    }
}

/// All that is to be seen of all keys.
fn state(client: &mut Client) -> Vec<Reply> {
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

/// A file that was saved, and files to which was appended, with a snapshot at their beginning or not.
#[test]
fn files_have_everything() {
    each_server(|kind| {
        for settings in [&[][..], &appending("yes"), &appending("no")] {
            let mut server = Server::with(kind, settings);
            let mut client = server.client();
            fill(&mut client);
            // As it was written at first, and as it is rewritten.
            for rewritten in [false, true] {
                let before = state(&mut client);
                match settings.is_empty() {
                    true => server.save_and_restart(),
                    false => server.kill_and_restart(),
                }
                client = server.client();
                assert_eq!(state(&mut client), before, "{kind:?}, {settings:?}, {rewritten}");
                check(&mut client);
                if !settings.is_empty() {
                    rewrite_file(&mut client);
                }
                client.ask("CF.ADD after x");
            }
        }
    });
}

/// By `COPY`, by `DUMP` and `RESTORE`, and chunk by chunk.
#[test]
fn every_filter_is_copied_restored_and_moved_to_another_server() {
    each_server(|kind| {
        let (one, other) = (Server::start(kind), Server::start(kind));
        let (mut from, mut to) = (one.client(), other.client());
        fill(&mut from);
        let before = state(&mut from);
        for (key, _, items) in KEYS {
            let digest = from.digest(key);
            let whole = from.ask(&format!("DUMP {key}"));
            assert_eq!(from.ask(&format!("COPY {key} copy")).integer(), 1);
            assert_eq!(from.digest("copy"), digest, "{kind:?}: {key}");
            // A copy lives on its own.
            from.ask("CF.ADD copy x");
            assert_eq!(from.digest(key), digest, "{kind:?}: {key}");
            from.ask(&format!("UNLINK {key}"));
            assert_eq!(from.ask("CF.DEL copy x").integer(), 1);
            from.ask("DEL copy");
            from.call(&[&"RESTORE", &key, &"0", &whole.bytes()]).ok();
            let chunks = dump(&mut from, key);
            if items == 0 {
                // An empty one has no chunks, and moves as any key does.
                assert!(chunks.is_empty(), "{key}");
                to.call(&[&"RESTORE", &key, &"0", &whole.bytes()]).ok();
            } else {
                assert!(chunks.len() >= 2, "{key}");
                load(&mut to, key, &chunks);
            }
        }
        for client in [&mut from, &mut to] {
            assert_eq!(state(client), before, "{kind:?}");
            check(client);
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

/// In the chunks of a filter, in a file of koel, and in a dumped key whose checksum was made to fit.
#[test]
fn what_is_damaged_is_refused_and_the_server_stays_up() {
    each_client(|kind, client| {
        client.ask("CF.INSERT few CAPACITY 100 ITEMS a b c");
        client.insert("many", 0..30_000);
        client.ask("CF.RESERVE fixed 1000 EXPANSION 0 FORGETAFTER 10000").ok();
        client.ask("CF.ADD fixed a");
        let (_, file) = dumps::state(10);
        client.load_chunk("file", 1, &file).ok();
        let mut random = Random(kind as u64);
        for key in ["few", "many", "fixed", "file"] {
            let chunks = if key == "file" { vec![(1, file.clone())] } else { dump(client, key) };
            let whole = client.ask(&format!("DUMP {key}")).bytes().to_vec();
            // Its end is the version of the format, and the checksum.
            let (body, end) = whole.split_at(whole.len() - 10);
            let rounds = if long() { 5_000 } else { 300 };
            let mut restored = 0;
            for round in 0..rounds {
                client.ask("DEL x");
                let mut is_refused = false;
                for (number, (cursor, chunk)) in chunks.iter().enumerate() {
                    let mut chunk = chunk.clone();
                    if number == round % chunks.len() {
                        random.damage(&mut chunk);
                    }
                    let reply = client.load_chunk("x", *cursor, &chunk);
                    if let Reply::Error(text) = &reply {
                        assert!(!text.contains("internal"), "{kind:?}: {key}, {round}: {text}");
                        is_refused = true;
                    }
                }
                // If nothing is refused, it waits for more.
                let answer = client.ask("CF.EXISTS x a");
                is_refused |= matches!(answer, Reply::Error(_));
                assert!(is_refused, "{kind:?}: {key}, {round}: {answer:?}");

                let mut body = body.to_vec();
                random.damage(&mut body);
                body.extend(&end[..2]);
                body.extend(crc64(&body).to_le_bytes());
                let reply = client.call(&[&"RESTORE", &"x", &"0", &body, &"REPLACE"]);
                restored += usize::from(!matches!(reply, Reply::Error(_)));
            }
            // Other bytes may say the same, or name another type.
            assert!(restored < rounds / 5, "{kind:?}, {key}: {restored} of {rounds}");
            client.ask("DEL x");
            load(client, "x", &chunks);
            client.call(&[&"RESTORE", &"x", &"0", &whole, &"REPLACE"]).ok();
            assert_eq!(client.digest("x"), client.digest(key), "{kind:?}: {key}");
        }
    });
}
