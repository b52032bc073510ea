//! Filters that forget: nothing goes early, all goes in the end, and replicas follow their primary.

use crate::client::Client;
use crate::replicas::{check_equal, follow};
use crate::server::{Server, await_that, each_client, each_server};
use std::fs::File;
use std::io::Write;
use std::time::{Duration, Instant};

fn found(client: &mut Client, key: &str, from: usize, count: usize) -> usize {
    client.many(&format!("CF.MEXISTS {key}"), from..from + count).iter().sum::<i64>() as usize
}

#[test]
fn an_item_stays_as_long_as_told_and_goes_soon_after() {
    each_client(|kind, client| {
        for (key, options) in [("growing", ""), ("fixed", " EXPANSION 0")] {
            client.ask(&format!("CF.RESERVE {key} 20000{options} FORGETAFTER 2")).ok();
            assert_eq!(client.ask(&format!("CF.INFO {key}")).field("Forgets after").integer(), 2);
        }
        let start = Instant::now();
        for key in ["growing", "fixed"] {
            client.many(&format!("CF.INSERTNX {key} ITEMS"), 0..10_000);
        }
        loop {
            let before = start.elapsed();
            let there = ["growing", "fixed"].map(|key| found(client, key, 0, 10_000));
            if before + Duration::from_millis(100) < Duration::from_secs(2) {
                // It takes some time to ask.
                let early = start.elapsed() < Duration::from_secs(2);
                assert!(!early || there == [10_000, 10_000], "{kind:?}: {there:?} at {before:?}");
            } else if there == [0, 0] {
                break;
            }
            assert!(start.elapsed() < Duration::from_secs(30), "{kind:?}: {there:?} are left");
            std::thread::sleep(Duration::from_millis(100));
        }
        assert!(start.elapsed() < Duration::from_secs(10), "{kind:?}: {:?}", start.elapsed());
        for key in ["growing", "fixed"] {
            assert_eq!(client.len(key), 0);
            assert_eq!(client.ask(&format!("CF.ADDNX {key} 1")).integer(), 1);
        }
    });
}

#[test]
fn a_replica_has_no_clock() {
    each_server(|kind| {
        let (primary, replica) = (Server::start(kind), Server::start(kind));
        follow(&replica, &primary);
        let mut client = primary.client();
        client.ask("CF.RESERVE k 1000 FORGETAFTER 1").ok();
        client.insert("k", 0..100);
        client.ask("WAIT 1 0");
        std::thread::sleep(Duration::from_millis(2_500));
        // Nobody has asked the primary.
        assert_eq!(found(&mut replica.client(), "k", 0, 100), 100);
        assert_eq!(found(&mut client, "k", 0, 100), 0);
        client.ask("WAIT 1 0");
        assert_eq!(found(&mut replica.client(), "k", 0, 100), 0);
    });
}

/// A tick of a large filter goes on while nobody asks, also if the key gets another name meanwhile.
#[test]
fn a_tick_goes_on_between_commands() {
    each_server(|kind| {
        let mut server = Server::with(kind, &["--appendonly", "yes"]);
        let mut client = server.client();
        client.ask("SELECT 3").ok();
        // A tick of seven years, so that none is due but the one below.
        client.ask("CF.RESERVE k 40000000 EXPANSION 0 FORGETAFTER 3162240000").ok();
        client.many("CF.INSERTNX k ITEMS", 0..50_000);
        server.kill();
        let number = ((3_162_240_000u64.div_ceil(14) << 36) + 100_000).to_string();
        let length = number.len();
        let tick = format!("*3\r\n$7\r\nCF.TICK\r\n$1\r\nk\r\n${length}\r\n{number}\r\n");
        // Whoever comes back for the first name finds nothing.
        let tick = tick + "*3\r\n$6\r\nRENAME\r\n$1\r\nk\r\n$5\r\nother\r\n";
        let folder = std::fs::read_dir(server.path().join("appendonlydir")).expect("a folder");
        let files = folder.map(|file| file.expect("a file").path());
        let last = files.into_iter().find(|file| file.to_string_lossy().ends_with("incr.aof"));
        let file = File::options().append(true).open(last.expect("an append-only file"));
        file.and_then(|mut file| file.write_all(tick.as_bytes())).expect("it is written");
        server.restart();
        let mut client = server.client();
        client.ask("SELECT 3").ok();
        // What has expired, and is still in the table.
        let left = |client: &mut Client| client.info("koel", "koel_items");
        let first = left(&mut client);
        // Who asks for the first time sees to it that somebody comes back for this one.
        client.ask("CF.EXISTS other x");
        // Whoever comes back is no client, and not counted as one.
        client.ask("CONFIG RESETSTAT").ok();
        std::thread::sleep(Duration::from_millis(50));
        assert!(client.ask("INFO stats").text().contains("keyspace_hits:0"), "{kind:?}");
        await_that("the rest of the tick is over", || left(&mut client) == "0");
        assert_eq!(client.ask("CF.ADDNX other 1").integer(), 1, "{kind:?}: {first} were left");
    });
}

/// The number of items that a server takes in half a second, on a machine that may be busy.
fn speed(client: &mut Client) -> usize {
    let (start, mut next) = (Instant::now(), 0);
    while start.elapsed() < Duration::from_millis(500) {
        client.insert("speed", next..next + 2_000);
        next += 2_000;
    }
    client.ask("DEL speed");
    next
}

/// A filter of fixed size that is full while its ticks pass in parts: replicas refuse what their primary refuses, in
/// the middle of a command, too.
#[test]
fn a_full_filter_takes_on_replicas_what_it_takes_here() {
    each_server(|kind| {
        let primary = Server::with(kind, &["--appendonly", "yes", "--appendfsync", "no"]);
        let early = Server::start(kind);
        follow(&early, &primary);
        let mut client = primary.client();
        // It is full before its first items expire.
        let capacity = speed(&mut client).clamp(200_000, 1_000_000);
        let reserve = format!("CF.RESERVE k {capacity} EXPANSION 0 FORGETAFTER 3 ERROR_RATE 0.01");
        client.ask(&reserve).ok();
        let (mut next, mut taken, mut refused) = (0, 0, 0);
        let start = Instant::now();
        let mut late = None;
        while start.elapsed() < Duration::from_secs(6) || taken <= capacity || late.is_none() {
            assert!(start.elapsed() < Duration::from_secs(60), "{kind:?}: {taken} and {refused}");
            let answers = client.many("CF.INSERT k ITEMS", next..next + 2_000);
            let full = answers.into_iter().filter(|answer| *answer == -1).count();
            (next, taken, refused) = (next + 2_000, taken + 2_000 - full, refused + full);
            // Of those that are there, some go before their time.
            for item in (next - 2_000..next).step_by(97) {
                client.ask(&format!("CF.DEL k {}", item / 2));
            }
            client.many("CF.INSERTNX k ITEMS", next - 100..next + 100);
            if late.is_none() && refused > capacity / 10 && start.elapsed() > Duration::from_secs(3)
            {
                let server = Server::start(kind);
                follow(&server, &primary);
                late = Some(server);
            }
        }
        check_equal(&primary, &early, &format!("{kind:?}: early"));
        check_equal(&primary, &late.expect("it was full"), &format!("{kind:?}: late"));
    });
}
