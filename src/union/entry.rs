//! What becomes of an entry of another filter in a shard here: an item that is known only by its lane there.
//!
//! The suffix of an entry may have [lost bits](crate::layout::shrinking), so the entry may stand for any of several
//! items. Take a lane that agrees with it in all bits that neither has lost.
//!
//! 1. It has lost at least as many bits. It *covers* the entry, which is here already.
//! 2. It has lost fewer bits: it is *finer*. It is probably a lane of the same item, inserted when its filter was
//!    larger. The entry matches all items that this lane matched, and replaces it. So an item that both filters had is
//!    here once, and the lane causes as many false positives as the entry alone would. As with a match of a new item,
//!    the lane may be that of another item.
//!
//! A finer lane may look as if it covered the entry, if the bits of its item happen to be a `1` and zeros where the
//! entry ends.
//!
//! An entry without such a lane is put into either bucket. A merge holds all locks of the shard, so a path is never
//! stale once it is found. Versions invalidate lookups during the moves, as in a [kick](mod@crate::guide::kick).

use crate::layout::bucket::{Fingerprint, Lanes, Words};
use crate::layout::geometry::Place;
use crate::layout::shrinking::{MergeMatches, Shrinking};
use crate::layout::stamps::{AgeShift, Moment};
use crate::shard::path::{self, MAX_MOVES, Path, Steps};
use crate::shard::raw::AllLocks;
use crate::shard::{Lease, Shard};
use crate::table::ticking::{Ticking, Time};
use arrayvec::ArrayVec;

pub(crate) enum Merged {
    /// A lane covers it.
    Covered,
    /// The entry replaced one that was finer, and was counted.
    Coarsened,
    Added,
    /// No lane can be freed for the entry.
    NoRoom,
}

impl<'a, L: Lease<'a>> Shard<L> {
    /// Adds an entry of another filter, unless a lane covers it or is finer. Afterwards, the lane that stands for the
    /// entry is as young as the younger of the two. The fingerprint includes its stamp of `now`, by which nothing in
    /// the shard has expired. Fingerprints lose bits if `shrinking` says how. `counts` is whether the entry counts as
    /// an item if it is added.
    pub(super) fn merge_entry(
        self,
        locked: &AllLocks<'_>,
        shrinking: Option<&Shrinking>,
        (place, now): (Place, Moment),
        counts: bool,
    ) -> Merged {
        let lanes = self.lanes();
        let both = [place.first, place.second].map(|bucket| {
            let words = self.read_locked(locked, bucket);
            let covering = || self.matching(words, place.fp);
            let alike = shrinking.map_or_else(
                || MergeMatches { covering: covering(), finer: lanes.set_of(0) },
                |shrinking| shrinking.merge_matches(words, place.fp),
            );
            (bucket, words, alike)
        });
        let youngest = |is_covered: bool| {
            let each = both.into_iter().flat_map(|(bucket, words, alike)| {
                let which = if is_covered { alike.covering } else { alike.finer };
                which.map(move |lane| (lanes.age(words, lane, now), bucket, words, lane))
            });
            each.min_by_key(|(age, ..)| *age).map(|youngest| (is_covered, youngest))
        };
        if let Some((is_covered, (age, bucket, words, lane))) =
            youngest(true).or_else(|| youngest(false))
        {
            let replaced = lanes.with_whole(words, lane, place.fp);
            let age = age.min(lanes.age(replaced, lane, now));
            let kept = if is_covered { words } else { replaced };
            let merged = lanes.with_age(kept, lane, age, now);
            if merged != words {
                self.write(locked, bucket, merged);
            }
            return if is_covered { Merged::Covered } else { Merged::Coarsened };
        }
        let [(_, first, _), (_, second, _)] = both;
        let (bucket, heads) = self.emptier_of(place, first.heads, second.heads);
        let path = match lanes.empty(heads).is_empty() {
            true => path::find(self, place),
            false => Path::new(Steps::new(), bucket),
        };
        let added = path.and_then(|path| self.add_along(locked, &path, place.fp, counts));
        added.map_or(Merged::NoRoom, |()| Merged::Added)
    }

    /// Moves the items on a path, and puts the entry into the lane that this frees.
    pub(crate) fn add_along(
        self,
        locked: &AllLocks<'_>,
        path: &Path,
        entry: Fingerprint,
        counts: bool,
    ) -> Option<()> {
        let mut words = ArrayVec::<_, { MAX_MOVES + 1 }>::new();
        self.words_along(locked, (path.steps(), path.end()), entry, |word| words.push(word))?;
        let stripes = self.stripes::<{ MAX_MOVES + 1 }>(path.buckets());
        let _moving = self.store_along(locked, &stripes, &words);
        if counts {
            self.add_items(locked, path.end(), 1);
        }
        Some(())
    }
}

#[derive(Clone, Copy)]
pub(crate) struct Ages<'a> {
    here: &'a Ticking,
    /// By how many ticks the other filter's `elapsed` was ahead when the union began.
    ahead: u64,
    /// The time of the copy, in the other filter.
    there: Time,
}

impl<'a> Ages<'a> {
    /// Returns the ages in a copy that is made now.
    pub(crate) fn new(here: &'a Ticking, there: &Ticking) -> Self {
        let elapsed = || here.time().0.elapsed;
        loop {
            let (before, there) = (elapsed(), there.time().0);
            if elapsed() == before {
                return Ages { here, ahead: there.elapsed.wrapping_sub(before), there };
            }
        }
    }

    /// The same in a copy of that time, whose filter is as far ahead.
    pub(crate) fn at(self, there: Time) -> Self {
        Ages { there, ..self }
    }

    /// Returns the difference between the ages in the copy and those at the present time here. Where both filters have
    /// numbers, these tell how far the filters are apart. Otherwise, both were at the same tick when the union began.
    fn shift(self, (here, now): (Time, Moment)) -> AgeShift {
        let there = self.there;
        let ticks = match here.number.zip(there.number) {
            Some((here, there)) => here.saturating_sub(there).try_into().unwrap_or(i64::MAX),
            None => {
                let ticks = here.elapsed.wrapping_sub(there.elapsed).wrapping_add(self.ahead);
                ticks.cast_signed()
            }
        };
        AgeShift { then: Moment::of_tick(there.tick), now, ticks }
    }

    /// Returns the shift to the present time, in a shard here.
    pub(super) fn shift_for<'s, L: Lease<'s>>(
        self,
        shard: Shard<L>,
        locked: &AllLocks<'_>,
    ) -> AgeShift {
        self.shift(shard.swept_time(locked, self.here))
    }

    /// Erases the entries of the copy that have expired here.
    pub(super) fn erase_expired(self, words: &mut [u64], lanes: Lanes) {
        let shift = self.shift(self.here.time());
        lanes.replace_each(words, |words: Words| {
            let expired =
                lanes.taken(words.heads).filter(|lane| shift.aged(lanes, words, *lane).is_none());
            expired.fold(words, |words, lane| lanes.without_whole(words, lane))
        });
    }
}
