//! What a client may not do: take more memory than there is.
//!
//! What comes from a primary or from a file happened already, and is never refused.

use crate::server::command::Refusal;
use crate::server::config;
use crate::server::context::Context;
use crate::set::Set;
use crate::set::errors;
use crate::set::spec::FilterSpec;
use koel::{BuildError, FullKind};

const TOO_LARGE: Refusal = Refusal::Message(
    c"OOM the filter would take more than koel.max-bytes; raise that, or remove items",
);

const NO_MEMORY_FOR_A_COPY: Refusal =
    Refusal::Message(c"OOM a copy of the filter would take more memory than the server has");

/// A filter of less than this is made without asking how much memory there is.
const SMALL: usize = 1 << 24;

/// The most bytes that a set may take when this call adds to it.
pub fn most_bytes(call: Context<'_>) -> usize {
    let most = config::max_bytes();
    if most == usize::MAX || call.flags().replayed() { usize::MAX } else { most }
}

/// The error of an item that there is no room for.
pub fn full(set: &Set, kind: FullKind) -> Refusal {
    match kind {
        FullKind::LimitReached => TOO_LARGE,
        FullKind::NoMemory => {
            Refusal::Message(c"OOM there is no memory for the filter to grow; nothing has changed")
        }
        // A filter that grows refuses copies of one item, when it has a few.
        _ if set.spec().grows() => Refusal::Message(c"ERR Maximum expansions reached"),
        _ => Refusal::Message(c"ERR Filter is full"),
    }
}

/// The error for a set that cannot be made.
pub fn not_made(error: BuildError, spec: &FilterSpec) -> Refusal {
    Refusal::Text(errors::of_build(&error, spec))
}

/// Refuses to take so many bytes more for a set.
pub fn check_more(call: Context<'_>, set: &Set, more: usize) -> Result<(), Refusal> {
    let fits = set.bytes().saturating_add(more) <= most_bytes(call);
    if fits { Ok(()) } else { Err(TOO_LARGE) }
}

/// Refuses to make a set that there is no memory for. Not all servers can refuse that themselves: Redis 7.0
/// aborts.
pub fn check_new(call: Context<'_>, spec: &FilterSpec) -> Result<(), Refusal> {
    let bytes = Set::bytes_of_new(spec).map_err(|error| not_made(error, spec))?;
    if bytes > most_bytes(call) {
        return Err(TOO_LARGE);
    }
    if has_memory(call, bytes) {
        return Ok(());
    }
    Err(Refusal::Message(
        c"OOM a filter of this capacity would take more memory than the server has; reserve less, and let it grow",
    ))
}

/// Refuses to make a copy of so many bytes that there is no memory for.
pub fn check_copy(call: Context<'_>, bytes: usize) -> Result<(), Refusal> {
    if has_memory(call, bytes) { Ok(()) } else { Err(NO_MEMORY_FOR_A_COPY) }
}

fn has_memory(call: Context<'_>, bytes: usize) -> bool {
    bytes <= SMALL || call.flags().replayed() || bytes as u64 <= call.free_bytes()
}
