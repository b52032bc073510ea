//! Refreshing an item in a filter that forgets: it gets the stamp of the present tick.
//!
//! Several lanes may match an item, because it was inserted more than once, or because other items have the
//! same fingerprint. There is no way to tell which lane belongs to which item, so all of them are stamped.
//! Then none of these items expires too early.

use crate::layout::bucket::{Lane, Words};
use crate::layout::geometry::{Bucket, Place};
use crate::layout::stamps::Moment;
use crate::shard::Shard;
use crate::shard::lease::{Answer, Lease};
use crate::table::stripe::Locks;

impl<L: Lease> Shard<'_, L> {
    /// Stamps the item, if it is here. Returns whether it is.
    #[inline]
    pub fn refresh(self, place: Place) -> Result<bool, L::Lapsed> {
        if !self.contains(place)? {
            return Ok(false);
        }
        if !self.lanes().forgets() {
            return Ok(true);
        }
        let locked = self.lock(place)?;
        let now = self.sweep_own(&locked, place);
        Ok(self.restamp(&locked, place, now))
    }

    /// Stamps the item if it is here, and adds it otherwise. Returns whether it was added.
    pub fn insert_or_refresh(self, place: Place) -> Answer<bool, L> {
        // The loop repeats only if another thread has inserted or removed the item meanwhile.
        loop {
            if self.refresh(place)? {
                return Ok(false);
            }
            if self.insert_if_absent(place)? {
                return Ok(true);
            }
        }
    }

    /// Makes the oldest lane that matches the item at most `age` ticks old, after a lane of that age was
    /// removed. The removed lane may have been that of another item, which is then found in this lane for as
    /// long as in its own. So the ages that are left are the former ones without the oldest.
    pub fn inherit_age(&self, locked: &impl Locks, place: Place, age: u64, now: Moment) {
        let lanes = self.lanes();
        let both = [place.first, place.second].into_iter().flat_map(|bucket| {
            let words = self.read_locked(locked, bucket);
            self.matching(words, place.fp).map(move |lane| (bucket, words, lane))
        });
        let age_of = |(_, words, lane): &(Bucket, Words, Lane)| lanes.age(*words, *lane, now);
        let Some(oldest) = both.max_by_key(age_of).filter(|oldest| age_of(oldest) > age) else {
            return;
        };
        let (bucket, words, lane) = oldest;
        self.write(locked, bucket, lanes.with_age(words, lane, age, now));
    }

    /// Stamps all lanes that match the item. Returns whether there are any.
    fn restamp(&self, locked: &impl Locks, place: Place, now: Moment) -> bool {
        let both = [place.first, place.second].map(|bucket| {
            let words = self.read_locked(locked, bucket);
            let here = self.matching(words, place.fp);
            let stamp = |words, lane| self.lanes().with_age(words, lane, 0, now);
            let stamped = here.fold(words, stamp);
            if stamped != words {
                self.write(locked, bucket, stamped);
            }
            !here.is_empty()
        });
        both.contains(&true)
    }
}
