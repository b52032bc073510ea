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
    /// Number that all pieces of a filter share. Two filters hardly ever have the same number.
    pub filter: u64,
    /// Number that increases from piece to piece. 0 in a file.
    pub turn: u64,
}

impl Provenance {
    /// Origin of a file with no number of its own: filters with the same contents have the same file.
    pub const FILE: Provenance = Provenance { filter: 0, turn: 0 };

    /// Returns the origin of a file that differs from every other file, also from one with the same contents.
    #[cfg(all(unix, feature = "durable", not(any(loom, shuttle))))]
    pub fn unique_file() -> Provenance {
        Provenance { filter: RandomState::new().hash_one("koel").max(1), turn: 0 }
    }

    pub fn is_file(self) -> bool {
        self.turn == 0
    }
}

impl Origin {
    /// Returns the provenance of a piece. It has to be called before the contents of the piece are read.
    pub fn provenance(&self) -> Provenance {
        let filter = self.filter.get_or_choose(|| RandomState::new().hash_one("koel"));
        Provenance { filter, turn: TURNS.next() }
    }
}
