//! What the recipe makes of replies that are lost, and of those that it does not like.

use crate::client::{Client, Reply};
use crate::cluster::{Cluster, PRIMARIES};
use crate::seen::{Error, Options, Seen, crc32};
use crate::server::{Server, each_server};
use std::time::Duration;

pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Runtime::new().expect("a runtime").block_on(future)
}

/// Does this with a cluster of each server that is there.
fn each_cluster(test: impl AsyncFn(&mut Cluster)) {
    each_server(|kind| block_on(test(&mut Cluster::start(kind))));
}

pub async fn open(addresses: &str, options: Options) -> Result<Seen, Error> {
    let nodes = addresses.split(',').map(|node| format!("redis://{node}")).collect();
    Seen::open(nodes, options).await
}

fn items(from: usize, count: usize) -> Vec<String> {
    (from..from + count).map(|number| format!("item {number}")).collect()
}

#[test]
fn partitions_are_chosen_by_the_checksum_that_python_has() {
    assert_eq!(crc32(b""), 0);
    assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
    assert_eq!(crc32("https://example.com/\u{e9}".as_bytes()), 0x56ed_1714);
}

#[test]
fn answers_come_in_the_order_of_the_batch() {
    each_cluster(async |cluster| {
        let mut seen = open(&cluster.addresses(), Options::default()).await.unwrap();
        assert_eq!(seen.insert_new(&items(0, 1_000)).await.unwrap(), [true; 1_000]);
        let again: Vec<_> = (0..1_000).map(|number| format!("item {}", number * 7)).collect();
        let new: Vec<_> = (0..1_000).map(|number| number * 7 >= 1_000).collect();
        assert_eq!(seen.insert_new(&again).await.unwrap(), new);
        assert_eq!(seen.insert_new::<&str>(&[]).await.unwrap(), []);
        // Another client finds the set as it is.
        let mut other = open(&cluster.addresses(), Options::default()).await.unwrap();
        assert_eq!(other.insert_new(&again).await.unwrap(), [false; 1_000]);
    });
}

/// A node sleeps for so long that the reply counts as lost, and then does as it was told.
#[test]
fn an_item_in_doubt_is_new_and_inserted() {
    each_cluster(async |cluster| {
        let timeout = Duration::from_millis(500);
        let options = Options { timeout, ..Options::default() };
        let mut hasty = open(&cluster.addresses(), options).await.unwrap();
        hasty.insert_new(&items(0, 1_000)).await.unwrap();
        let primaries = || cluster.nodes[..PRIMARIES].iter().map(Server::client);
        primaries().for_each(|mut client| client.ask("CONFIG RESETSTAT").ok());
        let mut sleeper = cluster.nodes[0].client();
        sleeper.send(&[&"DEBUG", &"SLEEP", &"1.5"]).unwrap();
        std::thread::sleep(Duration::from_millis(200));
        // The first command is done in the end, and the second answers that they are there.
        assert_eq!(hasty.insert_new(&items(1_000, 1_000)).await.unwrap(), [true; 1_000]);
        sleeper.receive().unwrap().ok();
        let calls: Vec<_> = primaries().map(|mut client| calls(&mut client)).collect();
        assert!(calls[0] > calls[1] * 3 / 2, "nothing was in doubt: {calls:?}");
        let mut seen = open(&cluster.addresses(), Options::default()).await.unwrap();
        assert_eq!(seen.insert_new(&items(1_000, 1_000)).await.unwrap(), [false; 1_000]);
    });
}

/// How often a server was told to insert.
fn calls(client: &mut Client) -> usize {
    let stats = client.ask("INFO commandstats").text();
    let calls = stats.split("cmdstat_cf.insertnx:calls=").nth(1).expect("it was called");
    calls.split(',').next().and_then(|calls| calls.parse().ok()).expect("a number")
}

#[test]
fn a_full_partition_is_an_error_that_tells_what_was_added() {
    each_cluster(async |cluster| {
        let mut sizes = Vec::new();
        for node in &cluster.nodes[..PRIMARIES] {
            sizes.push(
                node.client().ask("CF.RESERVE seen:{00} 100 EXPANSION 0 ERROR_RATE 0.000000001"),
            );
        }
        assert_eq!(sizes.iter().filter(|reply| **reply == Reply::Simple("OK".into())).count(), 1);
        let options = Options { partitions: 1, ..Options::default() };
        let mut seen = open(&cluster.addresses(), options).await.unwrap();
        let error = seen.insert_new(&items(0, 1_000)).await.unwrap_err();
        assert!(error.to_string().contains("full"), "{error}");
        let added = error.answers.iter().filter(|new| **new == Some(true)).count();
        let refused = error.answers.iter().filter(|new| new.is_none()).count();
        assert!((100..500).contains(&added), "{added}");
        assert_eq!(refused, 1_000 - added);
    });
}

#[test]
fn a_cluster_that_is_gone_is_an_error_after_a_while() {
    each_cluster(async |cluster| {
        let patience = Duration::from_secs(1);
        let options = Options { patience, ..Options::default() };
        let mut seen = open(&cluster.addresses(), options.clone()).await.unwrap();
        cluster.nodes.iter_mut().for_each(|node| node.kill());
        let error = seen.insert_new(&items(0, 100)).await.unwrap_err();
        assert!(error.to_string().contains("does not answer"), "{error}");
        // They were sent, for all that is known.
        assert_eq!(error.answers, [Some(true); 100]);
        assert!(open(&cluster.addresses(), options).await.is_err());
    });
}
