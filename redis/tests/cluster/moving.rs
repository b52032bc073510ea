//! What the recipe makes of partitions that move to another node while it is at work.

use crate::client::Reply;
use crate::cluster::{Cluster, PRIMARIES};
use crate::doubt::{block_on, open};
use crate::seen::Options;
use crate::server::{Server, each_server};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::Duration;

const PARTITIONS: u32 = 16;
const BATCH: usize = 100;

/// Moves a key's slot, as `redis-cli --cluster reshard` does. Returns whether it was at `from`.
fn move_slot(key: &str, from: &Server, to: &Server) -> bool {
    let (mut source, mut target) = (from.client(), to.client());
    if source.ask(&format!("EXISTS {key}")) != Reply::Integer(1) {
        return false; // It is elsewhere.
    }
    let slot = source.ask(&format!("CLUSTER KEYSLOT {key}")).integer();
    let (id, target_id) = (source.ask("CLUSTER MYID").text(), target.ask("CLUSTER MYID").text());
    target.ask(&format!("CLUSTER SETSLOT {slot} IMPORTING {id}")).ok();
    source.ask(&format!("CLUSTER SETSLOT {slot} MIGRATING {target_id}")).ok();
    source.ask(&format!("MIGRATE 127.0.0.1 {} {key} 0 5000", to.port)).ok();
    // Until now and for some time more, the source answers `ASK`.
    sleep(Duration::from_millis(50));
    target.ask(&format!("CLUSTER SETSLOT {slot} NODE {target_id}")).ok();
    source.ask(&format!("CLUSTER SETSLOT {slot} NODE {target_id}")).ok();
    true
}

#[test]
fn a_set_whose_partitions_move_forgets_nothing() {
    each_server(|kind| {
        let cluster = Cluster::start(kind);
        // Hardly ever is an item taken for one that was seen.
        let options = Options { partitions: PARTITIONS, error_rate: 2e-8, ..Options::default() };
        let (done, ready) = (AtomicBool::new(false), AtomicBool::new(false));
        let items = std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                block_on(async {
                    let mut seen = open(&cluster.addresses(), options.clone()).await.unwrap();
                    let mut items = Vec::new();
                    while !done.load(Ordering::Relaxed) {
                        let from = items.len();
                        let batch = from..from + BATCH;
                        items.extend(batch.map(|number| format!("item {number}")));
                        let new = seen.insert_new(&items[from..]).await.unwrap();
                        assert_eq!(new, [true; BATCH], "an item was taken for another");
                        ready.store(true, Ordering::Relaxed);
                    }
                    items
                })
            });
            while !ready.load(Ordering::Relaxed) && !writer.is_finished() {
                std::thread::yield_now();
            }
            let keys = (0..PARTITIONS).map(|number| format!("{}:{{{number:02}}}", options.name));
            let [first, second, ..] = &cluster.nodes[..] else { panic!("a node is missing") };
            let moved = keys.filter(|key| move_slot(key, first, second)).count();
            assert!(moved > 1, "{moved} partitions were on the first node");
            done.store(true, Ordering::Relaxed);
            writer.join().unwrap()
        });
        assert!(items.len() > 3 * BATCH, "{} were inserted meanwhile", items.len());
        let new = block_on(async {
            let mut seen = open(&cluster.addresses(), options.clone()).await.unwrap();
            seen.insert_new(&items).await.unwrap()
        });
        assert!(!new.contains(&true), "an item was forgotten");
        let of = |node: &Server| node.client().ask("DBSIZE").integer();
        let partitions: i64 = cluster.nodes[..PRIMARIES].iter().map(of).sum();
        assert_eq!(partitions, PARTITIONS.into());
        assert_eq!(of(&cluster.nodes[0]), 0, "a partition stayed behind");
    });
}
