//! Every command, argument and error is answered as RedisBloom answers it, in both versions of the protocol.

use crate::client::Reply;
use crate::server::{Server, each_server};

/// An error, as a client shows it: without the code that says that it is one.
pub fn error(text: &str) -> Reply {
    match text.starts_with("WRONGTYPE") {
        true => Reply::Error(text.into()),
        false => Reply::Error(format!("ERR {text}")),
    }
}

fn ok() -> Reply {
    Reply::Simple("OK".into())
}

const WRONG_TYPE: &str = "WRONGTYPE Operation against a key holding the wrong kind of value";
const UNKNOWN: &str = "Unknown argument received";
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
        ("CF.RESERVE k2 1000 FOO 3", error(UNKNOWN)),
        ("CF.RESERVE k2 1000 FORGETAFTR 60", error(UNKNOWN)),
        ("CF.RESERVE k2 1000 SEED 1 ITEMS 60", error(UNKNOWN)),
        ("CF.RESERVE k2 1000 FOO", error("wrong number of arguments for 'cf.reserve' command")),
        ("EXISTS k2", 0.into()),
        ("CF.RESERVE k3 10 BUCKETSIZE 6", error(CAPACITY)),
        ("SET str x", ok()),
        ("CF.RESERVE str 100", error(WRONG_TYPE)),
        ("TYPE k", Reply::Simple("koel-cuck".into())),
    ]);
}

#[test]
fn a_rate_that_cannot_be_kept_is_refused_with_the_least_that_can() {
    each_server(|kind| {
        let server = Server::start(kind);
        let mut client = server.client();
        for (number, with) in [
            "CF.RESERVE {} 1000 ERROR_RATE {}",
            "CF.RESERVE {} 1000000 ERROR_RATE {}",
            "CF.RESERVE {} 1000 EXPANSION 0 ERROR_RATE {}",
            "CF.RESERVE {} 1000 FORGETAFTER 60 ERROR_RATE {}",
            "CF.INSERT {} CAPACITY 500 ERROR_RATE {} ITEMS a",
        ]
        .into_iter()
        .enumerate()
        {
            let with = with.replacen("{}", &number.to_string(), 1);
            let reply = client.ask(&with.replace("{}", "1e-300"));
            let error = reply.error();
            let rest = error.strip_prefix("ERR an ERROR_RATE of 1e-300 is out of reach; give ");
            let least = rest.and_then(|rest| rest.split(' ').next()).expect(error);
            assert_eq!(
                error.contains("reserve with EXPANSION 0"),
                !with.contains("EXPANSION"),
                "{error}"
            );
            let less = (least.parse::<f64>().expect(error) / 1.2).to_string();
            assert!(client.ask(&with.replace("{}", &less)).error().contains("out of reach"));
            let reply = client.ask(&with.replace("{}", least));
            assert!(!matches!(reply, Reply::Error(_)), "{kind:?}: {with}, {least}: {reply:?}");
        }
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
        ("CF.INSERT ins FOO ITEMS a", error(UNKNOWN)),
        ("CF.INSERT ins FORGETAFTR 60 ITEMS a", error(UNKNOWN)),
        ("CF.INSERT ins EXPANSION 0 ITEMS a", error(UNKNOWN)),
        ("CF.INSERTNX ins ERROR_RATE x ITEMS a", error("Couldn't parse ERROR_RATE")),
        (
            "CF.INSERT ins ERROR_RATE 1 ITEMS a",
            error("ERROR_RATE: value must be greater than 0 and less than 1"),
        ),
        ("CF.INSERT ins SEED -1 ITEMS a", error("Couldn't parse SEED")),
        ("CF.INSERT ins FORGETAFTER x ITEMS a", error("Couldn't parse FORGETAFTER")),
        (
            "CF.INSERTNX ins FORGETAFTER 0 ITEMS a",
            error("FORGETAFTER: value must be in the range [1, 3162240000]"),
        ),
        ("CF.INSERT ins ITEMS", error("wrong number of arguments for 'cf.insert' command")),
        ("CF.INSERT ins x SEED", error(UNKNOWN)),
        ("CF.INSERT ins SEED 1", error("wrong number of arguments for 'cf.insert' command")),
        ("CF.INSERT ins NOCREATE SEED", error("wrong number of arguments for 'cf.insert' command")),
        ("CF.INSERT ins NOCREATE SEED 1 ITEMS a", error("not found")),
        ("CF.INSERT ins ITEMS", error("wrong number of arguments for 'cf.insert' command")),
        ("CF.INSERT ins a b", error(UNKNOWN)),
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
