//! A replica has the same tables as its primary, whatever happens.

use crate::client::{Client, Reply, items};
use crate::server::{Kind, Server, await_that, each_server, long};
use std::time::{Duration, Instant};

/// Numbers that look random, from a seed.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        ((mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB) >> 31) % most
    }

    /// Cuts bytes off, puts one in, or changes a bit of one.
    pub fn damage(&mut self, bytes: &mut Vec<u8>) {
        let at = self.below(bytes.len() as u64) as usize;
        match self.below(3) {
            0 => bytes.truncate(at),
            1 => bytes.insert(at, self.below(256) as u8),
            _ => bytes[at] ^= 1 << self.below(8),
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
        std::thread::sleep(Duration::from_millis(20));
    }
    let [own, others] = digests();
    assert_eq!(own, others, "{when}");
}

/// The digest of all keys, as soon as nothing is at work between commands.
fn settled(client: &mut Client) -> String {
    let mut digest = client.digest("");
    loop {
        std::thread::sleep(Duration::from_millis(50));
        let before = std::mem::replace(&mut digest, client.digest(""));
        if before == digest {
            return digest;
        }
    }
}

/// What a primary and its replicas go through, under this load: replicas that come early, late and behind another one,
/// restarts, and a failover. `appends` is whether the primary comes back from what it has appended, and not from what
/// it saved when it ended.
fn check_all_that_happens(kind: Kind, appends: bool, mut be_busy: impl FnMut(&mut Client)) {
    let appendonly = if appends { "yes" } else { "no" };
    let settings = ["--appendonly", appendonly, "--appendfsync", "no"];
    let settings = [&settings[..], &["--repl-backlog-size", "100mb"]].concat();
    let (mut primary, mut early) = (Server::with(kind, &settings), Server::with(kind, &settings));
    let (late, last) = (Server::start(kind), Server::start(kind));
    be_busy(&mut primary.client());
    follow(&early, &primary);
    follow(&last, &early);
    be_busy(&mut primary.client());
    follow(&late, &primary);
    be_busy(&mut primary.client());
    for (replica, which) in [(&early, "early"), (&late, "late"), (&last, "a replica's")] {
        check_equal(&primary, replica, &format!("{kind:?}: {which}"));
    }

    let before = settled(&mut primary.client());
    match appends {
        true => primary.kill_and_restart(),
        false => primary.save_and_restart(),
    }
    assert_eq!(primary.client().digest(""), before, "{kind:?}: restarted");
    be_busy(&mut primary.client());
    await_that("the replica is back", || early.client().follows());
    check_equal(&primary, &early, &format!("{kind:?}: the primary was restarted"));

    early.save_and_stop();
    be_busy(&mut primary.client());
    early.restart();
    follow(&early, &primary);
    check_equal(&primary, &early, &format!("{kind:?}: the replica was restarted"));
    check_equal(&primary, &last, &format!("{kind:?}: a replica's, after both"));

    early.client().ask("REPLICAOF NO ONE").ok();
    follow(&primary, &early);
    be_busy(&mut early.client());
    check_equal(&early, &primary, &format!("{kind:?}: after a failover"));
}

/// A million commands in all when it may take long.
#[test]
fn tables_are_equal_under_all_commands() {
    each_server(|kind| {
        let mut random = Random(kind as u64);
        let commands = if long() { 170_000 } else { 7_000 };
        check_all_that_happens(kind, true, |client| mixed(client, &mut random, commands));
    });
}

/// Of a large filter, whose ticks pass in parts while items come, go and are asked for.
#[test]
fn tables_are_equal_whatever_passes_meanwhile() {
    each_server(|kind| {
        for (options, appends) in [("", true), (" EXPANSION 0", false)] {
            let mut next = 0;
            check_all_that_happens(kind, appends, |client| {
                // It is made the first time, and there afterwards.
                let options = format!("{options} FORGETAFTER 4 ERROR_RATE 0.01");
                client.ask(&format!("CF.RESERVE k 1000000{options}"));
                let start = Instant::now();
                while start.elapsed() < Duration::from_millis(if long() { 4_500 } else { 1_500 }) {
                    client.many("CF.INSERTNX k ITEMS", next..next + 500);
                    client.ask(&format!("CF.DEL k {next}"));
                    client.ask(&format!("CF.EXISTS k {}", next / 2));
                    next = (next + 500) % 600_000;
                }
            });
        }
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
        check_equal(&one, &other, "before a compaction");
        let large = client.memory("k");
        client.ask("CF.COMPACT k").ok();
        let is_small = |server: &Server| server.client().memory("k") < large / 4;
        await_that("memory was given back", || is_small(&one) && is_small(&other));
        check_equal(&one, &other, "after a compaction");
        assert!(client.has_all("k", 0..10_000));
        let before = settled(&mut client);
        one.save_and_restart();
        assert_eq!(one.client().digest(""), before, "after a replay");
        assert!(is_small(&one));
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
        for (key, first) in [("k", 0), ("other", 1_000_000)] {
            client.ask(&format!("CF.RESERVE {key} 1000 SEED 7")).ok();
            client.insert(key, first..first + 60_000);
        }
        // A merge that does not fit changes nothing.
        let before = client.digest("k");
        let limit = client.ask("CF.INFO k").field("Size").integer() + 100_000;
        client.ask(&format!("CONFIG SET koel.max-bytes {limit}")).ok();
        assert!(client.ask("CF.MERGE k other").error().contains("nothing has changed"));
        assert_eq!(client.digest("k"), before, "{kind:?}");
        client.ask("CONFIG SET koel.max-bytes 0").ok();
        check_equal(&primary, &replica, "after a merge that was refused");
        client.ask("CF.MERGE k other").ok();
        assert!(client.has_all("k", 0..60_000) && client.has_all("k", 1_000_000..1_060_000));
        check_equal(&primary, &replica, "with other settings");
    });
}
