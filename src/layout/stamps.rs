//! Stamps: the age tags in the lowest bits of lanes.
//!
//! A filter that forgets counts *ticks*. The lowest bits of a lane, or of its tail in a wide bucket, hold the number of
//! the tick in which the item was inserted or refreshed. Only the low bits of the number are kept, just enough of them:
//! the items of a filter that remembers them for `n` ticks have `n + 1` different stamps, and one more while a tick
//! passes through the filter.
//!
//! ```text
//! 16 bits, remembers 6 ticks   15                 3 2     0
//!                             [    fingerprint     | stamp ]
//! ```
//!
//! Lookups ignore stamps, which takes fewer instructions: fingerprints are [compared](Lanes) without them. Expired items
//! are erased when a tick passes; see [`sweep`](mod@crate::guide::sweep).

use crate::layout::bucket::{Fingerprint, Lane, LaneSet, Lanes, Words};

/// The maximum number of ticks for which a filter can remember an item.
pub(crate) const MAX_TICKS: u8 = 62;

/// The maximum number of different stamps in a filter.
pub(crate) const STAMPS: usize = MAX_TICKS as usize + 2;

/// A number for each stamp. In a filter that does not forget, all lanes have the stamp 0.
pub(crate) type ByStamp = [usize; STAMPS];

/// The time in a filter that forgets. Bit 0: its tick is passing. Bit 1: it ends all. The rest is the number of the
/// tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moment(u64);

impl Moment {
    /// The moment at which nothing has expired yet.
    pub(crate) const FIRST: Moment = Moment(0);

    #[inline]
    pub(crate) fn of_word(word: u64) -> Self {
        Moment(word)
    }

    pub(crate) fn of_tick(tick: u64) -> Self {
        Moment(tick << 2)
    }

    #[inline]
    pub(crate) fn word(self) -> u64 {
        self.0
    }

    #[inline]
    pub(crate) fn tick(self) -> u64 {
        self.0 >> 2
    }

    /// Whether the tick is passing, so that expired lanes may be left.
    #[inline]
    pub(crate) fn is_passing(self) -> bool {
        self.0 & 1 == 1
    }

    /// Whether all items from before this tick expire.
    #[inline]
    pub(crate) fn ends_all(self) -> bool {
        self.0 & 2 == 2
    }

    /// A mark that tells this tick from the one before: no stripe has the mark of any other. It is never 0, and the same
    /// again after 256 ticks.
    #[inline]
    pub(crate) fn mark(self) -> u16 {
        1 << 8 | u16::from(self.tick() as u8)
    }

    /// The time at which the next tick begins to pass.
    pub(crate) fn next(self, ends_all: bool) -> Self {
        Moment(self.tick().wrapping_add(1) << 2 | u64::from(ends_all) << 1 | 1)
    }
}

/// The number of bits of a stamp in a filter that remembers items for `ticks` ticks (or, with 0, for ever).
#[inline]
pub(crate) const fn stamp_bits(ticks: u8) -> u32 {
    match ticks {
        0 => 0,
        ticks => (ticks as u32 + 2).next_power_of_two().trailing_zeros(),
    }
}

impl Lanes {
    /// The same lanes for a filter that remembers items for `ticks` ticks, from 1 to [`MAX_TICKS`] (or, with 0, for
    /// ever).
    pub(crate) const fn remembering(self, ticks: u8) -> Self {
        assert!(ticks <= MAX_TICKS && self.remembers == 0);
        let mut lanes = self;
        lanes.remembers = ticks;
        lanes.stamps = lanes.ones() * lanes.last_stamp();
        lanes.unstamped &= !lanes.stamps;
        lanes.compared = if lanes.is_wide() { lanes.compared } else { lanes.unstamped };
        lanes.units = lanes.ones() * lanes.unit_of_heads() as u64;
        lanes
    }

    #[inline]
    pub(crate) const fn stamp_bits(self) -> u32 {
        stamp_bits(self.remembers)
    }

    /// The largest stamp, which has all its bits set.
    #[inline]
    pub(crate) const fn last_stamp(self) -> u64 {
        (1 << self.stamp_bits()) - 1
    }

    /// The lowest bit of a head above its stamp.
    pub(crate) const fn unit_of_heads(self) -> u32 {
        if self.is_wide() { 1 } else { 1 << self.stamp_bits() }
    }

    /// The lowest bit of a tail above its stamp.
    #[cfg(test)]
    pub(crate) const fn unit_of_tails(self) -> u32 {
        1 << self.stamp_bits()
    }

    /// Returns the fingerprint, whose stamp is zero so far, with the stamp of `now`.
    #[inline]
    pub(crate) fn stamped(self, fp: Fingerprint, now: Moment) -> Fingerprint {
        let stamp = now.tick() & self.last_stamp();
        match self.is_wide() {
            false => fp.with_added(stamp as u32),
            true => fp.with_tail(u64::from(fp.tail()) | stamp),
        }
    }

    #[inline]
    pub(crate) fn stamp(self, words: Words, lane: Lane) -> usize {
        self.value(self.of_stamps(words), lane) as usize & self.last_stamp() as usize
    }

    pub(crate) fn stamp_of_age(self, age: u64, now: Moment) -> usize {
        (now.tick().wrapping_sub(age) & self.last_stamp()) as usize
    }

    #[inline]
    pub(crate) fn age(self, words: Words, lane: Lane, now: Moment) -> u64 {
        let stamp = self.value(self.of_stamps(words), lane);
        now.tick().wrapping_sub(stamp) & self.last_stamp()
    }

    #[inline]
    pub(crate) fn with_age(self, words: Words, lane: Lane, age: u64, now: Moment) -> Words {
        let stamp = self.stamp_of_age(age, now) as u64;
        let replaced = |word| self.replace_lowest(word, lane, self.stamp_bits(), stamp);
        match self.is_wide() {
            false => Words { heads: replaced(words.heads), ..words },
            true => Words { tails: replaced(words.tails), ..words },
        }
    }

    pub(crate) fn has_stamp_expired(self, stamp: u8, now: Moment) -> bool {
        match now.tick().wrapping_sub(stamp.into()) & self.last_stamp() {
            0 => false,
            age => now.ends_all() || age == u64::from(self.remembers) + 1,
        }
    }

    #[inline]
    fn of_stamps(self, Words { heads, tails }: Words) -> u64 {
        if self.is_wide() { tails } else { heads }
    }

    /// Returns the masks that find the lanes whose items have expired. While a tick passes that ends all, the masks may
    /// be used only once for each stripe: a union may bring older lanes after that, which stay.
    pub(crate) fn expiry(self, now: Moment) -> Expiry {
        let oldest = now.tick().wrapping_sub(u64::from(self.remembers) + 1);
        let (flipped, least) = match now.ends_all() {
            false => (!oldest, self.stamps),
            true => (now.tick(), self.ones()),
        };
        Expiry {
            lanes: self,
            flips: self.ones() * (flipped & self.last_stamp()),
            stamps: self.stamps,
            carry: if self.forgets() { self.tops() - least } else { 0 },
            is_0_dead: self.has_stamp_expired(0, now),
        }
    }

    #[cfg(any(test, loom))]
    pub(crate) fn expired(self, words: Words, now: Moment) -> LaneSet {
        self.expiry(now).expired(words)
    }

    /// Returns the top bits of invalid lanes in a filter that forgets, while no tick passes: lanes that are older than
    /// the filter remembers, and lanes that have a stamp but no fingerprint.
    #[inline]
    pub(crate) fn wrong_stamps(self, words: Words, now: Moment) -> u64 {
        let next = self.ones() << self.stamp_bits();
        let times = self.ones() * (now.tick() & self.last_stamp());
        // The differences do not borrow across lanes, and the sums do not carry across lanes.
        let ages = ((times | next) - (self.of_stamps(words) & self.stamps)) & self.stamps;
        let spare = self.last_stamp() - u64::from(self.remembers);
        let too_old = (ages + self.ones() * spare) & next;
        let taken = self.taken(words.heads).tops();
        let old = taken & too_old << (self.bits() - 1 - self.stamp_bits());
        let without_stamp = words.heads & !self.stamps;
        let empty = if self.is_wide() { 0 } else { self.empty(without_stamp).tops() & taken };
        if self.forgets() { old | empty } else { 0 }
    }
}

/// Masks that find expired lanes in many buckets, in few operations.
pub(crate) struct Expiry {
    lanes: Lanes,
    /// Flips the expired stamp to the largest one in every lane. If a tick ends all, flips the newest stamp to 0
    /// instead.
    flips: u64,
    stamps: u64,
    /// The addend that carries into the highest bit of a lane if its flipped stamp is the largest one; or, if a tick
    /// ends all, if it is not 0.
    carry: u64,
    /// Whether stamp 0 has expired. Empty lanes have this stamp, too.
    is_0_dead: bool,
}

impl Expiry {
    #[inline(always)]
    pub(crate) fn expired(&self, words: Words) -> LaneSet {
        let stamps = (self.lanes.of_stamps(words) ^ self.flips) & self.stamps;
        let dead = self.lanes.set_of((stamps + self.carry) & self.lanes.tops());
        if self.is_0_dead { dead.and(self.lanes.taken(words.heads)) } else { dead }
    }

    /// Erases the expired lanes in `words`, which consist of whole buckets, in a sum over all words. Returns the number
    /// of erased lanes, if there are no more buckets than a lane can count.
    #[inline]
    pub(crate) fn erase(&self, words: &mut [u64]) -> u64 {
        let mut counters = 0;
        self.lanes.replace_each(words, |Words { heads, tails }| {
            let tops = self.expired(Words { heads, tails }).tops();
            let ones = tops >> (self.lanes.bits() - 1);
            counters += ones;
            let stay = !tops.wrapping_mul(2).wrapping_sub(ones);
            Words { heads: heads & stay, tails: tails & stay }
        });
        self.lanes.sum(counters)
    }
}

/// The difference between the ages of items at two moments, perhaps in two filters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AgeShift {
    /// The moment of the ages that the items have.
    pub then: Moment,
    /// The moment of the ages that they get.
    pub now: Moment,
    /// The number of ticks by which they become older.
    pub ticks: i64,
}

impl AgeShift {
    /// Returns the bucket with the item in `lane` as old as it is now, or `None` if the item has expired.
    #[inline]
    pub(crate) fn aged(self, lanes: Lanes, words: Words, lane: Lane) -> Option<Words> {
        let age = lanes.age(words, lane, self.then).cast_signed().saturating_add(self.ticks);
        // No item is younger than the present tick.
        let age = age.max(0).cast_unsigned();
        (age <= lanes.remembers().into()).then(|| lanes.with_age(words, lane, age, self.now))
    }

    /// Brings the items of all these buckets to their age now, and removes the expired ones.
    pub(crate) fn make_older(self, lanes: Lanes, words: &mut [u64]) {
        lanes.replace_each(words, |old| {
            lanes.taken(old.heads).fold(old, |words, lane| {
                self.aged(lanes, words, lane).unwrap_or_else(|| lanes.without_whole(words, lane))
            })
        });
    }
}

#[cfg(test)]
mod tests;
