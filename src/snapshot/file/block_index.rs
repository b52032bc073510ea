//! The index of a file's blocks: the place where each block begins, and its checksum.

use crate::backend::exchange::Plan;
use crate::error::NoMemory;
use crate::layout::roots::Position;
use crate::snapshot::error::SnapshotError;
use crate::snapshot::file::load::read_at;
use crate::snapshot::part::blocks::{BlockReader, Totals};
use crate::snapshot::part::coverage::UNITS;
use crate::snapshot::part::format::{BLOCK_HEAD, End};
use crate::snapshot::part::time::TIME_WORDS;
use crate::table::ticking::Time;
use std::fs::File;

pub struct BlockIndex {
    /// The place where each block begins.
    starts: Vec<u64>,
    sums: Vec<u64>,
    deepest: u32,
    /// The time at which the last block was copied, if the filter forgets.
    time: Option<Time>,
}

/// The number of words around the beginning of a block: the time and the checksum of the block before it, and its head.
const AROUND: usize = TIME_WORDS + 1 + BLOCK_HEAD;

impl BlockIndex {
    /// Reads the heads and checksums of all blocks, and checks that together they match the header and the `end`.
    pub fn read(
        file: &File,
        plan: &Plan,
        reader: &BlockReader,
        header_sum: u64,
        end: End,
    ) -> Result<Self, SnapshotError> {
        let roots = plan.geometry().shards();
        let too_many = |_| NoMemory(usize::MAX);
        let count = usize::try_from(end.blocks).map_err(too_many)?;
        let mut index = BlockIndex { starts: Vec::new(), sums: Vec::new(), deepest: 0, time: None };
        for list in [&mut index.starts, &mut index.sums] {
            let bytes = count.saturating_mul(size_of::<u64>());
            list.try_reserve_exact(count).map_err(|_| NoMemory(bytes))?;
        }
        let mut totals = Totals::of_file(header_sum, roots);
        let mut around = Neighbours::read(file, reader, 0)?;
        for number in 0..end.blocks {
            let next = Neighbours::read(file, reader, number + 1)?;
            let (depth, items) = reader.head(number, around.head)?;
            let time = reader.time_before(number + 1, next.time_before)?;
            index.starts.push(totals.coverage().place());
            totals.add_read(reader, (depth, items, next.sum_before), time)?;
            index.sums.push(next.sum_before);
            around = next;
        }
        let (coverage, times) = totals.finish(end, reader.at(end.blocks))?;
        (index.deepest, index.time) = (coverage.deepest(), times.last());
        Ok(index)
    }

    /// Finds the block that covers this position. Returns its number and depth.
    pub fn find(&self, Position { root, in_root }: Position) -> (u64, u32) {
        let place = root as u64 * UNITS + in_root / (u64::MAX / UNITS + 1);
        let after = self.starts.partition_point(|start| *start <= place);
        let block = after.saturating_sub(1);
        let next = self.starts.get(after).copied();
        let part = next.unwrap_or((root as u64 + 1) * UNITS) - self.starts[block];
        (block as u64, UNITS.ilog2() - part.ilog2())
    }

    pub fn sum(&self, block: u64) -> u64 {
        self.sums[block as usize]
    }

    pub fn heap_bytes(&self) -> usize {
        size_of::<u64>() * (self.starts.capacity() + self.sums.capacity())
    }

    /// The time at which the last block was copied.
    pub fn time(&self) -> Option<Time> {
        self.time
    }

    pub fn deepest(&self) -> u32 {
        self.deepest
    }
}

/// The words around the beginning of a block, or of the end of the file.
struct Neighbours {
    time_before: [u64; TIME_WORDS],
    sum_before: u64,
    head: [u64; BLOCK_HEAD],
}

impl Neighbours {
    fn read(file: &File, reader: &BlockReader, number: u64) -> Result<Self, SnapshotError> {
        let mut words = [0; AROUND];
        read_at(file, &mut words, reader.at(number) - 8 * (TIME_WORDS as u64 + 1))?;
        let [a, b, c, sum_before, head @ ..] = words.map(u64::from_le);
        Ok(Neighbours { time_before: [a, b, c], sum_before, head })
    }
}
