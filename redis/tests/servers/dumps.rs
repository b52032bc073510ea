//! `CF.SCANDUMP` and `CF.LOADCHUNK`: a filter moves from server to server, from a laptop and back.

use crate::client::{Client, Reply, items};
use crate::files::{fill, state as state_of};
use crate::replicas::{Random, check_equal, follow};
use crate::server::{Server, appending, each_client, each_server, long, rewrite_file};
use koel::{ConcurrentCuckooFilter, StableHash};

/// Dumps a key, as clients do.
pub fn dump(client: &mut Client, key: &str) -> Vec<(i64, Vec<u8>)> {
    let (mut cursor, mut chunks) = (0, Vec::new());
    loop {
        let reply = client.ask(&format!("CF.SCANDUMP {key} {cursor}"));
        let [next, chunk] = reply.array() else { panic!("{reply:?}") };
        cursor = next.integer();
        assert!((0..1 << 53).contains(&cursor));
        if cursor == 0 {
            // Nothing else was there than nothing.
            assert_eq!(*chunk, if chunks.is_empty() { Reply::Null } else { "".into() });
            return chunks;
        }
        assert!(chunk.bytes().len() <= 16 << 20);
        chunks.push((cursor, chunk.bytes().to_vec()));
    }
}

fn load(client: &mut Client, key: &str, chunks: &[(i64, Vec<u8>)]) {
    for (cursor, chunk) in chunks {
        client.load_chunk(key, *cursor, chunk).ok();
    }
}

#[test]
fn every_filter_with_items_moves_to_another_server() {
    each_server(|kind| {
        let (one, other) = (Server::start(kind), Server::start(kind));
        let (mut from, mut to) = (one.client(), other.client());
        fill(&mut from);
        let keys = from.ask("KEYS *");
        for key in keys.array() {
            let key = key.text();
            let chunks = dump(&mut from, &key);
            // An empty one has no chunks, and moves as any key does.
            if from.len(&key) == 0 {
                assert!(chunks.is_empty(), "{key}");
                let whole = from.ask(&format!("DUMP {key}"));
                to.call(&[&"RESTORE", &key, &"0", &whole.bytes()]).ok();
            } else {
                assert!(chunks.len() >= 2, "{key}");
                load(&mut to, &key, &chunks);
            }
        }
        assert_eq!(state_of(&mut from), state_of(&mut to));
    });
}

#[test]
fn a_filter_may_be_in_use_while_it_is_dumped() {
    each_client(|_, client| {
        client.insert("a", 0..200_000);
        let (mut cursor, mut more) = (0, (200_000..400_000).step_by(50_000));
        loop {
            let reply = client.ask(&format!("CF.SCANDUMP a {cursor}"));
            cursor = reply.array()[0].integer();
            if cursor == 0 {
                break;
            }
            client.load_chunk("b", cursor, reply.array()[1].bytes()).ok();
            if let Some(first) = more.next() {
                client.insert("a", first..first + 50_000);
            }
        }
        assert!(client.has_all("b", 0..200_000));
    });
}

/// Of half a filter, replicas and files only know that there is one. They get the whole one, and have it then.
#[test]
fn half_a_filter_answers_nothing_and_the_whole_one_is_everywhere() {
    each_server(|kind| {
        let mut server = Server::with(kind, &appending("no"));
        let mut client = server.client();
        let early = Server::with(kind, &["--appendonly", "yes"]);
        follow(&early, &server);
        client.ask("CF.RESERVE a 1500000 EXPANSION 0").ok();
        client.ask("CF.INSERT a ITEMS 1 2 3");
        let chunks = dump(&mut client, "a");
        let (first, rest) = chunks.split_at(chunks.len() / 2);
        assert!(rest.len() > 2);
        load(&mut client, "b", first);
        let half = "ADD b 1,EXISTS b 1,INFO b,DEL b 1,COMPACT b,MERGE b a,MERGE a b,SCANDUMP b 0,MEXISTS b 1,\
                    INSERTNX b ITEMS 1";
        for line in half.split(',') {
            assert!(
                client.ask(&format!("CF.{line}")).error().contains("still being loaded"),
                "{line}"
            );
        }
        // The wrong chunk changes nothing, a broken one spoils those before it.
        let (cursor, mut broken) = rest[0].clone();
        broken[5_000] ^= 1;
        for (chunk, spoils) in [(&rest.last().expect("chunks").1, false), (&broken, true)] {
            let reply = client.load_chunk("b", cursor, chunk);
            assert_eq!(reply.error().contains("begin again"), spoils, "{reply:?}");
        }
        load(&mut client, "b", first);
        // Neither a replica that comes now, nor a file, gets in the way.
        let late = Server::start(kind);
        follow(&late, &server);
        rewrite_file(&mut client);
        assert_eq!(client.ask("COPY b copied").integer(), 1);
        client.ask("EXPIRE b 1000");
        load(&mut client, "b", rest);
        for replica in [&early, &late] {
            check_equal(&server, replica, "after the last chunk");
            assert!(replica.client().ask("TTL b").integer() > 0);
        }
        client.ask("PERSIST b");
        let digest = client.digest("a");
        assert_eq!(client.digest("b"), digest, "{kind:?}");
        // A copy, a dump and a restart leave the chunks behind, so these sets are begun again.
        load(&mut client, "c", first);
        let dumped = client.ask("DUMP c");
        client.call(&[&"RESTORE", &"restored", &"0", &dumped.bytes()]).ok();
        server.kill_and_restart();
        let mut client = server.client();
        assert_eq!(client.digest("b"), digest, "{kind:?}: from the file");
        for key in ["c", "copied", "restored"] {
            assert!(
                client.ask(&format!("CF.EXISTS {key} 1")).error().contains("still being loaded")
            );
            load(&mut client, key, &chunks);
            assert_eq!(client.digest(key), digest, "{kind:?}: {key}");
        }
    });
}

/// A file as `koel dedup` writes it.
fn state(items: usize) -> (ConcurrentCuckooFilter<StableHash>, Vec<u8>) {
    let builder = ConcurrentCuckooFilter::builder().capacity(10_000).false_positive_rate(1e-6);
    let filter = builder.hasher(StableHash::with_seed(7)).growing().build().expect("memory");
    for item in 0..items {
        filter.insert(&format!("https://{item}.example/")).expect("memory");
    }
    let mut file = Vec::new();
    filter.write_to(&mut file).expect("memory");
    (filter, file)
}

#[test]
fn a_file_of_koel_is_loaded_cut_anywhere_and_comes_back() {
    each_server(|kind| {
        for (items, cut) in
            [(0, 100), (10, 64), (1_000, 999), (100_000, 77_777), (100_000, 1 << 24)]
        {
            let mut server = Server::with(kind, &appending("yes"));
            let mut client = server.client();
            let (filter, file) = state(items);
            let chunks: Vec<_> = file.chunks(cut).collect();
            for (number, chunk) in chunks.iter().enumerate() {
                client.load_chunk("k", number as i64 + 1, chunk).ok();
            }
            server.kill_and_restart();
            client = server.client();
            assert_eq!(client.len("k") as usize, items);
            assert_eq!(client.ask("CF.INFO k").field("Seed").text(), "7");
            for item in 0..items {
                let item = format!("https://{item}.example/");
                assert_eq!(client.ask(&format!("CF.EXISTS k {item}")).integer(), 1, "{item}");
            }
            // It is changed there, and comes back.
            assert_eq!(client.ask("CF.ADDNX k https://new.example/").integer(), 1);
            filter.insert("https://new.example/").expect("memory");
            let mut loader = ConcurrentCuckooFilter::<StableHash>::loader();
            for (_, chunk) in dump(&mut client, "k") {
                if loader.next().is_some() {
                    loader.push(&chunk).expect("a piece");
                }
            }
            let mut files = [Vec::new(), Vec::new()];
            filter.write_to(&mut files[0]).expect("memory");
            loader.finish().expect("all pieces").write_to(&mut files[1]).expect("memory");
            assert!(files[0] == files[1], "{kind:?}: {items} items");
        }
    });
}

#[test]
fn a_damaged_file_is_refused_at_its_end_and_can_be_begun_again() {
    each_client(|_, client| {
        let (_, file) = state(20_000);
        let mut damaged = file.clone();
        damaged[100_000] ^= 1;
        for (number, chunk) in damaged.chunks(50_000).enumerate() {
            let reply = client.load_chunk("k", number as i64 + 1, chunk);
            if (number + 1) * 50_000 < file.len() {
                reply.ok();
            } else {
                assert!(reply.error().contains("Invalid chunk"), "{reply:?}");
            }
        }
        client.load_chunk("k", 1, &file).ok();
        assert_eq!(client.ask("CF.EXISTS k https://17.example/").integer(), 1);
    });
}

#[test]
fn damaged_chunks_are_refused_and_the_server_stays_up() {
    each_client(|kind, client| {
        client.ask("CF.INSERT few ITEMS a b c");
        let items = items(0..30_000);
        client.ask(&format!("CF.INSERT many CAPACITY 100 ITEMS {items}"));
        client.ask("CF.RESERVE fixed 1000 EXPANSION 0 FORGETAFTER 10000").ok();
        client.ask("CF.ADD fixed a");
        let mut random = Random(kind as u64);
        for key in ["few", "many", "fixed"] {
            let mut chunks = dump(client, key);
            chunks.push((1, state(10).1));
            for round in 0..if long() { 5_000 } else { 300 } {
                client.ask("DEL x");
                let mut refused = false;
                for (number, (cursor, chunk)) in chunks.iter().enumerate() {
                    let mut chunk = chunk.clone();
                    if number == round % chunks.len() {
                        random.damage(&mut chunk, 3);
                    }
                    let reply = client.load_chunk("x", *cursor, &chunk);
                    refused |= matches!(reply, Reply::Error(_));
                    assert!(!matches!(&reply, Reply::Error(text) if text.contains("internal")));
                }
                assert!(refused, "{kind:?}: {key}, {round}");
            }
        }
    });
}

/// Made by programs that koel's users may write: for nothing, or with ticks of a length that nobody lives to see.
#[test]
fn odd_files_of_koel_are_saved_again_as_they_were_loaded() {
    each_server(|kind| {
        let mut server = Server::start(kind);
        let mut client = server.client();
        let builder = ConcurrentCuckooFilter::builder().hasher(StableHash::with_seed(7));
        let nothing = builder.clone().capacity(0).build().expect("memory");
        let patient = builder.clone().capacity(1_000).remembers(62).build().expect("memory");
        patient.tick_to(1 << 62);
        patient.begin_tick_to(1 << 63);
        let timeless = builder.capacity(1_000).growing().remembers(3).build().expect("memory");
        let mut files = [Vec::new(), Vec::new(), Vec::new()];
        nothing.write_to(&mut files[0]).expect("memory");
        patient.write_to(&mut files[1]).expect("memory");
        timeless.write_to(&mut files[2]).expect("memory");
        for (number, file) in files.iter().enumerate() {
            client.load_chunk(&format!("k{number}"), 1, file).ok();
        }
        let before = client.ask("DEBUG DIGEST");
        server.save_and_restart();
        let mut client = server.client();
        assert_eq!(client.ask("DEBUG DIGEST"), before, "{kind:?}");
        assert_eq!(client.ask("KEYS *").array().len(), 3);
    });
}

/// In a key that `CF.ADD` makes, and in one that gets its chunks.
#[test]
fn hot_items_keep_no_others_out() {
    each_client(|_, client| {
        for item in 0..150 {
            let copies = (0..100).take_while(|_| {
                let added = client.ask(&format!("CF.ADD one hot{item}"));
                match added {
                    Reply::Integer(added) => added == 1,
                    _ => false,
                }
            });
            assert!(copies.count() >= 4, "{item}");
        }
        let chunks = dump(client, "one");
        load(client, "other", &chunks);
        for key in ["one", "other"] {
            let added = client.many(&format!("CF.INSERT {key} ITEMS"), 0..200_000);
            let refused: Vec<_> = (0..200_000).filter(|item| added[*item] != 1).collect();
            // With some seeds, an item looks like another copy of a hot one, which has as many as it may.
            assert!(refused.len() < 4, "{key}: {refused:?}");
            for item in refused {
                let copies = client.ask(&format!("CF.COUNT {key} {item}")).integer();
                assert!(copies >= 4, "{key}: {item} was refused beside {copies} copies");
            }
            assert!(
                (0..150).all(|item| {
                    client.ask(&format!("CF.COUNT {key} hot{item}")).integer() >= 4
                })
            );
        }
    });
}
