//! The texts of errors: each says what happened, and then what to do.

use crate::snapshot::error::Reason;
use crate::snapshot::part::format::VERSION;
use crate::stable_hash::{PersistentHasher, StableHash};
use std::fmt;
use std::io;

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Io { doing, error } if error.kind() == io::ErrorKind::StorageFull => write!(
                f,
                "{doing}: {error}: there has to be space for the old and the new file at the same \
                 time; free some and save again (the old file is unchanged)"
            ),
            Reason::Io { doing, error } => write!(f, "{doing}: {error}"),
            Reason::Unfinished { doing, unfinished, error } => {
                let unfinished = unfinished.display();
                write!(f, "{doing} {unfinished}, where the new file is written first: {error}")
            }
            Reason::Removed { unfinished } => write!(
                f,
                "{} was removed while the new file was being written there: the old file is \
                 still in place; save again",
                unfinished.display()
            ),
            Reason::NotFound { error } => write!(f, "cannot open it: {error}"),
            Reason::NotSynced { error } => write!(
                f,
                "the new file is in place and complete, but its folder could not be synced \
                 ({error}): if the system crashes soon, the old file may come back; save again"
            ),
            Reason::Busy { unfinished } => write!(
                f,
                "another save to it is in progress and holds the lock of {}: wait until it has \
                 finished, or save to another file",
                unfinished.display()
            ),
            Reason::NotAFile => f.write_str(
                "this is not a regular file, so a save cannot replace it: name a regular file, or \
                 use `write_to` to write to something else",
            ),
            Reason::InTheWay { unfinished } => write!(
                f,
                "{} is in the way, where the new file is written before it replaces the old one: \
                 remove it",
                unfinished.display()
            ),
            Reason::NotASnapshot => {
                f.write_str("this is not a filter saved by koel: it does not begin like one")
            }
            Reason::UnsupportedVersion { version } => {
                write!(
                    f,
                    "it has version {version} of the format, and this version of koel reads only \
                     version {VERSION}: "
                )?;
                match version.swap_bytes() {
                    VERSION => f.write_str(
                        "its bytes are in the opposite order; restore it as it was saved",
                    ),
                    _ => f.write_str(
                        "load it with the version of koel that saved it, or a later one",
                    ),
                }
            }
            Reason::WrongHasher { found, wanted } => {
                let is_own = found == StableHash::NAME;
                let known = if is_own { " (koel's `StableHash`)" } else { "" };
                write!(
                    f,
                    "its items were hashed by {found:?}{known}, not by {wanted:?}: load it with \
                     the hasher that it was saved with"
                )
            }
            Reason::OtherHashes { name } => write!(
                f,
                "{name:?} does not hash as it did when this was saved: it has another key, or what is \
                 hashed is another form of the items (as URLs in a state of the koel command), or \
                 the standard library now writes items differently; load it with the program that \
                 saved it"
            ),
            Reason::CutOff { at } => {
                write!(f, "it ends too soon, after {at} bytes: it was cut off; load another copy")
            }
            Reason::NoEnd { at } => write!(
                f,
                "its end should begin at byte {at}, but something else is there: it was cut \
                 off, or something was appended; load another copy"
            ),
            Reason::WrongLength { bytes, wanted } => write!(
                f,
                "it has {bytes} bytes, but should have {wanted}: it was cut off, or something was \
                 appended; load another copy"
            ),
            Reason::Damaged { at, what } => {
                write!(f, "it is damaged at byte {at}: {what}; load another copy")
            }
            Reason::Outgrown => f.write_str(
                "the filter grew to thousands of times its size while it was being saved: save it \
                 again",
            ),
            Reason::NoSuchPiece { cursor } => write!(
                f,
                "no piece of this filter begins at cursor {cursor}: begin at 0, and go on with the \
                 cursor that came with the last piece"
            ),
            Reason::Misplaced { start, wanted: None } => write!(
                f,
                "the piece begins at cursor {start}, but all pieces have been pushed: finish the \
                 filter"
            ),
            Reason::Misplaced { start, wanted: Some(wanted) } => {
                let what = if start < wanted { "pushed already" } else { "pushed too soon" };
                write!(
                    f,
                    "the piece begins at cursor {start}, so it was {what}: the next one begins at \
                     {wanted}"
                )
            }
            Reason::EarlierDump => f.write_str(
                "the piece was made before the one before it, so it is from an earlier dump, and what \
                 was inserted since is missing: push the pieces of one dump",
            ),
            Reason::OtherFilter => f.write_str(
                "the piece is of another filter than those that were pushed before it: push the pieces \
                 of one filter",
            ),
            Reason::OnlyAPiece => f.write_str(
                "this is a piece of a filter, not all of it: push all pieces to a `PieceLoader`",
            ),
            Reason::PiecesMissing { next } => {
                write!(f, "the pieces from cursor {next} on are missing: push them first")
            }
            Reason::OutOfMemory { bytes } => {
                write!(
                    f,
                    "{bytes} bytes of memory could not be allocated: make more memory available \
                     and try again"
                )
            }
        }
    }
}
