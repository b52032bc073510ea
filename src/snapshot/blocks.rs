//! Blocks: what makes one valid, and what makes all of them together one filter.
//!
//! A [`BlockReader`] validates one block. A [`Tally`] checks that the blocks [cover](Coverage) every
//! root, and that their number, their items and their checksums are those that the end of the file gives.

use crate::layout::aging::Aging;
use crate::layout::bucket::Lanes;
use crate::layout::either;
use crate::room::growing::directory::MOST_LEVELS;
use crate::room::growing::split::Census;
use crate::room::parts::{Block, Copied, Plan};
use crate::snapshot::coverage::{Coverage, Gap};
use crate::snapshot::error::Reason;
use crate::snapshot::format::{BLOCK_HEAD, END_WORDS, End, HEADER_WORDS, block_bytes, unseal};
use std::ops::BitOr;
use xxhash_rust::xxh3::Xxh3;

/// Parses and validates the blocks of one filter.
pub struct BlockReader {
    lanes: Lanes,
    /// The byte at which the first block begins.
    first: u64,
    block_bytes: u64,
    /// The lanes of a shard.
    slots: i64,
    /// `None` for a fixed filter.
    aging: Option<Aging>,
}

impl BlockReader {
    /// For the blocks of a file.
    pub fn new(plan: &Plan) -> Self {
        Self::after(8 * HEADER_WORDS as u64, plan)
    }

    /// For blocks that begin after so many bytes of something else.
    pub fn after(first: u64, plan: &Plan) -> Self {
        let lanes = plan.geometry().lanes();
        let slots = plan.geometry().buckets() as usize * lanes.slots();
        let aging = plan.grows().then(|| Aging::new(lanes));
        BlockReader { lanes, first, block_bytes: block_bytes(plan), slots: slots as i64, aging }
    }

    pub fn block_words(&self) -> usize {
        self.block_bytes as usize / size_of::<u64>()
    }

    /// Returns the byte at which a block begins.
    pub fn at(&self, number: u64) -> u64 {
        self.first + number * self.block_bytes
    }

    /// Parses and validates a block.
    pub fn read(&self, number: u64, words: &mut [u64]) -> Result<Block, Reason> {
        let at = self.at(number);
        let damaged = |word: usize, what: String| Err(Reason::damaged(at + 8 * word as u64, what));
        let Some(sum) = unseal(words) else {
            return damaged(0, format!("the checksum of block {number} is wrong"));
        };
        let (head, buckets) = words[..words.len() - 1].split_at(BLOCK_HEAD);
        let Ok(head) = <[u64; BLOCK_HEAD]>::try_from(head) else {
            return damaged(0, "the block is too short".into());
        };
        let (depth, items) = self.head(number, head)?;
        if let Some(bucket) = self.first_wrong(buckets) {
            return damaged(BLOCK_HEAD + bucket, "a bucket cannot hold this value".into());
        }
        let block = Block { sum, ..self.block(Copied { depth, items }, buckets) };
        let most = if self.aging.is_some() { self.slots } else { 0 };
        let excess = block.census.excess;
        if !(0..=most).contains(&excess) {
            let lanes = items.wrapping_add(excess);
            return damaged(2, format!("{lanes} fingerprints cannot stand for {items} items"));
        }
        Ok(block)
    }

    /// Validates the head of a block, on its own. Returns the shard's depth and its items.
    pub fn head(
        &self,
        number: u64,
        [found, depth, items]: [u64; BLOCK_HEAD],
    ) -> Result<(u32, i64), Reason> {
        let at = self.at(number);
        if found != number {
            let what = format!("block {found} is where block {number} should be");
            return Err(Reason::damaged(at, what));
        }
        let deepest = if self.aging.is_some() { MOST_LEVELS as u64 - 1 } else { 0 };
        if depth > deepest {
            let what = format!("a shard cannot have been split {depth} times");
            return Err(Reason::damaged(at + 8, what));
        }
        Ok((depth as u32, items.cast_signed()))
    }

    /// Takes the census of a shard that was copied.
    pub fn block(&self, Copied { depth, items }: Copied, buckets: &[u64]) -> Block {
        let lanes = self.lanes.count_taken(buckets) as u64;
        let (mut used_up, mut vagueness) = (0, lanes);
        if let Some(aging) = self.aging {
            let add = u64::wrapping_add;
            either!(self.lanes.is_wide(), WIDE => {
                let used = |bucket| aging.used_up::<WIDE>(bucket) as u64;
                used_up = self.lanes.fold(buckets, used, add);
                vagueness =
                    self.lanes.fold(buckets, |bucket| aging.vagueness::<WIDE>(bucket), add);
            });
        }
        let aged = vagueness.saturating_sub(lanes);
        let excess = lanes.cast_signed().wrapping_sub(items);
        let census = Census { excess, received: 0, used_up, aged };
        Block { depth, items, census, sum: 0 }
    }

    /// Returns the index of the first word of the first bucket that no filter of this kind can have.
    /// There rarely is one, so the first pass only finds out whether there is, without a branch for
    /// each bucket.
    fn first_wrong(&self, words: &[u64]) -> Option<usize> {
        let any = |words: &[u64]| match self.aging {
            None => self.lanes.fold(words, |bucket| self.lanes.wrong(bucket), BitOr::bitor),
            Some(aging) => either!(self.lanes.is_wide(), WIDE => {
                let without = |bucket| aging.without_a_one::<WIDE>(bucket).tops();
                let wrong = |bucket| self.lanes.wrong(bucket) | without(bucket);
                self.lanes.fold(words, wrong, BitOr::bitor)
            }),
        };
        if any(words) == 0 {
            return None;
        }
        let in_a_bucket = self.lanes.words();
        words.chunks(in_a_bucket).position(|bucket| any(bucket) != 0).map(|at| at * in_a_bucket)
    }
}

/// The checksum of the checksums.
pub struct Sums(Box<Xxh3>);

impl Sums {
    pub fn new() -> Self {
        Sums(Box::new(Xxh3::new()))
    }

    pub fn add(&mut self, sum: u64) {
        self.0.update(&sum.to_le_bytes());
    }

    pub fn total(&self) -> u64 {
        self.0.digest()
    }
}

/// Adds up the blocks of a file, and checks that together they make a whole filter.
pub struct Tally {
    sums: Sums,
    items: i64,
    coverage: Coverage,
}

impl Tally {
    pub fn new(roots: usize, header_sum: u64) -> Self {
        let mut sums = Sums::new();
        sums.add(header_sum);
        Tally { sums, items: 0, coverage: Coverage::of(roots) }
    }

    /// What the blocks cover so far.
    pub fn coverage(&self) -> &Coverage {
        &self.coverage
    }

    /// Adds the next block. Fails if it does not continue where the previous one ended.
    pub fn add(&mut self, depth: u32, items: i64, sum: u64) -> Result<(), Gap> {
        self.coverage.add(depth)?;
        self.items = self.items.wrapping_add(items);
        self.sums.add(sum);
        Ok(())
    }

    /// Returns the end of a file that has these blocks.
    pub fn end(&self, block_bytes: u64) -> End {
        let (words, blocks) = ((HEADER_WORDS + END_WORDS) as u64, self.coverage.blocks());
        let bytes = 8 * words + blocks * block_bytes;
        End { blocks, items: self.items, bytes, sums: self.sums.total() }
    }

    /// Checks all blocks together, and compares them with the end of the file, which begins at byte
    /// `at`.
    pub fn finish(self, block_bytes: u64, end: End, at: u64) -> Result<(), Reason> {
        if !self.coverage.is_balanced() {
            return Err(Reason::damaged(
                at,
                "the deepest shard was split too often for so few blocks",
            ));
        }
        if !self.coverage.is_complete() || self.end(block_bytes) != end {
            let what =
                "the end does not match the blocks: some are missing, or are from another file";
            return Err(Reason::damaged(at, what));
        }
        Ok(())
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn a_deep_shard_needs_others_before_the_end_is_believed() {
        for (depth, is_fine) in [(20, true), (21, false), (31, false)] {
            let mut tally = Tally::new(1, 0);
            let chain = (1..=depth).chain([depth]);
            chain.for_each(|depth| tally.add(depth, 0, 0).expect("the next block"));
            let end = tally.end(0);
            assert_eq!(tally.finish(0, end, 0).is_ok(), is_fine);
        }
    }
}
