//! A replica has the same tables as its primary, whatever happens.

use crate::client::{Client, Reply, items};
use crate::replies::error;
use crate::server::{Kind, Server, await_that, each_server, long};

/// Numbers that look random, from a seed.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        ((mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB) >> 31) % most
    }

    fn place(&mut self, bytes: &[u8]) -> usize {
        self.below(bytes.len() as u64) as usize
    }

    /// Cuts bytes off, puts one in, or changes one, by a bit or, as the fourth kind, into another one.
    pub fn damage(&mut self, bytes: &mut Vec<u8>, kinds: u64) {
        let (kind, at) = (self.below(kinds), self.place(bytes));
        match kind {
            0 => bytes.truncate(at),
            1 => bytes.insert(at, self.below(256) as u8),
            2 => bytes[at] ^= 1 << self.below(8),
            _ => bytes[at] = bytes[self.place(bytes)],
        }
    }
}

/// Sends so many commands of all kinds, pipelined.
fn mixed(client: &mut Client, random: &mut Random, commands: usize) {
    for round in 0..commands.div_ceil(100) {
        let count = 100.min(commands - round * 100);
        for _ in 0..count {
            let [key, other] = [(); 2].map(|()| format!("key:{}", random.below(20)));
            let items: Vec<_> =
                (0..=random.below(8)).map(|_| random.below(30_000).to_string()).collect();
            let (item, items) = (&items[0], items.join(" "));
            let (size, seconds) = (4 + random.below(3_000), 1 + random.below(3));
            let (grows, rarely) = (random.below(2), random.below(20) == 0);
            let line = match random.below(100) {
                0 => format!("CF.RESERVE {key} {size} EXPANSION {grows}"),
                1 => format!("CF.RESERVE {key} {size} ERROR_RATE 0.0001 SEED 7"),
                2 if rarely => format!("DEL {key}"),
                // Large enough for ticks to pass in parts.
                2 => {
                    let options = format!("EXPANSION {grows} SEED 7 FORGETAFTER {seconds}");
                    format!("CF.RESERVE {key} 1000000 {options}")
                }
                3 => format!("CF.COMPACT {key}"),
                4 => format!("CF.MERGE {key} {other}"),
                5 => format!("COPY {key} {other} REPLACE"),
                6 if rarely => format!("RENAME {key} {other}"),
                7..30 => format!("CF.ADD {key} {item}"),
                30..50 => format!("CF.ADDNX {key} {item}"),
                50 => {
                    let options = format!("ERROR_RATE 0.0{seconds} SEED 7 FORGETAFTER {size}");
                    format!("CF.INSERT {key} {options} ITEMS {items}")
                }
                51..65 => format!("CF.INSERT {key} ITEMS {items}"),
                65..80 => format!("CF.INSERTNX {key} ITEMS {items}"),
                80..95 => format!("CF.DEL {key} {item}"),
                _ => format!("CF.EXISTS {key} {item}"),
            };
            client.send_line(&line).expect("it is sent");
        }
        for _ in 0..count {
            let reply = client.receive().expect("a reply");
            if let Reply::Error(error) = &reply {
                assert!(!error.contains("internal"), "{error}");
            }
        }
    }
}

/// Makes one server the replica of another, and waits until it is.
pub fn follow(replica: &Server, primary: &Server) {
    replica.client().ask(&format!("REPLICAOF 127.0.0.1 {}", primary.port)).ok();
    await_that("the replica is there", || replica.client().follows());
}

/// What a set tells of itself, but for the memory that the server allocated for it.
fn figures(client: &mut Client) -> Vec<String> {
    let keys = client.ask("KEYS *");
    let mut keys: Vec<String> = keys.array().iter().map(Reply::text).collect();
    keys.sort_unstable();
    let told = keys.into_iter().map(|key| match client.ask(&format!("CF.INFO {key}")) {
        Reply::Error(error) => format!("{key}: {error}"),
        info => format!("{key}: {:?}", &info.array()[2..]),
    });
    told.collect()
}

/// Waits until the replica has everything, and compares the tables and the figures.
pub fn check_equal(primary: &Server, replica: &Server, when: &str) {
    let mut client = primary.client();
    // A number that it cannot have from before.
    client.ask("INCR done");
    let done = client.ask("GET done");
    await_that("the replica has everything", || replica.client().ask("GET done") == done);
    // A set may shrink between the two answers, and `CF.INFO` lets time pass.
    let mut digests =
        || [&mut client, &mut replica.client()].map(|it| (figures(it), it.ask("DEBUG DIGEST")));
    for _ in 0..50 {
        let [own, others] = digests();
        if own == others {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let [own, others] = digests();
    assert_eq!(own, others, "{when}");
}

/// A million in all when it may take long.
fn commands() -> usize {
    if long() { 250_000 } else { 10_000 }
}

#[test]
fn tables_are_equal_after_commands_syncs_restarts_and_failovers() {
    each_server(|kind: Kind| {
        let settings = ["--appendonly", "yes", "--appendfsync", "no"];
        let mut one = Server::with(kind, &settings);
        let mut other = Server::with(kind, &settings);
        let mut random = Random(kind as u64);
        mixed(&mut one.client(), &mut random, commands());
        follow(&other, &one);
        check_equal(&one, &other, "after a full sync");
        mixed(&mut one.client(), &mut random, commands());
        check_equal(&one, &other, "after commands");

        let before = one.client().ask("DEBUG DIGEST");
        one.save_and_restart();
        assert_eq!(one.client().ask("DEBUG DIGEST"), before, "after a replay");
        mixed(&mut one.client(), &mut random, commands());
        check_equal(&one, &other, "after a restart of the primary");

        other.client().ask("REPLICAOF NO ONE").ok();
        follow(&one, &other);
        mixed(&mut other.client(), &mut random, commands());
        check_equal(&other, &one, "after a failover");
        other.save_and_restart();
        check_equal(&other, &one, "after another restart");
    });
}

#[test]
fn what_is_given_back_is_given_back_everywhere() {
    each_server(|kind| {
        let mut one = Server::with(kind, &["--appendonly", "yes", "--appendfsync", "no"]);
        let other = Server::start(kind);
        follow(&other, &one);
        let mut client = one.client();
        client.ask("CF.RESERVE k 1000 SEED 1").ok();
        client.insert("k", 0..200_000);
        assert_eq!(client.delete("k", 10_000..200_000), 190_000);
        let large = client.memory("k");
        client.ask("CF.COMPACT k").ok();
        let is_small = |server: &Server| {
            let reply = server.client().ask("MEMORY USAGE k");
            matches!(reply, Reply::Integer(bytes) if bytes < large / 4)
        };
        await_that("memory was given back", || is_small(&one) && is_small(&other));
        check_equal(&one, &other, "after a compaction");
        assert!(client.has_all("k", 0..10_000));
        let refused = client.ask("CF.COMPACT k 0");
        assert_eq!(refused, error("wrong number of arguments for 'cf.compact' command"));
        let before = client.ask("DEBUG DIGEST");
        one.save_and_restart();
        assert_eq!(one.client().ask("DEBUG DIGEST"), before, "after a replay");
        assert!(is_small(&one));
    });
}

#[test]
fn only_what_changed_something_is_replicated() {
    each_server(|kind| {
        let server = Server::start(kind);
        let mut watcher = server.client();
        watcher.ask("SYNC-NOT-A-COMMAND");
        let mut client = server.client();
        let mut offset = || client.info("replication", "master_repl_offset");
        // There is an offset only if there is a replica.
        let replica = Server::start(kind);
        follow(&replica, &server);
        let mut other = server.client();
        other.ask("CF.RESERVE full 4 EXPANSION 0").ok();
        other.ask("CF.INSERTNX full ITEMS 1 2 3 4");
        other.insert("full", 100..200);
        other.ask("CF.RESERVE apart 4 EXPANSION 0 SEED 1").ok();
        other.ask("CF.RESERVE grown 1000000 SEED 1").ok();
        // Pings of replicas come every ten seconds.
        for line in [
            "CF.ADD full 5",
            "CF.ADDNX full 1",
            "CF.ADDNX full 5",
            "CF.INSERTNX full ITEMS 1 2 5",
            "CF.INSERT full ITEMS 5 6",
            "CF.DEL full 9",
            "CF.EXISTS full 1",
            "CF.MEXISTS full 1 2",
            "CF.COUNT full 1",
            "CF.INFO full",
            "CF.SCANDUMP full 0",
            "CF.MERGE full apart",
            "CF.MERGE full grown",
            "CF.MERGE none apart grown",
            "CF.LOADCHUNK full 1 x",
            "CF.RESERVE full 10",
            "CF.RESERVE other x",
            "CF.RESERVE other 100 FORGETAFTR 60",
            "CF.INSERT other FORGETAFTR 60 ITEMS 1",
            "CF.INSERT other ERROR_RATE 1e-300 ITEMS 1",
        ] {
            let quiet = (0..3).any(|_| {
                let before = offset();
                other.ask(line);
                offset() == before
            });
            assert!(quiet, "{line}");
        }
    });
}

#[test]
fn replicas_do_not_refuse_and_do_not_decide() {
    each_server(|kind| {
        let primary = Server::start(kind);
        let replica = Server::with(kind, &["--koel.max-bytes", "1", "--koel.error-rate", "0.5"]);
        follow(&replica, &primary);
        let mut client = primary.client();
        let items = items(0..50_000);
        client.ask(&format!("CF.INSERT a ITEMS {items}"));
        client.ask(&format!("CF.INSERT c CAPACITY 50 ERROR_RATE 0.01 ITEMS {items}"));
        client.ask(&format!("CF.INSERTNX d SEED 3 FORGETAFTER 9999 ITEMS {items}"));
        // The limit of a primary cuts a command short, and replicas get what was done of it.
        client.ask("CONFIG SET koel.max-bytes 100kb").ok();
        let answers = client.ask(&format!("CF.INSERT b ITEMS {items}"));
        let refused = answers.array().iter().filter(|answer| answer.integer() == -1).count();
        assert!((1_000..49_000).contains(&refused), "{refused}");
        assert!(client.ask("CF.ADD b x").error().starts_with("OOM"));
        assert_eq!(client.ask("CF.DEL b 17").integer(), 1);
        client.ask("CONFIG SET koel.max-bytes 0").ok();
        check_equal(&primary, &replica, "with other settings");
    });
}
