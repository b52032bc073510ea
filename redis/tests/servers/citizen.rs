//! What those who run a server see of the module: `INFO koel`, and keyspace events.

use crate::client::Client;
use crate::server::{Server, await_that, each_client, each_server};

/// A figure of `INFO koel`.
fn figure(client: &mut Client, name: &str) -> u64 {
    client.info("koel", &format!("koel_{name}")).parse().expect("a number")
}

#[test]
fn info_tells_what_all_sets_have_together() {
    each_client(|kind, client| {
        assert_eq!(figure(client, "sets"), 0, "{kind:?}");
        client.ask("CF.INSERT few ITEMS a b c");
        assert_eq!(["sets", "filters", "items"].map(|name| figure(client, name)), [1, 0, 3]);
        client.ask("CF.RESERVE large 1000 SEED 1").ok();
        client.insert("large", 0..100_000);
        assert_eq!(["sets", "filters", "items"].map(|name| figure(client, name)), [2, 1, 100_003]);
        let bytes = figure(client, "bytes") as i64;
        assert!((client.memory("large") - bytes).abs() < 1_000, "{bytes}");
        assert!(figure(client, "capacity") >= 100_003);
        let shards = figure(client, "shards");
        assert!(shards > 1);
        client.delete("large", 0..95_000);
        client.ask("CF.COMPACT large").ok();
        await_that("memory comes back", || figure(client, "shards") < shards);
        assert!(figure(client, "shards_given_back") > 0 && figure(client, "bytes_given_back") > 0);
        client.ask("CF.INSERT forgets FORGETAFTER 1000 ITEMS a");
        assert!(figure(client, "ticks") > 0);
        client.ask("COPY few copy");
        client.ask("DEL few");
        client.ask("FLUSHALL").ok();
        for name in ["sets", "filters", "items", "bytes", "capacity"] {
            // A server may free in another thread.
            await_that(name, || figure(client, name) == 0);
        }
    });
}

/// Each change has its event, and what changes nothing has none.
#[test]
fn every_change_is_a_keyspace_event() {
    each_server(|kind| {
        let server = Server::start(kind);
        let (mut client, mut listener) = (server.client(), server.client());
        client.ask("CONFIG SET notify-keyspace-events Eg").ok();
        listener.ask("PSUBSCRIBE __keyevent@0__:*");
        for (line, events) in [
            ("CF.RESERVE a 1000 SEED 1", "reserve"),
            ("CF.ADD a 1", "add"),
            ("CF.ADDNX a 1", ""),
            ("CF.EXISTS a 1", ""),
            ("CF.INSERT b SEED 1 ITEMS 1 2", "create insert"),
            ("CF.INSERTNX b ITEMS 1 2", ""),
            ("CF.MERGE a b", "merge"),
            ("CF.DEL a 2", "del"),
            ("CF.DEL a 2", ""),
            ("CF.COMPACT a", "compact"),
            ("CF.RESERVE c x", ""),
            ("CF.RESERVE c 100 FORGETAFTER 1000", "reserve"),
        ] {
            client.ask(line);
            // An event that follows shows that no other came.
            client.ask("COPY a other REPLACE");
            let mut seen = Vec::new();
            loop {
                let event = listener.receive().expect("an event");
                let channel = event.array()[2].text();
                match channel.strip_prefix("__keyevent@0__:").expect("an event of a key") {
                    "copy_to" => break,
                    "del" => {}
                    event => seen.push(event.strip_prefix("cuckoo.").expect(event).to_owned()),
                }
            }
            assert_eq!(seen.join(" "), events, "{kind:?}: {line}");
        }
        // A filter that is loaded: when it begins, and when it is whole.
        let reply = client.ask("CF.SCANDUMP a 0");
        let [cursor, piece] = reply.array() else { panic!("{reply:?}") };
        client.load_chunk("d", cursor.integer(), piece.bytes()).ok();
        for _ in 0..2 {
            let event = listener.receive().expect("an event");
            assert_eq!(event.array()[2].text(), "__keyevent@0__:cuckoo.load", "{kind:?}");
        }
    });
}
