//! Making room by moving items to their other buckets, while others look for them.
//!
//! (This page is to be read; nothing in it can be called.)
//!
//! An item has two *buckets*, words of 64 bits, and is in one of them as a *fingerprint*, in one of
//! the bucket's *lanes*. When both are full, a newcomer kicks: items that are in the way move to
//! their other buckets. A *stripe* guards 512 buckets; it is a lock for writers, a version for
//! readers and a count.
//!
//! # How does a lookup stay right while an item moves?
//!
//! An item `x` moves from bucket `S` to bucket `D`. A lookup of `x` reads the two words, one after
//! the other, holding nothing. The mover holds the stripes of both and does, in this order:
//!
//! ```text
//! M1  versions of both stripes become odd
//! M2  D := D with x          copy first
//! M3  S := S without x       erase second
//! M4  versions of both stripes become even, two more than before
//! ```
//!
//! The lookup does:
//!
//! ```text
//! L1  reads the version of one of the two stripes
//! L2  reads one word                    (D and then S, or S and then D)
//! L3  reads the other word
//! L4  found x? Then yes, and done: one word that held x is proof enough.
//! L5  reads that version again: even at L1 and the same now? Then no. Otherwise from L1 again,
//!     and after 17 looks under the locks.
//! ```
//!
//! At every moment `x` is in at least one of the two words, because of the order of M2 and M3. So
//! to miss it, the lookup has to read `D` before M2 and `S` after M3: the reading straddles M2 and
//! M3. Then it read the version at L1 before M2, and reads it at L5 after M3, therefore after
//! M1. Either L1 came after M1 and saw odd, or it came before and L5 sees another number. A miss
//! that straddles a move is never believed. It does not matter whose version it is, that of `S` or
//! that of `D`, since M1 and M4 change both. (Words are stored `Release` and loaded `Acquire`, by
//! everybody: so a lookup that sees `S` without `x`, be it as the mover left it or as a later writer
//! did, sees M1 too. The head of `stripe.rs` lists all orderings.)
//!
//! The versions alone would do, in whichever order the words were stored, since no miss between M1
//! and M4 is believed. Copying first means that most lookups in between find `x` and need not try
//! again.
//!
//! The version has to be read before both words, and again after both. A lookup that finishes with
//! `D` and its version before it begins with `S` and its version is fooled: the whole of M1 to M4
//! fits in between.
//!
//! A path of several items is walked from its end backwards, as one move:
//!
//! ```text
//!   newcomer n → [ B0: a ] → [ B1: b ] → [ B2: empty lane ]
//!
//!   1   B2 := with b                    b is in B1 and B2
//!   2   B1 := a in b's lane             b is in B2; a is in B0 and B1
//!   3   B0 := n in a's lane             a is in B1; n is here
//! ```
//!
//! Each store of a word is the erasing of one item and the copying of the next, at once, and each
//! item has been copied one store before it is erased. All stripes are held, and all versions odd,
//! from before the first store until after the last: the items between have two copies for a
//! moment, and whoever removed or counted one then would be wrong about the other.
//!
//! # And what changes without a move?
//!
//! Filling a lane, or emptying it, is one store of one word. A lookup at the same time sees the word
//! before or after, and either is an answer: no version needs to change. With one exception. Two
//! items can have the same fingerprint and the same buckets, `S` and `D`, and the filter cannot
//! tell them apart; say that one copy is in `S`. A lookup reads `D` and finds none; then a second
//! copy is put into `D`, then one copy is removed, from `S`; the lookup reads `S` and finds none. Yet
//! there was a copy all the time. So before a copy is removed from one bucket while another stays in the
//! other, both versions go on by two: a lookup that began before is sent away, and one that begins
//! from here on finds the copy that stays. The same goes for `clear`.
//!
//! # Who makes sure that the path is still there?
//!
//! The search (`path::find`) ran without locks, so that readers and other writers were not held up, and the table
//! may have changed since. `walk` locks every stripe of the path, in ascending order (for
//! `insert_if_absent` together with those of the newcomer's own two buckets), and then asks again: does each lane still hold an
//! item whose other bucket is the next on the path, and has the last one an empty lane? If not, the
//! path is *stale* and nothing has been touched. For `insert_if_absent` it also
//! asks again whether the newcomer is there: another thread may have put it there meanwhile.
//!
//! A stale path means that some other writer got something done, so all of them together get on.

use crate::layout::geometry::{Bucket, Place};
use crate::shard::lease::{Lease, Refusal};
use crate::shard::path::{self, MOST_MOVES, Path};
use crate::shard::{Answer, Shard};
use crate::table::stripe::Locks;
use arrayvec::ArrayVec;

/// The newcomer's two buckets, one for each move, and the end.
const MOST_BUCKETS: usize = MOST_MOVES + 3;

#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Room was made, and the newcomer is in it.
    Placed,
    /// The newcomer is here already; nothing was changed.
    Present,
    /// The path is no more as it was found; nothing was changed.
    Stale,
}

/// Whether another copy of the newcomer is welcome.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Copies {
    Add,
    UnlessPresent,
}

/// Places a copy of an item whose buckets were seen full, or filled up since.
#[doc(hidden)]
#[cold]
pub fn make_room<L: Lease>(shard: Shard<'_, L>, place: Place) -> Answer<(), L> {
    while let Some(path) = path::find(shard, place) {
        let outcome = walk(shard, &path, place, Copies::Add).map_err(Refusal::Lapsed)?;
        if outcome == Outcome::Placed {
            return Ok(());
        }
    }
    Err(Refusal::Full)
}

/// Places an item that was not there, and both of whose buckets were full, unless it has come.
#[doc(hidden)]
#[cold]
pub fn make_room_if_absent<L: Lease>(shard: Shard<'_, L>, place: Place) -> Answer<bool, L> {
    while let Some(path) = path::find(shard, place) {
        match walk(shard, &path, place, Copies::UnlessPresent).map_err(Refusal::Lapsed)? {
            Outcome::Placed => return Ok(true),
            Outcome::Present => return Ok(false),
            Outcome::Stale => {}
        }
    }
    // It may have taken the last room itself, by another thread's hand, or be about to: its path's
    // other moves are made, and it comes last. Whoever brings it holds the stripe where it lands.
    let locked = shard.lock(place).map_err(Refusal::Lapsed)?;
    if shard.contains_locked(&locked, place) { Ok(false) } else { Err(Refusal::Full) }
}

/// Moves the items of the path and places the newcomer, if everything is still as it was found.
#[doc(hidden)]
pub fn walk<L: Lease>(
    shard: Shard<'_, L>,
    path: &Path,
    place: Place,
    copies: Copies,
) -> Result<Outcome, L::Lapsed> {
    // To see whether the newcomer is here takes the stripes of both its buckets.
    let own = if copies == Copies::UnlessPresent { &[place.first, place.second][..] } else { &[] };
    let on_path = path.steps.iter().map(|step| step.bucket).chain([path.end]);
    let stripes = shard.stripes::<MOST_BUCKETS>(own.iter().copied().chain(on_path));
    let locked = shard.lock_many(&stripes)?;

    if copies == Copies::UnlessPresent && shard.contains_locked(&locked, place) {
        return Ok(Outcome::Present);
    }
    let Some(words) = check(shard, path, place, &locked) else {
        return Ok(Outcome::Stale);
    };
    // A single store moves nothing.
    let _moving = (words.len() > 1).then(|| shard.moving(&locked, &stripes));
    for &(bucket, word) in words.iter().rev() {
        shard.write(&locked, bucket, word);
    }
    shard.add_items(&locked, path.end, 1);
    Ok(Outcome::Placed)
}

/// The new words of the path's buckets, in its order, or `None` if it does not lead there any more.
#[inline]
fn check<L: Lease>(
    shard: Shard<'_, L>,
    path: &Path,
    place: Place,
    locked: &impl Locks,
) -> Option<ArrayVec<(Bucket, u64), { MOST_MOVES + 1 }>> {
    let lanes = shard.lanes();
    let mut writes = ArrayVec::<(Bucket, u64), { MOST_MOVES + 1 }>::new();
    let mut arriving = place.fp;
    for step in &path.steps {
        let word = shard.read_locked(locked, step.bucket);
        let leaving = lanes.get(word, step.lane)?;
        writes.push((step.bucket, lanes.with(word, step.lane, arriving)));
        arriving = leaving;
        let next = path.steps.get(writes.len()).map_or(path.end, |next| next.bucket);
        // Twice in one bucket is a detour that only a table in motion can show.
        let again = writes.iter().any(|(bucket, _)| *bucket == next);
        if shard.alternate(step.bucket, leaving) != next || again {
            return None;
        }
    }
    let word = shard.read_locked(locked, path.end);
    let lane = lanes.empty(word).first()?;
    writes.push((path.end, lanes.with(word, lane, arriving)));
    Some(writes)
}
