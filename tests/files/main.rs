//! Saving and loading filters.

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/file.rs"]
mod file;
#[path = "../common/kind.rs"]
mod kind;
#[path = "../common/process.rs"]
mod process;

mod agreement;
mod damage;
mod damaged_files;
mod forgetting;
mod format;
mod golden;
mod lookups;
mod pieces;
#[cfg(unix)]
mod replacing;
mod snapshots;
mod streams;

use common::LAYOUTS;
use koel::{ConcurrentCuckooFilter, Piece, SnapshotError, StableHash};
use process::Place;

type Filter = ConcurrentCuckooFilter<StableHash>;
type Builder = koel::Builder<StableHash>;

const HASH: StableHash = StableHash::with_seed(7);

fn builder(capacity: usize) -> Builder {
    ConcurrentCuckooFilter::builder().capacity(capacity).hasher(HASH)
}

/// Inserts the items below this number, and returns the filter.
fn with_items(filter: Filter, items: u64) -> Filter {
    (0..items).for_each(|item| filter.insert(&item).expect("room"));
    filter
}

/// A filter of fixed size for 60 items.
fn fixed(items: u64) -> Filter {
    with_items(LAYOUTS[3].filter_with(60, HASH), items)
}

/// A filter that began with a shard, and was not expected to grow.
fn grown(items: u64, rate: f64) -> Filter {
    let builder = builder(1).false_positive_rate(rate).growing().expected_growth(1.0);
    with_items(builder.build().expect("a filter"), items)
}

/// A folder for a file.
fn place() -> Place {
    Place::new("filter")
}

/// Loads a file that has these bytes.
fn load(bytes: &[u8]) -> Result<Filter, SnapshotError> {
    let place = place();
    std::fs::write(&place.path, bytes).expect("a file");
    Filter::load(&place.path)
}

/// Makes all pieces, and calls `between` after each with their number.
fn dump(filter: &Filter, size: usize, mut between: impl FnMut(usize)) -> Vec<Piece> {
    let (mut pieces, mut cursor) = (Vec::new(), Some(0));
    while let Some(at) = cursor {
        let piece = filter.piece_at(at, size).expect("a piece");
        cursor = piece.next();
        pieces.push(piece);
        between(pieces.len());
    }
    pieces
}
