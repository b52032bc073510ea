//! What the commands do to a set, whatever their replies look like.

use crate::client::{Client, Reply};
use crate::dumps::dump;
use crate::replies::error;
use crate::server::{Server, each_client, each_server};

fn fields(client: &mut Client, key: &str) -> Vec<(String, String)> {
    let info = client.ask(&format!("CF.INFO {key}"));
    let show = |reply: &Reply| match reply {
        Reply::Integer(number) => number.to_string(),
        other => other.text(),
    };
    match info {
        Reply::Map(pairs) => pairs.iter().map(|(name, value)| (show(name), show(value))).collect(),
        Reply::Array(all) => all.chunks(2).map(|pair| (show(&pair[0]), show(&pair[1]))).collect(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn info_has_the_fields_that_clients_read_and_more() {
    let names = [
        "Size",
        "Number of buckets",
        "Number of filters",
        "Number of items inserted",
        "Number of items deleted",
        "Bucket size",
        "Expansion rate",
        "Max iterations",
    ];
    each_server(|kind| {
        let server = Server::start(kind);
        for mut client in [server.client(), server.client().with_resp3()] {
            client.ask("CF.ADD k a");
            let fields = fields(&mut client, "k");
            assert_eq!(fields.iter().map(|field| &*field.0).take(8).collect::<Vec<_>>(), names);
        }
    });
}

#[test]
fn an_insert_makes_the_filter_that_a_reserve_would_make() {
    each_client(|kind, client| {
        // A tick of it takes five days.
        let options = "ERROR_RATE 0.0001 SEED 7 FORGETAFTER 6000000";
        client.ask(&format!("CF.RESERVE reserved 5000 {options}")).ok();
        client.ask("CF.INSERT reserved ITEMS a b");
        let before = client.ask("DEBUG DIGEST-VALUE reserved");
        let info = fields(client, "reserved");
        assert!(info.contains(&("Forgets after".into(), "6000000".into())), "{info:?}");
        for (command, options) in [
            ("CF.INSERT", format!("CAPACITY 5000 {options}")),
            ("CF.INSERTNX", format!("{} capacity 5000", options.to_lowercase())),
        ] {
            client.ask("DEL made");
            client.ask(&format!("{command} made {options} ITEMS a b"));
            assert_eq!(fields(client, "made"), info, "{kind:?}: {command}");
            assert_eq!(client.ask("DEBUG DIGEST-VALUE made"), before, "{kind:?}: {command}");
        }
        // A filter that is there stays as it is.
        client.ask("CF.INSERTNX made ERROR_RATE 0.1 SEED 8 FORGETAFTER 1 ITEMS a b");
        assert_eq!(client.ask("DEBUG DIGEST-VALUE made"), before, "{kind:?}");
        // What was not given is as the settings say, and the seed random.
        client.ask("CF.INSERT other FORGETAFTER 60 ITEMS a");
        let other = fields(client, "other");
        for known in [("Error rate", "0.001"), ("Capacity", "1024"), ("Forgets after", "60")] {
            assert!(other.contains(&(known.0.into(), known.1.into())), "{other:?}");
        }
        assert_ne!(other.last(), info.last());
    });
}

/// None of these words is of any use to somebody who sends commands.
const OF_RUST: [&str; 9] =
    ["::", "`", "build", "layout", "hasher", "Hash", "growing", "growth", "push"];

#[test]
fn no_error_speaks_of_another_language() {
    each_client(|kind, client| {
        for (key, options) in [
            ("one", "1000 SEED 1"),
            ("seed", "1000 SEED 2"),
            ("rate", "1000 SEED 1 ERROR_RATE 0.1"),
            ("capacity", "1000000 SEED 1"),
            ("fixed", "6000 SEED 1 EXPANSION 0"),
            ("window", "1000 SEED 1 FORGETAFTER 60"),
        ] {
            client.ask(&format!("CF.RESERVE {key} {options}")).ok();
            client.insert(key, 0..12_000);
        }
        let mut errors = Vec::new();
        for line in [
            "CF.RESERVE k 1000 ERROR_RATE 1e-30",
            "CF.RESERVE k 1000 ERROR_RATE 1e-30 EXPANSION 0",
            "CF.MERGE one seed",
            "CF.MERGE one rate",
            "CF.MERGE one capacity",
            "CF.MERGE one fixed",
            "CF.MERGE one window",
            "CF.SCANDUMP one 99999",
            "CF.ADD fixed x",
        ] {
            errors.push(client.ask(line).error().to_owned());
        }
        // Dumps in a wrong order, of two filters, damaged; and a file of another hash.
        let mut pieces =
            |key| dump(client, key).into_iter().map(|part| part.1).collect::<Vec<Vec<u8>>>();
        let (first, other) = (pieces("capacity"), pieces("rate"));
        assert!(first.len() > 2, "more than a piece, and what follows it");
        let mut damaged = first[1].clone();
        damaged[1_000] ^= 1;
        let mut unlike = Vec::new();
        let filter = koel::ConcurrentCuckooFilter::builder().capacity(10).hasher(Unlike).growing();
        filter.build().expect("memory").write_to(&mut unlike).expect("memory");
        for chunks in [
            vec![&first[1]],
            vec![&first[0], &first[0]],
            vec![&first[0], &other[0]],
            vec![&first[0], &damaged],
            vec![&unlike],
        ] {
            client.ask("DEL k");
            let last = chunks.iter().map(|chunk| client.load_chunk("k", 1, chunk));
            errors.push(last.last().expect("a chunk").error().to_owned());
        }
        let wrong: Vec<_> =
            errors.iter().filter(|error| OF_RUST.iter().any(|word| error.contains(word))).collect();
        assert!(wrong.is_empty(), "{kind:?}: {wrong:#?}");
    });
}

/// A hasher of a program in Rust.
#[derive(Clone)]
struct Unlike;

impl std::hash::BuildHasher for Unlike {
    type Hasher = std::hash::DefaultHasher;

    fn build_hasher(&self) -> Self::Hasher {
        Self::Hasher::new()
    }
}

impl koel::PersistentHasher for Unlike {
    const NAME: &'static str = "unlike";

    fn seed(&self) -> u128 {
        0
    }

    fn from_seed(_: u128) -> Option<Self> {
        Some(Unlike)
    }
}

#[test]
fn copies_are_counted_and_one_item_does_not_fill_the_memory() {
    each_client(|_, client| {
        for _ in 0..5 {
            assert_eq!(client.ask("CF.ADD dup same").integer(), 1);
        }
        assert_eq!(client.ask("CF.COUNT dup same").integer(), 5);
        // Many more are refused, and the filter stays as large as it is.
        let items = vec!["same"; 140_000].join(" ");
        let answers = client.ask(&format!("CF.INSERT dup ITEMS {items}"));
        let refused = answers.array().iter().filter(|answer| answer.integer() == -1).count();
        assert_eq!(answers.array().len(), 140_000);
        assert!((139_900..140_000).contains(&refused), "{refused}");
        let count = client.ask("CF.COUNT dup same").integer();
        assert_eq!(count, 140_005 - refused as i64);
        assert_eq!(client.ask("CF.ADD dup same"), error("Maximum expansions reached"));
        assert_eq!(client.ask("CF.ADD dup other").integer(), 1);
        // One shard.
        assert!(client.memory("dup") < 140_000);
        for _ in 0..count {
            assert_eq!(client.ask("CF.DEL dup same").integer(), 1);
        }
        assert_eq!(client.ask("CF.DEL dup same").integer(), 0);
        assert_eq!(client.ask("CF.EXISTS dup other").integer(), 1);
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

#[test]
fn merge_takes_over_what_others_have() {
    each_client(|kind, client| {
        for key in ["a", "b", "c"] {
            client.ask(&format!("CF.RESERVE {key} 1000 SEED 7")).ok();
        }
        client.ask("CF.INSERT a ITEMS 1 2 3");
        client.insert("b", 3..50_000);
        client.ask("CF.MERGE a b c").ok();
        client.ask("CF.MERGE a a").ok();
        client.ask("CF.MERGE new a b").ok();
        client.ask("CF.MERGE c a a").ok();
        for key in ["a", "new", "c"] {
            assert!(client.has_all(key, 1..50_000), "{kind:?}: {key}");
            let len = client.len(key);
            assert!((49_900..50_000).contains(&len), "{len}");
        }
        client.ask("CF.RESERVE other 1000 SEED 8").ok();
        client.ask("CF.RESERVE fixed 1000 SEED 7 EXPANSION 0").ok();
        client.ask("CF.ADD other x");
        // Refused before a source is merged that would fit.
        client.ask("CF.RESERVE larger 100000 SEED 7").ok();
        client.ask("CF.RESERVE empty 1000 SEED 7").ok();
        client.ask("CF.RESERVE vaguer 1000 SEED 7 ERROR_RATE 0.1").ok();
        client.insert("vaguer", 3..5_003);
        client.ask("CF.INSERT larger ITEMS x y z");
        client.ask("CF.INSERT b ITEMS new newer");
        let before = client.digest("");
        for (line, why) in [
            ("CF.MERGE a other", "different seeds"),
            ("CF.MERGE a fixed", "grows"),
            ("CF.MERGE fixed b", "grows"),
            ("CF.MERGE a c larger", "different capacities"),
            ("CF.MERGE larger a", "different capacities"),
            ("CF.MERGE empty larger", "different capacities"),
            ("CF.MERGE never a larger", "different capacities"),
            ("CF.MERGE a b vaguer", "different rates"),
            ("CF.MERGE a nokey", "not found"),
            ("CF.MERGE a", "wrong number of arguments"),
        ] {
            let reply = client.ask(line);
            assert!(reply.error().contains(why), "{line}: {reply:?}");
            assert_eq!(client.digest(""), before, "{kind:?}: {line} changed something");
        }
        // Few items can be taken over from either kind.
        client.ask("CF.RESERVE few 1000 SEED 7").ok();
        client.ask("CF.ADD few y");
        client.ask("CF.MERGE fixed few").ok();
        assert_eq!(client.ask("CF.EXISTS fixed y").integer(), 1);

        // A set of fixed size takes all or nothing.
        for (key, from, to) in [("first", 0, 700), ("second", 300, 1_000), ("third", 1_000, 1_500)]
        {
            let options = "SEED 7 EXPANSION 0 ERROR_RATE 0.000001";
            client.ask(&format!("CF.RESERVE {key} 1000 {options}")).ok();
            client.insert(key, from..to);
        }
        let before = client.digest("");
        for line in
            ["CF.MERGE first third", "CF.MERGE first second third", "CF.MERGE all first third"]
        {
            let reply = client.ask(line);
            assert!(reply.error().contains("no room for all items"), "{line}: {reply:?}");
        }
        client.ask("CF.RESERVE vague 1000 SEED 7 EXPANSION 0 ERROR_RATE 0.01").ok();
        let reply = client.ask("CF.MERGE first vague");
        assert!(reply.error().contains("different rates"), "{reply:?}");
        client.ask("DEL vague");
        assert_eq!(client.digest(""), before, "{kind:?}: a refused merge changed something");
        for line in ["CF.MERGE all first second", "CF.MERGE first second"] {
            client.ask(line).ok();
        }
        for key in ["first", "all"] {
            assert_eq!(client.len(key), 1_000, "{kind:?}: {key}");
            assert!(client.has_all(key, 0..1_000), "{kind:?}: {key}");
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

#[test]
fn the_rate_stays_as_told_while_it_grows() {
    each_client(|_, client| {
        for rate in [0.01_f64, 0.001, 0.0001] {
            let key = rate.to_string();
            client.ask(&format!("CF.RESERVE {key} 1000 ERROR_RATE {rate}")).ok();
            client.insert(&key, 0..300_000);
            let absent = 1_000_000..1_300_000;
            let found = client.many(&format!("CF.MEXISTS {key}"), absent).iter().sum::<i64>();
            // Four standard deviations above the expectation at most.
            let expected = 300_000.0 * rate;
            let most = expected + 4.0 * expected.sqrt();
            assert!((found as f64) < most, "{rate}: {found} of 300,000");
            assert!(client.has_all(&key, 0..300_000), "{rate}");
        }
    });
}
