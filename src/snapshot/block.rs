//! Blocks: each by itself, and all blocks of a part together.
//!
//! A [`BlockReader`] validates one block. A [`Totals`] checks that the blocks of a part are consecutive, in place and
//! in time, and that the part's end has their number, their items, and the checksum of their figures and checksums.
//!
//! Blocks come in the order of the hashes that lead to their shards. A block of depth `d` covers 2^(-d) of its root, so
//! the place where it begins is a whole number of [`UNITS`]. A place is also the cursor of a
//! [piece](crate::snapshot::write::Piece).
//!
//! Ticks do not wait while a file is written, so in a filter that forgets, each block has the time of its copy. No
//! block was copied before the previous one, and a loaded filter continues from the time of the last block. By then,
//! the items of earlier blocks have become older, and some have expired.

use crate::backend::growing::directory::{MAX_LEVELS, is_balanced};
use crate::layout::bucket::Lanes;
use crate::layout::geometry::Geometry;
use crate::layout::shrinking::Shrinking;
use crate::layout::sizing::Layout;
use crate::layout::stamps::{AgeShift, Moment};
use crate::shard::Copied;
use crate::snapshot::error::SnapshotError;
use crate::snapshot::format::{
    BLOCK_HEAD, END_WORDS, End, HEADER_WORDS, TIME_WORDS, block_bytes, unseal,
};
use crate::table::ticking::Time;
use std::ops::BitOr;
use xxhash_rust::xxh3::Xxh3;

/// The figures of a shard that was copied, or that are in its block of a file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Block {
    pub depth: u32,
    /// The number of lanes that are not void, each of which is one item.
    pub items: i64,
    /// The [`surplus`](crate::backend::growing::site::Site::surplus) of the shard, in a file of a growing filter.
    pub surplus: u64,
    /// The time of the copy, in a filter that forgets.
    pub time: Option<Time>,
    /// The checksum of the block, in a file.
    pub sum: u64,
}

impl Block {
    pub(crate) const EMPTY: Block = Block { depth: 0, items: 0, surplus: 0, time: None, sum: 0 };

    /// Makes the figures of a shard that was copied, without those that its words tell.
    pub(crate) fn new(depth: u32, Copied { items, time }: Copied) -> Self {
        Block { depth, items, time, ..Block::EMPTY }
    }
}

/// Parses and validates the blocks of one filter.
pub(crate) struct BlockReader {
    lanes: Lanes,
    block_bytes: u64,
    /// The number of words of a block's buckets.
    words: usize,
    /// If the filter grows.
    shrinking: Option<Shrinking>,
}

impl BlockReader {
    pub(crate) fn new(layout: &Layout) -> Self {
        let shrinking = layout.grows.then(|| layout.shrinking());
        let (lanes, words) = (layout.lanes(), layout.geometry.words());
        BlockReader { lanes, block_bytes: block_bytes(layout), words, shrinking }
    }

    pub(crate) fn block_words(&self) -> usize {
        self.block_bytes as usize / size_of::<u64>()
    }

    /// Returns the byte at which a block begins.
    pub(crate) fn offset(&self, number: u64) -> u64 {
        8 * HEADER_WORDS as u64 + number * self.block_bytes
    }

    /// Parses and validates a block.
    pub(crate) fn read(&self, number: u64, words: &mut [u64]) -> Result<Block, SnapshotError> {
        let at = self.offset(number);
        let damaged =
            |word: usize, what: String| Err(SnapshotError::damaged(at + 8 * word as u64, what));
        let Some(sum) = unseal(words) else {
            return damaged(0, format!("the checksum of block {number} is wrong"));
        };
        let (depth, items) = self.head(number, std::array::from_fn(|word| words[word]))?;
        let (buckets, rest) = words[BLOCK_HEAD..].split_at(self.words);
        let ages = rest.first_chunk().copied().unwrap_or_default();
        let time = self.time_of(number, ages)?;
        if let Some(bucket) = self.first_wrong(buckets, time) {
            return damaged(BLOCK_HEAD + bucket, "a bucket cannot hold this value".into());
        }
        let block = Block { depth, sum, time, ..self.block(buckets) };
        if block.items != items {
            let counted = block.items;
            return damaged(2, format!("{counted} fingerprints cannot stand for {items} items"));
        }
        Ok(block)
    }

    /// Makes the items in a shard's buckets older. Returns the figures of the rest of the shard, without its depth.
    pub(crate) fn older(&self, words: &mut [u64], shift: AgeShift) -> Block {
        shift.make_older(self.lanes, words);
        self.block(words)
    }

    /// Returns the time of a block, from the words before its checksum, if the filter forgets.
    pub(crate) fn time_of(
        &self,
        number: u64,
        words: [u64; TIME_WORDS],
    ) -> Result<Option<Time>, SnapshotError> {
        time_in(self.lanes, words, self.time_at(number + 1))
    }

    /// Returns the byte of the time before block `number`.
    fn time_at(&self, number: u64) -> u64 {
        self.offset(number) - 8 * (TIME_WORDS as u64 + 1)
    }

    /// Checks the number of a block.
    pub(crate) fn check_number(&self, number: u64, found: u64) -> Result<(), SnapshotError> {
        if found == number {
            return Ok(());
        }
        let what = format!("block {found} is where block {number} should be");
        Err(SnapshotError::damaged(self.offset(number), what))
    }

    /// Validates the head of a block by itself. Returns the shard's depth and its items.
    pub(crate) fn head(
        &self,
        number: u64,
        [found, depth, items]: [u64; BLOCK_HEAD],
    ) -> Result<(u32, i64), SnapshotError> {
        let at = self.offset(number);
        self.check_number(number, found)?;
        let deepest = if self.shrinking.is_some() { MAX_LEVELS as u64 - 1 } else { 0 };
        if depth > deepest {
            let what = format!("a shard cannot have been split {depth} times");
            return Err(SnapshotError::damaged(at + 8, what));
        }
        Ok((depth as u32, items.cast_signed()))
    }

    /// Adds up the contents of a shard. The block has no depth and no time.
    pub(crate) fn block(&self, buckets: &[u64]) -> Block {
        let mut items = self.lanes.count_taken(buckets) as u64;
        let mut match_weight = items;
        if let Some(shrinking) = self.shrinking {
            let add = u64::wrapping_add;
            let void = |bucket| shrinking.void_lanes(bucket).len() as u64;
            items -= self.lanes.fold(buckets, void, add);
            match_weight = self.lanes.fold(buckets, |bucket| shrinking.match_weight(bucket), add);
        }
        let surplus = match_weight.saturating_sub(items);
        Block { items: items as i64, surplus, ..Block::EMPTY }
    }

    /// Returns the index of the first word of the first bucket that is invalid in a filter of this kind. There rarely
    /// is one, so the first pass only finds out whether there is one, without a branch for each bucket.
    fn first_wrong(&self, words: &[u64], time: Option<Time>) -> Option<usize> {
        let of_layout = |words: &[u64]| match self.shrinking {
            None => self.lanes.fold(words, |bucket| self.lanes.wrong(bucket), BitOr::bitor),
            Some(shrinking) => {
                let without = |bucket| shrinking.without_a_one(bucket).tops();
                let wrong = |bucket| self.lanes.wrong(bucket) | without(bucket);
                self.lanes.fold(words, wrong, BitOr::bitor)
            }
        };
        let of_stamps = |words: &[u64]| {
            let now = Moment::of_tick(time.map_or(0, |time| time.tick));
            self.lanes.fold(words, |bucket| self.lanes.wrong_stamps(bucket, now), BitOr::bitor)
        };
        let any =
            |words: &[u64]| of_layout(words) | if time.is_some() { of_stamps(words) } else { 0 };
        if any(words) == 0 {
            return None;
        }
        let in_a_bucket = self.lanes.words();
        words.chunks(in_a_bucket).position(|bucket| any(bucket) != 0).map(|at| at * in_a_bucket)
    }
}

/// The number of units in a root. Places are counted in these units, each of which is what a shard of the greatest
/// depth covers.
pub(crate) const UNITS: u64 = 1 << (MAX_LEVELS - 1);

/// Adds up the blocks of a filter, part by part, and checks that they continue one another.
pub(crate) struct Totals {
    lanes: Lanes,
    roots: u64,
    /// The place where the next block begins.
    pub place: u64,
    /// The number of blocks of all parts.
    in_all_parts: u64,
    /// The greatest depth of all blocks.
    pub deepest: u32,
    /// The time of the last block, if the filter forgets.
    pub time: Option<Time>,
    is_file: bool,
    /// The number of blocks of this part.
    pub blocks: u64,
    /// Their items.
    items: i64,
    /// The checksum of their heads, times and checksums.
    sums: Box<Xxh3>,
}

impl Totals {
    /// Begins at this place of a filter.
    pub(crate) fn new(geometry: &Geometry, place: u64) -> Self {
        Totals {
            lanes: geometry.lanes(),
            roots: geometry.shards() as u64,
            place,
            in_all_parts: 0,
            deepest: 0,
            time: None,
            is_file: true,
            blocks: 0,
            items: 0,
            sums: Box::default(),
        }
    }

    /// Begins the next part, whose header has this checksum. A file has to hold the whole filter.
    pub(crate) fn begin_part(&mut self, header_sum: u64, is_file: bool) {
        (self.is_file, self.blocks, self.items) = (is_file, 0, 0);
        self.sums.reset();
        self.sums.update(&header_sum.to_le_bytes());
    }

    /// Adds the next block. Returns `None` if it does not continue where the previous one ended.
    pub(crate) fn add(&mut self, &Block { depth, items, sum, time, .. }: &Block) -> Option<()> {
        let units = UNITS >> depth;
        if self.is_complete() || !self.place.is_multiple_of(units) {
            return None;
        }
        self.place += units;
        self.deepest = self.deepest.max(depth);
        self.in_all_parts += 1;
        self.blocks += 1;
        self.items = self.items.wrapping_add(items);
        let mut update = |word: u64| self.sums.update(&word.to_le_bytes());
        [depth.into(), items.cast_unsigned()].into_iter().for_each(&mut update);
        time.into_iter().flat_map(|time| words_of(self.lanes, time)).for_each(&mut update);
        update(sum);
        Some(())
    }

    /// Adds the next block, which was read from a part, and checks its time, too: no block has a lower count of ticks
    /// than the one before it, or the same count with another tick.
    pub(crate) fn add_read(
        &mut self,
        reader: &BlockReader,
        block: &Block,
    ) -> Result<(), SnapshotError> {
        let number = self.blocks;
        self.add(block).ok_or_else(|| {
            let what = "the block does not continue where the previous one ended";
            SnapshotError::damaged(reader.offset(number) + 8, what)
        })?;
        if let (Some(last), Some(time)) = (self.time, block.time)
            && (last.elapsed > time.elapsed
                || last.elapsed == time.elapsed && last.tick != time.tick)
        {
            let what = "the block is of an earlier time than the one before it";
            return Err(SnapshotError::damaged(reader.time_at(number + 1), what));
        }
        self.time = block.time;
        Ok(())
    }

    /// Returns whether the blocks make up every root.
    pub(crate) fn is_complete(&self) -> bool {
        self.place / UNITS == self.roots
    }

    /// Returns the place where the next block begins, or `None` if there is no other block.
    pub(crate) fn next(&self) -> Option<u64> {
        (!self.is_complete()).then_some(self.place)
    }

    /// Returns whether the directory of these shards is [not much larger](is_balanced) than the shards themselves.
    pub(crate) fn is_balanced(&self) -> bool {
        is_balanced(self.roots, self.deepest, self.in_all_parts)
    }

    /// Returns the end of a part with these blocks. The end begins at byte `at`.
    pub(crate) fn end(&self, at: u64) -> End {
        let (blocks, items, place) = (self.blocks, self.items, self.place);
        let (bytes, sums) = (at + 8 * END_WORDS as u64, self.sums.digest());
        End { blocks, items, bytes, place, sums }
    }

    /// Checks all blocks together, and compares them with the end of the part, which begins at byte `at`.
    pub(crate) fn finish(&self, end: End, at: u64) -> Result<(), SnapshotError> {
        let damaged = |what| Err(SnapshotError::damaged(at, what));
        if self.blocks == 0 || self.end(at) != end {
            return damaged(
                "the end does not match the blocks: some are missing, or are from another part",
            );
        }
        match (self.is_file, self.is_complete()) {
            (true, false) => damaged("some blocks are missing"),
            (_, false) => Ok(()),
            _ if self.is_balanced() => Ok(()),
            // No save writes such a file.
            (true, true) => damaged("the deepest shard was split too often for so few blocks"),
            (false, true) => Err(SnapshotError::outgrown()),
        }
    }
}

/// A bit of the first of these words, above the stamp: ticks have numbers.
const HAS_NUMBER: u64 = 1 << 8;

/// Returns the words of this time.
pub(crate) fn words_of(lanes: Lanes, Time { tick, elapsed, number }: Time) -> [u64; TIME_WORDS] {
    let flag = if number.is_some() { HAS_NUMBER } else { 0 };
    [tick & lanes.last_stamp() | flag, elapsed, number.unwrap_or(0)]
}

/// Parses the words of a time, which are at byte `at`. Returns `None` if the filter does not forget.
pub(crate) fn time_in(
    lanes: Lanes,
    [first, elapsed, number]: [u64; TIME_WORDS],
    at: u64,
) -> Result<Option<Time>, SnapshotError> {
    if !lanes.forgets() {
        return Ok(None);
    }
    let (tick, has_number) = (first & !HAS_NUMBER, first & HAS_NUMBER != 0);
    let is_number_right = number == 0 || has_number;
    if tick > lanes.last_stamp() || !is_number_right {
        let at = if is_number_right { at } else { at + 16 };
        return Err(SnapshotError::damaged(at, "the block cannot be of this time"));
    }
    Ok(Some(Time { tick, elapsed, number: has_number.then_some(number) }))
}

/// Returns the time from which a loaded filter continues. The counts of passed ticks are only compared within one file,
/// so the filter may begin with any count. A file may contain a count that would soon overflow, so that a later block
/// of a file of this filter would seem to be from an earlier time. So the highest bit is cleared, which leaves half of
/// all numbers.
pub(crate) fn from_here(time: Time) -> Time {
    Time { elapsed: time.elapsed & (u64::MAX >> 1), ..time }
}

/// Returns how much older a block is at the last time. `None` if it was copied at that time.
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

    fn of_depth(depth: u32) -> Block {
        Block { depth, ..Block::EMPTY }
    }

    #[test]
    fn a_deep_shard_needs_others_before_the_end_is_believed() {
        for (depth, is_fine) in [(20, true), (21, false), (31, false)] {
            let mut totals = Totals::new(&geometry(1), 0);
            let chain = (1..=depth).chain([depth]);
            chain.for_each(|depth| totals.add(&of_depth(depth)).expect("the next block"));
            let end = totals.end(0);
            assert_eq!(totals.finish(end, 0).is_ok(), is_fine);
        }
    }

    fn totals(roots: usize, depths: &[u32]) -> (Totals, bool) {
        let mut totals = Totals::new(&geometry(roots), 0);
        let right = depths.iter().all(|depth| totals.add(&of_depth(*depth)).is_some());
        let complete = totals.is_complete();
        (totals, right && complete)
    }

    #[test]
    fn blocks_have_to_make_up_every_root() {
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
