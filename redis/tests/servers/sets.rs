//! What the commands do to a set, whatever their replies look like.

use crate::client::{Client, Reply};
use crate::dumps::{dump, load};
use crate::server::each_client;

#[test]
fn info_begins_with_the_figures_that_clients_know_by_their_order() {
    let names = "Size,Number of buckets,Number of filters,Number of items inserted,Number of items deleted,\
                 Bucket size,Expansion rate,Max iterations";
    each_client(|kind, client| {
        client.ask("CF.ADD k a");
        let info = client.ask("CF.INFO k");
        let first: Vec<_> = info.array().iter().step_by(2).take(8).map(Reply::text).collect();
        assert_eq!(first.join(","), names, "{kind:?}");
    });
}

#[test]
fn an_insert_makes_the_filter_that_a_reserve_would_make() {
    let look = |client: &mut Client, key: &str| {
        ["CF.INFO", "DEBUG DIGEST-VALUE"].map(|command| client.ask(&format!("{command} {key}")))
    };
    each_client(|kind, client| {
        // A tick of it takes five days.
        let options = "ERROR_RATE 0.0001 SEED 7 FORGETAFTER 6000000";
        client.ask(&format!("CF.RESERVE reserved 5000 {options}")).ok();
        client.ask("CF.INSERT reserved ITEMS a b");
        let reserved = look(client, "reserved");
        for (key, line) in [
            ("made", format!("CF.INSERT made CAPACITY 5000 {options} ITEMS a b")),
            ("new", format!("CF.INSERTNX new {} capacity 5000 ITEMS a b", options.to_lowercase())),
            // A filter that is there stays as it is.
            ("new", "CF.INSERTNX new ERROR_RATE 0.1 SEED 8 FORGETAFTER 1 ITEMS a b".into()),
        ] {
            client.ask(&line);
            assert_eq!(look(client, key), reserved, "{kind:?}: {line}");
        }
        // The seed is random if it was not given.
        let seeds = ["one", "other"].map(|key| {
            client.ask(&format!("CF.ADD {key} a"));
            client.ask(&format!("CF.INFO {key}")).field("Seed").text()
        });
        assert_ne!(seeds[0], seeds[1], "{kind:?}");
    });
}

/// Neither in a key that `CF.ADD` makes, nor in one that gets its chunks.
#[test]
fn copies_of_hot_items_are_refused_and_keep_no_others_out() {
    each_client(|kind, client| {
        let hot: Vec<_> = (0..150).map(|item| format!("hot{item}")).collect();
        for _ in 0..100 {
            client.ask(&format!("CF.INSERT one ITEMS {}", hot.join(" ")));
        }
        // It is as large as ever: one shard.
        assert!(client.memory("one") < 140_000, "{kind:?}");
        let refused = client.ask("CF.ADD one hot0");
        assert!(refused.error().contains("Maximum expansions reached"), "{refused:?}");
        let chunks = dump(client, "one");
        load(client, "other", &chunks);
        for key in ["one", "other"] {
            let added = client.many(&format!("CF.INSERT {key} ITEMS"), 0..200_000);
            let refused: Vec<_> = (0..200_000).filter(|item| added[*item] != 1).collect();
            // With some seeds, an item looks like another copy of a hot one, which has as many as it may.
            assert!(refused.len() < 4, "{kind:?}: {key}: {refused:?}");
            let refused = refused.iter().map(usize::to_string);
            for item in hot.iter().cloned().chain(refused) {
                let copies = client.ask(&format!("CF.COUNT {key} {item}")).integer();
                assert!(copies >= 4, "{kind:?}: {key}: {item} has {copies} copies");
            }
        }
        let copies = client.ask("CF.COUNT one hot0").integer();
        let deleted = (0..=copies).map(|_| client.ask("CF.DEL one hot0").integer());
        assert_eq!(deleted.sum::<i64>(), copies, "{kind:?}");
    });
}

#[test]
fn compact_forgets_the_deleted_and_frees_an_empty_filter() {
    each_client(|_, client| {
        client.many("CF.INSERTNX k ITEMS", 0..100_000);
        let large = client.memory("k");
        client.ask("CF.DEL k 17");
        client.ask("CF.COMPACT k").ok();
        assert_eq!(client.ask("CF.INFO k").field("Number of items deleted").integer(), 0);
        assert_eq!(client.memory("k"), large);
        // False positives hid a few from being added.
        let left = client.len("k") - client.delete("k", 0..100_000);
        assert!(left.abs() < 500, "{left}");
        while client.len("k") > 0 {
            client.delete("k", 0..100_000);
        }
        client.ask("CF.COMPACT k").ok();
        assert!(client.memory("k") < 300);
        assert_eq!(client.ask("CF.ADD k a").integer(), 1);
    });
}

/// (What is refused, and small sets: `replies.txt`.)
#[test]
fn merge_takes_over_what_others_have() {
    each_client(|kind, client| {
        for (key, items) in [("a", 0..5_000), ("b", 3..50_000), ("c", 0..0)] {
            client.ask(&format!("CF.RESERVE {key} 1000 SEED 7")).ok();
            client.insert(key, items);
        }
        for line in ["CF.MERGE a b c", "CF.MERGE a a", "CF.MERGE new a b", "CF.MERGE c a a"] {
            client.ask(line).ok();
        }
        for key in ["a", "new", "c"] {
            assert!(client.has_all(key, 0..50_000), "{kind:?}: {key}");
            let len = client.len(key);
            assert!((49_900..50_001).contains(&len), "{kind:?}: {key} has {len}");
        }
    });
}

#[test]
fn items_may_be_any_bytes() {
    each_client(|_, client| {
        let items: [&[u8]; 4] = [b"", b"\0\r\n", &[0xFF; 3], &[b'x'; 100_000]];
        for item in items {
            assert_eq!(client.call(&[&"CF.ADDNX", &"k", &item]).integer(), 1);
            assert_eq!(client.call(&[&"CF.EXISTS", &"k", &item]).integer(), 1);
        }
    });
}
