//! The texts of errors, in terms of the commands and their options. koel's own texts address programs in Rust, and are
//! used where they speak of a file alone.

use crate::set::about::About;
use koel::{BuildErrorKind, SnapshotError, SnapshotErrorKind, UnionError, UnionErrorKind};
use std::fmt;

/// The reply to a command whose set cannot be made, with its code.
pub fn of_build(kind: BuildErrorKind, about: &About) -> String {
    match kind {
        BuildErrorKind::RateTooSmall => {
            let how = if about.grows() {
                ", or reserve with EXPANSION 0, which allows for less"
            } else {
                ""
            };
            let least = about.least_rate();
            format!(
                "ERR an ERROR_RATE of {:e} is out of reach; give {least:.1e} or more{how}",
                about.rate
            )
        }
        BuildErrorKind::OutOfMemory | BuildErrorKind::CapacityOverflow => {
            "OOM there is no memory for the filter; reserve less, and let it grow".into()
        }
        // The commands check everything else.
        _ => "ERR there is no such filter".into(),
    }
}

/// The trouble with a chunk, or with a filter made of chunks.
pub fn of_snapshot(error: &SnapshotError) -> String {
    let text = match error.kind() {
        SnapshotErrorKind::WrongHasher => {
            "its items were hashed in another way: by a Rust program with a hash of its own, or by koel dedup with \
             options such as --url"
        }
        SnapshotErrorKind::Incomplete => "chunks are missing, or some bytes of them",
        SnapshotErrorKind::OutOfOrder => {
            "this chunk does not follow the one before; load the chunks of one CF.SCANDUMP in their order"
        }
        SnapshotErrorKind::OutOfMemory => "there is no memory for it",
        SnapshotErrorKind::Outgrown | SnapshotErrorKind::NoSuchPiece => {
            "the filter has changed its size; begin again with cursor 0"
        }
        _ => return error.to_string(),
    };
    text.into()
}

/// The reason why two sets cannot be merged.
#[derive(Clone, Copy)]
pub enum Apart {
    Seed,
    Half,
    Kind,
    Capacity,
    Rate,
    Window,
    /// Together they have more items than fit into a set of fixed size.
    TooMany,
    NoRoom,
    NoMemory,
}

impl Apart {
    pub fn of(error: &UnionError) -> Self {
        match error.kind() {
            UnionErrorKind::DifferentHasher => Apart::Seed,
            UnionErrorKind::DifferentKind => Apart::Kind,
            UnionErrorKind::DifferentSize => Apart::Capacity,
            UnionErrorKind::DifferentLayout => Apart::Rate,
            UnionErrorKind::DifferentWindow => Apart::Window,
            UnionErrorKind::OutOfMemory => Apart::NoMemory,
            _ => Apart::NoRoom,
        }
    }
}

/// The reply, with its code.
impl fmt::Display for Apart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Apart::Seed => {
                "ERR the filters have different seeds; only filters with one seed can be merged (SEED n)"
            }
            Apart::Half => "ERR one of the filters is still being loaded by CF.LOADCHUNK; it lacks chunks",
            Apart::Kind => {
                "ERR one of the filters grows, and the other does not; only filters of one kind can be merged \
                 (EXPANSION)"
            }
            Apart::Capacity => {
                "ERR the filters were made for different capacities; only filters of one capacity can be merged"
            }
            Apart::Rate => {
                "ERR the filters were made for different rates; only filters of one rate can be merged (ERROR_RATE p)"
            }
            Apart::Window => {
                "ERR the filters remember items for different times; only filters with one window can be merged \
                 (FORGETAFTER seconds)"
            }
            Apart::TooMany => {
                "ERR the filters have more items together than the destination was made for, which has a fixed size; \
                 nothing has changed"
            }
            Apart::NoRoom => {
                "ERR there is no room for all items of the other filters in the destination, which has some of them now"
            }
            Apart::NoMemory => {
                "OOM there is no memory to merge the filters; the destination may have some of the items now"
            }
        })
    }
}
