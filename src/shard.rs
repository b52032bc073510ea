//! One cuckoo table: looking, placing and clearing in the two buckets of an item.
//!
//! A [`Shard`] is a part of a [`Table`], and counts its buckets from where it begins. What does not
//! fit in an item's own two buckets is passed to [`kick`](crate::kick). The rules:
//!
//! * whoever writes a bucket holds its stripe, and shows the [`Locks`] that say so;
//! * filling or emptying one lane is one store and needs no version;
//! * before a fingerprint is erased while a copy of it stays in the item's other bucket, readers who
//!   have begun are sent away: one who saw the other bucket before that copy came would see neither;
//! * a hit is one look at one word; a miss counts if nothing moved while both were looked at.
//!
//! # Orderings
//!
//! Words are stored `Release` and loaded `Acquire`; among writers the stripe's lock orders them. That
//! is what makes a reader who saw a word without the item see the version of the move that took it
//! away (see [`stripe`](crate::stripe) for the table). It also means that whoever finds an item sees
//! what the thread that inserted it had done before. A thread that learned of an insert by any
//! synchronisation finds it, because a later load of the same word cannot return an earlier store,
//! and a store that took the item away again was a move, or a removal that left a copy and sent
//! readers away before.

use crate::Full;
use crate::bucket::{Fingerprint, Lanes};
use crate::geometry::{Bucket, Place, SHARD_STRIPES};
use crate::kick;
use crate::stripe::{Locks, Many, Moving, One, StripeSet, Two};
use crate::sync::SMALL;
use crate::table::Table;

/// Looks that something moving may spoil before a reader takes the locks instead.
const TRIES: usize = if SMALL { 0 } else { 16 };

#[derive(Clone, Copy)]
pub struct Shard<'a> {
    table: &'a Table,
    /// Where its buckets begin in the table.
    base: usize,
}

impl<'a> Shard<'a> {
    #[inline]
    pub fn new(table: &'a Table, index: usize) -> Self {
        Shard { table, base: index * table.geometry().buckets() as usize }
    }

    #[inline]
    pub fn lanes(self) -> Lanes {
        self.table.geometry().lanes()
    }

    /// The other bucket of an item that is in `bucket` as `fp`.
    #[inline]
    pub fn alternate(self, bucket: Bucket, fp: Fingerprint) -> Bucket {
        self.table.geometry().alternate(bucket, fp)
    }

    // Reading.

    /// Whether the item is here: at some moment of this call, it was or was not.
    #[inline]
    pub fn contains(self, place: Place) -> bool {
        self.look(place).unwrap_or_else(|| self.contains_again(place))
    }

    /// Asks for all that a lookup reads.
    #[inline]
    pub fn prefetch(self, place: Place) {
        self.table.stripes().prefetch(self.stripe(place.first));
        self.table.prefetch(self.index(place.first));
        self.table.prefetch(self.index(place.second));
    }

    /// One look without a lock, or `None` if what it did not find may have been moving.
    #[inline]
    pub fn look(self, place: Place) -> Option<bool> {
        let stamp = self.table.stripes().stamp(self.stripe(place.first));
        let (first, second) = (self.read(place.first), self.read(place.second));
        if self.holds(first, second, place.fp) {
            return Some(true);
        }
        stamp.still_holds().then_some(false)
    }

    #[cold]
    fn contains_again(self, place: Place) -> bool {
        let again = (0..).take(TRIES).find_map(|_| {
            std::hint::spin_loop();
            self.look(place)
        });
        again.unwrap_or_else(|| self.contains_locked(&self.lock(place), place))
    }

    #[inline]
    pub fn contains_locked(self, locked: &impl Locks, place: Place) -> bool {
        let (first, second) = self.read_both(locked, place);
        self.holds(first, second, place.fp)
    }

    #[inline]
    fn holds(self, first: u64, second: u64, fp: Fingerprint) -> bool {
        let lanes = self.lanes();
        !lanes.holding(first, fp).or(lanes.holding(second, fp)).is_empty()
    }

    /// How many copies of the item are here.
    ///
    /// None is told without a lock. But two words cannot be counted at one moment, and copies
    /// come and go one by one without a version; so some are counted under the locks.
    pub fn count(self, place: Place) -> usize {
        if !self.contains(place) {
            return 0;
        }
        let lanes = self.lanes();
        let locked = self.lock(place);
        let (first, second) = self.read_both(&locked, place);
        lanes.holding(first, place.fp).len() + lanes.holding(second, place.fp).len()
    }

    /// The taken lanes.
    pub fn items(self) -> usize {
        self.own_stripes().map(|stripe| self.table.stripes().items(stripe) as usize).sum()
    }

    // Writing.

    /// Adds a copy of the item.
    #[inline]
    pub fn insert(self, place: Place) -> Result<(), Full> {
        let (bucket, word) = self.roomier(place, self.read(place.first), self.read(place.second));
        // No lock is taken to find out that there is no room.
        let may_fit = !self.lanes().empty(word).is_empty();
        if may_fit && self.fill_locked(&self.lock_one(bucket), bucket, place.fp) {
            return Ok(());
        }
        kick::make_room(self, place)
    }

    /// Of the item's buckets, the one that has more room, and its word. Taking that makes buckets
    /// full later, and kicks rarer.
    #[inline]
    fn roomier(self, place: Place, first: u64, second: u64) -> (Bucket, u64) {
        let (in_first, in_second) = (self.lanes().empty(first), self.lanes().empty(second));
        let second_is = in_second.is_roomier_than(in_first);
        if second_is { (place.second, second) } else { (place.first, first) }
    }

    /// Puts `fp` into an empty lane of `bucket`, if there is one.
    #[inline]
    pub fn fill_locked(self, locked: &impl Locks, bucket: Bucket, fp: Fingerprint) -> bool {
        let lanes = self.lanes();
        let word = self.read_locked(locked, bucket);
        let Some(lane) = lanes.empty(word).first() else { return false };
        self.write(locked, bucket, lanes.with(word, lane, fp));
        self.add_items(locked, bucket, 1);
        true
    }

    /// Adds the item unless it is here; says whether it was added.
    #[inline]
    pub fn insert_if_absent(self, place: Place) -> Result<bool, Full> {
        let lanes = self.lanes();
        let (first, second) = (self.read(place.first), self.read(place.second));
        if self.holds(first, second, place.fp) {
            return Ok(false);
        }
        // What was not seen is decided under the locks, those of a path if both buckets are full.
        let full = lanes.empty(first).or(lanes.empty(second)).is_empty();
        let added = if full { None } else { self.insert_if_absent_locked(place) };
        added.map_or_else(|| kick::make_room_if_absent(self, place), Ok)
    }

    /// The decision under both locks; `None` if the item is not here and both buckets are full.
    #[inline]
    pub fn insert_if_absent_locked(self, place: Place) -> Option<bool> {
        let locked = self.lock(place);
        let (first, second) = self.read_both(&locked, place);
        if self.holds(first, second, place.fp) {
            return Some(false);
        }
        let (bucket, _) = self.roomier(place, first, second);
        self.fill_locked(&locked, bucket, place.fp).then_some(true)
    }

    /// Takes one copy of the item away; says whether there was one.
    #[inline]
    pub fn remove(self, place: Place) -> bool {
        self.contains(place) && self.remove_locked(place)
    }

    #[inline]
    pub fn remove_locked(self, place: Place) -> bool {
        let lanes = self.lanes();
        let locked = self.lock(place);
        let (first, second) = self.read_both(&locked, place);
        let in_first = lanes.holding(first, place.fp).first();
        let in_second = lanes.holding(second, place.fp).first();
        let (bucket, without) = match (in_first, in_second) {
            (Some(lane), _) => (place.first, lanes.without(first, lane)),
            (None, Some(lane)) => (place.second, lanes.without(second, lane)),
            (None, None) => return false,
        };
        if in_first.is_some() && in_second.is_some() {
            self.outdate(&locked, place);
        }
        self.write(&locked, bucket, without);
        self.add_items(&locked, bucket, -1);
        true
    }

    /// Sends away the readers that have begun to look for the item: a copy of it goes, one stays.
    #[cold]
    fn outdate(self, locked: &impl Locks, place: Place) {
        for bucket in [place.first, place.second] {
            self.table.stripes().outdate(locked, self.stripe(bucket));
        }
    }

    /// Empties the shard, under all its stripes, so that nothing escapes from a segment that is
    /// still to be cleared into one that has been.
    pub fn clear(self) {
        let locked = self.lock_all();
        for stripe in self.own_stripes() {
            self.table.stripes().outdate(&locked, stripe);
        }
        for index in 0..self.table.geometry().buckets() {
            let bucket = Bucket(index);
            let taken = self.lanes().taken(self.read_locked(&locked, bucket)).len();
            if taken > 0 {
                self.write(&locked, bucket, 0);
                self.add_items(&locked, bucket, -(taken as i32));
            }
        }
    }

    // The buckets and stripes, which the table counts from its own beginning.

    #[inline]
    fn index(self, bucket: Bucket) -> usize {
        self.base + bucket.0 as usize
    }

    #[inline]
    fn stripe(self, bucket: Bucket) -> usize {
        Table::stripe_of(self.index(bucket))
    }

    fn own_stripes(self) -> impl Iterator<Item = usize> {
        let first = Table::stripe_of(self.base);
        first..first + self.table.geometry().stripes() as usize
    }

    #[inline]
    pub fn lock_one(self, bucket: Bucket) -> One<'a> {
        self.table.stripes().lock(self.stripe(bucket))
    }

    /// The stripes of both buckets of an item.
    #[inline]
    pub fn lock(self, place: Place) -> Two<'a> {
        self.table.stripes().lock_two([self.stripe(place.first), self.stripe(place.second)])
    }

    /// The stripes of all these buckets.
    pub fn stripes<const N: usize>(
        self,
        buckets: impl IntoIterator<Item = Bucket>,
    ) -> StripeSet<N> {
        buckets.into_iter().map(|bucket| self.stripe(bucket)).collect()
    }

    pub fn lock_many<const N: usize>(self, which: &StripeSet<N>) -> Many<'a, N> {
        self.table.stripes().lock_many(which)
    }

    /// The stripes of the whole shard.
    pub fn lock_all(self) -> Many<'a, SHARD_STRIPES> {
        self.lock_many(&self.own_stripes().collect())
    }

    #[inline]
    pub fn moving<'l, const N: usize>(
        self,
        locked: &'l impl Locks,
        which: &'l StripeSet<N>,
    ) -> Moving<'l, N>
    where
        'a: 'l,
    {
        self.table.stripes().moving(locked, which)
    }

    #[inline]
    pub fn add_items(self, locked: &impl Locks, bucket: Bucket, change: i32) {
        self.table.stripes().add_items(locked, self.stripe(bucket), change);
    }

    #[inline]
    pub fn read(self, bucket: Bucket) -> u64 {
        self.table.read(self.index(bucket))
    }

    #[inline]
    pub fn read_locked(self, locked: &impl Locks, bucket: Bucket) -> u64 {
        self.table.read_locked(locked, self.index(bucket))
    }

    #[inline]
    fn read_both(self, locked: &impl Locks, place: Place) -> (u64, u64) {
        (self.read_locked(locked, place.first), self.read_locked(locked, place.second))
    }

    #[inline]
    pub fn write(self, locked: &impl Locks, bucket: Bucket, word: u64) {
        self.table.write(locked, self.index(bucket), word);
    }
}
