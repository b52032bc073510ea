//! One cuckoo table: looking, placing and clearing in the two buckets of an item.
//!
//! A [`Shard`] borrows its buckets and stripes; who owns them is the filter's affair. What does not
//! fit in an item's own two buckets is passed to [`kick`](crate::kick). The rules:
//!
//! * whoever writes a bucket holds its stripe, and shows the [`Locked`] that says so;
//! * filling or emptying one lane is one store and needs no version;
//! * erasing a fingerprint while a copy of it stays in the item's other bucket counts as a move:
//!   a reader who saw the other bucket before that copy came would see neither;
//! * a hit is one look at one word; a miss counts if nothing moved while both were looked at.
//!
//! # Orderings
//!
//! Words are loaded and stored `Relaxed`. Between writers the stripe's lock orders them; towards
//! readers the stripe's version does (see [`stripe`](crate::stripe)). A thread that learned of an
//! insert by any synchronisation finds it, because a later load of the same word can not return an
//! earlier store, and a store that took the item away again was a move.

use crate::Full;
use crate::bucket::Fingerprint;
use crate::geometry::{Bucket, Geometry, Place, SHARD_STRIPES};
use crate::kick;
use crate::stripe::{Locked, Stamps, Stripe};
use crate::sync::{AtomicU64, Ordering, read_owned};

/// Looks that something moving may spoil before a reader takes the locks instead.
const TRIES: usize = if cfg!(loom) { 1 } else { 16 };

#[derive(Clone, Copy)]
pub struct Shard<'a> {
    geometry: &'a Geometry,
    words: &'a [AtomicU64],
    stripes: &'a [Stripe],
}

impl<'a> Shard<'a> {
    #[inline]
    pub fn new(geometry: &'a Geometry, words: &'a [AtomicU64], stripes: &'a [Stripe]) -> Self {
        Shard { geometry, words, stripes }
    }

    #[inline]
    pub fn geometry(&self) -> &'a Geometry {
        self.geometry
    }

    // Reading.

    /// Whether the item is here: at some moment of this call, it was or was not.
    #[inline]
    pub fn contains(&self, place: &Place) -> bool {
        self.look(place).unwrap_or_else(|| self.contains_again(place))
    }

    /// One look without a lock, or `None` if what it did not find may have been moving.
    #[inline]
    pub fn look(&self, place: &Place) -> Option<bool> {
        let [first, second] = self.stripes_of(place).map(|index| &self.stripes[index as usize]);
        let stamps = Stamps::take(first, second);
        if self.holds(self.read(place.first), self.read(place.second), place.fp) {
            return Some(true);
        }
        stamps.still_hold().then_some(false)
    }

    #[cold]
    fn contains_again(&self, place: &Place) -> bool {
        for _ in 0..TRIES {
            if let Some(found) = self.look(place) {
                return found;
            }
            std::hint::spin_loop();
        }
        self.contains_locked(&self.lock(place), place)
    }

    #[inline]
    pub fn contains_locked<const N: usize>(&self, locked: &Locked<'_, N>, place: &Place) -> bool {
        let [first, second] = [place.first, place.second].map(|b| self.read_locked(locked, b));
        self.holds(first, second, place.fp)
    }

    #[inline]
    fn holds(&self, first: u64, second: u64, fp: Fingerprint) -> bool {
        let lanes = self.geometry.lanes();
        !lanes.holding(first, fp).or(lanes.holding(second, fp)).is_empty()
    }

    /// How many copies of the item are here.
    ///
    /// None is told without a lock. But two words can not be counted at one moment, and copies
    /// come and go one by one without a version; so some are counted under the locks.
    pub fn count(&self, place: &Place) -> usize {
        if !self.contains(place) {
            return 0;
        }
        let lanes = self.geometry.lanes();
        let locked = self.lock(place);
        [place.first, place.second]
            .map(|bucket| lanes.holding(self.read_locked(&locked, bucket), place.fp).len())
            .iter()
            .sum()
    }

    /// The taken lanes.
    pub fn items(&self) -> usize {
        self.stripes.iter().map(|stripe| stripe.items() as usize).sum()
    }

    // Writing.

    /// Adds a copy of the item.
    #[inline]
    pub fn insert(&self, place: &Place) -> Result<(), Full> {
        if self.fill(place.first, place.fp) || self.fill(place.second, place.fp) {
            return Ok(());
        }
        kick::make_room(self, place)
    }

    /// Puts `fp` into an empty lane of `bucket`, if there is one. No lock is taken to find out
    /// that there is none.
    #[inline]
    fn fill(&self, bucket: Bucket, fp: Fingerprint) -> bool {
        if self.geometry.lanes().empty(self.read(bucket)).is_empty() {
            return false;
        }
        let locked = Locked::new(self.stripes, [bucket.stripe()]);
        self.fill_locked(&locked, bucket, fp)
    }

    #[inline]
    pub fn fill_locked<const N: usize>(
        &self,
        locked: &Locked<'_, N>,
        bucket: Bucket,
        fp: Fingerprint,
    ) -> bool {
        let lanes = self.geometry.lanes();
        let word = self.read_locked(locked, bucket);
        let Some(lane) = lanes.empty(word).first() else { return false };
        self.write(locked, bucket, lanes.with(word, lane, fp));
        locked.add_items(bucket.stripe(), 1);
        true
    }

    /// Adds the item unless it is here; says whether it was added.
    #[inline]
    pub fn insert_if_absent(&self, place: &Place) -> Result<bool, Full> {
        if self.contains(place) {
            return Ok(false);
        }
        match self.insert_if_absent_locked(place) {
            Some(added) => Ok(added),
            None => kick::make_room_if_absent(self, place),
        }
    }

    /// The decision under both locks; `None` if the item is not here and both buckets are full.
    #[inline]
    pub fn insert_if_absent_locked(&self, place: &Place) -> Option<bool> {
        let locked = self.lock(place);
        if self.contains_locked(&locked, place) {
            return Some(false);
        }
        let added = self.fill_locked(&locked, place.first, place.fp)
            || self.fill_locked(&locked, place.second, place.fp);
        added.then_some(true)
    }

    /// Takes one copy of the item away; says whether there was one.
    #[inline]
    pub fn remove(&self, place: &Place) -> bool {
        self.contains(place) && self.remove_locked(place)
    }

    #[inline]
    pub fn remove_locked(&self, place: &Place) -> bool {
        let lanes = self.geometry.lanes();
        let locked = self.lock(place);
        let [first, second] = [place.first, place.second].map(|b| self.read_locked(&locked, b));
        let in_first = lanes.holding(first, place.fp).first();
        let in_second = lanes.holding(second, place.fp).first();
        let (bucket, without) = match (in_first, in_second) {
            (Some(lane), _) => (place.first, lanes.without(first, lane)),
            (None, Some(lane)) => (place.second, lanes.without(second, lane)),
            (None, None) => return false,
        };
        let _moving = (in_first.is_some() && in_second.is_some()).then(|| locked.moving());
        self.write(&locked, bucket, without);
        locked.add_items(bucket.stripe(), -1);
        true
    }

    /// Empties the shard, under all its stripes, so that nothing escapes from a segment that is
    /// still to be cleared into one that has been.
    pub fn clear(&self) {
        let last = self.stripes.len() as u32 - 1;
        let all = std::array::from_fn::<u32, SHARD_STRIPES, _>(|index| last.min(index as u32));
        let locked = Locked::new(self.stripes, all);
        for index in 0..self.words.len() as u32 {
            let bucket = Bucket(index);
            let taken = self.geometry.lanes().taken(self.read_locked(&locked, bucket)).len();
            if taken > 0 {
                self.write(&locked, bucket, 0);
                locked.add_items(bucket.stripe(), -(taken as i32));
            }
        }
    }

    // The words and stripes.

    #[inline]
    fn stripes_of(&self, place: &Place) -> [u32; 2] {
        [place.first.stripe(), place.second.stripe()]
    }

    /// The stripes of both buckets of an item.
    #[inline]
    pub fn lock(&self, place: &Place) -> Locked<'a, 2> {
        Locked::new(self.stripes, self.stripes_of(place))
    }

    /// The stripes of all these buckets.
    pub fn lock_all<const N: usize>(&self, buckets: [Bucket; N]) -> Locked<'a, N> {
        Locked::new(self.stripes, buckets.map(Bucket::stripe))
    }

    #[inline]
    pub fn read(&self, bucket: Bucket) -> u64 {
        self.words[bucket.0 as usize].load(Ordering::Relaxed)
    }

    #[inline]
    pub fn read_locked<const N: usize>(&self, locked: &Locked<'_, N>, bucket: Bucket) -> u64 {
        debug_assert!(locked.holds(bucket.stripe()));
        read_owned(&self.words[bucket.0 as usize])
    }

    #[inline]
    pub fn write<const N: usize>(&self, locked: &Locked<'_, N>, bucket: Bucket, word: u64) {
        debug_assert!(locked.holds(bucket.stripe()));
        self.words[bucket.0 as usize].store(word, Ordering::Relaxed);
    }
}
