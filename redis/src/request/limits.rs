//! What a client may not do: take more memory than there is.
//!
//! What comes from a primary or from a file happened already, and is never refused.

use crate::server::command::Refusal;
use crate::server::config;
use crate::server::context::Context;
use crate::set::Set;
use crate::set::about::About;

const TOO_LARGE: Refusal = Refusal::Message(
    c"OOM the filter would take more than koel.max-bytes; raise that, or remove items",
);

pub const NO_MEMORY_FOR_A_COPY: Refusal =
    Refusal::Message(c"OOM a copy of the filter would take more memory than the server has");

/// A filter of less than this is made without asking how much memory there is.
const SMALL: u64 = 1 << 24;

/// Whether a client may add to this set.
pub fn has_room(call: Context<'_>, set: &Set) -> bool {
    let most = config::max_bytes();
    most == usize::MAX || set.bytes() < most || call.flags().replayed()
}

/// Refuses to add to a set that takes too much.
pub fn check(call: Context<'_>, set: &Set) -> Result<(), Refusal> {
    if has_room(call, set) { Ok(()) } else { Err(TOO_LARGE) }
}

/// Refuses to take so many bytes more for a set.
pub fn check_more(call: Context<'_>, set: &Set, more: usize) -> Result<(), Refusal> {
    let fits = set.bytes().saturating_add(more) <= config::max_bytes();
    if fits || call.flags().replayed() { Ok(()) } else { Err(TOO_LARGE) }
}

/// Refuses to make a set that there is no memory for. Not all servers can refuse that themselves: Redis 7.0
/// aborts.
pub fn check_new(call: Context<'_>, about: &About) -> Result<(), Refusal> {
    let bytes = about.estimated_bytes();
    if call.flags().replayed() {
        return Ok(());
    }
    if bytes as usize > config::max_bytes() {
        return Err(TOO_LARGE);
    }
    if bytes > SMALL && bytes > call.free_bytes() {
        return Err(Refusal::Message(
            c"OOM the filter would take more memory than the server has; reserve less, and let it grow",
        ));
    }
    Ok(())
}

/// Refuses to make a copy of so many bytes that there is no memory for.
pub fn check_memory(call: Context<'_>, bytes: usize) -> Result<(), Refusal> {
    let bytes = bytes as u64;
    if bytes <= SMALL || call.flags().replayed() || bytes <= call.free_bytes() {
        return Ok(());
    }
    Err(NO_MEMORY_FOR_A_COPY)
}
