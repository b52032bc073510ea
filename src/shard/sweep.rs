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
//! T2  for every stripe: lock it, add two to its version, erase the lanes with the dead stamp, unlock it
//! ```
//!
//! That is all that happens to a filter at one moment: T1, which is one store. T2 is a *sweep*, in any order and in as
//! many parts as there is time for, and only makes room for the next tick: that one begins when this sweep is done.
//! So at any moment the filter has lanes of at most `n + 2` ticks, and so many different stamps there are. Each
//! stripe has the mark of the tick in which it was last swept.
//!
//! # What does a writer do while a sweep is going on?
//!
//! It sweeps the stripes of its item first, if they have not been swept. So it does what it would do if T2
//! were done, however far it has come: two filters to which the same is done in the same order become equal. If
//! its item finds no room, it sweeps the whole shard before it searches. (`backend/shards.rs` has the first of these,
//! [`kick`](mod@crate::shard::kick) the second.) Lookups do not: one may find what is dead until its stripe is swept.
//!
//! A writer may have begun before T1, and come upon a stripe that others have swept since. Then it must not bring
//! anything dead there from another one. So whoever locks the stripes of a path, or all of a shard, sweeps them
//! under these locks; and so does who stamps, dates, counts or removes lanes of an item. It knows of the tick if one
//! of them has been swept, because it has that one's lock after somebody who knew. And if none has been, then what it
//! does there is done before the sweep, and might as well have been done before T1.
//!
//! # Which stamp does a writer give?
//!
//! It reads the clock under the lock of the stripe that it writes to. While the tick is passing, both times are fine.
//! But whoever holds the lock of a lane's stripe reads a time that is not before the lane's own: who filled the lane
//! had read that time, and held the lock before. So no lane ever seems to come from the future, which would look
//! like the dead stamp. For the same reason, whoever sweeps by what it has read of the clock has read it under the lock,
//! or keeps the next tick from beginning.
//!
//! # Is a lookup right?
//!
//! *What is dead is gone sooner or later:* a lookup does not look at stamps at all.
//!
//! *What is not dead is found.* Nothing that T1 and T2 do changes another lane. But one item may have
//! two copies: a dead one in bucket `S`, and one that another thread inserts into its other bucket `D`. Say
//! that it comes there before T1. A lookup reads `D`; the new copy comes; T1; T2 erases the old one; the lookup reads
//! `S`. It has seen neither, though there was one at every moment. The insert changes no version, and T2
//! changes that of `S` alone. So a lookup takes the version of the bucket that it reads *last*. Then that is `S`, and
//! T2 sends it away. If it reads `S` first, and finds the old copy gone, then it sees in `D` what had come there
//! before: who swept `S` knew of T1, and whoever knows of T1 knows what came before that. (If the new copy comes by a
//! writer who does not know of T1, while others do, then let it come after T1.)
//!
//! And if the new copy comes after T1? Then the old one was dead before, and the item was absent at a moment of
//! this lookup. Another lookup that found the old copy, found the new one a little later, for all it knows, or was
//! over by then.
//!
//! In a [wide](mod@crate::shard::kick#and-in-a-wide-bucket) bucket, the page on kicks asks more: that
//! whatever takes an item out of a lane changes the versions of *both* its stripes, because a lookup
//! that saw the head of one item may see the tail of the next. T2 holds one lock only, and while it
//! erases, it makes that stripe's version odd. So in a filter that forgets, a lookup in wide buckets reads
//! the versions of both its stripes.
//!
//! # And in a growing filter?
//!
//! There the same happens in the shards that there are, and in those that splits add meanwhile (see
//! `backend/growing/sharded/forget.rs`). The end of the tick takes the items of exhausted lanes off (see
//! `backend/growing/ledger.rs`).

use crate::layout::either;
use crate::layout::geometry::Place;
use crate::layout::stamps::Moment;
use crate::rule::rule;
use crate::shard::Shard;
use crate::shard::lease::Lease;
use crate::table::clock::Clock;
use crate::table::stripe::{Locks, StripeSet};

/// So many words are added up at once: the smallest lanes count to 255.
const IN_A_SUM: usize = 128;

impl<L: Lease> Shard<'_, L> {
    /// What time it is, for a caller that holds a lock of the shard.
    #[inline]
    pub fn now(self) -> Moment {
        self.lease.clock(self.table).map_or(Moment::FIRST, Clock::now)
    }

    /// Whether what has expired may be left in stripes that nobody has locked since.
    #[inline]
    pub fn is_ticking(self) -> bool {
        self.lease.clock(self.table).is_some_and(Clock::is_passing)
    }

    /// What time it is, for a caller that has just locked these stripes. If a tick is passing, erases what has expired
    /// in those where nobody has done so: by that time, nothing in them has.
    #[inline]
    pub fn sweep_moved(
        self,
        locked: &impl Locks,
        stripes: impl IntoIterator<Item = usize>,
    ) -> Moment {
        // Who reads a time also sees that its tick is passing, unless it has passed.
        let now = self.now();
        if rule!("a_stripe_is_locked_and_not_swept", self.is_ticking(), false) {
            self.sweep_locked(locked, stripes, now);
        }
        rule!("the_time_is_read_after_the_sweep", now, self.now())
    }

    /// The same for the stripes of an item.
    #[inline]
    pub fn sweep_own(self, locked: &impl Locks, place: Place) -> Moment {
        self.sweep_moved(locked, [place.first, place.second].map(|bucket| self.stripe(bucket)))
    }

    #[cold]
    fn sweep_locked(
        self,
        locked: &impl Locks,
        stripes: impl IntoIterator<Item = usize>,
        now: Moment,
    ) {
        for stripe in stripes {
            if !self.table.stripes().is_swept(stripe, now) {
                self.erase(locked, stripe, now, |words| self.lease.expiring(words, now));
            }
        }
    }

    /// Sweeps the stripes of an item.
    #[cold]
    pub fn sweep_both(self, place: Place) -> Result<(), L::Lapsed> {
        let both = [place.first, place.second].map(|bucket| self.stripe(bucket));
        let now = self.now();
        if both.iter().all(|stripe| self.table.stripes().is_swept(*stripe, now)) {
            return Ok(());
        }
        let locked = self.lock(place)?;
        let now = rule!("a_sweep_goes_by_the_time_of_before_its_locks", self.now(), now);
        self.sweep_locked(&locked, both, now);
        Ok(())
    }

    /// Sweeps one stripe after the other, if a tick is passing: what a search for room finds must not depend on how far
    /// that has come.
    #[inline]
    pub fn sweep_all(self) -> Result<(), L::Lapsed> {
        if !self.is_ticking() {
            return Ok(());
        }
        let (stripes, now) = (self.table.stripes(), self.now());
        for stripe in self.own_stripes().filter(|stripe| !stripes.is_swept(*stripe, now)) {
            let locked = stripes.lock(stripe);
            self.lease.check()?;
            self.sweep_locked(&locked, [stripe], self.now());
        }
        Ok(())
    }

    /// Erases what has expired in a stripe, unless a writer has done so in this tick. `uncounted` gets the words before
    /// that, and returns how many of the lanes that go the stripe does not count.
    pub fn sweep(self, stripe: usize, now: Moment, uncounted: impl FnMut(&[u64]) -> i32) {
        let locked = self.table.stripes().lock(stripe);
        if !self.table.stripes().is_swept(stripe, now) {
            self.erase(&locked, stripe, now, uncounted);
        }
    }

    fn erase(
        self,
        locked: &impl Locks,
        stripe: usize,
        now: Moment,
        mut uncounted: impl FnMut(&[u64]) -> i32,
    ) {
        let (lanes, stripes) = (self.lanes(), self.table.stripes());
        let which: StripeSet<1> = [stripe].into_iter().collect();
        let moves = rule!("items_expire_from_wide_buckets_without_a_new_version", L::WIDE, false);
        let _moving = moves.then(|| self.write_section(locked, &which));
        if !L::WIDE {
            rule!("a_sweep_sends_no_lookup_away", stripes.invalidate_readers(locked, stripe), ());
        }
        let mut buckets = self.buckets_of(stripe);
        let Some(first) = buckets.next() else { return };
        let last = buckets.last().unwrap_or(first);
        let words = self.word(first)..self.word(last) + lanes.words();
        let mut change = 0;
        either!(L::WIDE, WIDE => {
            let expiry = lanes.expiry::<WIDE>(now);
            self.table.replace::<IN_A_SUM>(locked, words, |words| {
                change += uncounted(words);
                let erased = expiry.erase(words);
                change -= erased as i32;
                erased > 0
            });
        });
        stripes.add_items(locked, stripe, change);
        stripes.set_swept(locked, stripe, now);
    }
}
