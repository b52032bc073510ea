//! Inserts, removals and refreshes of one item in its own two buckets. If both are full,
//! [`kick`](mod@crate::shard::kick) goes on.

use crate::layout::bucket::{Fingerprint, Lane, LaneSet, Words};
use crate::layout::geometry::{Bucket, Place};
use crate::layout::stamps::Moment;
use crate::shard::kick::{Copies, kick};
use crate::shard::lookup::SeenVersions;
use crate::shard::{Answer, Lease, Shard};
use crate::table::stripe::{Locks, Two};

/// The order in which lanes are removed: the lane that has lost the fewest bits first, and of several such lanes the
/// oldest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Rank(u64);

impl Rank {
    /// Comes after all others.
    const NONE: Rank = Rank(u64::MAX);

    #[inline]
    fn new(lost: u32, age: u64) -> Self {
        Rank((u64::from(lost) << 32) | (u64::from(u32::MAX) - age))
    }
}

impl<'a, L: Lease<'a>> Shard<L> {
    /// Adds a copy of the item.
    #[cfg(any(test, loom))]
    pub(crate) fn insert(self, place: Place) -> Answer<(), L::Lapsed> {
        match self.insert_at_once(place) {
            Some(()) => Ok(()),
            None => kick(self, place, Copies::Add).map(|_| ()),
        }
    }

    /// Adds a copy of the item if one of its buckets has room. Returns `None` if nothing was added. A growing filter
    /// limits the copies of an item: this adds nothing if the emptier bucket has a match. The other bucket is not
    /// checked, so one copy too many may get in.
    #[inline(always)]
    pub(crate) fn insert_at_once(self, place: Place) -> Option<()> {
        let (bucket, word) =
            self.emptier_of(place, self.read(place.first), self.read(place.second));
        // Finding out that both buckets are full takes no lock.
        if self.lanes().empty(word).is_empty() {
            return None;
        }
        if !L::IS_PERMANENT && !self.matching_heads(word, place.fp).is_empty() {
            return None;
        }
        let locked = self.lock_one(bucket).ok()?;
        self.fill_locked(&locked, bucket, place.fp).then_some(())
    }

    /// Returns the emptier of the item's buckets, and its word: [why](mod@crate::guide::design#where-items-go).
    #[inline]
    pub(crate) fn emptier_of(self, place: Place, first: u64, second: u64) -> (Bucket, u64) {
        let (in_first, in_second) = (self.lanes().empty(first), self.lanes().empty(second));
        let second_is = in_second.is_emptier_than(in_first);
        if second_is { (place.second, second) } else { (place.first, first) }
    }

    /// Puts `fp` into an empty lane of `bucket`, if there is one.
    #[inline(always)]
    pub(crate) fn fill_locked(self, locked: &impl Locks, bucket: Bucket, fp: Fingerprint) -> bool {
        let lanes = self.lanes();
        let words = self.read_locked(locked, bucket);
        let Some(lane) = lanes.empty(words.heads).first() else { return false };
        self.write(locked, bucket, lanes.with_whole(words, lane, self.stamped(fp)));
        self.add_items(locked, bucket, 1);
        true
    }

    /// Adds the item unless it is here. Returns whether it was added.
    pub(crate) fn insert_if_absent(self, place: Place) -> Answer<bool, L::Lapsed> {
        match self.insert_if_absent_at_once(place) {
            Some(added) => Ok(added),
            None => kick(self, place, Copies::UnlessPresent),
        }
    }

    /// Adds the item unless it is here, if one of its buckets has room. Returns whether it was added, or `None` if
    /// neither bucket has room, if the shard no longer owns the item, or if an item that was seen in narrow buckets may
    /// have been moving.
    #[inline(always)]
    pub(crate) fn insert_if_absent_at_once(self, place: Place) -> Option<bool> {
        let lanes = self.lanes();
        let seen = (!self.hits_need_no_version()).then(|| self.see(place));
        let (first, second) = (self.read(place.first), self.read(place.second));
        let is_sure = || seen.is_none_or(|seen: SeenVersions<'_>| self.still_holds(seen));
        if self.has_match([first, second], || self.both_tails(place), place.fp) {
            if is_sure() {
                return Some(false);
            }
            if !self.is_wide() {
                return None;
            }
        }
        // If the item was not seen, the decision is made under locks: those of its own buckets if one has
        // room, those of a whole path if both are full.
        if lanes.empty(first).or(lanes.empty(second)).is_empty() {
            return None;
        }
        self.insert_if_absent_locked(place, [first, second])
    }

    /// The same, as both locks show. `absent_from` are words of narrow buckets that do not match the item: those that the
    /// caller has seen, or zeros.
    #[inline(always)]
    pub(crate) fn insert_if_absent_locked(
        self,
        place: Place,
        absent_from: [u64; 2],
    ) -> Option<bool> {
        let locked = self.lock(place).ok()?;
        let (first, second) = self.read_both(&locked, place);
        let tails = || [first.tails, second.tails];
        // The shard still owns the item, so it is as deep as it was, and the same words mean the same.
        let is_absent = !self.is_wide() && [first.heads, second.heads] == absent_from;
        if !is_absent && self.has_match([first.heads, second.heads], tails, place.fp) {
            return Some(false);
        }
        let (bucket, _) = self.emptier_of(place, first.heads, second.heads);
        self.fill_locked(&locked, bucket, place.fp).then_some(true)
    }

    /// Removes one copy of the item, unless only void lanes match it. Returns whether there was one. Both buckets are
    /// locked, because the copy that goes is chosen from both, and because readers of both are invalidated if another
    /// copy stays. An item that is removed is nearly always there, so no look comes first.
    #[inline]
    pub(crate) fn remove(self, place: Place) -> Result<bool, L::Lapsed> {
        self.prefetch_words(place);
        self.remove_locked(place)
    }

    #[inline]
    pub(crate) fn remove_locked(self, place: Place) -> Result<bool, L::Lapsed> {
        let lanes = self.lanes();
        let locked = self.lock(place)?;
        // The time is read once, since a tick may begin meanwhile.
        let now = if lanes.forgets() { self.sweep_own(&locked, place) } else { Moment::FIRST };
        let (first, second) = self.read_both(&locked, place);
        let (in_first, in_second) =
            (self.matching(first, place.fp), self.matching(second, place.fp));
        let (bucket, words, these) = if in_first.is_empty() {
            (place.second, second, in_second)
        } else {
            (place.first, first, in_first)
        };
        let Some(lane) = these.first() else { return Ok(false) };
        let stays = !in_first.is_empty() && !in_second.is_empty();
        let are_alike = L::IS_PERMANENT && !lanes.forgets();
        if !are_alike && (stays || these.has_several()) {
            return Ok(self.remove_closest(
                &locked,
                place,
                [(first, in_first), (second, in_second)],
                now,
            ));
        }
        Ok(self.empty_lane(&locked, place, (bucket, words, lane), stays))
    }

    #[cold]
    #[inline(never)]
    fn remove_closest(
        self,
        locked: &Two<'_>,
        place: Place,
        [first, second]: [(Words, LaneSet); 2],
        now: Moment,
    ) -> bool {
        let (in_first, here) = self.first_to_go(first.0, first.1, now);
        let (in_second, there) = self.first_to_go(second.0, second.1, now);
        // The items that the removed lane matches are a subset of those that the remaining lane matches. So
        // any other item that it matched is still found.
        let (bucket, (words, _), lane) = if in_second < in_first {
            (place.second, second, there)
        } else {
            (place.first, first, here)
        };
        let stays = !first.1.is_empty() && !second.1.is_empty();
        let is_gone = self.empty_lane(locked, place, (bucket, words, lane), stays);
        if is_gone && self.lanes().forgets() && !L::IS_PERMANENT {
            self.inherit_age(locked, place, self.lanes().age(words, lane, now), now);
        }
        is_gone
    }

    /// Removes the fingerprint in this lane of one of the item's buckets, unless it is void. Returns whether it did.
    /// `stays` is whether a lane of the other bucket matches the item.
    #[inline(always)]
    fn empty_lane(
        self,
        locked: &Two<'_>,
        place: Place,
        (bucket, words, lane): (Bucket, Words, Lane),
        stays: bool,
    ) -> bool {
        let lost = self.lost(words, lane);
        if self.is_void(lost) {
            return false;
        }
        if stays {
            self.invalidate_readers(locked, place);
        }
        let stripes = self.is_wide().then(|| self.stripes::<2>([place.first, place.second]));
        let _moving = stripes.as_ref().map(|stripes| self.write_section(locked, stripes));
        self.write(locked, bucket, self.lanes().without_whole(words, lane));
        self.add_items(locked, bucket, -1);
        true
    }

    /// Returns the age in ticks of the oldest copy, or `None` if there is none. [`remove`](Self::remove) empties the lane
    /// that has lost the fewest bits, and leaves the ages of the others.
    pub(crate) fn age(self, place: Place) -> Result<Option<u64>, L::Lapsed> {
        if !self.contains(place)? {
            return Ok(None);
        }
        let locked = self.lock(place)?;
        let now = self.sweep_own(&locked, place);
        let (first, second) = self.read_both(&locked, place);
        let ages = [first, second].into_iter().flat_map(|words| {
            let copies = self.matching(words, place.fp);
            let copies = copies.filter(move |lane| !self.is_void(self.lost(words, *lane)));
            copies.map(move |lane| self.lanes().age(words, lane, now))
        });
        Ok(ages.max())
    }

    /// Returns, of these lanes that match one item, the one that is removed first, and its rank.
    #[inline(always)]
    fn first_to_go(self, words: Words, among: LaneSet, now: Moment) -> (Rank, Lane) {
        let lanes = self.lanes();
        let age = |lane| if lanes.forgets() { lanes.age(words, lane, now) } else { 0 };
        let mut first = (Rank::NONE, Lane::LOWEST);
        for lane in among {
            let rank = Rank::new(self.lost(words, lane), age(lane));
            if rank < first.0 {
                first = (rank, lane);
            }
        }
        first
    }

    /// Invalidates the readers that have begun to look for the item, before one copy is removed and another stays:
    /// [why](mod@crate::guide::kick#and-what-changes-without-a-move).
    #[cold]
    #[inline(never)]
    fn invalidate_readers(&self, locked: &impl Locks, place: Place) {
        let both = [place.first, place.second];
        for bucket in both {
            self.table.stripes.invalidate_readers(locked, self.stripe(bucket));
        }
    }
}

/// Refreshing an item in a filter that forgets: it gets the stamp of the present tick. Nothing tells which of the lanes
/// that match belongs to the item, so all of them are stamped, and no item expires too early.
impl<'a, L: Lease<'a>> Shard<L> {
    /// Stamps the item, if it is here. Returns whether it is.
    #[inline]
    pub(crate) fn refresh(self, place: Place) -> Result<bool, L::Lapsed> {
        if !self.contains(place)? {
            return Ok(false);
        }
        if !self.lanes().forgets() {
            return Ok(true);
        }
        let locked = self.lock(place)?;
        let now = self.sweep_own(&locked, place);
        Ok(self.restamp(&locked, place, now))
    }

    /// Stamps the item if it is here, and adds it otherwise, if one of its buckets has room. Returns whether it was
    /// added, or `None` if nothing has been done.
    #[inline]
    pub(crate) fn insert_or_refresh_at_once(self, place: Place) -> Option<bool> {
        match self.refresh(place) {
            Ok(true) => Some(false),
            Ok(false) => self.insert_if_absent_at_once(place).filter(|added| *added),
            Err(_lapsed) => None,
        }
    }

    /// Stamps the item if it is here, and adds it otherwise. Returns whether it was added.
    pub(crate) fn insert_or_refresh(self, place: Place) -> Answer<bool, L::Lapsed> {
        // The loop repeats only if another thread has inserted or removed the item meanwhile.
        loop {
            if self.refresh(place)? {
                return Ok(false);
            }
            if self.insert_if_absent(place)? {
                return Ok(true);
            }
        }
    }

    /// Makes the oldest lane that matches the item at most `age` ticks old, after a lane of that age was removed. The
    /// removed lane may have been that of another item, which is then found in this lane for as long as in its own. So
    /// the ages that are left are the former ones without the oldest.
    pub(crate) fn inherit_age(&self, locked: &impl Locks, place: Place, age: u64, now: Moment) {
        let lanes = self.lanes();
        let both = [place.first, place.second].into_iter().flat_map(|bucket| {
            let words = self.read_locked(locked, bucket);
            self.matching(words, place.fp).map(move |lane| (bucket, words, lane))
        });
        let age_of = |(_, words, lane): &(Bucket, Words, Lane)| lanes.age(*words, *lane, now);
        let Some(oldest) = both.max_by_key(age_of).filter(|oldest| age_of(oldest) > age) else {
            return;
        };
        let (bucket, words, lane) = oldest;
        self.write(locked, bucket, lanes.with_age(words, lane, age, now));
    }

    /// Stamps all lanes that match the item. Returns whether there are any.
    fn restamp(&self, locked: &impl Locks, place: Place, now: Moment) -> bool {
        let both = [place.first, place.second].map(|bucket| {
            let words = self.read_locked(locked, bucket);
            let here = self.matching(words, place.fp);
            let stamp = |words, lane| self.lanes().with_age(words, lane, 0, now);
            let stamped = here.fold(words, stamp);
            if stamped != words {
                self.write(locked, bucket, stamped);
            }
            !here.is_empty()
        });
        both.contains(&true)
    }
}
