//! From pieces to a filter.
//!
//! A piece is validated as a whole before anything of it is kept, so a piece that is refused leaves
//! no trace: the one that should have come can still be pushed.

use crate::room::Room;
use crate::snapshot::allocate::zeros;
use crate::snapshot::blocks::{BlockReader, Sums};
use crate::snapshot::coverage::Coverage;
use crate::snapshot::error::Reason;
use crate::snapshot::format::{HEADER_WORDS, Words, block_bytes, bytes_of};
use crate::snapshot::header::{Header, are_of_one_filter, read_header, update_limit};
use crate::snapshot::list::open_block;
use crate::snapshot::pieces::format::{FRONT_BYTES, Front};
use crate::snapshot::pieces::gather::{Blocks, Gathered};
use crate::snapshot::read::{Contents, contents_of};
use crate::snapshot::time::Times;
use crate::stable_hash::PersistentHasher;

/// A filter whose pieces are coming.
pub struct Loading<S> {
    /// Whether the filter has to grow. `None` if either kind is welcome.
    wanted: Option<bool>,
    /// The size of a growing filter without its heap.
    own_bytes: usize,
    begun: Option<Begun<S>>,
}

struct Begun<S> {
    header: Header<S>,
    /// The same, as it was read.
    words: Words<HEADER_WORDS>,
    /// The number of the filter, and the least turn that its next piece may have.
    filter: u64,
    turn: u64,
    reader: BlockReader,
    coverage: Coverage,
    gathered: Gathered,
    times: Times,
}

impl<S: PersistentHasher> Loading<S> {
    pub fn new(wanted: Option<bool>, own_bytes: usize) -> Self {
        Loading { wanted, own_bytes, begun: None }
    }

    /// Adds the next piece. If it is refused, nothing has changed.
    pub fn push(&mut self, piece: &[u8]) -> Result<(), Reason> {
        let front = Front::read(piece)?;
        if let Some(begun) = &mut self.begun {
            return begun.add(&front, piece);
        }
        let mut begun = Begun::with(&front, self.own_bytes)?;
        let grows = begun.header.plan.grows();
        if self.wanted.is_some_and(|wanted| wanted != grows) {
            return Err(Reason::WrongKind { grows });
        }
        begun.add(&front, piece)?;
        self.begun = Some(begun);
        Ok(())
    }

    /// Whether the filter grows. `None` before its first piece.
    pub fn grows(&self) -> Option<bool> {
        self.begun.as_ref().map(|begun| begun.header.plan.grows())
    }

    /// The cursor of the piece that comes next. `None` if all have come.
    pub fn next(&self) -> Option<u64> {
        self.begun.as_ref().map_or(Some(0), Begun::next)
    }

    /// Makes the filter, which has to be of this kind.
    pub fn finish<R: Room>(self) -> Result<Contents<S, R>, Reason> {
        let next = self.next();
        match (self.begun, next) {
            (Some(begun), None) => {
                let Begun { gathered, header, reader, times, .. } = begun;
                let loaded = gathered.finish(&header.plan, &reader, times.last())?;
                contents_of(header, loaded)
            }
            (_, next) => Err(Reason::PiecesMissing { next: next.unwrap_or(0) }),
        }
    }
}

impl<S: PersistentHasher> Begun<S> {
    /// What the first piece says of the filter.
    fn with(front: &Front, own_bytes: usize) -> Result<Self, Reason> {
        let (header, _) = read_header(&mut front.header.clone(), own_bytes)?;
        let plan = &header.plan;
        Ok(Begun {
            words: front.header,
            filter: front.stamp.filter,
            turn: front.stamp.turn,
            reader: BlockReader::after(FRONT_BYTES as u64, plan),
            coverage: Coverage::of(plan.geometry().shards()),
            gathered: Gathered::nothing(plan, header.is_list),
            times: Times::default(),
            header,
        })
    }
}

impl<S> Begun<S> {
    fn next(&self) -> Option<u64> {
        (!self.coverage.is_complete()).then(|| self.coverage.place())
    }

    fn add(&mut self, front: &Front, piece: &[u8]) -> Result<(), Reason> {
        self.check_order(front)?;
        let (mut coverage, mut times) = (self.coverage.clone(), self.times.clone());
        let blocks = self.blocks_of(front, piece, &mut coverage, &mut times)?;
        if coverage.place() != front.end {
            return Err(Reason::damaged(48, "the blocks do not end where the piece should"));
        }
        if coverage.is_complete() && !coverage.is_balanced() {
            return Err(Reason::Outgrown);
        }
        self.gathered.add(&self.header.plan, blocks)?;
        update_limit(&mut self.header.plan, &front.header);
        self.coverage = coverage;
        self.times = times;
        self.turn = front.stamp.turn.saturating_add(1);
        Ok(())
    }

    /// Checks that this is the piece that comes next.
    fn check_order(&self, front: &Front) -> Result<(), Reason> {
        let is_same = front.stamp.filter == self.filter;
        if !is_same || !are_of_one_filter(&front.header, &self.words) {
            return Err(Reason::OtherFilter);
        }
        let (start, wanted) = (front.start, self.next());
        if wanted != Some(start) {
            return Err(Reason::Misplaced { start, wanted });
        }
        if front.stamp.turn < self.turn {
            return Err(Reason::EarlierDump);
        }
        Ok(())
    }

    /// Validates the blocks of a piece, and adds what they cover.
    fn blocks_of(
        &self,
        front: &Front,
        piece: &[u8],
        coverage: &mut Coverage,
        times: &mut Times,
    ) -> Result<Blocks, Reason> {
        let (plan, reader) = (&self.header.plan, &self.reader);
        let bytes = &piece[FRONT_BYTES..];
        let wanted = front.blocks.checked_mul(block_bytes(plan));
        let has_blocks = match self.header.is_list {
            true => front.blocks == 1 && bytes.len().is_multiple_of(8),
            false => front.blocks > 0 && wanted == Some(bytes.len() as u64),
        };
        if !has_blocks {
            return Err(Reason::damaged(56, "the number of blocks does not match the length"));
        }
        let mut words = zeros(bytes.len() / 8)?;
        bytes_of(&mut words).copy_from_slice(bytes);
        let (mut found, mut sums, mut list) = (Vec::new(), Sums::new(), None);
        if self.header.is_list {
            let (items, sum) = open_block(plan, std::mem::take(&mut words), reader.at(0))?;
            list = Some(items);
            sums.add(sum);
            coverage.add(0).map_err(|gap| gap.at(reader.at(0)))?;
        } else {
            for (number, block) in (0..).zip(words.chunks_exact_mut(reader.block_words())) {
                let block = reader.read(number, block)?;
                coverage.add(block.depth).map_err(|gap| gap.at(reader.at(number)))?;
                times.add(block.time).ok_or_else(|| reader.too_early(number))?;
                sums.add(block.sum);
                found.push(block);
            }
        }
        if sums.total() != front.sums {
            return Err(Reason::damaged(64, "the blocks are not those that the piece should have"));
        }
        Ok(Blocks { words, found, list })
    }
}
