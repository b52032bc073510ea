//! What the module declares of the servers' interface, beside the servers: each function that it asks for, and each
//! table that it fills.
//!
//! A module with a wrong name is not loaded, so every test here would fail. A wrong field would show in what a server
//! tells of a command, or call a wrong function of the data type.

use crate::client::Client;
use crate::server::{Kind, Server, await_that, each_client, each_server, module};

/// The version of Redis that this is, or that it is compatible with.
pub fn version(client: &mut Client) -> (u32, u32) {
    let version = client.info("server", "redis_version");
    let mut numbers = version.split('.').map(|number| number.parse().unwrap());
    (numbers.next().unwrap(), numbers.next().unwrap())
}

#[test]
fn every_function_is_there_but_those_of_later_servers() {
    // The others are needed: the module is not loaded without them.
    const OPTIONAL: [(&str, (u32, u32)); 4] = [
        ("TryAlloc", (7, 0)),
        ("TryCalloc", (7, 4)),
        ("AddACLCategory", (7, 4)),
        ("SetCommandACLCategories", (7, 2)),
    ];
    each_server(|kind| {
        let server = Server::with(kind, &["--loglevel", "verbose"]);
        let version = version(&mut server.client());
        let later = OPTIONAL.iter().filter(|function| kind == Kind::Redis && version < function.1);
        let expected: Vec<_> =
            later.map(|function| format!("RedisModule_{}", function.0)).collect();
        let log = server.log();
        let lacking = log.lines().filter_map(|line| line.split_once("this server has no "));
        assert_eq!(lacking.map(|line| line.1).collect::<Vec<_>>(), expected, "{kind:?}");
    });
}

#[test]
fn a_second_load_is_refused_and_the_first_goes_on() {
    each_server(|kind| {
        let server = Server::with(kind, &["--enable-module-command", "yes"]);
        let mut client = server.client();
        client.ask("CF.ADD k a");
        for _ in 0..3 {
            let path = module().display().to_string();
            assert!(client.call(&[&"MODULE", &"LOAD", &path]).error().contains("loading"));
            assert_eq!(client.ask("CF.ADDNX k a").integer(), 0, "{kind:?}");
            assert_eq!(client.ask("MODULE LIST").array().len(), 1);
        }
        assert!(server.log().contains("koel: this server has a module koel already"));
    });
}

/// (Wrong places of the other callbacks would fail the tests of files, dumps and copies.)
#[test]
fn what_takes_long_to_free_is_freed_in_the_background() {
    each_client(|kind, client| {
        client.ask("CF.RESERVE large 30000000").ok();
        client.ask("CF.INSERT k ITEMS a b c");
        assert!(client.memory("large") > 50_000_000 && (24..1_000).contains(&client.memory("k")));
        assert!(client.digest("k").bytes().any(|digit| digit != b'0'), "{kind:?}");
        assert_eq!(client.ask("UNLINK large k").integer(), 2);
        await_that("it is freed", || client.info("memory", "lazyfreed_objects") == "1");
    });
}
