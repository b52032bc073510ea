//! Splitting a shard in two.

use crate::aging::Aging;
use crate::lease::Lease;
use crate::shard::Shard;
use crate::stripe::Locks;

/// What a shard holds after a split.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Census {
    pub items: i64,
    pub lanes: u64,
    pub vagueness: u64,
}

/// Moves the upper half of a shard's items into `upper`, which is empty and unknown to all; the lower
/// half stays, and every item in the bucket of the same number. The shard is locked as a whole.
///
/// `publish` tells everybody where the halves are. No reader believes what it sees here from before
/// the first store until after that: see [`directory`](crate::directory).
pub fn split<L: Lease>(
    shard: Shard<'_, L>,
    locked: &impl Locks,
    upper: Shard<'_>,
    aging: &Aging,
    publish: impl FnOnce(),
) -> [Census; 2] {
    let stripes = shard.stripes::<{ crate::geometry::SHARD_STRIPES }>(shard.buckets());
    let _moving = shard.moving(locked, &stripes);
    let Ok(upper_locked) = upper.lock_all();
    let mut halves = [Census::default(), Census::default()];
    for (stripe, upper_stripe) in shard.own_stripes().zip(upper.own_stripes()) {
        let (mut lower_only, mut upper_only, mut in_both) = (0, 0, 0);
        for bucket in shard.buckets_of(stripe) {
            let word = shard.read_locked(locked, bucket);
            if word == 0 {
                continue;
            }
            let split = aging.split(word);
            upper.write(&upper_locked, bucket, split.upper);
            shard.write(locked, bucket, split.lower);
            for (half, word) in halves.iter_mut().zip([split.lower, split.upper]) {
                half.vagueness += aging.vagueness(word);
            }
            lower_only += shard.lanes().taken(split.lower).len() - split.in_both;
            upper_only += shard.lanes().taken(split.upper).len() - split.in_both;
            in_both += split.in_both;
        }
        // The items of lanes that are in both halves now belong to either; only the sum counts.
        let items = shard.items(stripe);
        let in_lower = lower_only as i32 + (items - lower_only as i32 - upper_only as i32) / 2;
        shard.set_items(locked, stripe, in_lower);
        upper.set_items(&upper_locked, upper_stripe, items - in_lower);
        for (half, (only, items)) in
            halves.iter_mut().zip([(lower_only, in_lower), (upper_only, items - in_lower)])
        {
            half.items += i64::from(items);
            half.lanes += (only + in_both) as u64;
        }
    }
    drop(upper_locked);
    publish();
    halves
}
