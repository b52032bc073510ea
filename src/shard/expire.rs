//! Forgetting: how items expire while other threads are at work.
//!
//! (This page is for reading; nothing in it can be called. It continues the page on
//! [kicks](mod@crate::shard::kick).)
//!
//! A filter that forgets has a *clock*, the number of the present tick. Each lane has the end of the
//! number of the tick in which it was filled, its *stamp* (see `layout/stamps.rs`). Items that are
//! remembered for `n` ticks have one of `n + 1` stamps, and when the clock goes on, the oldest of these
//! is *dead*.
//!
//! # What does a tick do?
//!
//! ```text
//! T1  set the clock to the next tick
//! T2  for every stripe: lock it, add two to its version, unlock it
//! T3  for every stripe: lock it, erase the lanes with the dead stamp, unlock it
//! ```
//!
//! The next tick begins when this one is done. So at any moment the filter has lanes of at most
//! `n + 2` ticks, and so many different stamps there are.
//!
//! # Which stamp does a writer give?
//!
//! A writer reads the clock under the lock of the stripe that it writes to. The thread that set the
//! clock, and those that help it, lock each stripe in T2 and in T3. Whoever locks it after that reads the
//! new time, and so does whoever locks a stripe after *that* thread, and so on. Until then both times are
//! fine: the tick is still going on.
//!
//! In particular, whoever holds the lock of a lane's stripe reads a time that is not before the lane's
//! own: who filled the lane had read that time, and held the lock before. So no lane ever seems to come
//! from the future, which would look like the dead stamp.
//!
//! # Does anything dead escape?
//!
//! T3 goes stripe by stripe, so a dead lane must not move from a stripe that T3 has yet to visit into
//! one that it has visited. A kick that comes upon a dead lane in its way does not move it on but puts
//! the arriving item in its place, and ends there. It knows what is dead if T3 has visited the stripe that
//! it would move it to, because it holds the lock of that stripe. (And if T3 has yet to visit that one, a
//! dead lane may move there.) Such a replacement makes the versions odd, like any move: T2 may not have
//! come that far.
//!
//! # Is a lookup right?
//!
//! *What is dead is gone sooner or later:* a lookup may still find it until T3 gets to its stripe. It
//! does not look at stamps at all.
//!
//! *What is not dead is found.* Nothing that T1 to T3 do changes another lane. But one item may have
//! two copies: a dead one in bucket `S`, and one that another thread inserts into its other bucket `D`
//! at this moment. A lookup reads `D`, the new copy comes, T3 erases the old one, and the lookup
//! reads `S`. It has seen neither, and no version has changed: the insert needs no change, and T3 changes
//! none.
//!
//! If the lookup began before T1, then T2 sent it away: T2 changed the version of each stripe before
//! T3 erased anything. If it began after T1, so the new copy came after T1, too, and the answer is right.
//! The old copy expires at some moment of the tick, as far as anyone can tell; let that be just before
//! the new copy came. Then the item was absent at a moment of this lookup; and another lookup that
//! found the old copy, found the new one a little later, for all it knows, or was over by then.
//!
//! In a [wide](mod@crate::shard::kick#and-in-a-wide-bucket) bucket, the page on kicks asks more: that
//! whatever takes an item out of a lane changes the versions of *both* its stripes, because a lookup
//! that saw the head of one item may see the tail of the next. T3 holds one lock only, and while it
//! erases, it makes that stripe's version odd. So in a filter that forgets, a lookup in wide buckets reads
//! the versions of both its stripes.
//!
//! # And if somebody takes the tick ahead through one shard?
//!
//! A lookup stays within its shard, and so do moves. So T2 and T3 may be done for the stripes of one shard, in this
//! order, before they are done for others. The pass that is going on ends after that, so the next tick
//! does too, in which another stamp is dead.
//!
//! # And in a growing filter?
//!
//! There the same happens in the shards that there are. Those that splits add meanwhile learn the time from
//! the thread that makes them (see `room/growing/grown/forget.rs`). A shard that is full is swept before it is
//! split: T2 and T3 for its own stripes. The end of the tick takes the items of used-up lanes off (see
//! `room/growing/ledger.rs`).

use crate::layout::stamps::Moment;
use crate::rule::rule;
use crate::shard::Shard;
use crate::shard::lease::Always;
use crate::table::stripe::{Locks, StripeSet};

/// So many words are added up at once: the smallest lanes count to 255.
const IN_A_SUM: usize = 128;

impl<const WIDE: bool> Shard<'_, Always<WIDE>> {
    /// Tells the writers of a stripe what time it is, and sends away the lookups that have begun.
    pub fn announce(self, stripe: usize) {
        let stripes = self.table.stripes();
        let locked = stripes.lock(stripe);
        rule!("a_tick_sends_no_lookup_away", stripes.outdate(&locked, stripe), ());
    }

    /// Erases what has expired in a stripe. `uncounted` gets the words before that, and returns how many of the lanes
    /// that go the stripe does not count.
    pub fn expire(self, stripe: usize, now: Moment, uncounted: impl FnMut(&[u64]) -> i32) {
        let locked = self.table.stripes().lock(stripe);
        let gone = self.erase(&locked, stripe, now, uncounted);
        self.table.stripes().add_items(&locked, stripe, -gone);
    }

    /// Does so. Returns how many lanes went that the stripe counts.
    fn erase(
        self,
        locked: &impl Locks,
        stripe: usize,
        now: Moment,
        mut uncounted: impl FnMut(&[u64]) -> i32,
    ) -> i32 {
        let lanes = self.lanes();
        let which: StripeSet<1> = [stripe].into_iter().collect();
        let moves = rule!("items_expire_from_wide_buckets_without_a_new_version", WIDE, false);
        let _moving = moves.then(|| self.moving(locked, &which));
        let mut buckets = self.buckets_of(stripe);
        let Some(first) = buckets.next() else { return 0 };
        let last = buckets.last().unwrap_or(first);
        let expiry = lanes.expiry::<WIDE>(now);
        let words = self.word(first)..self.word(last) + lanes.words();
        // Words are stored whether or not they change: a branch on what is as good as random takes longer.
        // And the lanes that go are added up for some words at once, without a popcount for each.
        let mut gone = 0;
        for start in words.clone().step_by(IN_A_SUM) {
            let words = start..(start + IN_A_SUM).min(words.end);
            self.table.replace::<IN_A_SUM>(locked, words, |words| {
                gone -= uncounted(words);
                gone += lanes.sum(expiry.erase(words)) as i32;
            });
        }
        gone
    }

    /// Whether anything here has expired, in one stripe after the other.
    pub fn has_any_expired(self, now: Moment) -> bool {
        self.own_stripes().any(|stripe| {
            let locked = self.table.stripes().lock(stripe);
            let words = |bucket| self.read_locked(&locked, bucket);
            let expired = |bucket| !self.lanes().expired(words(bucket), now).is_empty();
            self.buckets_of(stripe).any(expired)
        })
    }
}
