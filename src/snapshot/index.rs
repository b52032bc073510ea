//! Shards in a file, and the index that says which they are.
//!
//! A [`ShardReader`] checks the words of a shard. The index has an [`Entry`] for each shard, which says what they have
//! to be. [`Totals`] reads all entries of a filter, part by part, and checks that the shards are consecutive, in [place
//! and in time](mod@crate::guide::format). A place is also the cursor of a [piece](crate::snapshot::write::Piece).

use crate::backend::growing::directory::{MAX_LEVELS, is_balanced};
use crate::error::{NoMemory, reserve};
use crate::layout::bucket::Lanes;
use crate::layout::geometry::Geometry;
use crate::layout::shrinking::Shrinking;
use crate::layout::sizing::Layout;
use crate::layout::stamps::{AgeShift, Moment};
use crate::shard::Copied;
use crate::snapshot::error::SnapshotError;
use crate::snapshot::format::{END_WORDS, ENTRY_WORDS, End, from_file, mark, unseal};
use crate::snapshot::header::Header;
use crate::table::ticking::Time;
use std::ops::BitOr;

/// The figures of a shard that was copied, or that is in a file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Entry {
    pub depth: u32,
    /// The number of lanes that are not void, each of which is one item.
    pub items: i64,
    /// The time of the copy, in a filter that forgets.
    pub time: Option<Time>,
    /// The checksum of the words, in a file.
    pub sum: u64,
}

impl Entry {
    pub(crate) const EMPTY: Entry = Entry { depth: 0, items: 0, time: None, sum: 0 };

    /// Makes the figures of a shard that was copied, without those that its words tell.
    pub(crate) fn new(depth: u32, Copied { items, time }: Copied) -> Self {
        Entry { depth, items, time, ..Entry::EMPTY }
    }

    /// Returns the words of this entry in the index.
    pub(crate) fn words(&self, lanes: Lanes) -> [u64; ENTRY_WORDS] {
        let [tick, elapsed, number] = self.time.map_or([0; 3], |Time { tick, elapsed, number }| {
            let flag = if number.is_some() { HAS_NUMBER } else { 0 };
            [tick & lanes.last_stamp() | flag, elapsed, number.unwrap_or(0)]
        });
        [self.depth.into(), self.items.cast_unsigned(), self.sum, tick, elapsed, number]
    }

    /// Parses the words of an entry, which are at byte `at`.
    fn read(layout: &Layout, words: [u64; ENTRY_WORDS], at: u64) -> Result<Self, SnapshotError> {
        let [depth, items, sum, tick, elapsed, number] = words;
        let deepest = if layout.grows { MAX_LEVELS as u64 - 1 } else { 0 };
        if depth > deepest {
            let what = format!("a shard cannot have been split {depth} times");
            return Err(SnapshotError::damaged(at, what));
        }
        let (stamp, has_number) = (tick & !HAS_NUMBER, tick & HAS_NUMBER != 0);
        let is_right = match layout.lanes().forgets() {
            true => stamp <= layout.lanes().last_stamp() && (number == 0 || has_number),
            false => [tick, elapsed, number] == [0; 3],
        };
        if !is_right {
            return Err(SnapshotError::damaged(at + 24, "the shard cannot be of this time"));
        }
        let time = Time { tick: stamp, elapsed, number: has_number.then_some(number) };
        let time = layout.lanes().forgets().then_some(time);
        Ok(Entry { depth: depth as u32, items: items.cast_signed(), sum, time })
    }
}

/// A bit of the first word of a time, above the stamp: ticks have numbers.
const HAS_NUMBER: u64 = 1 << 8;

/// Checks the words of shards.
pub(crate) struct ShardReader {
    lanes: Lanes,
    /// If the filter grows.
    shrinking: Option<Shrinking>,
}

impl ShardReader {
    pub(crate) fn new(layout: &Layout) -> Self {
        let shrinking = layout.grows.then(|| layout.shrinking());
        ShardReader { lanes: layout.lanes(), shrinking }
    }

    /// Converts the words of a shard from the byte order of a file, and compares them with its entry in the index. `at`
    /// is the byte at which they are.
    pub(crate) fn read(
        &self,
        words: &mut [u64],
        entry: &Entry,
        at: u64,
    ) -> Result<(), SnapshotError> {
        self.convert(words).compare(entry, at)?;
        self.check(words, entry.time, at)
    }

    /// Converts the words of a shard from the byte order of a file. Returns the figures that they tell.
    pub(crate) fn convert(&self, words: &mut [u64]) -> Entry {
        let sum = from_file(words);
        Entry { sum, items: self.items(words), ..Entry::EMPTY }
    }

    /// Checks that the filter can have the buckets of a shard, at this time if that is known. They are at byte `at`.
    pub(crate) fn check(
        &self,
        words: &[u64],
        time: Option<Time>,
        at: u64,
    ) -> Result<(), SnapshotError> {
        let ShardReader { lanes, shrinking } = self;
        // Each loop has no branch, so that the compiler can process several words at once.
        let any = |words: &[u64]| {
            let of_layout = lanes.fold(words, |bucket| lanes.wrong(bucket), BitOr::bitor);
            let of_lanes = shrinking.as_ref().map_or(0, |shrinking| {
                let without_a_one = |bucket| shrinking.without_a_one(bucket).tops();
                lanes.fold(words, without_a_one, BitOr::bitor)
            });
            let of_stamps = time.map_or(0, |time| {
                let now = Moment::of_tick(time.tick);
                lanes.fold(words, |bucket| lanes.wrong_stamps(bucket, now), BitOr::bitor)
            });
            of_layout | of_lanes | of_stamps != 0
        };
        // There rarely is one, so this only finds out whether there is, without a branch for each bucket.
        if !any(words) {
            return Ok(());
        }
        let bucket = words.chunks(lanes.words()).position(any).unwrap_or(0);
        let at = at + 8 * (bucket * lanes.words()) as u64;
        Err(SnapshotError::damaged(at, "a bucket cannot hold this value"))
    }

    /// Makes the items in a shard's buckets older. Returns how many are left.
    pub(crate) fn older(&self, words: &mut [u64], shift: AgeShift) -> i64 {
        shift.make_older(self.lanes, words);
        self.items(words)
    }

    /// Returns the number of lanes of a shard that are not void.
    fn items(&self, buckets: &[u64]) -> i64 {
        let mut items = self.lanes.count_taken(buckets) as u64;
        if let Some(shrinking) = self.shrinking {
            let add = u64::wrapping_add;
            let void = |bucket| shrinking.void_lanes(bucket).len() as u64;
            // More than all of them in words that no filter has, which `check` refuses.
            items = items.wrapping_sub(self.lanes.fold(buckets, void, add));
        }
        items as i64
    }
}

impl Entry {
    /// Compares what the words of a shard tell, which begin at byte `at`, with what the index says.
    pub(crate) fn compare(&self, told: &Entry, at: u64) -> Result<(), SnapshotError> {
        if self.sum != told.sum {
            return Err(SnapshotError::damaged(at, "the checksum of the shard is wrong"));
        }
        if self.items != told.items {
            let (counted, items) = (self.items, told.items);
            let what = format!("{counted} fingerprints cannot stand for {items} items");
            return Err(SnapshotError::damaged(at, what));
        }
        Ok(())
    }
}

/// The number of units in a root, in which places are counted: a shard of the greatest depth covers one unit.
pub(crate) const UNITS: u64 = 1 << (MAX_LEVELS - 1);

/// Adds up the shards of a filter, part by part, and checks that they continue one another.
pub(crate) struct Totals {
    roots: u64,
    /// The place where the next shard begins.
    pub place: u64,
    /// The number of shards.
    pub shards: u64,
    /// The greatest depth of all shards.
    pub deepest: u32,
    pub items: i64,
    /// The time of the last shard, if the filter forgets.
    pub time: Option<Time>,
}

impl Totals {
    /// Begins at this place of a filter.
    pub(crate) fn new(geometry: &Geometry, place: u64) -> Self {
        let roots = geometry.shards() as u64;
        Totals { roots, place, shards: 0, deepest: 0, items: 0, time: None }
    }

    /// Adds the next shard. Returns `None` if it does not continue where the previous one ended.
    pub(crate) fn add(&mut self, &Entry { depth, items, time, .. }: &Entry) -> Option<()> {
        let units = UNITS >> depth;
        if self.is_complete() || !self.place.is_multiple_of(units) {
            return None;
        }
        self.place += units;
        self.deepest = self.deepest.max(depth);
        self.shards += 1;
        self.items = self.items.wrapping_add(items);
        self.time = time;
        Some(())
    }

    /// Returns room for the index of a part of this many shards, and the end that follows it.
    pub(crate) fn room(header: &Header, shards: usize) -> Result<Vec<u64>, NoMemory> {
        let mut words = Vec::new();
        let mark = mark(&header.layout);
        let count = 1 + mark.len() + shards * ENTRY_WORDS + END_WORDS;
        reserve(&mut words, count)?;
        words.push(header.sum().to_le());
        words.extend(mark.iter().map(|word| word.to_le()));
        words.resize(count, 0);
        Ok(words)
    }

    /// Reads the index of a part of this filter, and the end that follows it: words in the byte order of a file, after
    /// the checksum of the header. The index begins at byte `at`. Returns its entries.
    pub(crate) fn read(
        &mut self,
        header: &Header,
        words: &mut [u64],
        at: u64,
    ) -> Result<Vec<Entry>, SnapshotError> {
        let bytes_before = |words: usize| at + 8 * (words as u64 - 1);
        End::check(words, bytes_before(words.len()))?;
        let damaged = |at, what: &str| SnapshotError::damaged(at, what);
        unseal(words).ok_or_else(|| damaged(at, "the checksum of the index is wrong"))?;
        let mark = mark(&header.layout);
        if !words[1..].starts_with(&mark) {
            return Err(damaged(at, "the index should begin here"));
        }
        let index = &words[1 + mark.len()..words.len() - END_WORDS];
        let mut entries = Vec::new();
        reserve(&mut entries, index.len() / ENTRY_WORDS)?;
        for (number, words) in index.as_chunks().0.iter().enumerate() {
            let at = bytes_before(1 + mark.len() + number * ENTRY_WORDS);
            let entry = Entry::read(&header.layout, *words, at)?;
            // No shard has a lower count of ticks than the one before it, or the same count with another tick.
            if let (Some(last), Some(time)) = (self.time, entry.time)
                && (last.elapsed > time.elapsed
                    || last.elapsed == time.elapsed && last.tick != time.tick)
            {
                let what = "the shard is of an earlier time than the one before it";
                return Err(damaged(at + 24, what));
            }
            let what = "the shard does not continue where the previous one ended";
            self.add(&entry).ok_or_else(|| damaged(at, what))?;
            entries.push(entry);
        }
        match (header.is_file(), self.is_complete()) {
            _ if entries.is_empty() => Err(damaged(at, "there are no shards")),
            _ if header.shards().is_some_and(|told| told != entries.len() as u64) => {
                Err(damaged(at, "the number of shards is another one than in the header"))
            }
            (true, false) => Err(damaged(at, "some shards are missing")),
            (_, false) => Ok(entries),
            _ if self.is_balanced() => Ok(entries),
            // No save writes such a file.
            (true, true) => {
                Err(damaged(at, "the deepest shard was split too often for so few shards"))
            }
            (false, true) => Err(SnapshotError::outgrown()),
        }
    }

    /// Returns whether the shards make up every root.
    pub(crate) fn is_complete(&self) -> bool {
        self.place / UNITS == self.roots
    }

    /// Returns the place where the next shard begins, or `None` if there is no other shard.
    pub(crate) fn next(&self) -> Option<u64> {
        (!self.is_complete()).then_some(self.place)
    }

    /// Returns whether the directory of these shards is [not much larger](is_balanced) than the shards themselves.
    pub(crate) fn is_balanced(&self) -> bool {
        is_balanced(self.roots, self.deepest, self.shards)
    }

    pub(crate) fn all_items(&self) -> usize {
        self.items.try_into().unwrap_or(0)
    }
}

/// Returns the time from which a loaded filter continues. The counts of passed ticks are only compared within one file,
/// so the filter may begin with any count. The highest bit is cleared, because a file may contain a count that would
/// soon overflow: a later shard of a file of this filter would then seem to be from an earlier time.
pub(crate) fn from_here(time: Time) -> Time {
    Time { elapsed: time.elapsed & (u64::MAX >> 1), ..time }
}

/// Returns how much older a shard is at the last time. `None` if it was copied at that time.
pub(crate) fn age_shift(time: Option<Time>, last: Option<Time>) -> Option<AgeShift> {
    let (time, last) = time.zip(last)?;
    let ticks = last.elapsed.saturating_sub(time.elapsed).try_into().unwrap_or(i64::MAX);
    let [then, now] = [time, last].map(|time| Moment::of_tick(time.tick));
    (ticks > 0).then_some(AgeShift { then, now, ticks })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn geometry(roots: usize) -> Geometry {
        Geometry::new(Lanes::of_bits(16), roots, 8_192)
    }

    fn of_depth(depth: u32) -> Entry {
        Entry { depth, ..Entry::EMPTY }
    }

    fn totals(roots: usize, depths: &[u32]) -> (Totals, bool) {
        let mut totals = Totals::new(&geometry(roots), 0);
        let right = depths.iter().all(|depth| totals.add(&of_depth(*depth)).is_some());
        let complete = totals.is_complete();
        (totals, right && complete)
    }

    #[test]
    fn shards_have_to_make_up_every_root() {
        for whole in [&[0, 0][..], &[1, 1, 0], &[0, 2, 2, 1], &[1, 2, 3, 3, 1, 1], &[31; 0]] {
            assert_eq!(totals(2, whole).1, !whole.is_empty(), "{whole:?}");
        }
        for broken in [&[0][..], &[0, 0, 0], &[1, 0], &[2, 1, 2, 0], &[1, 1, 1], &[0, 31]] {
            assert!(!totals(2, broken).1, "{broken:?}");
        }
    }

    #[test]
    fn a_deep_shard_needs_others() {
        for (depth, is_fine) in [(20, true), (21, false), (31, false)] {
            let chain: Vec<u32> = (1..=depth).chain([depth]).collect();
            let (totals, whole) = totals(1, &chain);
            assert!(whole);
            assert_eq!(totals.is_balanced(), is_fine);
        }
    }
}
