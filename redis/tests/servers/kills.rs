//! What was acknowledged survives, however often the server or its child is killed.

use crate::client::{Client, Reply, items};
use crate::server::{Kind, Server, appending, each_server, long};
use std::thread::{sleep, spawn};
use std::time::Duration;

/// The number of kills: two hundred in all when it may take long.
fn kills() -> usize {
    if long() { 100 } else { 6 }
}

/// Items are added ten at a time.
const BATCH: usize = 10;

/// Adds items from this one on until the server is gone. Returns the first that was not acknowledged.
fn add_until_gone(mut client: Client, mut next: usize) -> usize {
    loop {
        match client.try_ask(&format!("CF.INSERT k ITEMS {}", items(next..next + BATCH))) {
            Ok(Reply::Array(answers)) => {
                assert!(answers.iter().all(|answer| answer.integer() == 1));
                next += BATCH;
            }
            Ok(reply) => panic!("{reply:?}"),
            Err(_) => return next,
        }
    }
}

/// Checks that all before this item are there, and at most one batch more.
fn check(client: &mut Client, acknowledged: usize) {
    let len = client.len("k") as usize;
    assert!((acknowledged..=acknowledged + BATCH).contains(&len), "{len} of {acknowledged}");
    let lost = client.many("CF.MEXISTS k", 0..acknowledged).iter().position(|found| *found == 0);
    assert_eq!(lost, None);
}

/// Kills the processes that the server has started, and returns whether there were any.
fn kill_children(server: &Server) -> bool {
    let process = server.process_id();
    let children = format!("/proc/{process}/task/{process}/children");
    let children = std::fs::read_to_string(children).unwrap_or_default();
    for child in children.split_whitespace() {
        // Every shell has this command built in; a program of this name, few bare machines have.
        let killed = std::process::Command::new("sh").args(["-c", "kill -9 $0", child]).status();
        assert!(killed.is_ok());
    }
    !children.trim().is_empty()
}

#[test]
fn nothing_acknowledged_is_lost_when_the_server_is_killed() {
    each_server(|kind: Kind| {
        for preamble in ["yes", "no"] {
            let mut server = Server::with(kind, &appending(preamble));
            server.client().ask("CF.RESERVE k 100").ok();
            let mut next = 0;
            let (mut killed_children, rounds) = (0, kills() / 2);
            for round in 0..rounds {
                let client = server.client();
                let wait = Duration::from_millis(20 + (round as u64 * 37) % 150);
                // Not in a scope, which would wait for this thread if something here failed before the kill.
                let adding = spawn(move || add_until_gone(client, next));
                // The file is being rewritten when the server goes, or when its child does.
                server.client().ask("BGREWRITEAOF");
                sleep(wait / 2);
                if round % 2 == 0 {
                    killed_children += usize::from(kill_children(&server));
                }
                sleep(wait / 2);
                server.kill();
                let acknowledged = adding.join().expect("it ends");
                server.restart();
                check(&mut server.client(), acknowledged);
                // What came in without an answer is there, too, so begin after that.
                next = server.client().len("k") as usize;
            }
            println!(
                "checked: {rounds} kills of a server with an append-only file, {killed_children} of its child, {next} \
                 items: 0 acknowledged items lost"
            );
        }
    });
}

#[test]
fn a_save_whose_child_is_killed_leaves_the_file_of_before() {
    each_server(|kind| {
        let mut server = Server::start(kind);
        let mut client = server.client();
        client.ask("CF.RESERVE k 3000000 EXPANSION 0").ok();
        client.ask("CF.INSERT k ITEMS 1 2 3");
        client.ask("SAVE").ok();
        // The child waits after each key, so that it is there to be killed, however slow this thread is.
        client.ask("CONFIG SET rdb-key-save-delay 10000000").ok();
        let mut killed = 0;
        for round in 0..kills() {
            client.ask(&format!("CF.ADD k {}", round + 10));
            client.ask("BGSAVE");
            sleep(Duration::from_micros(200 * round as u64));
            killed += usize::from(kill_children(&server));
            while client.ask("INFO persistence").text().contains("rdb_bgsave_in_progress:1") {
                sleep(Duration::from_millis(1));
            }
        }
        assert_eq!(killed, kills());
        server.kill_and_restart();
        assert!(server.client().has_all("k", 1..4));
        println!("checked: {killed} kills of a server's child that saves: 0 files but the old one");
    });
}
