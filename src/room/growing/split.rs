//! Splitting a shard in two, while other threads look for its items.
//!
//! (This page is for reading; nothing in it can be called. It continues the page on
//! [kicks](mod@crate::shard::kick).)
//!
//! A filter that grows has a *directory*: the first bits of an item's hash lead to an *entry*,
//! which says where the item's *shard* is and how *deep* it is, that is, how many bits led to it. A
//! full shard is split. It keeps the items whose next bit is zero, the *lower half*; a new shard of
//! the same size takes the *upper half*. Both are one bit deeper, and the fingerprints in both have
//! lost the bit that tells the halves apart (see `layout/aging.rs`). So a split changes three
//! things that a lookup depends on: where an item is, what the words of the lower half mean, and
//! what the directory says. It cannot change them all at one moment.
//!
//! # How does a lookup stay right during a split?
//!
//! A split holds the locks of all the shard's stripes and does, in this order:
//!
//! ```text
//! S1  make the versions of all stripes of the shard odd
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
//! L4  read that version again. Even at L2 and unchanged? Otherwise start over at L2.
//! L5  read the entry again. Unchanged? Otherwise start over at L1.
//!     Then the words give the answer, yes or no.
//! ```
//!
//! The answer is right because L1 and L3 saw the shard at the same depth:
//!
//! * Suppose L1 read the old entry. If L3 reads a word that S2 stored, the lookup sees S1 from then
//!   on, since words are stored `Release` and loaded `Acquire`. So L4 reads an odd version, or the
//!   version of S4; and the lookup is sent away unless L2 had read the version of S4, too. In that
//!   case L2 came after S4, so S3 is visible to this lookup, and L5 finds another entry.
//! * Suppose L1 read the new entry of either half. All words of both halves were stored before it,
//!   so L3 sees no word from before the split; and if another split has begun since, the first case
//!   applies to that one.
//!
//! A hit is validated like a miss, unlike in a fixed filter. There a lane means the same for ever;
//! here it may be read with one bit too many or too few, and then match another item.
//!
//! A lookup that is sent away 17 times locks its two stripes, and so waits until the split is over;
//! then it asks the directory again. Items of other shards are not affected at all.
//!
//! # And writers?
//!
//! A writer learns from the directory which shard to lock. Once it holds the lock, it checks that
//! the entry is unchanged. If it is not, the item belongs elsewhere now, and the writer starts
//! over. If it is, it stays unchanged for as long as the lock is held, because a split needs all
//! locks of the shard. No function hands out a lock of a shard without this check (`Shard::lock`),
//! so it cannot be forgotten. It gives `insert_if_absent` one winner and `remove` one taker on
//! either side of a split; and of two writers that found the same shard full, the second finds it
//! split.
//!
//! # And if the directory is not deep enough?
//!
//! If the directory has no two entries for the halves, a list with each entry twice is made first.
//! Lists are never freed, so a lookup may read an old one: its entries stay right for all shards
//! that have not been split since. A shard that has been split is marked there, and the mark sends
//! readers to the newer list. One thread at a time makes lists and stores entries.
//!
//! # How many items does each half have?
//!
//! A lane whose window is used up cannot be sorted and goes to both halves. It stands for one item
//! all the same. So a shard can have more taken lanes than items, and the *excess*,
//! `lanes − items`, has to be shared between the halves in a split.
//!
//! **For every shard, `0 ≤ excess ≤ slots`.** A file whose shards violate this is rejected as
//! damaged, so it has to hold without exception:
//!
//! * A new or cleared shard has neither lanes nor items. An insert adds one of each, a removal
//!   takes one of each, and moves change neither number. So only a split changes the excess of a
//!   shard, and it is recorded then. (When the last item of the filter has gone, all lanes that are
//!   left are excess, and are erased or recorded as that; see `room/growing/accounts.rs`. And an entry
//!   of another filter may go to several shards, in one of which it counts. Where it does not, the
//!   excess grows with the lanes, unless it is half of the slots; see `room/growing/grown/adopt.rs`.)
//! * A split of a shard with excess `e`, in which `b` lanes go to both halves, leaves `b` lanes
//!   more than there were, and as many items. The excess of both halves together is `e + b`. The
//!   lower half gets `⌊(e + b) / 2⌋` of it and the upper half the rest. Since `0 ≤ e ≤ slots` and
//!   `0 ≤ b ≤ slots`, both shares are between 0 and `slots`.
//!
//! In a filter that forgets, the excess is shared out for each stamp, and the bounds hold for each stamp and
//! for the sum. (While a tick passes, the excess of what expires may be below zero; see
//! `room/growing/accounts.rs`.)
//!
//! So `lanes − excess` is an estimate of how many items a half has, which is right for both halves
//! together. It is below zero if the used-up lanes of a nearly empty shard all belong to the other
//! half. The counts of the stripes, which removals are taken off, are not: a half that would have
//! less than nothing receives the rest from the other (see `room/growing/accounts.rs`).

use crate::layout::SMALL;
use crate::layout::aging::{Aging, Halves};
use crate::layout::bucket::Words;
use crate::layout::geometry::Bucket;
use crate::layout::geometry::SHARD_STRIPES;
use crate::layout::stamps::by_stamp::ByStamp;
use crate::room::growing::site::census::Census;
use crate::rule::rule;
use crate::shard::Shard;
use crate::shard::lease::{Always, Lease};
use crate::table::stripe::{Locks, StripeSet};

/// Moves the upper half of a shard's items into `upper`, which is empty, and to which nothing leads
/// yet. The lower half stays, and each item keeps the number of its bucket. Both are locked as a
/// whole. `publish` records the censuses of the halves, and makes them known.
#[doc(hidden)]
pub fn split<const WIDE: bool, L: Lease>(
    shard: Shard<'_, L>,
    locked: &impl Locks,
    (upper, upper_locked): (Shard<'_, Always<WIDE>>, &impl Locks),
    aging: &Aging,
    census: &Census,
    publish: impl FnOnce(&[Census; 2]),
) {
    let all: StripeSet<SHARD_STRIPES> = shard.own_stripes().collect();
    let all = rule!("versions_stay_even_in_a_split", all, [].into_iter().collect());
    if !SMALL {
        // The system provides memory when it is first written, which may take milliseconds. No
        // lookup has to wait for it here.
        for bucket in upper.own_stripes().filter_map(|stripe| upper.buckets_of(stripe).next()) {
            upper.write(upper_locked, bucket, Words::default());
        }
    }
    let _moving = shard.moving(locked, &all);
    let lanes = shard.lanes();
    let items = shard.all_items();
    let mut halves = [Half::default(), Half::default()];
    let mut excess = census.excess.clone();
    for bucket in shard.buckets() {
        let words = shard.read_locked(locked, bucket);
        if words.heads == 0 {
            continue;
        }
        let Halves { lower: lower_words, upper: upper_words, in_both } = aging.split::<WIDE>(words);
        if lanes.forgets() {
            in_both.for_each(|lane| excess.add(lanes.stamp(words, lane), 1));
        }
        upper.write(upper_locked, bucket, upper_words);
        shard.write(locked, bucket, lower_words);
        for (half, words) in halves.iter_mut().zip([lower_words, upper_words]) {
            half.lanes += shard.lanes().taken(words.heads).len();
            half.vagueness += aging.vagueness::<WIDE>(words);
            half.used_up += aging.used_up::<WIDE>(words);
        }
    }
    if !lanes.forgets() {
        // All lanes have one stamp, and so the counts tell.
        let of_both = halves.iter().map(|half| half.lanes as i64).sum::<i64>();
        excess = ByStamp::unstamped(of_both - (items - census.received));
    }
    let [(lower_items, lower_census), (upper_items, upper_census)] =
        share_out(items, census.received, &halves, excess.halves());
    upper.share_out(upper_locked, upper_items, Bucket(0));
    rule!("items_are_not_shared_out", shard.share_out(locked, lower_items, Bucket(0)), ());
    rule!("entries_are_stored_after_the_versions", (), drop(_moving));
    publish(&[lower_census, upper_census]);
}

/// What was sorted into one half.
#[derive(Default)]
struct Half {
    lanes: usize,
    used_up: usize,
    vagueness: u64,
}

/// Shares the items of a shard, of which its counts have `received` some from others, out to its
/// halves: [how many items](self#how-many-items-does-each-half-have) does each have?
fn share_out(
    items: i64,
    received: i64,
    halves: &[Half; 2],
    excesses: [ByStamp; 2],
) -> [(i64, Census); 2] {
    let lower = halves[0].lanes as i64 - excesses[0].total();
    let items_of_lower = (lower + received / 2).clamp(0, items);
    let shares = [items_of_lower, items - items_of_lower];
    [0, 1].map(|half| {
        let (items, excess) = (shares[half], excesses[half].clone());
        let Half { lanes, used_up, vagueness } = halves[half];
        let received = items - (lanes as i64 - excess.total());
        let aged = vagueness - lanes as u64;
        (items, Census { excess, received, used_up: used_up as u64, aged })
    })
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn the_halves_share_the_items_and_each_has_an_excess_of_at_most_its_slots() {
        const SLOTS: i64 = 6;
        let half = |lanes| Half { lanes, used_up: 0, vagueness: lanes as u64 };
        for (lower_only, upper_only, in_both, excess, items) in (0..7i64.pow(5))
            .map(|n| (n % 7, n / 7 % 7, n / 49 % 7, n / 343 % 7, n / 2_401))
            .filter(|(lower, upper, both, ..)| lower + upper + both <= SLOTS)
        {
            let received = items - (lower_only + upper_only + in_both - excess);
            let lanes = [lower_only + in_both, upper_only + in_both];
            let excesses = ByStamp::unstamped(excess + in_both).halves();
            let halves = lanes.map(|lanes| half(lanes as usize));
            let shares = share_out(items, received, &halves, excesses);
            assert_eq!(shares.iter().map(|(items, _)| *items).sum::<i64>(), items);
            assert_eq!(shares.iter().map(|(_, half)| half.received).sum::<i64>(), received);
            for ((items, census), lanes) in shares.iter().zip(lanes) {
                assert!(*items >= 0);
                assert_eq!(census.lanes(*items), lanes);
                assert!((0..=SLOTS).contains(&census.excess.total()));
            }
        }
    }
}
