//! The texts of errors, in terms of the commands and their options. koel's own texts address programs in Rust, and are
//! used where they speak of a file alone.

use crate::set::spec::FilterSpec;
use koel::{
    BuildError, BuildErrorKind, FullKind, SnapshotError, SnapshotErrorKind, UnionError,
    UnionErrorKind,
};
use std::fmt;

/// The reply to a command whose set cannot be made, with its code.
pub fn of_build(error: &BuildError, spec: &FilterSpec) -> String {
    match error.kind() {
        BuildErrorKind::RateTooSmall => {
            let how = if spec.grows() {
                ", or reserve with EXPANSION 0, which allows for less"
            } else {
                ""
            };
            let least = error.least_rate().unwrap_or(1.0);
            format!(
                "ERR an ERROR_RATE of {:e} is out of reach; give {least:.1e} or more{how}",
                spec.rate
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

/// The reason why two sets cannot be merged: the reply, with its code.
#[derive(Clone, Copy)]
pub struct MergeError(&'static str);

impl MergeError {
    pub const SEED: Self = MergeError(
        "ERR the filters have different seeds; only filters with one seed can be merged (SEED n)",
    );
    pub const HALF: Self = MergeError(
        "ERR one of the filters is still being loaded by CF.LOADCHUNK: send its next chunk, or begin again with the first",
    );
    pub const NO_ROOM: Self = MergeError(
        "ERR there is no room for all items of the other filters in the destination; nothing has changed",
    );
    pub const NO_MEMORY: Self =
        MergeError("OOM there is no memory to merge the filters; nothing has changed");
    pub const TOO_LARGE: Self = MergeError(
        "OOM the destination would take more than koel.max-bytes; raise that, or remove items; nothing has changed",
    );

    /// Of a filter that refuses an item for this reason.
    pub fn of_full(kind: FullKind) -> Self {
        match kind {
            FullKind::LimitReached => MergeError::TOO_LARGE,
            FullKind::NoMemory => MergeError::NO_MEMORY,
            _ => MergeError::NO_ROOM,
        }
    }

    pub fn of(error: &UnionError) -> Self {
        MergeError(match error.kind() {
            UnionErrorKind::DifferentHasher => return MergeError::SEED,
            UnionErrorKind::OutOfMemory => return MergeError::NO_MEMORY,
            UnionErrorKind::DifferentKind => {
                "ERR one of the filters grows, and the other does not; only filters of one kind can be merged \
                 (EXPANSION)"
            }
            UnionErrorKind::DifferentSize => {
                "ERR the filters were made for different capacities; only filters of one capacity can be merged"
            }
            UnionErrorKind::DifferentLayout => {
                "ERR the filters were made for different rates; only filters of one rate can be merged (ERROR_RATE p)"
            }
            UnionErrorKind::DifferentWindow => {
                "ERR the filters remember items for different times; only filters with one window can be merged \
                 (FORGETAFTER seconds)"
            }
            _ => return MergeError::NO_ROOM,
        })
    }
}

impl fmt::Display for MergeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}
