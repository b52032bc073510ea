use super::*;
use crate::backend::Backend;
use crate::backend::growing::split::FEW_SHARDS;
use crate::backend::retry::Shards;
use crate::backend::retry::{Adding, settle};
use crate::error::FullKind;
use crate::layout::SMALL;
use crate::layout::geometry::{Bucket, MULTIPLIER};
use crate::layout::sizing::layout_for;
use std::sync::mpsc;
use std::time::Duration;

fn insert(filter: &Growing, hash: Mixed) -> Result<(), Full> {
    settle(GrowingShards::<false>(filter), hash, Adding::Copy).map(|_| ())
}

/// Items chosen to share their two buckets are refused in a nearly empty filter.
#[test]
fn an_insert_is_refused_without_the_locks_of_its_shard() {
    let layout = layout_for(100, 0.03, 0, Some(1_024.0)).expect("a layout");
    let filter = Growing::new(layout).expect("memory");
    let insert = |hash| insert(&filter, hash);
    // Buckets are derived from a hash times an odd number. These products differ only in their last bits.
    let inverse =
        (0..6).fold(1u64, |x, _| x.wrapping_mul(2u64.wrapping_sub(MULTIPLIER.wrapping_mul(x))));
    let chosen =
        (0..u64::MAX).map(|n| Mixed((0x1234_5600_0000_0000 | n << 8).wrapping_mul(inverse)));
    let is_crowded =
        |hash: &Mixed| insert(*hash).is_err_and(|full| full.kind() == FullKind::NoRoomNearby);
    let refused = chosen.take(100_000).find(is_crowded).expect("they share two buckets");
    assert_eq!(filter.shared.tables.shards(), FEW_SHARDS, "splits for a crowd");

    let (shard, place) = GrowingShards::<false>(&filter).locate(refused);
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

/// This also holds while some shards have been split and others have not.
#[test]
fn what_some_shards_tell_of_the_rate_is_near_what_all_do() {
    let most = if SMALL { 1_000 } else { 250_000 };
    let layout = layout_for(most, 0.03, 0, Some(1_024.0)).expect("a layout");
    let filter = Growing::new(layout).expect("memory");
    let mut hashes = (0..).map(Mixed::of);
    for _ in 0..10 {
        let next = hashes.by_ref().take(most / 3);
        next.for_each(|hash| insert(&filter, hash).expect("memory"));
        let (some, all) = (filter.match_weight_of_some(), filter.match_weight_of_all());
        assert!((some / all - 1.0).abs() < 0.02, "{some} instead of {all}");
    }
    assert!(filter.shared.tables.shards() > 20);
}

/// Reading the time does not wait while a tick waits to begin, because a shard is being split.
#[test]
fn the_time_is_told_while_a_tick_waits_to_begin() {
    let layout = layout_for(100, 0.03, 3, Some(1.0)).expect("a layout");
    let filter = Backend::new(layout).expect("memory");
    let filter = &filter;
    let Backend::Growing(growing) = filter else { unreachable!("it grows") };
    let ticking = filter.ticking().expect("it forgets");
    assert_eq!(filter.tick_to(5), 0);
    std::thread::scope(|scope| {
        let a_split = growing.resharding.read();
        let (send, receive) = mpsc::channel();
        scope.spawn(move || send.send(filter.tick_to(6)));
        assert!(receive.recv_timeout(Duration::from_millis(50)).is_err(), "it does not wait");
        assert_eq!((ticking.number(), filter.tick_to(5)), (Some(5), 0));
        assert!(filter.work_on_tick(0) && !ticking.clock().is_passing());
        drop(a_split);
        assert_eq!(receive.recv(), Ok(1));
    });
    assert_eq!(ticking.number(), Some(6));
}
