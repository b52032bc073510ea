//! Where a part comes from: which filter, and which of all pieces that it has given.
//!
//! A server that dumps a filter keeps nothing between two pieces, so a piece cannot know which dump
//! it belongs to. It does not have to. Items that are in before the first piece is made, and stay in,
//! are in the pieces of a dump because each of them is made after the first. So a later piece may come from a
//! later dump, and nothing is lost; an earlier one may not, and its turn shows it.

use crate::sync::Gauge;
use ahash::RandomState;

/// The origin of all pieces of one filter.
#[derive(Default)]
pub struct Origin {
    /// Chosen when the first piece is made. It is not saved: a loaded filter is another one.
    filter: Gauge,
}

/// The turns of all filters' pieces.
static TURNS: Gauge = Gauge::new();

/// The origin of one part.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Provenance {
    /// The same number for all pieces of a filter, and hardly ever for those of two.
    pub filter: u64,
    /// It rises from piece to piece.
    pub turn: u64,
}

impl Provenance {
    /// Files have no numbers: filters with the same contents have the same file.
    pub const FILE: Provenance = Provenance { filter: 0, turn: 0 };
}

impl Origin {
    /// Stamps a piece that is about to be made. What it has is read after this.
    pub fn provenance(&self) -> Provenance {
        let filter = self.filter.get_or_choose(|| RandomState::new().hash_one("koel"));
        Provenance { filter, turn: TURNS.next() }
    }
}
