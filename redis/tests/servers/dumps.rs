//! `CF.SCANDUMP` and `CF.LOADCHUNK`: a filter moves from server to server, from a laptop and back.

use crate::client::{Client, Reply};
use crate::files::{fill, state};
use crate::server::{Server, await_that, each_server};

/// Dumps a key, as clients do.
fn dump(client: &mut Client, key: &str) -> Vec<(i64, Vec<u8>)> {
    let (mut cursor, mut chunks) = (0, Vec::new());
    loop {
        let reply = client.ask(&format!("CF.SCANDUMP {key} {cursor}"));
        let [next, chunk] = reply.array() else { panic!("{reply:?}") };
        cursor = next.integer();
        assert!((0..1 << 53).contains(&cursor));
        if cursor == 0 {
            assert_eq!(chunk.bytes(), b"");
            return chunks;
        }
        assert!(chunk.bytes().len() <= 16 << 20);
        chunks.push((cursor, chunk.bytes().to_vec()));
    }
}

fn load(client: &mut Client, key: &str, chunks: &[(i64, Vec<u8>)]) {
    for (cursor, chunk) in chunks {
        client.call(&[&"CF.LOADCHUNK", &key, &cursor.to_string(), chunk]).ok();
    }
}

#[test]
fn every_filter_moves_to_another_server_also_an_empty_one() {
    each_server(|kind| {
        let (one, other) = (Server::start(kind), Server::start(kind));
        let (mut from, mut to) = (one.client(), other.client());
        fill(&mut from);
        let keys = from.ask("KEYS *");
        for key in keys.array() {
            let chunks = dump(&mut from, &key.text());
            assert!(chunks.len() >= 2, "{}", key.text());
            load(&mut to, &key.text(), &chunks);
        }
        assert_eq!(state(&mut from), state(&mut to));
    });
}

#[test]
fn a_filter_may_be_in_use_while_it_is_dumped() {
    each_server(|kind| {
        let server = Server::start(kind);
        let mut client = server.client();
        let items: Vec<_> = (0..400_000).map(|item| item.to_string()).collect();
        for items in items[..200_000].chunks(10_000) {
            client.ask(&format!("CF.INSERT a ITEMS {}", items.join(" ")));
        }
        let (mut cursor, mut more) = (0, items[200_000..].chunks(50_000));
        loop {
            let reply = client.ask(&format!("CF.SCANDUMP a {cursor}"));
            cursor = reply.array()[0].integer();
            if cursor == 0 {
                break;
            }
            client
                .call(&[&"CF.LOADCHUNK", &"b", &cursor.to_string(), &reply.array()[1].bytes()])
                .ok();
            if let Some(items) = more.next() {
                client.ask(&format!("CF.INSERT a ITEMS {}", items.join(" ")));
            }
        }
        for items in items[..200_000].chunks(10_000) {
            let found = client.ask(&format!("CF.MEXISTS b {}", items.join(" ")));
            assert!(found.array().iter().all(|found| found.integer() == 1));
        }
    });
}

#[test]
fn positions_and_headers_are_checked() {
    each_server(|kind| {
        let server = Server::start(kind);
        let mut client = server.client();
        client.ask("CF.INSERT a ITEMS 1 2 3");
        for (line, why) in [
            ("CF.SCANDUMP a -1", "ERR Invalid position"),
            ("CF.SCANDUMP a x", "ERR Invalid position"),
            ("CF.SCANDUMP a 99999", "ERR Invalid position"),
            ("CF.SCANDUMP a", "ERR wrong number of arguments for 'cf.scandump' command"),
            ("CF.LOADCHUNK b 1 short", "ERR Invalid header"),
            ("CF.LOADCHUNK b 0 x", "ERR Invalid position"),
            ("CF.LOADCHUNK b x x", "ERR Invalid position"),
            ("CF.LOADCHUNK b 2 x", "ERR not found"),
            ("CF.LOADCHUNK a 1 x", "ERR item exists"),
            ("CF.LOADCHUNK a 1", "ERR wrong number of arguments for 'cf.loadchunk' command"),
        ] {
            assert_eq!(client.ask(line).error(), why, "{kind:?}: {line}");
        }
        assert_eq!(client.ask("EXISTS b").integer(), 0);
    });
}

#[test]
fn half_a_filter_answers_nothing_and_is_saved_copied_and_replicated() {
    each_server(|kind| {
        let settings = ["--appendonly", "yes", "--aof-use-rdb-preamble", "no"];
        let mut server = Server::with(kind, &settings);
        let mut client = server.client();
        client.ask("CF.RESERVE a 1500000 EXPANSION 0").ok();
        client.ask("CF.INSERT a ITEMS 1 2 3");
        let chunks = dump(&mut client, "a");
        let (first, rest) = chunks.split_at(chunks.len() / 2);
        assert!(rest.len() > 2);
        load(&mut client, "b", first);
        for line in [
            "CF.ADD b 1",
            "CF.EXISTS b 1",
            "CF.INFO b",
            "CF.DEL b 1",
            "CF.COMPACT b",
            "CF.MERGE b a",
            "CF.MERGE a b",
            "CF.SCANDUMP b 0",
            "CF.MEXISTS b 1",
            "CF.INSERTNX b ITEMS 1",
        ] {
            assert!(client.ask(line).error().contains("still being loaded"), "{line}");
        }
        // The wrong chunk, or a broken one, changes nothing.
        let (cursor, last) = rest.last().expect("chunks");
        assert!(matches!(
            client.call(&[&"CF.LOADCHUNK", &"b", &cursor.to_string(), last]),
            Reply::Error(_)
        ));
        let (cursor, mut broken) = rest[0].clone();
        broken[5_000] ^= 1;
        assert!(matches!(
            client.call(&[&"CF.LOADCHUNK", &"b", &cursor.to_string(), &broken]),
            Reply::Error(_)
        ));
        // However it is kept, it goes on from there.
        assert_eq!(client.ask("COPY b copied").integer(), 1);
        let dumped = client.ask("DUMP b");
        client.call(&[&"RESTORE", &"restored", &"0", &dumped.bytes()]).ok();
        client.ask("BGREWRITEAOF");
        await_that("the file is rewritten", || {
            let info = client.ask("INFO persistence").text();
            info.contains("aof_rewrite_in_progress:0") && info.contains("aof_rewrite_scheduled:0")
        });
        server.kill_and_restart();
        let replica = Server::start(kind);
        replica.client().ask(&format!("REPLICAOF 127.0.0.1 {}", server.port)).ok();
        let mut client = server.client();
        await_that("the replica is there", || {
            replica.client().ask("INFO replication").text().contains("master_link_status:up")
        });
        for key in ["b", "copied", "restored"] {
            load(&mut client, key, rest);
            let digest = client.ask("DEBUG DIGEST-VALUE a");
            assert_eq!(client.ask(&format!("DEBUG DIGEST-VALUE {key}")), digest, "{kind:?}: {key}");
            await_that("the replica has it", || {
                replica.client().ask(&format!("DEBUG DIGEST-VALUE {key}")) == digest
            });
        }
        assert_eq!(client.ask("CF.MEXISTS b 1 2 3").array().len(), 3);
    });
}
