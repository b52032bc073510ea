//! One cuckoo table: looking, placing, clearing and copying, mostly in the two buckets of an item.
//!
//! A [`Shard`] is a part of a [`Table`], and counts its buckets from where it begins. What does not
//! fit in an item's own two buckets is passed to [`kick`](crate::shard::kick). The rules:
//!
//! * whoever writes a bucket holds its stripe, and shows the [`Locks`] that say so;
//! * filling or emptying one lane is one store and needs no version;
//! * before a fingerprint is erased while a copy of it stays in the item's other bucket, readers who
//!   have begun are sent away: one who saw the other bucket before that copy came would see neither;
//! * a hit is one look at one word; a miss counts if nothing moved while both were looked at;
//! * a copy of the whole is made under all its locks, since items move under two at least; readers need not
//!   know of it. Twins `a_copy_that_goes_stripe_by_stripe_loses_an_item`, `a_copy_is_made_without_the_locks`;
//! * a lock is given only while the shard still has what it was asked about: see
//!   [`lease`](crate::shard::lease). In a fixed filter it always has.
//!
//! # Orderings
//!
//! Words are stored `Release` and loaded `Acquire`; among writers the stripe's lock orders them. That
//! is what makes a reader who saw a word without the item see the version of the move that took it
//! away (see [`stripe`](crate::table::stripe) for the table). It also means that whoever finds an item sees
//! what the thread that inserted it had done before. A thread that learned of an insert by any
//! synchronisation finds it, because a later load of the same word cannot return an earlier store,
//! and a store that took the item away again was a move, or a removal that left a copy and sent
//! readers away before.

pub mod kick;
pub mod lease;
pub mod path;

use crate::layout::SMALL;
use crate::layout::bucket::{Fingerprint, LaneSet, Lanes};
use crate::layout::geometry::{Bucket, Place, SHARD_STRIPES, STRIPE_BUCKETS};
use crate::shard::lease::{Always, Lease, Refusal};
use crate::table::Table;
use crate::table::stripe::{Locks, Many, Moving, One, StripeSet, Two};

/// Looks that something moving may spoil before a reader takes the locks instead.
const TRIES: usize = if SMALL { 0 } else { 16 };

#[derive(Clone, Copy)]
pub struct Shard<'a, L = Always> {
    table: &'a Table,
    /// Where its buckets begin in the table.
    base: usize,
    lease: L,
}

/// What comes of an operation that may find the shard full, or no longer have the item.
pub type Answer<T, L> = Result<T, Refusal<<L as Lease>::Lapsed>>;

impl<'a> Shard<'a> {
    #[inline]
    pub fn new(table: &'a Table, index: usize) -> Self {
        Shard::leased(table, index * table.geometry().buckets() as usize, Always)
    }
}

impl<'a, L: Lease> Shard<'a, L> {
    #[inline]
    pub fn leased(table: &'a Table, base: usize, lease: L) -> Self {
        Shard { table, base, lease }
    }

    #[inline]
    pub fn lease(self) -> L {
        self.lease
    }

    #[inline]
    pub fn lanes(self) -> Lanes {
        self.table.geometry().lanes()
    }

    /// The other bucket of an item that is in `bucket` as `fp`.
    #[inline]
    pub fn alternate(self, bucket: Bucket, fp: Fingerprint) -> Bucket {
        self.lease.alternate(self.table.geometry(), bucket, fp)
    }

    /// The lanes of a word that stand for the item.
    #[inline]
    fn holding(self, word: u64, fp: Fingerprint) -> LaneSet {
        self.lease.holding(self.lanes(), word, fp)
    }

    // Reading.

    /// Whether the item is here: at some moment of this call, it was or was not.
    #[inline]
    pub fn contains(self, place: Place) -> Result<bool, L::Lapsed> {
        self.look(place).map_or_else(|| self.contains_again(place), Ok)
    }

    /// Asks for all that a lookup reads.
    #[inline]
    pub fn prefetch(self, place: Place) {
        self.table.stripes().prefetch(self.stripe(place.first));
        self.table.prefetch(self.index(place.first));
        self.table.prefetch(self.index(place.second));
    }

    /// One look without a lock, or `None` if what it did not find may have been moving, or if what
    /// it saw may have changed its meaning.
    #[inline]
    pub fn look(self, place: Place) -> Option<bool> {
        let stamp = self.table.stripes().stamp(self.stripe(place.first));
        let (first, second) = (self.read(place.first), self.read(place.second));
        let found = self.holds(first, second, place.fp);
        if found && L::LASTING {
            return Some(true);
        }
        (stamp.still_holds() && self.lease.check().is_ok()).then_some(found)
    }

    #[cold]
    fn contains_again(self, place: Place) -> Result<bool, L::Lapsed> {
        for _ in (0..).take(TRIES) {
            std::hint::spin_loop();
            self.lease.check()?;
            if let Some(found) = self.look(place) {
                return Ok(found);
            }
        }
        Ok(self.contains_locked(&self.lock(place)?, place))
    }

    #[inline]
    pub fn contains_locked(self, locked: &impl Locks, place: Place) -> bool {
        let (first, second) = self.read_both(locked, place);
        self.holds(first, second, place.fp)
    }

    #[inline]
    fn holds(self, first: u64, second: u64, fp: Fingerprint) -> bool {
        self.lease.is_in(self.lanes(), first, second, fp)
    }

    /// How many copies of the item are here.
    ///
    /// None is told without a lock. But two words cannot be counted at one moment, and copies
    /// come and go one by one without a version; so some are counted under the locks.
    pub fn count(self, place: Place) -> Result<usize, L::Lapsed> {
        if !self.contains(place)? {
            return Ok(0);
        }
        Ok(self.count_locked(&self.lock(place)?, place))
    }

    pub fn count_locked(self, locked: &impl Locks, place: Place) -> usize {
        let (first, second) = self.read_both(locked, place);
        self.holding(first, place.fp).len() + self.holding(second, place.fp).len()
    }

    /// How many lanes are taken, and how many of those stand for items that have bits left by which a
    /// split would sort them, as `sorted` says of a word.
    pub fn lanes_locked(
        self,
        locked: &impl Locks,
        sorted: impl Fn(u64) -> usize,
    ) -> (usize, usize) {
        self.buckets()
            .map(|bucket| self.read_locked(locked, bucket))
            .fold((0, 0), |(taken, left), word| {
                (taken + self.lanes().taken(word).len(), left + sorted(word))
            })
    }

    /// The buckets of one of the shard's stripes.
    pub fn buckets_of(self, stripe: usize) -> impl Iterator<Item = Bucket> {
        let first = ((stripe - Table::stripe_of(self.base)) as u32) * STRIPE_BUCKETS;
        (first..(first + STRIPE_BUCKETS).min(self.table.geometry().buckets())).map(Bucket)
    }

    // Writing.

    /// Adds a copy of the item.
    #[inline]
    pub fn insert(self, place: Place) -> Answer<(), L> {
        let (bucket, word) = self.roomier(place, self.read(place.first), self.read(place.second));
        // No lock is taken to find out that there is no room.
        if !self.lanes().empty(word).is_empty() {
            let locked = self.lock_one(bucket).map_err(Refusal::Lapsed)?;
            if self.fill_locked(&locked, bucket, place.fp) {
                return Ok(());
            }
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
    pub fn insert_if_absent(self, place: Place) -> Answer<bool, L> {
        let lanes = self.lanes();
        let (first, second) = (self.read(place.first), self.read(place.second));
        let seen = self.holds(first, second, place.fp);
        if seen && (L::LASTING || self.look(place) == Some(true)) {
            return Ok(false);
        }
        // What was not seen is decided under the locks, those of a path if both buckets are full.
        if !lanes.empty(first).or(lanes.empty(second)).is_empty() {
            let added = self.insert_if_absent_locked(place).map_err(Refusal::Lapsed)?;
            if let Some(added) = added {
                return Ok(added);
            }
        }
        kick::make_room_if_absent(self, place)
    }

    /// The decision under both locks; `None` if the item is not here and both buckets are full.
    #[inline]
    pub fn insert_if_absent_locked(self, place: Place) -> Result<Option<bool>, L::Lapsed> {
        let locked = self.lock(place)?;
        let (first, second) = self.read_both(&locked, place);
        if self.holds(first, second, place.fp) {
            return Ok(Some(false));
        }
        let (bucket, _) = self.roomier(place, first, second);
        Ok(self.fill_locked(&locked, bucket, place.fp).then_some(true))
    }

    /// Takes one copy of the item away; says whether there was one.
    #[inline]
    pub fn remove(self, place: Place) -> Result<bool, L::Lapsed> {
        Ok(self.contains(place)? && self.remove_locked(place)?)
    }

    #[inline]
    pub fn remove_locked(self, place: Place) -> Result<bool, L::Lapsed> {
        let lanes = self.lanes();
        let locked = self.lock(place)?;
        let (first, second) = self.read_both(&locked, place);
        let closest = |word| self.lease.closest(lanes, word, self.holding(word, place.fp));
        let (in_first, in_second) = (closest(first), closest(second));
        // What is taken stands for no more items than what stays. So whoever else it stands for is
        // found by what stays.
        let second_is_closer = match (in_first, in_second) {
            (Some((lacks, _)), Some((less, _))) => less < lacks,
            (in_first, _) => in_first.is_none(),
        };
        let (bucket, word, found) = if second_is_closer {
            (place.second, second, in_second)
        } else {
            (place.first, first, in_first)
        };
        let Some((_, lane)) = found else { return Ok(false) };
        if in_first.is_some() && in_second.is_some() {
            self.outdate(&locked, place);
        }
        self.write(&locked, bucket, lanes.without(word, lane));
        self.add_items(&locked, bucket, -1);
        Ok(true)
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
    pub fn clear(self) -> Result<(), L::Lapsed> {
        let locked = self.lock_all()?;
        for stripe in self.own_stripes() {
            self.table.stripes().outdate(&locked, stripe);
        }
        for bucket in self.buckets() {
            if self.read_locked(&locked, bucket) != 0 {
                self.write(&locked, bucket, 0);
            }
        }
        for stripe in self.own_stripes() {
            self.set_items(&locked, stripe, 0);
        }
        Ok(())
    }

    // Copies, to and from.

    /// Copies all buckets as they are at one moment: under all stripes, so that no item is met twice or
    /// not at all because it moves. Says how many items are in.
    pub fn copy(self, to: &mut [u64]) -> Result<i64, L::Lapsed> {
        let locked = self.lock_all()?;
        for (bucket, copy) in self.buckets().zip(to) {
            *copy = self.read_locked(&locked, bucket);
        }
        Ok(self.own_stripes().map(|stripe| i64::from(self.items(stripe))).sum())
    }

    /// Fills an empty shard with such a copy, of so many items. Each of those takes a lane; what lanes
    /// there are beyond that (see [`Stripes`](crate::table::stripe::Stripes)) are taken off the first stripe.
    pub fn fill(self, from: &[u64], items: i64) -> Result<(), L::Lapsed> {
        let locked = self.lock_all()?;
        for (bucket, word) in self.buckets().zip(from) {
            // A page that is never written takes no memory.
            if *word != 0 {
                self.write(&locked, bucket, *word);
            }
        }
        let mut lanes = 0;
        for (stripe, words) in self.own_stripes().zip(from.chunks(STRIPE_BUCKETS as usize)) {
            let here = self.lanes().count_taken(words);
            self.set_items(&locked, stripe, here as i32);
            lanes += here as i64;
        }
        let first = Table::stripe_of(self.base);
        self.set_items(&locked, first, self.items(first) - (lanes - items) as i32);
        Ok(())
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

    pub fn buckets(self) -> impl Iterator<Item = Bucket> {
        (0..self.table.geometry().buckets()).map(Bucket)
    }

    pub fn own_stripes(self) -> impl Iterator<Item = usize> + use<L> {
        let first = Table::stripe_of(self.base);
        first..first + self.table.geometry().stripes() as usize
    }

    pub fn items(self, stripe: usize) -> i32 {
        self.table.stripes().items(stripe)
    }

    pub fn set_items(self, locked: &impl Locks, stripe: usize, items: i32) {
        self.table.stripes().set_items(locked, stripe, items);
    }

    #[inline]
    pub fn lock_one(self, bucket: Bucket) -> Result<One<'a>, L::Lapsed> {
        let locked = self.table.stripes().lock(self.stripe(bucket));
        self.lease.check().map(|()| locked)
    }

    /// The stripes of both buckets of an item.
    #[inline]
    pub fn lock(self, place: Place) -> Result<Two<'a>, L::Lapsed> {
        let both = [self.stripe(place.first), self.stripe(place.second)];
        let locked = self.table.stripes().lock_two(both);
        self.lease.check().map(|()| locked)
    }

    /// The stripes of all these buckets.
    pub fn stripes<const N: usize>(
        self,
        buckets: impl IntoIterator<Item = Bucket>,
    ) -> StripeSet<N> {
        buckets.into_iter().map(|bucket| self.stripe(bucket)).collect()
    }

    pub fn lock_many<const N: usize>(self, which: &StripeSet<N>) -> Result<Many<'a, N>, L::Lapsed> {
        let locked = self.table.stripes().lock_many(which);
        self.lease.check().map(|()| locked)
    }

    /// The stripes of the whole shard.
    pub fn lock_all(self) -> Result<Many<'a, SHARD_STRIPES>, L::Lapsed> {
        let all: StripeSet<SHARD_STRIPES> = self.own_stripes().collect();
        let locked = self.table.stripes().lock_many(&all);
        self.lease.check_alone().map(|()| locked)
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
