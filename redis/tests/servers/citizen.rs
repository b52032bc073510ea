//! What a server tells of the module: `INFO koel`, and its changes, to listeners, transactions and replicas.

use crate::client::{Client, Reply};
use crate::replicas::follow;
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

/// Each change has its event, undoes the transactions that watch its key, and is sent to replicas. What changes nothing
/// does none of this.
#[test]
fn every_change_is_an_event_that_transactions_and_replicas_see() {
    each_server(|kind| {
        // A ping would be sent to replicas, too.
        let server = Server::with(kind, &["--repl-ping-replica-period", "1000"]);
        let replica = Server::start(kind);
        follow(&replica, &server);
        let (mut client, mut listener, mut other) =
            (server.client(), server.client(), server.client());
        client.ask("CONFIG SET notify-keyspace-events Eg").ok();
        listener.ask("PSUBSCRIBE __keyevent@0__:*");
        for (line, events) in [
            ("CF.RESERVE a 1000 SEED 1", "reserve"),
            ("CF.ADD a 1", "add"),
            ("CF.ADDNX a 1", ""),
            ("CF.EXISTS a 1", ""),
            ("CF.MEXISTS a 1 2", ""),
            ("CF.COUNT a 1", ""),
            ("CF.INFO a", ""),
            ("CF.SCANDUMP a 0", ""),
            ("CF.LOADCHUNK a 1 x", ""),
            ("CF.INSERT b SEED 1 ITEMS 1 2", "create insert"),
            ("CF.INSERTNX b ITEMS 1 2", ""),
            ("CF.MERGE a b", "merge"),
            ("CF.DEL a 2", "del"),
            ("CF.DEL a 2", ""),
            ("CF.COMPACT a", "compact"),
            ("CF.RESERVE a 10", ""),
            ("CF.RESERVE c x", ""),
            ("CF.RESERVE c 100 FORGETAFTR 60", ""),
            ("CF.INSERT c FORGETAFTR 60 ITEMS 1", ""),
            ("CF.INSERT c ERROR_RATE 1e-300 ITEMS 1", ""),
            ("CF.RESERVE c 100 FORGETAFTER 1000", "reserve"),
            ("CF.RESERVE full 4 EXPANSION 0 SEED 1", "reserve"),
            ("CF.INSERT full ITEMS 1 2 3 4 1 2 3 4 1 2 3 4 1 2 3 4", "insert"),
            ("CF.ADD full 8", ""),
            ("CF.ADDNX full 1", ""),
            ("CF.ADDNX full 8", ""),
            ("CF.INSERT full ITEMS 8 8", ""),
            ("CF.INSERTNX full ITEMS 1 2 8", ""),
            ("CF.DEL full 9", ""),
            ("CF.RESERVE apart 4 EXPANSION 0 SEED 2", "reserve"),
            ("CF.MERGE full apart", ""),
            ("CF.RESERVE grown 1000000 SEED 1", "reserve"),
            ("CF.MERGE full grown", ""),
            ("CF.MERGE none full grown", ""),
        ] {
            let sent = |client: &mut Client| client.info("replication", "master_repl_offset");
            let before = sent(&mut client);
            other.ask(&format!("WATCH {}", line.split(' ').nth(1).expect("a key"))).ok();
            client.ask(line);
            let is_sent = sent(&mut client) != before;
            other.ask("MULTI").ok();
            let is_undone = other.ask("EXEC") == Reply::Null;
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
            let changes = !events.is_empty();
            assert_eq!(
                (seen.join(" "), is_undone, is_sent),
                (events.into(), changes, changes),
                "{kind:?}: {line}"
            );
        }
        // A script's are changes as well.
        let script = "return redis.call('CF.ADD', KEYS[1], ARGV[1])";
        assert_eq!(client.call(&[&"EVAL", &script, &"1", &"a", &"c"]).integer(), 1);
        assert_eq!(listener.receive().unwrap().array()[2].text(), "__keyevent@0__:cuckoo.add");
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
