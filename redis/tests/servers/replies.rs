//! Every command, argument and error is answered as RedisBloom answers it, in both versions of the protocol.

use crate::client::{Client, Reply};
use crate::server::{Server, each_server};

/// An error, as a client shows it: without the code that says that it is one.
fn error(text: &str) -> Reply {
    match text.starts_with("WRONGTYPE") {
        true => Reply::Error(text.into()),
        false => Reply::Error(format!("ERR {text}")),
    }
}

fn ok() -> Reply {
    Reply::Simple("OK".into())
}

const WRONG_TYPE: &str = "WRONGTYPE Operation against a key holding the wrong kind of value";
const CAPACITY: &str = "Capacity must be in the range [2 * BUCKETSIZE, 1073741824]";

/// Runs calls with their replies, in both versions. `T` and `F` are true and false, which are 1 and 0 in the
/// second version.
fn check(calls: &[(&str, Reply)]) {
    each_server(|kind| {
        for resp3 in [false, true] {
            let server = Server::start(kind);
            let mut client = server.client();
            if resp3 {
                client = client.with_resp3();
            }
            for (call, expected) in calls {
                let expected = if resp3 { expected.clone() } else { in_resp2(expected) };
                assert_eq!(client.ask(call), expected, "{kind:?}, RESP3 {resp3}: {call}");
            }
        }
    });
}

fn in_resp2(reply: &Reply) -> Reply {
    match reply {
        Reply::Bool(truth) => Reply::Integer((*truth).into()),
        Reply::Array(elements) => Reply::Array(elements.iter().map(in_resp2).collect()),
        other => other.clone(),
    }
}

const T: Reply = Reply::Bool(true);
const F: Reply = Reply::Bool(false);

fn array<R: Into<Reply>>(elements: impl IntoIterator<Item = R>) -> Reply {
    Reply::Array(elements.into_iter().map(Into::into).collect())
}

#[test]
fn reserve() {
    check(&[
        ("CF.RESERVE k", error("wrong number of arguments for 'cf.reserve' command")),
        ("CF.RESERVE k abc", error("Bad capacity")),
        ("CF.RESERVE k 0", error(CAPACITY)),
        ("CF.RESERVE k -5", error(CAPACITY)),
        ("CF.RESERVE k 1", error(CAPACITY)),
        ("CF.RESERVE k 3", error(CAPACITY)),
        ("EXISTS k", 0.into()),
        ("CF.RESERVE k 4", ok()),
        ("CF.RESERVE k 4", error("item exists")),
        ("CF.RESERVE k2 1073741825", error(CAPACITY)),
        (
            "CF.RESERVE k2 1000 BUCKETSIZE 0",
            error("BUCKETSIZE: value must be in the range [1, 255]"),
        ),
        (
            "CF.RESERVE k2 1000 BUCKETSIZE 256",
            error("BUCKETSIZE: value must be in the range [1, 255]"),
        ),
        ("CF.RESERVE k2 1000 BUCKETSIZE x", error("Couldn't parse BUCKETSIZE")),
        (
            "CF.RESERVE k2 1000 MAXITERATIONS 0",
            error("MAXITERATIONS: value must be in the range [1, 65535]"),
        ),
        (
            "CF.RESERVE k2 1000 MAXITERATIONS 65536",
            error("MAXITERATIONS: value must be in the range [1, 65535]"),
        ),
        (
            "CF.RESERVE k2 1000 EXPANSION 32769",
            error("EXPANSION: value must be in the range [0, 32768]"),
        ),
        ("CF.RESERVE k2 1000 EXPANSION x", error("Couldn't parse EXPANSION")),
        (
            "CF.RESERVE k2 1000 EXPANSION",
            error("wrong number of arguments for 'cf.reserve' command"),
        ),
        (
            "CF.RESERVE k2 1000 ERROR_RATE 0",
            error("ERROR_RATE: value must be greater than 0 and less than 1"),
        ),
        (
            "CF.RESERVE k2 1000 ERROR_RATE 1",
            error("ERROR_RATE: value must be greater than 0 and less than 1"),
        ),
        ("CF.RESERVE k2 1000 ERROR_RATE x", error("Couldn't parse ERROR_RATE")),
        (
            "CF.RESERVE k2 1000 ERROR_RATE nan",
            error("ERROR_RATE: value must be greater than 0 and less than 1"),
        ),
        ("CF.RESERVE k2 1000 SEED -1", error("Couldn't parse SEED")),
        ("EXISTS k2", 0.into()),
        ("CF.RESERVE k2 1000 FOO 3", ok()),
        ("CF.RESERVE k3 10 BUCKETSIZE 6", error(CAPACITY)),
        ("SET str x", ok()),
        ("CF.RESERVE str 100", error(WRONG_TYPE)),
        ("TYPE k", Reply::Simple("koel-cuck".into())),
    ]);
}

#[test]
fn a_rate_that_cannot_be_kept_is_refused_with_the_reason() {
    each_server(|kind| {
        let server = Server::start(kind);
        let reply = server.client().ask("CF.RESERVE k 1000 ERROR_RATE 0.000000000001");
        assert!(reply.error().contains("rate"), "{reply:?}");
    });
}

#[test]
fn one_item() {
    check(&[
        ("CF.ADD new a", T),
        ("CF.ADDNX new a", F),
        ("CF.ADDNX new b", T),
        ("CF.ADD new", error("wrong number of arguments for 'cf.add' command")),
        ("CF.ADD new a b", error("wrong number of arguments for 'cf.add' command")),
        ("CF.ADDNX new", error("wrong number of arguments for 'cf.addnx' command")),
        ("CF.COUNT new a", 1.into()),
        ("CF.EXISTS new zz", F),
        ("CF.EXISTS new a", T),
        ("CF.EXISTS new", error("wrong number of arguments for 'cf.exists' command")),
        ("CF.MEXISTS new a b zz", array([T, T, F])),
        ("CF.MEXISTS new", error("wrong number of arguments for 'cf.mexists' command")),
        ("CF.EXISTS nokey a", F),
        ("CF.MEXISTS nokey a b", array([F, F])),
        ("CF.COUNT nokey a", 0.into()),
        ("CF.DEL nokey a", error("Not found")),
        ("CF.DEL new zz", F),
        ("CF.DEL new a", T),
        ("CF.DEL new a", F),
        ("CF.ADDNX other a", T),
        ("EXISTS nokey", 0.into()),
    ]);
}

#[test]
fn keys_of_other_types() {
    check(&[
        ("SET str x", ok()),
        ("CF.ADD str a", error(WRONG_TYPE)),
        ("CF.ADDNX str a", error(WRONG_TYPE)),
        ("CF.INSERT str ITEMS a", error(WRONG_TYPE)),
        ("CF.INSERTNX str ITEMS a", error(WRONG_TYPE)),
        ("CF.EXISTS str a", F),
        ("CF.MEXISTS str a", array([F])),
        ("CF.COUNT str a", 0.into()),
        ("CF.DEL str a", error("Not found")),
        ("CF.INFO str", error(WRONG_TYPE)),
        ("CF.SCANDUMP str 0", error(WRONG_TYPE)),
        ("CF.LOADCHUNK str 1 x", error(WRONG_TYPE)),
        ("CF.COMPACT str", error("Cuckoo filter was not found")),
        ("CF.ADD set a", T),
        ("CF.MERGE str set", error(WRONG_TYPE)),
        ("CF.MERGE set str", error(WRONG_TYPE)),
        ("GET str", "x".into()),
        ("GET set", error(WRONG_TYPE)),
    ]);
}

#[test]
fn missing_keys() {
    check(&[
        ("CF.INFO nokey", error("not found")),
        ("CF.SCANDUMP nokey 0", error("not found")),
        ("CF.COMPACT nokey", error("Cuckoo filter was not found")),
        ("CF.INSERT nokey NOCREATE ITEMS a", error("not found")),
        ("CF.MERGE nokey other", error("not found")),
        ("CF.LOADCHUNK nokey 2 x", error("not found")),
        ("EXISTS nokey", 0.into()),
    ]);
}

#[test]
fn many_items() {
    let range = "Capacity must be in the range [cf-bucket-size * 2, 1073741824]";
    check(&[
        ("CF.INSERT ins CAPACITY 3 ITEMS a", error(range)),
        ("CF.INSERT ins CAPACITY x ITEMS a", error("Bad capacity")),
        ("CF.INSERT ins FOO ITEMS a", error("Unknown argument received")),
        ("CF.INSERT ins ITEMS", error("wrong number of arguments for 'cf.insert' command")),
        ("CF.INSERT ins a b", error("Unknown argument received")),
        ("CF.INSERTNX ins ITEMS", error("wrong number of arguments for 'cf.insertnx' command")),
        ("EXISTS ins", 0.into()),
        ("CF.INSERT ins CAPACITY 5000 ITEMS a b a", array([T, T, T])),
        ("CF.INSERTNX ins ITEMS a b c c", array([0, 0, 1, 0])),
        ("CF.INSERT ins NOCREATE ITEMS d", array([T])),
        ("CF.INSERTNX ins NOCREATE CAPACITY 9 ITEMS d e", array([0, 1])),
        ("CF.COUNT ins a", 2.into()),
        ("CF.MEXISTS ins a b c d e f", array([T, T, T, T, T, F])),
    ]);
}

#[test]
fn a_filter_of_fixed_size_takes_exactly_what_was_asked_for() {
    each_server(|kind| {
        let server = Server::start(kind);
        for (resp3, full) in [(false, Reply::Integer(-1)), (true, F)] {
            let mut client = server.client();
            if resp3 {
                client = client.with_resp3();
            }
            let yes = if resp3 { T } else { 1.into() };
            client.ask("DEL full");
            client.ask("CF.RESERVE full 4 EXPANSION 0").ok();
            let mut expected = vec![yes; 4];
            expected.extend(vec![full; 3]);
            assert_eq!(client.ask("CF.INSERT full ITEMS 1 2 3 4 5 6 7"), Reply::Array(expected));
            assert_eq!(client.ask("CF.ADD full 8"), error("Filter is full"));
            assert_eq!(client.ask("CF.ADDNX full 8"), error("Filter is full"));
            assert_eq!(client.ask("CF.ADDNX full 4").integer(), 0);
            assert_eq!(client.ask("CF.INSERTNX full ITEMS 8 1"), array([-1, 0]));
            assert_eq!(client.ask("CF.INFO full").field("Number of items inserted").integer(), 4);
        }
        // Of any size, item by item and in batches.
        let mut client = server.client();
        for capacity in [32, 33, 1_000, 100_000] {
            client.ask(&format!("CF.RESERVE {capacity} {capacity} EXPANSION 0")).ok();
            let (mut added, mut item) = (0, 0);
            while item < capacity + 2_000 {
                let items: Vec<_> = (item..item + 500).map(|item| item.to_string()).collect();
                let line = format!("CF.INSERTNX {capacity} ITEMS {}", items.join(" "));
                let answers = client.ask(&line);
                added += answers.array().iter().filter(|answer| answer.integer() == 1).count();
                item += 500;
            }
            assert_eq!(added, capacity as usize, "{kind:?}");
        }
    });
}

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
        let (mut second, mut third) = (server.client(), server.client().with_resp3());
        let options =
            "EXPANSION 3 BUCKETSIZE 4 MAXITERATIONS 7 ERROR_RATE 0.0001 SEED 18446744073709551615";
        second.ask(&format!("CF.RESERVE k 1000 {options}")).ok();
        second.ask("CF.INSERT k ITEMS a b c");
        second.ask("CF.DEL k a");
        let fields = fields(&mut second, "k");
        assert_eq!(fields, self::fields(&mut third, "k"));
        assert!(matches!(third.ask("CF.INFO k"), Reply::Map(_)));
        assert!(matches!(second.ask("CF.INFO k"), Reply::Array(_)));
        assert_eq!(fields.iter().map(|field| &*field.0).take(8).collect::<Vec<_>>(), names);
        let of = |name: &str| fields.iter().find(|field| field.0 == name).expect(name).1.clone();
        assert_eq!([of("Number of filters"), of("Number of items inserted")], ["1", "2"]);
        assert_eq!([of("Number of items deleted"), of("Bucket size")], ["1", "4"]);
        assert_eq!(
            [of("Expansion rate"), of("Max iterations"), of("Capacity")],
            ["4", "7", "1000"]
        );
        assert_eq!([of("Error rate"), of("Seed")], ["0.0001", "18446744073709551615"]);
        assert_eq!(second.ask("CF.INFO"), error("wrong number of arguments for 'cf.info' command"));
    });
}

#[test]
fn copies_are_counted_and_one_item_does_not_fill_the_memory() {
    each_server(|kind| {
        let server = Server::start(kind);
        let mut client = server.client();
        for _ in 0..6 {
            assert_eq!(client.ask("CF.ADD dup same").integer(), 1);
        }
        assert_eq!(client.ask("CF.COUNT dup same").integer(), 6);
        // Many more are refused, and the filter stays as large as it is.
        let items = vec!["same"; 140_000].join(" ");
        let answers = client.ask(&format!("CF.INSERT dup ITEMS {items}"));
        let refused = answers.array().iter().filter(|answer| answer.integer() == -1).count();
        assert_eq!(answers.array().len(), 140_000);
        assert!((139_900..140_000).contains(&refused), "{refused}");
        let count = client.ask("CF.COUNT dup same").integer();
        assert_eq!(count, 140_006 - refused as i64);
        assert_eq!(client.ask("CF.ADD dup same"), error("Maximum expansions reached"));
        assert_eq!(client.ask("CF.ADD dup other").integer(), 1);
        assert!(client.ask("MEMORY USAGE dup").integer() < 10_000);
        for _ in 0..count {
            assert_eq!(client.ask("CF.DEL dup same").integer(), 1);
        }
        assert_eq!(client.ask("CF.DEL dup same").integer(), 0);
        assert_eq!(client.ask("CF.EXISTS dup other").integer(), 1);
    });
}

#[test]
fn compact_forgets_the_deleted_and_frees_an_empty_filter() {
    each_server(|kind| {
        let server = Server::start(kind);
        let mut client = server.client();
        let items: Vec<_> = (0..100_000).map(|item| item.to_string()).collect();
        client.ask(&format!("CF.INSERTNX k ITEMS {}", items.join(" ")));
        let large = client.ask("MEMORY USAGE k").integer();
        client.ask("CF.DEL k 17");
        client.ask("CF.COMPACT k").ok();
        assert_eq!(client.ask("CF.INFO k").field("Number of items deleted").integer(), 0);
        assert_eq!(client.ask("MEMORY USAGE k").integer(), large);
        // False positives hid a few from being added.
        let mut left = client.ask("CF.INFO k").field("Number of items inserted").integer();
        for item in &items {
            left -= client.ask(&format!("CF.DEL k {item}")).integer();
        }
        assert!(left.abs() < 500, "{left}");
        while client.ask("CF.INFO k").field("Number of items inserted").integer() > 0 {
            items.iter().for_each(|item| drop(client.ask(&format!("CF.DEL k {item}"))));
        }
        client.ask("CF.COMPACT k").ok();
        assert!(client.ask("MEMORY USAGE k").integer() < 300);
        assert_eq!(client.ask("CF.ADD k a").integer(), 1);
        assert_eq!(
            client.ask("CF.COMPACT"),
            error("wrong number of arguments for 'cf.compact' command")
        );
    });
}

#[test]
fn merge_takes_over_what_others_have() {
    each_server(|kind| {
        let server = Server::start(kind);
        let mut client = server.client();
        for key in ["a", "b", "c"] {
            client.ask(&format!("CF.RESERVE {key} 1000 SEED 7")).ok();
        }
        client.ask("CF.INSERT a ITEMS 1 2 3");
        let items: Vec<_> = (3..50_000).map(|item| item.to_string()).collect();
        client.ask(&format!("CF.INSERT b ITEMS {}", items.join(" ")));
        client.ask("CF.MERGE a b c").ok();
        client.ask("CF.MERGE a a").ok();
        client.ask("CF.MERGE new a b").ok();
        client.ask("CF.MERGE c a a").ok();
        for key in ["a", "new", "c"] {
            let found = client.ask(&format!("CF.MEXISTS {key} 1 2 {}", items.join(" ")));
            assert!(found.array().iter().all(|found| found.integer() == 1), "{kind:?}: {key}");
            let len =
                client.ask(&format!("CF.INFO {key}")).field("Number of items inserted").integer();
            assert!((49_900..50_000).contains(&len), "{len}");
        }
        client.ask("CF.RESERVE other 1000 SEED 8").ok();
        client.ask("CF.RESERVE fixed 1000 SEED 7 EXPANSION 0").ok();
        client.ask("CF.ADD other x");
        for (line, why) in [
            ("CF.MERGE a other", "different seeds"),
            ("CF.MERGE a fixed", "grows"),
            ("CF.MERGE fixed b", "grows"),
            ("CF.MERGE a nokey", "not found"),
            ("CF.MERGE a", "wrong number of arguments"),
        ] {
            let reply = client.ask(line);
            assert!(reply.error().contains(why), "{line}: {reply:?}");
        }
        // Few items can be taken over from either kind.
        client.ask("CF.RESERVE few 1000 SEED 7").ok();
        client.ask("CF.ADD few y");
        client.ask("CF.MERGE fixed few").ok();
        assert_eq!(client.ask("CF.EXISTS fixed y").integer(), 1);
    });
}

#[test]
fn items_may_be_any_bytes() {
    each_server(|kind| {
        let server = Server::start(kind);
        let mut client = server.client();
        let items: [&[u8]; 4] = [b"", b"\0\r\n", &[0xFF; 3], &[b'x'; 100_000]];
        for item in items {
            assert_eq!(client.call(&[&"CF.ADDNX", &"k", &item]).integer(), 1);
            assert_eq!(client.call(&[&"CF.EXISTS", &"k", &item]).integer(), 1);
        }
    });
}

#[test]
fn the_rate_stays_as_told_while_it_grows() {
    each_server(|kind| {
        let server = Server::start(kind);
        let mut client = server.client();
        for rate in [0.01_f64, 0.001, 0.0001] {
            let key = rate.to_string();
            client.ask(&format!("CF.RESERVE {key} 1000 ERROR_RATE {rate}")).ok();
            let ask = |client: &mut Client, command: &str, from: usize| {
                let items: Vec<_> = (from..from + 1_000).map(|item| item.to_string()).collect();
                let reply = client.ask(&format!("{command} {}", items.join(" ")));
                reply.array().iter().filter(|answer| answer.integer() == 1).count()
            };
            for from in (0..300_000).step_by(1_000) {
                ask(&mut client, &format!("CF.INSERT {key} ITEMS"), from);
            }
            let found: usize = (0..300)
                .map(|batch| {
                    ask(&mut client, &format!("CF.MEXISTS {key}"), 1_000_000 + batch * 1_000)
                })
                .sum();
            // Four standard deviations above the expectation at most.
            let expected = 300_000.0 * rate;
            assert!(
                (found as f64) < expected + 4.0 * expected.sqrt(),
                "{rate}: {found} of 300,000"
            );
            let lost = (0..300_000)
                .step_by(1_000)
                .find(|from| ask(&mut client, &format!("CF.MEXISTS {key}"), *from) < 1_000);
            assert_eq!(lost, None);
        }
    });
}
