//! Splitting a shard in two, while others look for its items.
//!
//! (This page is to be read; nothing in it can be called. It is the sister of the one on
//! [kicks](mod@crate::shard::kick), and takes for granted what that one says.)
//!
//! A filter that grows has a *directory*: the first bits of an item's hash lead to an *entry*, which
//! says where the item's *shard* is, and of what *depth*: how many bits were used. A shard that is
//! full is split. It keeps the items whose next bit is zero, the *lower half*, and a new shard of the
//! same size takes the *upper half*. Both have a depth of one more, and a fingerprint in either has
//! lost the bit that tells them apart (see `aging.rs`). So a split changes three things that a
//! lookup depends on: where an item is, what the words of the lower half mean, and what the
//! directory says. It cannot change them at one moment.
//!
//! # How does a lookup stay right during a split?
//!
//! Who splits a shard holds the locks of all its stripes and does, in this order:
//!
//! ```text
//! S1  the versions of all stripes of the shard become odd
//! S2  the words of the upper half are stored in the new shard, those of the lower in the old
//! S3  the entries of both halves are stored in the directory
//! S4  the versions become even, two more than before
//! ```
//!
//! The lookup does:
//!
//! ```text
//! L1  reads the entry, and reckons from its depth what the item's fingerprint is
//! L2  reads the version of one of the item's two stripes
//! L3  reads both words
//! L4  reads that version again: even at L2 and the same now? Otherwise from L2 again.
//! L5  reads the entry again: still the same? Otherwise from L1 again.
//!     Then the words answer, yes or no.
//! ```
//!
//! It is right because L1 and L3 saw the shard at the same depth:
//!
//! * Say that L1 saw the old entry. If L3 saw a word that S2 stored, the lookup sees S1 from there on,
//!   since words are stored `Release` and loaded `Acquire`. So L4 reads an odd version, or that of S4;
//!   and it is sent away unless L2 read that of S4, too. Then L2 came after S4, S3 is over for this
//!   lookup, and L5 finds that the entry is another.
//! * Say that L1 saw the new entry of either half. All words of both halves were stored before it, so
//!   L3 sees none of before the split; and if another split has begun since, see above.
//!
//! A hit is not believed sooner than a miss, as it is in a fixed filter. There a lane means one thing
//! for ever; here it may be read with one bit too many or too few, and would be taken for another item's.
//!
//! A lookup that is sent away 17 times takes the locks of its two stripes, and so waits until the split
//! is over; then it asks the directory again. The items of other shards are not concerned at all.
//!
//! # And who writes?
//!
//! A writer learns from the directory which shard it is to lock. When it has the lock it asks whether
//! the entry is still the same. If it is not, the item belongs elsewhere now, and the writer begins
//! again. If it is, it stays so as long as the lock is held, for a split takes all of them. No function
//! gives out the lock of a shard without asking (`Shard::lock`), so nobody can forget it. This is what
//! keeps `insert_if_absent` to one winner and `remove` to one taker on either side of a split; and
//! of two writers that found the same shard full, the one who comes second finds it split.
//!
//! # And if the directory has to become longer?
//!
//! When there are no two entries for the halves, a list with each entry twice is made first. Lists are
//! never given back, so a lookup may read an old one: its entries are as good as ever for all shards
//! that have not been split since. In the place of one that has is a mark, which sends readers to the
//! newer list. Making a list, and storing entries, is done by one at a time.

use crate::layout::SMALL;
use crate::layout::aging::Aging;
use crate::layout::geometry::SHARD_STRIPES;
use crate::shard::Shard;
use crate::shard::lease::Lease;
use crate::table::stripe::{Locks, StripeSet};

/// What a shard holds after a split.
#[doc(hidden)]
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Census {
    pub items: i64,
    pub lanes: u64,
    pub vagueness: u64,
}

/// Moves the upper half of a shard's items into `upper`, which is empty and unknown to all; the lower
/// half stays, and every item in the bucket of the same number. The shard is locked as a whole.
/// `publish` is to tell everybody where the halves are.
#[doc(hidden)]
pub fn split<L: Lease>(
    shard: Shard<'_, L>,
    locked: &impl Locks,
    upper: Shard<'_>,
    aging: &Aging,
    publish: impl FnOnce(),
) -> [Census; 2] {
    let stripes: StripeSet<SHARD_STRIPES> = shard.own_stripes().collect();
    let Ok(upper_locked) = upper.lock_all();
    if !SMALL {
        // The system gives memory when it is first written, and may take milliseconds for that. Here
        // nobody who looks for an item has to wait yet.
        for bucket in upper.own_stripes().filter_map(|stripe| upper.buckets_of(stripe).next()) {
            upper.write(&upper_locked, bucket, 0);
        }
    }
    let _moving = shard.moving(locked, &stripes);
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
