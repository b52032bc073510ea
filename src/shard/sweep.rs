//! Expiry: ticks erase items. [Why lookups, writes and counts stay right](mod@crate::guide::sweep) meanwhile.

use crate::layout::geometry::Place;
use crate::layout::stamps::Moment;
use crate::shard::raw::AllLocks;
use crate::shard::{Lease, Shard};
use crate::table::stripe::Locks;
use crate::table::ticking::{Ticking, Time};

impl<'a, L: Lease<'a>> Shard<L> {
    /// Returns the time, or an earlier one to a caller that does not hold a lock of the shard.
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
                self.erase_expired(locked, stripe, now, |words| {
                    self.expired_void_lanes(words, now)
                });
            }
        }
    }

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
