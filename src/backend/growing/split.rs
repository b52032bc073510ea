//! Splitting a shard in two, while other threads look up its items.
//!
//! (This page is for reading; nothing in it can be called. It continues the page on
//! [kicks](mod@crate::shard::kick).)
//!
//! A filter that grows has a *directory*: the leading bits of the *position* of an item's hash lead to an *entry*,
//! which says where the item's *shard* is and how *deep* it is, that is, how many bits led to it. A full shard is
//! split. It keeps the items whose next bit is zero, the *lower half*; a new shard of the same size takes the *upper
//! half*. Both are one bit deeper, and the fingerprints in both have lost the bit that tells the halves apart (see
//! `layout/shrinking.rs`). So a split changes three things that a lookup depends on: the place of an item, the meaning
//! of the words of the lower half, and the directory. It cannot change all three at one moment.
//!
//! # How does a lookup stay right during a split?
//!
//! A split holds the locks of all the shard's stripes and does, in this order:
//!
//! ```text
//! S1  make the versions of all stripes of both shards odd
//! S2  store the words of the upper half in the new shard, and of the lower half in the old one
//! S3  store the entries of both halves in the directory
//! S4  make the versions even, two more than before
//! ```
//!
//! The lookup does:
//!
//! ```text
//! L1  read the entry, and derive the item's fingerprint from its depth
//! L2  read the version of one of the item's two stripes
//! L3  read both words
//! L4  read the entry again. Unchanged? Otherwise start over at L1.
//! L5  read that version again. Even at L2 and unchanged? Otherwise start over at L2.
//!     Then the words give the answer, yes or no.
//! ```
//!
//! The answer is right because L1 and L3 saw the shard at the same depth:
//!
//! * Suppose L1 read the old entry. If L3 reads a word that S2 stored, the lookup sees S1 from then on, since
//!   words are stored `Release` and loaded `Acquire`. So L5 reads an odd version, or the version of S4; and
//!   the lookup has to retry unless L2 had read the version of S4, too. In that case L2 came after S4, so S3
//!   is visible to this lookup, and L4 finds another entry.
//! * Suppose L1 read the new entry of either half. All words of both halves were stored before it,
//!   so L3 sees no word from before the split; and if another split has begun since, the first case
//!   applies to that one.
//!
//! (The page on [joins](mod@crate::backend::growing::join), after which an old entry may come back, has the reason for
//! the order of L4 and L5, and for the versions of the new shard.)
//!
//! A hit is validated like a miss, unlike in a fixed filter. There the meaning of a lane never changes; here
//! a lane may be read with one bit too many or too few, and then match another item.
//!
//! A lookup that fails at all its attempts locks its two stripes, and so waits until the split is over; then it reads
//! the directory again. Items of other shards are not affected at all.
//!
//! # And writers?
//!
//! A writer finds the shard to lock in the directory. Once it holds the lock, it checks that the entry is unchanged. If
//! the entry has changed, the item belongs elsewhere now, and the writer starts over. Otherwise the entry stays
//! unchanged for as long as the lock is held, because a split needs all locks of the shard. The functions of a shard
//! that lock it for an operation on items make this check (`Shard::lock`, for example), so no operation can forget it.
//! (The sweep of a stripe needs none while its shard is in use: what has expired has expired in both halves.) The check
//! gives `insert_if_absent` one winner and `remove` one taker on either side of a split; and of two writers that found
//! the same shard full, the second finds it split.
//!
//! # And if the directory is not deep enough?
//!
//! If the directory has no two entries for the halves, a list with each entry twice is made first. Lists are
//! freed only with the filter, so a lookup may read an old one: its entries stay right for all shards that
//! have not been split since. A shard that has been split is marked there, and the mark sends readers to the
//! newer list. One thread at a time makes lists and stores entries.
//!
//! # How many items does each half have?
//!
//! As many as it has lanes with bits left. A lane that was void before the split goes to both halves, and its item has
//! been counted already (see `backend/growing/void.rs`). A lane that loses its last bit in this split goes to one half,
//! and its item moves from the count of its stripe to the number of void items.

use crate::layout::SMALL;
use crate::layout::bucket::Words;
use crate::layout::geometry::{Bucket, SHARD_STRIPES};
use crate::layout::shrinking::{Halves, Shrinking};
use crate::shard::AllLocks;
use crate::shard::raw::RawShard;
use crate::table::stripe::StripeSet;

/// The number of words in a page of memory.
const PAGE_WORDS: usize = 512;

/// The changes that a split makes to the figures of a shard.
#[doc(hidden)]
#[derive(Default)]
pub(crate) struct SplitFigures {
    /// The initial [`surplus`](crate::backend::growing::tables::Site::surplus) of each half.
    pub surplus: [u64; 2],
    /// The number of lanes that have lost their last bit.
    pub newly_void: u64,
}

/// Moves the upper half of a shard's items into `upper`, which is empty and has no entry yet. The lower half
/// stays, and each item keeps the number of its bucket. `publish` records the changes, and stores the entries of the
/// halves.
#[doc(hidden)]
pub(crate) fn split(
    (shard, locked): (RawShard<'_>, &AllLocks<'_>),
    (upper, upper_locked): (RawShard<'_>, &AllLocks<'_>),
    shrinking: &Shrinking,
    publish: impl FnOnce(SplitFigures),
) {
    let all: StripeSet<SHARD_STRIPES> = shard.own_stripes().collect();
    if !SMALL {
        // The system provides memory when it is first written, which may take milliseconds. Here, no lookup
        // has to wait for it.
        for bucket in upper.buckets().step_by(PAGE_WORDS / shrinking.lanes().words()) {
            upper.write(upper_locked, bucket, Words::default());
        }
    }
    let _moving = shard.write_section(locked, &all);
    let of_upper: StripeSet<SHARD_STRIPES> = upper.own_stripes().collect();
    let _coming = upper.write_section(upper_locked, &of_upper);
    let lanes = shard.lanes();
    let mut sorted = SplitFigures::default();
    let mut counted = [0, 0];
    for bucket in shard.buckets() {
        let words = shard.read_locked(locked, bucket);
        if words.heads == 0 {
            continue;
        }
        let Halves { lower: lower_words, upper: upper_words, in_both } = shrinking.split(words);
        upper.write(upper_locked, bucket, upper_words);
        shard.write(locked, bucket, lower_words);
        for (half, words) in [lower_words, upper_words].into_iter().enumerate() {
            let (mut with_bits, match_weight) =
                (lanes.taken(words.heads).len(), shrinking.match_weight(words));
            // Usually all lanes together weigh less than one void lane.
            if match_weight >> shrinking.suffix_bits() > 0 {
                let void = shrinking.void_lanes(words);
                with_bits -= void.len();
                sorted.newly_void += lanes.set_of(void.tops() & !in_both.tops()).len() as u64;
            }
            counted[half] += with_bits as i64;
            sorted.surplus[half] += match_weight - with_bits as u64;
        }
    }
    upper.share_out(upper_locked, counted[1], Bucket(0));
    shard.share_out(locked, counted[0], Bucket(0));
    publish(sorted);
}
