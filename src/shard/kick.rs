//! Kicks: moving items to their other buckets to make room, while other threads look them up.
//!
//! (This page is for reading; nothing in it can be called.)
//!
//! An item has two *buckets*, 64-bit words, and is stored in one of them as a *fingerprint*, in one of the
//! bucket's *lanes*. When both buckets are full, a newcomer kicks: items in the way move to their other
//! buckets. A *stripe* guards 512 buckets; it has a lock for writers, a version for readers, and an item
//! count.
//!
//! # How does a lookup stay right while an item moves?
//!
//! An item `x` moves from bucket `S` to bucket `D`. A lookup of `x` reads the two words, one after
//! the other, without a lock. The mover holds the stripes of both and does, in this order:
//!
//! ```text
//! M1  make the versions of both stripes odd
//! M2  D := D with x          copy first
//! M3  S := S without x       erase second
//! M4  make the versions of both stripes even, two more than before
//! ```
//!
//! The lookup does:
//!
//! ```text
//! L1  read the version of one of the two stripes
//! L2  read one word                    (D and then S, or S and then D)
//! L3  read the other word
//! L4  x found? Then the answer is yes: one word that held x is proof enough.
//! L5  read that version again. Even at L1 and unchanged? Then the answer is no. Otherwise start
//!     over at L1, and after 17 or 18 attempts look under the locks.
//! ```
//!
//! (In a fixed filter with narrow buckets, L2 to L4 come once before L1, too: most lookups of an item that is there
//! read no version. A miss then goes on at L1, and if both words are still the same, it need not search them again.)
//!
//! The order of M2 and M3 keeps `x` in at least one of the two words at every moment. To miss it, the lookup
//! has to read `D` before M2 and `S` after M3: its reads straddle M2 and M3. Then it read the version at L1
//! before M2, and reads it at L5 after M3 and therefore after M1. Either L1 came after M1 and saw an odd
//! version, or it came before M1 and L5 sees another version. A miss that straddles a move is never accepted.
//! It makes no difference whether the version is that of `S` or of `D`, since M1 and M4 change both. (Every
//! word is stored `Release` and loaded `Acquire`. So a lookup that sees `S` without `x`, as the mover or a
//! later writer left it, sees M1 too. The head of `table/stripe.rs` lists all orderings.)
//!
//! The versions alone would be enough, whatever the order of the two stores, since no miss between M1 and M4
//! is accepted. Copying first means that most lookups in between find `x` and need not retry.
//!
//! The version has to be read before both words, and again after both. A lookup that validates `D` before it
//! reads the version of `S` would be wrong: all of M1 to M4 fits in between.
//!
//! A path of several items is executed backwards from its end, as one move:
//!
//! ```text
//!   newcomer n → [ B0: a ] → [ B1: b ] → [ B2: empty lane ]
//!
//!   1   B2 := with b                    b is in B1 and B2
//!   2   B1 := a in b's lane             b is in B2; a is in B0 and B1
//!   3   B0 := n in a's lane             a is in B1; n is here
//! ```
//!
//! Each store erases one item and copies the next at once, and each item is copied one store before it is
//! erased. All stripes stay locked, and all versions odd, from before the first store until after the last:
//! an item in the middle has two copies for a moment, and a thread that removed one of them then would leave
//! the other behind, and one that counted copies would count the item twice.
//!
//! # And what changes without a move?
//!
//! Filling or emptying a lane is one store of one word. A concurrent lookup sees the word before or after it,
//! and either is a correct answer, so no version has to change. There is one exception. Two items can have
//! the same fingerprint and the same buckets, `S` and `D`, and the filter cannot tell them apart. Say that
//! one copy is in `S`. A lookup reads `D` and finds none; a second copy is put into `D`; one copy is removed,
//! from `S`; the lookup reads `S` and finds none. Yet there was a copy all the time. So before a copy is
//! removed from one bucket while another stays in the other, both versions advance by two: a lookup that
//! began before has to retry, and one that begins later finds the copy that stays. The same holds for
//! `clear`.
//!
//! # And in a wide bucket?
//!
//! Fingerprints of some sizes are in *wide* buckets, which have two words, each with half of every
//! fingerprint. The *heads* are in the first word, and a head is never zero, so the first word alone
//! determines which lanes are taken. It also determines where an item may move, since the other bucket
//! follows from the head. The *tails* are in the second word, zero where the lane is empty.
//!
//! Two words cannot be stored or loaded at once. So a lookup may see the head of one item beside the
//! tail of another. Four rules keep its answer right:
//!
//! 1. A writer stores the second word before the first.
//! 2. A lookup loads the first word before the second.
//! 3. Every operation that takes an item out of a lane is a move: a removal and a clear make the versions
//!    odd, erase, and make them even, as M1 to M4 do. So does a kick, which replaces one item by the next.
//! 4. A hit is valid only if the version holds, as a miss is.
//!
//! *A lookup of `x` says yes only if `x` was there.* It saw the head of `x` in a lane, and then the tail of `x` in the
//! same lane. Let `y` be the item whose head it saw. If `y` was in the lane until the tail was loaded, the tail is that
//! of `y`, by rules 1 and 2: it was stored before the head, and until `y` is taken out, the lane gets at most another
//! stamp, which is not compared, or from a union a tail with fewer bits, which matches whatever that of `y` matches. So
//! `y` is `x`. Otherwise `y` was taken out in between. What the lookup then saw was stored after the versions of both
//! buckets of `y` had become odd, and they are the buckets of `x`, since both follow from the head. So the version does
//! not hold, unless the lookup began with the version from after that removal; but then it saw the first word without
//! `y`.
//!
//! *A lookup of `x` says no only if `x` was absent at some moment.* Suppose that a copy of `x` was there all
//! the time. If the copy that was there at the beginning stayed in its lane, the lookup saw both halves. If
//! it was taken out, the version does not hold. This includes the case for which narrow buckets need
//! `invalidate_readers`: one copy arrives, and another is removed.
//!
//! A filter with narrow buckets pays for none of this: whether buckets are wide is a constant of the code
//! that each operation runs.
//!
//! # What if the path has changed since it was found?
//!
//! The search (`path::find_near`, `path::find`) ran without locks, so that it blocked no thread, and the
//! table may have changed since. `execute` locks every stripe of the path, in ascending order (for
//! `insert_if_absent` together with the stripes of the newcomer's own two buckets), and checks again: does
//! each lane still hold an item whose other bucket is the next on the path, and does the last bucket have an
//! empty lane? If not, the path is *stale*, nothing has been moved, and the search starts over. For
//! `insert_if_absent`, `execute` also checks again whether the newcomer is there: another thread may have
//! inserted it meanwhile.
//!
//! # Can kicks wait for each other forever?
//!
//! Not in a deadlock: all locks that a kick holds are taken at once, in ascending order.
//!
//! Not in a livelock either. If a search is repeated, because its path was stale or self-crossing (see
//! `shard/path.rs`), a word has changed since the search began: `execute` checks only what the search has
//! seen, and in a table that does not change the search finds no self-crossing paths. A word changes only by
//! an operation that completes: `execute` stores nothing unless it places its newcomer, and every other
//! writer decides under its locks and then stores. (A tick that is passing adds one sweep of each stripe.) So
//! each repetition is due to an operation of another thread that completed, and the writers as a whole always
//! make progress. There is no bound for a single writer.

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
    // Another thread may have used the last room for this very item, or be about to: it has made the other
    // moves of its path, and stores the item last. That thread holds the stripe of the item's bucket.
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
