//! `CF.SCANDUMP` and `CF.LOADCHUNK`: a filter moves from server to server, from a laptop and back.

use crate::client::{Client, Reply};
use crate::replicas::{check_equal, follow};
use crate::server::{Server, appending, each_client, each_server, rewrite_file};
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

pub fn load(client: &mut Client, key: &str, chunks: &[(i64, Vec<u8>)]) {
    for (cursor, chunk) in chunks {
        client.load_chunk(key, *cursor, chunk).ok();
    }
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
        for (chunk, why, spoils) in [
            (&rest.last().expect("chunks").1, "this chunk does not follow the one before", false),
            (&broken, "damaged", true),
        ] {
            let reply = client.load_chunk("b", cursor, chunk);
            let error = reply.error();
            assert!(error.starts_with("ERR Invalid chunk: ") && error.contains(why), "{error}");
            assert_eq!(error.ends_with("begin again with the first"), spoils, "{error}");
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
pub fn state(items: usize) -> (ConcurrentCuckooFilter<StableHash>, Vec<u8>) {
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
    each_client(|kind, client| {
        for (items, cut) in
            [(0, 100), (10, 64), (1_000, 999), (100_000, 77_777), (100_000, 1 << 24)]
        {
            let (filter, file) = state(items);
            client.ask("DEL k");
            for (number, chunk) in file.chunks(cut).enumerate() {
                client.load_chunk("k", number as i64 + 1, chunk).ok();
            }
            assert_eq!(client.len("k") as usize, items);
            assert_eq!(client.ask("CF.INFO k").field("Seed").text(), "7");
            // It is changed there, and comes back.
            assert_eq!(client.ask("CF.ADDNX k https://new.example/").integer(), 1);
            filter.insert("https://new.example/").expect("memory");
            let mut loader = ConcurrentCuckooFilter::<StableHash>::loader();
            for (_, chunk) in dump(client, "k") {
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

/// What a cut-off load left behind is no hindrance: the first chunk begins anew, of a dump and of a file.
#[test]
fn chunks_come_one_after_the_other_or_from_the_first_on_again() {
    each_client(|kind, client| {
        let (_, file) = state(10_000);
        let parts = file.chunks(file.len() / 3).zip(1..).map(|(part, n)| (n, part.to_vec()));
        client.ask("CF.RESERVE a 1500000 EXPANSION 0").ok();
        client.ask("CF.INSERT a ITEMS 1 2 3");
        for (what, chunks) in [("file", parts.collect::<Vec<_>>()), ("dump", dump(client, "a"))] {
            let key = format!("{what} k");
            let mut push =
                |place: usize| client.load_chunk(&key, chunks[place].0, &chunks[place].1);
            assert!(chunks.len() > 3, "{kind:?}: {what}");
            push(0).ok();
            for wrong in [2, 3] {
                let refused = push(wrong);
                assert!(refused.error().contains("does not follow the one before"), "{refused:?}");
            }
            push(1).ok();
            assert!(push(1).error().contains("follow"), "{kind:?}: {what}");
            push(0).ok();
            assert!(push(2).error().contains("follow"), "{kind:?}: {what}");
            (1..chunks.len()).for_each(|place| push(place).ok());
            assert!(client.call(&[&"CF.INFO", &key]).field("Seed").text() != "");
        }
        // What is no chunk at all changes nothing.
        client.load_chunk("k", 1, &file[..100]).ok();
        assert!(client.load_chunk("k", 1, b"garbage").error().contains("follow"));
        assert!(client.load_chunk("other", 2, &file[..100]).error().contains("follow"));
        client.load_chunk("k", 2, &file[100..]).ok();
        assert_eq!(client.len("k"), 10_000);
        // So does the first chunk of another kind, either way.
        let dumped = dump(client, "a");
        client.load_chunk("to-a-dump", 1, &file[..100]).ok();
        load(client, "to-a-dump", &dumped);
        assert_eq!(client.digest("to-a-dump"), client.digest("a"), "{kind:?}");
        load(client, "to-a-file", &dumped[..1]);
        client.load_chunk("to-a-file", 1, &file).ok();
        assert_eq!(client.len("to-a-file"), 10_000, "{kind:?}");
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
        for (number, filter) in [nothing, patient, timeless].iter().enumerate() {
            let mut file = Vec::new();
            filter.write_to(&mut file).expect("memory");
            client.load_chunk(&format!("k{number}"), 1, &file).ok();
        }
        let before = client.ask("DEBUG DIGEST");
        server.save_and_restart();
        let mut client = server.client();
        assert_eq!(client.ask("DEBUG DIGEST"), before, "{kind:?}");
        assert_eq!(client.ask("KEYS *").array().len(), 3);
    });
}
