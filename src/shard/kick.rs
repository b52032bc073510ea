//! Kicks: moving items to their other buckets to make room. [Why a lookup stays right](mod@crate::guide::kick)
//! meanwhile.

use crate::layout::geometry::Place;
use crate::shard::path::{self, MAX_MOVES, Path};
use crate::shard::{Answer, Lease, Refusal, Shard};
use arrayvec::ArrayVec;

/// The most buckets that a path locks: one for each move, the first of which is one of the newcomer's two, the other of
/// these, and the end.
const MAX_BUCKETS: usize = MAX_MOVES + 2;

#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Room was made, and the newcomer is in it.
    Placed,
    /// The newcomer is here already; no item was moved.
    Present,
    /// The table has changed since the path was found, or there is no such path; no item was moved.
    Stale,
}

/// Whether to add another copy of a newcomer that is present.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Copies {
    Add,
    UnlessPresent,
}

/// Adds an item, usually one whose buckets are full. Returns whether it was added.
#[doc(hidden)]
#[cold]
#[inline(never)]
pub(crate) fn kick<'a, L: Lease<'a>>(
    shard: Shard<L>,
    place: Place,
    copies: Copies,
) -> Answer<bool, L::Lapsed> {
    shard.sweep_all()?;
    let outcome = match path::find_near(shard, place) {
        Some(path) => execute_within::<1, 3, L>(shard, &path, place, copies)?,
        None => Outcome::Stale,
    };
    match outcome {
        Outcome::Placed => Ok(true),
        Outcome::Present => Ok(false),
        Outcome::Stale => kick_far(shard, place, copies),
    }
}

/// The same with as many moves as it takes, up to the limit of a path.
#[cold]
#[inline(never)]
fn kick_far<'a, L: Lease<'a>>(
    shard: Shard<L>,
    place: Place,
    copies: Copies,
) -> Answer<bool, L::Lapsed> {
    while let Some(path) = path::find(shard, place) {
        match execute(shard, &path, place, copies)? {
            Outcome::Placed => return Ok(true),
            Outcome::Present => return Ok(false),
            Outcome::Stale => {}
        }
    }
    if copies == Copies::Add {
        return Err(Refusal::Full);
    }
    // Another thread may have used the last room for this very item, or be about to: it stores the item last in its
    // path. That thread holds the stripe of the item's bucket.
    let locked = shard.lock(place)?;
    if shard.contains_locked(&locked, place) { Ok(false) } else { Err(Refusal::Full) }
}

/// Moves the items of the path and places the newcomer, if the path is still as it was found.
#[doc(hidden)]
pub(crate) fn execute<'a, L: Lease<'a>>(
    shard: Shard<L>,
    path: &Path,
    place: Place,
    copies: Copies,
) -> Result<Outcome, L::Lapsed> {
    execute_within::<MAX_MOVES, MAX_BUCKETS, L>(shard, path, place, copies)
}

/// The same along a path that, with both buckets of the newcomer, has at most `MAX` buckets.
#[inline]
fn execute_within<'a, const MOVES: usize, const MAX: usize, L: Lease<'a>>(
    shard: Shard<L>,
    path: &Path<MOVES>,
    place: Place,
    copies: Copies,
) -> Result<Outcome, L::Lapsed> {
    // Checking for the newcomer takes the stripes of both its buckets.
    let own = if copies == Copies::UnlessPresent { &[place.first, place.second][..] } else { &[] };
    let stripes = shard.stripes::<MAX>(own.iter().copied().chain(path.buckets()));
    let locked = shard.lock_many(&stripes)?;

    if copies == Copies::UnlessPresent && shard.contains_locked(&locked, place) {
        return Ok(Outcome::Present);
    }
    let mut words = ArrayVec::<_, MAX>::new();
    let arriving = shard.stamped(place.fp);
    let found =
        shard.words_along(&locked, (path.steps(), path.end()), arriving, |word| words.push(word));
    if found.is_none() {
        return Ok(Outcome::Stale);
    }
    let _moving = shard.store_along(&locked, &stripes, &words);
    shard.add_items(&locked, path.end(), 1);
    Ok(Outcome::Placed)
}
