use super::*;
use crate::layout::geometry::Bucket;
use crate::layout::sizing::growth_plan;
use crate::room::shards::{Insert, act};
use std::sync::mpsc;
use std::time::Duration;

/// Copies of a few items fill their pairs of buckets in a shard that is nearly empty.
#[test]
fn an_insert_is_refused_without_the_locks_of_its_shard() {
    let plan = growth_plan(100, 0.03, 0, 1_024.0, [0, usize::MAX]).expect("a layout");
    let filter = Grown::new(plan).expect("memory");
    let insert = |hash| act::<Insert, _>(&filter, hash);
    let is_crowded = |hash: &Mixed| {
        for _ in 0..20 {
            let _ = insert(*hash);
        }
        let (shard, place) = filter.locate::<false>(*hash);
        let own = shard.lock(place).expect("no split");
        let only_copies = shard.count_locked(&own, place) == 2 * shard.lanes().slots();
        drop(own);
        insert(*hash).is_err() && !only_copies
    };
    let refused = (0..10_000).map(Mixed::of).find(is_crowded).expect("items share a bucket");
    assert_eq!(filter.ground.tables.shards(), 1, "a split for copies");

    let (shard, place) = filter.locate::<false>(refused);
    let own = [place.first, place.second].map(|bucket| shard.stripes::<1>([bucket]));
    let is_elsewhere = |bucket: &Bucket| !own.contains(&shard.stripes::<1>([*bucket]));
    let elsewhere = shard.buckets().find(is_elsewhere).expect("a third stripe");
    let held = shard.lock_one(elsewhere).expect("no split");
    let (send, receive) = mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(|| send.send(insert(refused)));
        let answer = receive.recv_timeout(Duration::from_secs(20));
        drop(held);
        assert!(matches!(answer, Ok(Err(_))), "a refusal waits for a lock: {answer:?}");
    });
}
