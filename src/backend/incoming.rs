//! A copied shard of a filter that is being merged into another one, and the outcome of its entries.

use crate::error::{Full, UnionError};
use crate::layout::bucket::{Lanes, Words};
use crate::layout::geometry::{Bucket, Mixed, Place, STRIPE_BUCKETS};
use crate::layout::stamps::{AgeShift, Moment};
use crate::shard::merge::Merged;
use crate::shard::{Lease, Shard};
use crate::table::stripe::Locks;
use crate::table::ticking::{Ticking, Time};

/// The number of refused entries after which a union gives up.
const MAX_REFUSED: usize = 1_000;

/// The number of entries after which a merge releases the locks of the shard, so that writers have a turn.
const CHUNK: usize = 1_000;

/// A copy of a shard of another filter.
#[doc(hidden)]
#[derive(Clone, Copy)]
pub(crate) struct IncomingShard<'a> {
    /// A hash of the shard: the first, if the filter grows.
    pub start: Mixed,
    pub depth: u32,
    pub words: &'a [u64],
    pub lanes: Lanes,
    /// If the filters forget.
    pub ages: Option<Ages<'a>>,
}

/// The ages of the entries in a copy.
#[doc(hidden)]
#[derive(Clone, Copy)]
pub(crate) struct Ages<'a> {
    /// The time of the copy, in the other filter.
    there: Time,
    clocks: Clocks<'a>,
}

/// The clock of this filter, and what both filters' `elapsed` were at one moment.
#[doc(hidden)]
#[derive(Clone, Copy)]
pub(crate) struct Clocks<'a> {
    here: &'a Ticking,
    elapsed: [u64; 2],
}

impl<'a> Clocks<'a> {
    pub(crate) fn of(here: &'a Ticking, there: &Ticking) -> Self {
        let elapsed = |ticking: &Ticking| ticking.time().0.elapsed;
        loop {
            let both = [elapsed(here), elapsed(there)];
            if elapsed(here) == both[0] {
                return Clocks { here, elapsed: both };
            }
        }
    }
}

impl<'a> Ages<'a> {
    /// The ages in a copy of that time.
    pub(crate) fn of(there: Time, clocks: Clocks<'a>) -> Self {
        Ages { there, clocks }
    }

    /// Returns the difference between the ages in the copy and those at the present time here. Where both filters have
    /// numbers, these tell how far the filters are apart. Otherwise, both were at the same tick when the union began.
    fn shift(&self, (here, now): (Time, Moment)) -> AgeShift {
        let (there, [here_then, there_then]) = (self.there, self.clocks.elapsed);
        let by_number = here.number.zip(there.number);
        let ticks = match by_number {
            Some((here, there)) => here.saturating_sub(there).try_into().unwrap_or(i64::MAX),
            None => {
                let [here, there] =
                    [here.elapsed.wrapping_sub(here_then), there.elapsed.wrapping_sub(there_then)];
                here.wrapping_sub(there).cast_signed()
            }
        };
        AgeShift { then: Moment::of_tick(there.tick), now, ticks }
    }

    /// Erases the entries of the copy that have expired here.
    pub(crate) fn erase_expired(&self, words: &mut [u64], lanes: Lanes) {
        let shift = self.shift(self.clocks.here.time());
        lanes.replace_each(words, |words| {
            let expired =
                lanes.taken(words.heads).filter(|lane| shift.aged(lanes, words, *lane).is_none());
            expired.fold(words, |words, lane| lanes.without_whole(words, lane))
        });
    }
}

/// Entries of one bucket for which there is no room: the place of one of them, and their number.
pub(crate) struct Unplaced {
    pub place: Place,
    count: usize,
}

impl Unplaced {
    /// Refuses these entries for good. Returns an error if the union has to give up.
    pub(crate) fn refuse(self, full: Full, report: &mut MergeReport) -> Result<(), UnionError> {
        (0..self.count).try_for_each(|_| report.refuse(full))
    }
}

/// How far a copy has been merged.
#[doc(hidden)]
#[derive(Clone, Copy, Default)]
pub(crate) struct Progress {
    /// The number of buckets that are merged.
    buckets: usize,
    /// The top bits of the lanes of the next bucket that are merged, too.
    lanes: u64,
}

impl Progress {
    /// Leaves the rest of a bucket out.
    pub(crate) fn skip_bucket(&mut self) {
        *self = Progress { buckets: self.buckets + 1, lanes: 0 };
    }
}

impl IncomingShard<'_> {
    /// Returns the shift to the present time, to a caller that holds all locks of a shard here.
    pub(crate) fn shift<'a, L: Lease<'a>>(&self, shard: Shard<L>, locked: &impl Locks) -> AgeShift {
        let forever = AgeShift { then: Moment::FIRST, now: Moment::FIRST, ticks: 0 };
        self.ages.map_or(forever, |ages| ages.shift(shard.swept_time(locked, ages.clocks.here)))
    }

    pub(crate) fn buckets(&self) -> usize {
        self.words.len() / self.lanes.words()
    }

    /// Whether a shard of this depth has to be split to hold the entries of this copy and of the other shards
    /// in its range, each of which probably has as many.
    pub(crate) fn needs_depth(&self, depth: u32) -> bool {
        let deeper = self.depth.saturating_sub(depth);
        let entries = || 4 * self.lanes.count_taken(self.words) as u64;
        deeper > 0 && entries() << deeper > 3 * (self.buckets() * self.lanes.slots()) as u64
    }

    /// Returns the number of buckets, padded with empty ones to whole stripes, and to a power of two of
    /// these.
    pub(crate) fn end(&self) -> usize {
        let stripes = self.buckets().div_ceil(STRIPE_BUCKETS as usize);
        stripes.next_power_of_two() * STRIPE_BUCKETS as usize
    }

    pub(crate) fn is_merged(&self, progress: Progress) -> bool {
        progress.buckets >= self.end()
    }

    /// Merges the entries of some buckets into a shard. The caller holds all locks of the shard. `merge_entry` adds an
    /// entry; it also gets the top bit of the entry's lane. Stops after `CHUNK` entries, or at a bucket that has
    /// entries for which there is no room. A later call goes on with these, and with no other of that bucket: another
    /// thread may have removed an item that was merged, which must not come back.
    #[inline]
    pub(crate) fn merge<'a, L: Lease<'a>>(
        &self,
        progress: &mut Progress,
        shard: Shard<L>,
        shift: AgeShift,
        mut merge_entry: impl FnMut(Place, u64) -> Merged,
    ) -> Option<Unplaced> {
        let mut merged = 0;
        while merged < CHUNK && !self.is_merged(*progress) {
            let (bucket, words) = self.bucket(progress.buckets);
            let taken = self.lanes.taken(words.heads);
            let mut unplaced = None;
            for lane in taken {
                let top = taken.only(lane).tops();
                if progress.lanes & top != 0 {
                    continue;
                }
                let aged = match self.ages {
                    Some(_) => shift.aged(self.lanes, words, lane),
                    None => Some(words),
                };
                let Some(fp) = aged.and_then(|words| self.lanes.get_whole(words, lane)) else {
                    continue;
                };
                let place = Place { first: bucket, second: shard.alternate(bucket, fp), fp };
                if let Merged::NoRoom = merge_entry(place, top) {
                    let count = unplaced.map_or(1, |Unplaced { count, .. }| count + 1);
                    unplaced = Some(Unplaced { place, count });
                } else {
                    progress.lanes |= top;
                }
                merged += 1;
            }
            if unplaced.is_some() {
                return unplaced;
            }
            progress.skip_bucket();
        }
        None
    }

    /// Returns the bucket that comes after `after` others.
    ///
    /// The stripes take turns, so that they fill up evenly. Otherwise one would be full before the others
    /// have any entries, and the shard would seem to have met a
    /// [crowd](crate::backend::growing::sharded::split_policy).
    #[inline]
    fn bucket(&self, after: usize) -> (Bucket, Words) {
        let stripes = self.end() / STRIPE_BUCKETS as usize;
        let (stripe, in_stripe) = (after & (stripes - 1), after >> stripes.ilog2());
        let bucket = Bucket((stripe * STRIPE_BUCKETS as usize + in_stripe) as u32);
        (bucket, self.words_of(bucket))
    }

    /// Returns the words of a bucket.
    #[inline]
    pub(crate) fn words_of(&self, bucket: Bucket) -> Words {
        let bucket = bucket.0 as usize;
        let word = |at: usize| self.words.get(at).copied().unwrap_or(0);
        match self.lanes.is_wide() {
            false => Words { heads: word(bucket), tails: 0 },
            true => Words { heads: word(2 * bucket), tails: word(2 * bucket + 1) },
        }
    }
}

/// The outcome of the entries so far.
#[doc(hidden)]
#[derive(Default)]
pub(crate) struct MergeReport {
    pub added: usize,
    /// The number of void items that the other filter has.
    pub void_there: u64,
    /// The number of these that have been counted here.
    pub void_counted: u64,
    refused: usize,
    full: Option<Full>,
}

impl MergeReport {
    /// Notes an entry that was refused. Returns an error if the union has to give up.
    fn refuse(&mut self, full: Full) -> Result<(), UnionError> {
        self.refused += 1;
        self.full = Some(full);
        if self.refused < MAX_REFUSED { Ok(()) } else { self.result() }
    }

    /// Returns an error if any entry was refused.
    pub(crate) fn result(&self) -> Result<(), UnionError> {
        let &MergeReport { added, refused, full, .. } = self;
        full.map_or(Ok(()), |full| {
            let is_all = refused < MAX_REFUSED;
            Err(UnionError::of_full(full, added, refused, is_all))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::geometry::Geometry;
    use crate::table::Table;

    #[test]
    fn an_entry_is_not_merged_again_with_one_that_had_no_room() {
        let lanes = Lanes::of_bits(16);
        let table = Table::new(Geometry::new(lanes, 1, 2)).expect("memory");
        let shard = Shard::new(&table, 0);
        let Ok(locked) = shard.lock_all();
        let words = [0x0003_0002_0001, 0x0004];
        let (start, depth) = (Mixed(0), 0);
        let copy = IncomingShard { start, depth, words: &words, lanes, ages: None };
        let (mut progress, mut offered) = (Progress::default(), Vec::new());
        let mut merge = |refused| {
            copy.merge(&mut progress, shard, copy.shift(shard, &locked), |place, _| {
                offered.push(place.fp.head());
                if place.fp.head() == refused { Merged::NoRoom } else { Merged::Added }
            })
        };
        assert!(merge(2).is_some() && merge(2).is_some() && merge(0).is_none());
        assert_eq!(offered, [1, 2, 3, 2, 2, 4]);
        assert!(copy.is_merged(progress));
    }

    #[test]
    fn each_bucket_comes_once_and_the_stripes_take_turns() {
        const STRIPE: u64 = STRIPE_BUCKETS as u64;
        for count in [2, STRIPE + 1, 5 * STRIPE, 16 * STRIPE] {
            let words: Vec<u64> = (0..count).collect();
            let copy = IncomingShard {
                start: Mixed(0),
                depth: 0,
                words: &words,
                lanes: Lanes::of_bits(16),
                ages: None,
            };
            let all: Vec<(u32, u64)> = (0..copy.end())
                .map(|after| copy.bucket(after))
                .map(|(bucket, words)| (bucket.0, words.heads))
                .filter(|(bucket, _)| u64::from(*bucket) < count)
                .collect();
            assert!(all.iter().all(|(bucket, word)| u64::from(*bucket) == *word));
            let mut sorted: Vec<u64> = all.iter().map(|(_, word)| *word).collect();
            sorted.sort_unstable();
            assert_eq!(sorted, words);
            // At any point, no whole stripe is more than one bucket ahead of another.
            let mut in_stripes = vec![0u32; count.div_ceil(STRIPE) as usize];
            for (bucket, _) in all {
                in_stripes[(bucket / STRIPE_BUCKETS) as usize] += 1;
                let whole = &in_stripes[..(count / STRIPE) as usize];
                let [most, least] = [whole.iter().max(), whole.iter().min()];
                assert!(most.zip(least).is_none_or(|(most, least)| most - least <= 1), "{count}");
            }
        }
    }
}
