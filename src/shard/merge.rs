//! Merging entries of another filter: items that are known only by their lanes there.
//!
//! The suffix of an entry may have lost bits (see [`shrinking`](crate::layout::shrinking)), so the entry may
//! stand for any of several items. A lane *covers* the entry if it agrees with it in all bits that neither
//! has lost, and has lost at least as many bits: the entry is here already. (A lane that has lost fewer bits
//! may still look like the entry above its own last `1`, if the bits of its item happen to be a `1` and zeros
//! where the entry ends.)
//!
//! A lane that agrees with the entry but has lost fewer bits is *finer*. It is probably a lane of the same
//! item, inserted when its filter was larger. The entry matches all items that this lane matched, and
//! replaces it. So an item that both filters had is here once, and the lane causes as many false positives as
//! the entry alone would. As with a match of a new item, the lane may be that of another item.
//!
//! An entry without such a lane is put into either bucket. A merge holds all locks of the shard, so a path is
//! never stale once it is found. Versions invalidate lookups during the moves, as in a
//! [kick](mod@crate::shard::kick).

use crate::layout::bucket::{Fingerprint, Words};
use crate::layout::geometry::{Bucket, Place};
use crate::layout::shrinking::MergeMatches;
use crate::layout::stamps::Moment;
use crate::shard::path::{self, MAX_MOVES, Path};
use crate::shard::{Lease, Shard};
use crate::table::stripe::Locks;

/// The outcome of merging an entry.
pub(crate) enum Merged {
    /// A lane covers it.
    Covered,
    /// The entry replaced `before`, which was finer.
    Coarsened {
        before: Fingerprint,
    },
    Added,
    /// No lane can be freed for the entry.
    NoRoom,
}

impl<'a, L: Lease<'a>> Shard<L> {
    /// Adds an entry of another filter, unless a lane covers it or is finer. Afterwards, the lane that stands for the
    /// entry is as young as the younger of the two. The fingerprint includes its stamp of `now`, by which nothing in
    /// the shard has expired. `counts` is whether the entry counts as an item if it is added. The caller holds all
    /// locks of the shard.
    #[inline]
    pub(crate) fn merge_entry(
        self,
        locked: &impl Locks,
        place: Place,
        now: Moment,
        counts: bool,
    ) -> Merged {
        match self.merge_at_once(locked, place, now, counts) {
            Merged::NoRoom => {
                let room = self.kick_locked(locked, place);
                room.map_or(Merged::NoRoom, |room| self.put(locked, place, room, counts))
            }
            merged => merged,
        }
    }

    /// The same if no item has to move. The caller holds the locks of both buckets.
    #[inline]
    fn merge_at_once(self, locked: &impl Locks, place: Place, now: Moment, counts: bool) -> Merged {
        let lanes = self.lanes();
        let (first, second) = self.read_both(locked, place);
        let alike = |words| self.merge_matches(words, place.fp);
        let (in_first, in_second) = (alike(first), alike(second));
        // Usually there is no such lane, or one that covers the entry.
        let is_covered = !in_first.covering.or(in_second.covering).is_empty();
        if is_covered && !lanes.forgets() {
            return Merged::Covered;
        }
        let has_finer = !in_first.finer.or(in_second.finer).is_empty();
        if is_covered || has_finer {
            let both = [(place.first, first, in_first), (place.second, second, in_second)];
            return self.merge_into_lane(locked, (place.fp, now), both, is_covered);
        }
        let (bucket, heads) = self.emptier_of(place, first.heads, second.heads);
        match lanes.empty(heads).is_empty() {
            true => Merged::NoRoom,
            false => self.put(locked, place, (bucket, bucket), counts),
        }
    }

    /// Puts an entry into `bucket`, which has room. The stripe of `end`, the bucket that has gained a lane,
    /// counts the item.
    #[inline]
    fn put(
        self,
        locked: &impl Locks,
        place: Place,
        (bucket, end): (Bucket, Bucket),
        counts: bool,
    ) -> Merged {
        let words = self.read_locked(locked, bucket);
        let Some(lane) = self.lanes().empty(words.heads).first() else { return Merged::NoRoom };
        self.write(locked, bucket, self.lanes().with_whole(words, lane, place.fp));
        if counts {
            self.add_items(locked, end, 1);
        }
        Merged::Added
    }

    /// Makes one of these lanes stand for the entry too: the youngest that covers it, or else the youngest
    /// that is finer.
    fn merge_into_lane(
        self,
        locked: &impl Locks,
        (fp, now): (Fingerprint, Moment),
        both: [(Bucket, Words, MergeMatches); 2],
        is_covered: bool,
    ) -> Merged {
        let lanes = self.lanes();
        let each =
            both.into_iter().flat_map(|(bucket, words, MergeMatches { covering, finer })| {
                let which = if is_covered { covering } else { finer };
                which.map(move |lane| (lanes.age(words, lane, now), bucket, words, lane))
            });
        let youngest = each.min_by_key(|(age, ..)| *age);
        let Some((age, bucket, words, lane)) = youngest else { return Merged::Covered };
        let replaced = lanes.with_whole(words, lane, fp);
        let age = age.min(lanes.age(replaced, lane, now));
        let joined = lanes.with_age(if is_covered { words } else { replaced }, lane, age, now);
        if joined != words {
            self.write(locked, bucket, joined);
        }
        let finer = lanes.get_whole(words, lane).filter(|_| !is_covered);
        finer.map_or(Merged::Covered, |before| Merged::Coarsened { before })
    }

    /// Moves items out of the way of an entry. Returns the bucket that has room then, and the bucket that has
    /// gained an item.
    #[cold]
    #[inline(never)]
    fn kick_locked(self, locked: &impl Locks, place: Place) -> Option<(Bucket, Bucket)> {
        let path = path::find(self, place)?;
        Some((self.move_along(locked, &path)?, path.end()))
    }

    /// Moves the items on a path, starting at its end. Returns the bucket that has room then. The caller
    /// holds all locks of the shard, and nothing in it has expired.
    #[doc(hidden)]
    pub(crate) fn move_along(self, locked: &impl Locks, path: &Path) -> Option<Bucket> {
        let lanes = self.lanes();
        let moved = self.stripes::<{ MAX_MOVES + 1 }>(path.buckets());
        let _moving = self.write_section(locked, &moved);
        path.steps().iter().rev().try_fold(path.end(), |to, step| {
            let (from, there) =
                (self.read_locked(locked, step.bucket), self.read_locked(locked, to));
            let (fp, lane) = (lanes.get_whole(from, step.lane)?, lanes.empty(there.heads).first()?);
            self.write(locked, to, lanes.with_whole(there, lane, fp));
            self.write(locked, step.bucket, lanes.without_whole(from, step.lane));
            Some(step.bucket)
        })
    }
}
