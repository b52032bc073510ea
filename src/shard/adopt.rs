//! Entries of another filter: items of which nothing is known but their lanes there.
//!
//! An entry is inserted like an item, unless it is here already. It differs from a new item in two ways.
//! It comes with its age. And of its window, bits may be lost (see [`aging`](crate::layout::aging)), so it
//! stands for any of several items. It is here only if a lane *covers* all of them: one that agrees with
//! what is left of the window, and has lost at least as many bits. (A lane that has lost fewer may be equal
//! as far as the bits of a new item would go on like those of the entry: a `1`, and zeros.)
//!
//! A lane that has lost fewer bits, and agrees with those that the entry has left, is *finer*. It is probably
//! of the same item, inserted when its filter was larger. It becomes like the entry, which matches all that
//! it matched. So an item that both filters had is here once, and the lane errs as often as the entry alone
//! would. Like a match of a new item, this may be the lane of another one.

use crate::layout::bucket::{Fingerprint, Lane, LaneSet, Lanes, Words};
use crate::layout::geometry::{Bucket, Geometry, Place};
use crate::layout::stamps::Moment;
use crate::rule::rule;
use crate::shard::Shard;
use crate::shard::lease::{Answer, Lease, Refusal};
use crate::table::Table;

/// An entry of another filter.
#[derive(Clone, Copy)]
pub struct Entry {
    pub place: Place,
    /// How many bits its window has lost.
    pub lost: u32,
    /// When it came, in the time of the filter that it comes to.
    pub came: Moment,
}

/// The lease of a shard for an entry: of the lanes that match, only those that cover it are seen.
#[derive(Clone, Copy)]
struct ForEntry<L, H> {
    lease: L,
    entry: Entry,
    host: H,
}

/// What entries have to be told of the filter that they come to. The caller holds the lock of the stripe.
pub trait Host: Copy {
    /// Records that an entry is about to fill a lane. Returns whether it counts as an item.
    fn filling(self, entry: Entry) -> bool;

    /// Returns the lanes that are finer than an entry.
    fn finer(self, words: Words, entry: Entry) -> LaneSet;

    /// Returns the bucket in which one of them has lost as many bits as the entry, and records that. Also returns by how
    /// many its stripe counts less.
    fn widen(self, words: Words, lane: Lane, entry: Entry) -> (Words, i32);
}

impl<L: Lease> Shard<'_, L> {
    /// Adds an entry of another filter, unless a lane covers it, or covers it once it has lost as many bits.
    /// If that is older, it becomes as young as the entry. Returns whether the entry was added. No tick
    /// passes meanwhile.
    pub fn adopt(self, entry: Entry, host: impl Host) -> Answer<bool, L> {
        let Entry { place, lost, .. } = entry;
        let lease = ForEntry { lease: self.lease, entry, host };
        let shard = Shard { table: self.table, base: self.base, lease };
        // Each turn but the last is spoiled by another thread that has removed what was here.
        loop {
            if lost > 0 && shard.widen_finer().map_err(Refusal::Lapsed)? {
                return Ok(false);
            }
            if shard.insert_if_absent(place)? {
                return Ok(true);
            }
            if !self.lanes().forgets() || shard.keep(place).map_err(Refusal::Lapsed)? {
                return Ok(false);
            }
        }
    }
}

impl<L: Lease, H: Host> Shard<'_, ForEntry<L, H>> {
    fn age_of_entry(self, now: Moment) -> u64 {
        // Of a time before the first tick, only the end of the number is right.
        let stamp = self.lanes().stamp_of_age(0, self.lease.entry.came);
        self.lanes().age_of(stamp as u8, now)
    }

    /// Lets a finer lane lose bits until it covers the entry, if there is one, and no lane that covers it.
    fn widen_finer(self) -> Result<bool, L::Lapsed> {
        let ForEntry { entry, host, .. } = self.lease;
        let place = entry.place;
        let finer = |words| host.finer(words, entry);
        let read = |bucket| self.read_rest(bucket, self.read(bucket));
        // Mostly there is none. What changes meanwhile might as well have come later.
        if finer(read(place.first)).or(finer(read(place.second))).is_empty() {
            return Ok(false);
        }
        let locked = self.lock(place)?;
        if self.contains_locked(&locked, place) {
            return Ok(false);
        }
        let both = [place.first, place.second].map(|bucket| {
            let words = self.read_locked(&locked, bucket);
            finer(words).first().map(|lane| (bucket, words, lane))
        });
        let Some((bucket, words, lane)) = both.into_iter().flatten().next() else {
            return Ok(false);
        };
        let (lanes, now) = (self.lanes(), self.now());
        let age = self.age_of_entry(now).min(lanes.age(words, lane, now));
        let aged = self.with_age(words, lane, age, now);
        let (widened, less) = host.widen(aged, lane, entry);
        let widened = rule!("a_finer_lane_keeps_its_bits", widened, aged);
        self.write(&locked, bucket, widened);
        self.add_items(&locked, bucket, -less);
        Ok(true)
    }

    /// Makes the youngest lane that covers the entry at most as old as the entry. Returns whether there is
    /// one.
    fn keep(self, place: Place) -> Result<bool, L::Lapsed> {
        let locked = self.lock(place)?;
        let (lanes, now) = (self.lanes(), self.now());
        let both = [place.first, place.second].into_iter().flat_map(|bucket| {
            let words = self.read_locked(&locked, bucket);
            self.holding(words, place.fp).map(move |lane| (bucket, words, lane))
        });
        let age_of = |(_, words, lane): &(Bucket, Words, Lane)| lanes.age(*words, *lane, now);
        let Some(youngest) = both.min_by_key(age_of) else { return Ok(false) };
        let age = self.age_of_entry(now);
        if age < age_of(&youngest) {
            let (bucket, words, lane) = youngest;
            self.write(&locked, bucket, self.with_age(words, lane, age, now));
        }
        Ok(true)
    }
}

impl<L: Lease, H: Copy> ForEntry<L, H> {
    /// Those of these lanes that have lost at least as many bits as the entry.
    fn covering(self, lanes: Lanes, words: Words, among: LaneSet) -> LaneSet {
        let has_lost = |only| self.lease.closest(words, only).map(|(lost, _)| lost);
        let least = rule!("an_entry_is_covered_by_what_knows_more", self.entry.lost, 0);
        let each = among.map(|lane| among.only(lane));
        let covering = each.filter(|only| has_lost(*only) >= Some(least));
        lanes.set_of(covering.fold(0, |tops, only| tops | only.tops()))
    }
}

impl<L: Lease, H: Host> Lease for ForEntry<L, H> {
    type Lapsed = L::Lapsed;

    const LASTING: bool = L::LASTING;
    const WIDE: bool = L::WIDE;
    const PATIENCE: usize = L::PATIENCE;

    fn check(self) -> Result<(), L::Lapsed> {
        self.lease.check()
    }

    fn check_alone(self) -> Result<(), L::Lapsed> {
        self.lease.check_alone()
    }

    fn holding(self, lanes: Lanes, word: u64, fp: Fingerprint) -> LaneSet {
        let matching = self.lease.holding(lanes, word, fp);
        // The head of a wide fingerprint tells nothing of the bits that are lost.
        let words = Words { heads: word, tails: 0 };
        if L::WIDE { matching } else { self.covering(lanes, words, matching) }
    }

    fn holding_tail(self, lanes: Lanes, word: u64, fp: Fingerprint) -> LaneSet {
        let matching = self.lease.holding_tail(lanes, word, fp);
        self.covering(lanes, Words { heads: 0, tails: word }, matching)
    }

    fn is_in(self, lanes: Lanes, first: u64, second: u64, fp: Fingerprint) -> bool {
        // Mostly nothing matches at all.
        self.lease.is_in(lanes, first, second, fp)
            && (L::WIDE || {
                let [first, second] = [first, second].map(|word| self.holding(lanes, word, fp));
                !first.or(second).is_empty()
            })
    }

    fn alternate(self, geometry: &Geometry, bucket: Bucket, fp: Fingerprint) -> Bucket {
        self.lease.alternate(geometry, bucket, fp)
    }

    fn closest(self, words: Words, among: LaneSet) -> Option<(u32, Lane)> {
        self.lease.closest(words, among)
    }

    fn now(self, table: &Table) -> Moment {
        self.lease.now(table)
    }

    fn came(self, _: &Table) -> Moment {
        self.entry.came
    }

    fn filling(self) -> bool {
        self.host.filling(self.entry)
    }

    fn removing(self, words: Words, lane: Lane, lost: u32) -> Option<i32> {
        self.lease.removing(words, lane, lost)
    }

    fn replacing(self, words: Words, lane: Lane) -> i32 {
        self.lease.replacing(words, lane)
    }

    fn restamping(self, words: Words, lane: Lane, to: usize) {
        self.lease.restamping(words, lane, to);
    }

    fn may_be_last(self) -> bool {
        false
    }
}
