//! The provenance of a part: its filter, and its place in the sequence of all pieces.
//!
//! A server that dumps a filter keeps no state between two pieces, so a piece cannot say which dump it belongs to. It
//! does not have to. An item that is in the filter before the first piece is made, and stays in, is in the pieces of a
//! dump because each piece is made after the first. So a piece may come from a later dump, and nothing is lost. It must
//! not come from an earlier dump, and its turn shows whether it does.

use crate::sync::Gauge;
use ahash::RandomState;

/// The origin of all pieces of one filter.
#[derive(Default)]
pub struct Origin {
    /// The number of the filter, chosen when the first piece is made. It is not saved: a loaded filter gets another
    /// number.
    filter: Gauge,
}

/// The turns of the pieces of all filters.
static TURNS: Gauge = Gauge::new();

/// The origin of one part.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Provenance {
    /// A number that all pieces of a filter share. Two filters hardly ever have the same number.
    pub filter: u64,
    /// A number that increases from piece to piece.
    pub turn: u64,
}

impl Provenance {
    /// Files have no such numbers, so filters with the same contents have the same file.
    pub const FILE: Provenance = Provenance { filter: 0, turn: 0 };
}

impl Origin {
    /// Returns the provenance of a piece. It has to be called before the contents of the piece are read.
    pub fn provenance(&self) -> Provenance {
        let filter = self.filter.get_or_choose(|| RandomState::new().hash_one("koel"));
        Provenance { filter, turn: TURNS.next() }
    }
}
