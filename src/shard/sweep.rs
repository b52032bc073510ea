//! Expiry: how ticks erase items while other threads use the filter.
//!
//! (This page is for reading; nothing in it can be called. It continues the page on
//! [kicks](mod@crate::shard::kick).)
//!
//! A filter that forgets has a *clock*: the number of the present tick, and whether it is passing. Each lane has a
//! *stamp*, the low bits of the number of the tick in which it was filled (see `layout/stamps.rs`). Items that are
//! remembered for `n` ticks have one of `n + 1` stamps, and when the clock advances, those with the oldest have
//! expired: they are *dead*. (A tick that makes up for more than `n` ticks *ends all*: every stamp but its own is
//! dead.)
//!
//! # What does a tick do?
//!
//! ```text
//! T1  set the clock to the next tick, which is passing
//! T2  for every stripe: lock it, add two to its version, erase the dead lanes, unlock it
//! T3  set the clock to the same tick, which has passed, and ends nothing any more
//! ```
//!
//! Only T1 and T3 affect the whole filter at one moment, and each is one store. T2 is a *sweep*. It may go through
//! the stripes in any order and in any number of parts, and has to be done before the next tick begins. So at
//! any moment the filter has lanes of at most `n + 2` ticks, and there are that many different stamps. Each
//! stripe has the mark of the tick in which it was last swept.
//!
//! # What does a writer do while a sweep is going on?
//!
//! It sweeps the stripes of its item first, if they have not been swept. So its result is the same as if T2
//! were done, however far T2 has come: two filters to which the same operations are applied in the same order
//! become equal. If its item finds no room, the writer sweeps the whole shard before it searches. (The first
//! of these sweeps is in `backend/retry.rs`, the second in [`kick`](mod@crate::shard::kick).) Lookups do not
//! sweep: a lookup may find a dead lane until the lane's stripe is swept.
//!
//! A writer may have begun before T1, and then lock a stripe that others have swept since. It must not move a
//! dead lane there from another stripe. So a writer that locks the stripes of a path, or all of a shard,
//! sweeps them under these locks, and so does a writer that stamps, dates, counts or removes lanes of an
//! item. If one of the stripes has been swept, the writer sees the tick, because it acquired that stripe's
//! lock after a thread that saw it. If none has been swept, the writer's changes come before the sweep, and
//! might as well have been made before T1.
//!
//! # Which stamp does a writer give?
//!
//! A writer reads the clock under the lock of the stripe that it writes to. While the tick is passing, both
//! times are correct. But a thread that holds the lock of a lane's stripe reads a time no earlier than the
//! lane's own: the thread that filled the lane had read that time, and held the lock before. So no lane ever
//! seems to come from the future, which would look like the dead stamp. For the same reason, a thread that
//! sweeps by a time has read it under the lock, or keeps the next tick from beginning.
//!
//! # Is a lookup right?
//!
//! *A dead lane is gone sooner or later:* a lookup does not look at stamps at all.
//!
//! *A lane that is not dead is found.* T1 and T2 change only dead lanes. But one item may have two copies: a
//! dead one in bucket `S`, and one that another thread inserts into its other bucket `D`. Say that the new
//! copy arrives before T1. A lookup reads `D`; the new copy arrives; T1; T2 erases the old one; the lookup
//! reads `S`. It has seen neither, though there was one at every moment. The insert changes no version, and
//! T2 changes only that of `S`. So a lookup uses the version of the bucket that it reads *last*. Here that is
//! `S`, and T2 invalidates the lookup. If it reads `S` first, and finds the old copy gone, then it sees the
//! new copy in `D`: the insert happens-before T1, T1 happens-before the sweep of `S`, and the lookup has read
//! a store of that sweep. (If the insert and T1 are not ordered, because its writer has not seen T1 while
//! other threads have, count the insert as after T1.)
//!
//! And if the new copy arrives after T1? Then the old copy was dead before, and the item was absent at some
//! moment during this lookup. Another lookup that found the old copy either had ended by then, or is
//! indistinguishable from one that found the new copy a little later.
//!
//! In a [wide](mod@crate::shard::kick#and-in-a-wide-bucket) bucket, the page on kicks requires more: every
//! operation that takes an item out of a lane changes the versions of *both* its stripes, because a lookup
//! that saw the head of one item may see the tail of the next. T2 holds only one lock, and makes only that
//! stripe's version odd while it erases. So in a filter that forgets, a lookup in wide buckets reads the
//! versions of both its stripes.
//!
//! # And in a growing filter?
//!
//! The same happens in all of its shards, including those that splits add meanwhile (see
//! `backend/growing/mod.rs`). As a tick begins, the number of void items becomes that of the void lanes that
//! stay, if it was greater (see `backend/growing/void.rs`).

use crate::layout::geometry::Place;
use crate::layout::stamps::Moment;
use crate::shard::raw::AllLocks;
use crate::shard::{Lease, Shard};
use crate::table::stripe::Locks;
use crate::table::ticking::{Ticking, Time};

impl<'a, L: Lease<'a>> Shard<L> {
    /// Returns the time. A caller that does not hold a lock of the shard may get an earlier one, and asks again under
    /// the lock.
    #[inline]
    pub(crate) fn now(&self) -> Moment {
        self.ticking().map_or(Moment::FIRST, |ticking| ticking.clock().now())
    }

    /// Returns the time, for a caller that has just locked these stripes. If a tick is passing, sweeps those
    /// stripes that have not been swept, so that no lane in them has expired by that time.
    #[inline]
    pub(crate) fn time_after_sweep(
        &self,
        locked: &impl Locks,
        stripes: impl IntoIterator<Item = usize>,
    ) -> Moment {
        let now = self.now();
        if now.is_passing() {
            self.sweep_locked(locked, stripes, now);
        }
        now
    }

    /// The same for the stripes of an item.
    #[inline]
    pub(crate) fn sweep_own(&self, locked: &impl Locks, place: Place) -> Moment {
        self.time_after_sweep(locked, [place.first, place.second].map(|bucket| self.stripe(bucket)))
    }

    /// Returns the present time. Nothing in the shard has expired by then.
    pub(crate) fn swept_time(&self, locked: &AllLocks<'_>, ticking: &Ticking) -> (Time, Moment) {
        let (time, now) = ticking.time();
        // A tick may have begun since the locks were acquired. It cannot have passed.
        if now.is_passing() {
            self.sweep_locked(locked, self.own_stripes(), now);
        }
        (time, now)
    }

    #[cold]
    #[inline(never)]
    fn sweep_locked(
        &self,
        locked: &impl Locks,
        stripes: impl IntoIterator<Item = usize>,
        now: Moment,
    ) {
        for stripe in stripes {
            if !self.table.stripes.is_swept(stripe, now) {
                self.erase_expired(locked, stripe, now, |words| self.expiring(words, now));
            }
        }
    }

    /// Sweeps the stripes of an item.
    #[cold]
    #[inline(never)]
    pub(crate) fn sweep_both(&self, place: Place) -> Result<(), L::Lapsed> {
        let both = [place.first, place.second].map(|bucket| self.stripe(bucket));
        let now = self.now();
        if both.iter().all(|stripe| self.table.stripes.is_swept(*stripe, now)) {
            return Ok(());
        }
        let locked = self.lock(place)?;
        let now = self.now();
        self.sweep_locked(&locked, both, now);
        Ok(())
    }

    /// Sweeps one stripe after the other, if a tick is passing: the result of a search for room must not
    /// depend on the progress of the tick.
    #[inline]
    pub(crate) fn sweep_all(&self) -> Result<(), L::Lapsed> {
        let (stripes, now) = (&self.table.stripes, self.now());
        if !now.is_passing() {
            return Ok(());
        }
        for stripe in self.own_stripes().filter(|stripe| !stripes.is_swept(*stripe, now)) {
            let locked = stripes.lock(stripe);
            self.check()?;
            self.sweep_locked(&locked, [stripe], self.now());
        }
        Ok(())
    }
}
