//! Lookups: whether an item is here, and how many copies of it.
//!
//! A lookup in a growing filter reads a version, both words, and the version again, and acquires no lock; the table of a
//! fixed filter [looks](crate::table::Table::look) by itself. Only if moves invalidated all its attempts does a lookup lock
//! the stripes of both buckets.

use crate::layout::SMALL;
use crate::layout::bucket::{Fingerprint, Words};
use crate::layout::geometry::Place;
use crate::layout::shrinking::Matches;
use crate::shard::Shard;
use crate::shard::lease::Lease;
use crate::table::load;
use crate::table::stripe::{Locks, SeenVersion};

/// The number of times that an invalidated reader retries before it acquires the locks.
const TRIES: usize = if SMALL { 0 } else { 16 };

/// The versions of an item's stripes that a lookup has to validate.
pub struct SeenVersions<'a> {
    last: SeenVersion<'a>,
    first: Option<SeenVersion<'a>>,
}

impl SeenVersions<'_> {
    #[inline(always)]
    pub fn still_hold(self) -> bool {
        self.last.still_holds() && self.first.is_none_or(SeenVersion::still_holds)
    }
}

impl<L: Lease> Shard<'_, L> {
    /// Returns whether the item is here. The answer was right at some moment during the call.
    #[inline]
    pub fn contains(self, place: Place) -> Result<bool, L::Lapsed> {
        self.look(place).map_or_else(|| self.contains_again(place), Ok)
    }

    /// Prefetches everything that a lookup reads.
    #[inline]
    pub fn prefetch(self, place: Place) {
        let buckets = [place.first, place.second];
        match self.lease.view() {
            Some(view) => {
                view.prefetch_version(place.second);
                buckets.into_iter().for_each(|bucket| view.prefetch(L::WIDE, bucket));
            }
            None => {
                self.table.stripes().prefetch(self.stripe(place.second));
                buckets.into_iter().for_each(|bucket| self.table.prefetch(self.word(bucket)));
            }
        }
    }

    /// Looks once, without a lock. Returns `None` if an item that was not found may have been moving, or if
    /// the meaning of the words may have changed.
    #[inline(always)]
    pub fn look(self, place: Place) -> Option<bool> {
        if L::IS_PERMANENT {
            let spot = (self.index(place.first), self.index(place.second), place.fp);
            return if L::WIDE { self.table.look_wide(spot) } else { self.table.look(spot) };
        }
        let words = [self.heads(place.first), self.heads(place.second)];
        let seen = self.see(place);
        let [first, second] = words.map(load);
        if !L::WIDE {
            // Validation comes first, so that the comparison does not occupy registers yet.
            return self.still_holds(seen).then(|| self.matches(place, first, second));
        }
        let found = self.matches(place, first, second);
        self.still_holds(seen).then_some(found)
    }

    /// Whether words that were read since these versions are of one moment, and were the item's shard then. The versions
    /// come last: a lease that has lapsed may be as it was before.
    #[inline(always)]
    pub fn still_holds(self, seen: SeenVersions<'_>) -> bool {
        self.lease.check().is_ok() && seen.still_hold()
    }

    /// Reads the version for a lookup of an item, which reads the first bucket first. The version of one
    /// stripe is enough.
    ///
    /// An expiry in a bucket changes the version of that bucket's stripe only. Suppose that a copy expires in
    /// the second bucket, after another copy arrived in the first too late for the lookup to see it: then
    /// this version does not hold. If instead a copy had expired in the first bucket when the lookup read it,
    /// the lookup sees the copy that had arrived in the second. (Wide buckets are read in two steps, so their
    /// lookup reads the versions of both stripes.)
    #[inline(always)]
    pub fn see(&self, place: Place) -> SeenVersions<'_> {
        let of = |bucket| match self.lease.view() {
            Some(view) => view.see(bucket),
            None => self.table.stripes().see(self.stripe(bucket)),
        };
        let both = L::WIDE && self.lanes().forgets();
        SeenVersions { last: of(place.second), first: both.then(|| of(place.first)) }
    }

    /// Whether any lane of two buckets matches the item, given their first words.
    #[inline(always)]
    pub fn matches(self, place: Place, first: u64, second: u64) -> bool {
        if L::IS_PERMANENT && !L::WIDE {
            return self.lanes().either_holds([first, second], place.fp);
        }
        self.heads_match(first, second, place.fp)
            && (!L::WIDE || self.tails_agree(place, first, second))
    }

    /// Whether any lane of two first words matches the item: in wide buckets, by its head alone.
    #[inline(always)]
    fn heads_match(self, first: u64, second: u64, fp: Fingerprint) -> bool {
        let matching = |word| self.lease.matching(self.lanes(), word, fp);
        !matching(first).or(matching(second)).is_empty()
    }

    /// Whether a hit needs no version, because the meaning of its word never changes and the word was stored
    /// at once.
    #[inline]
    pub fn hits_need_no_version(self) -> bool {
        L::IS_PERMANENT && !L::WIDE
    }

    /// Whether a lane of either wide bucket matches the item, given their first words. Both second words are
    /// read: which bucket has the head is random, so a branch on it would be mispredicted.
    #[inline(always)]
    fn tails_agree(self, place: Place, first: u64, second: u64) -> bool {
        let in_first = self.matching(self.read_rest(place.first, first), place.fp);
        let in_second = self.matching(self.read_rest(place.second, second), place.fp);
        !in_first.or(in_second).is_empty()
    }

    /// Looks again after a [look](Self::look) without an answer, and finally under the locks.
    #[cold]
    pub fn contains_again(self, place: Place) -> Result<bool, L::Lapsed> {
        for _ in (0..).take(TRIES) {
            std::hint::spin_loop();
            self.lease.check()?;
            if let Some(found) = self.look(place) {
                return Ok(found);
            }
        }
        Ok(self.contains_locked(&self.lock(place)?, place))
    }

    #[inline]
    pub fn contains_locked(self, locked: &impl Locks, place: Place) -> bool {
        let (first, second) = self.read_both(locked, place);
        self.holds(first, second, place.fp)
    }

    #[inline]
    pub fn holds(self, first: Words, second: Words, fp: Fingerprint) -> bool {
        self.heads_match(first.heads, second.heads, fp)
            && (!L::WIDE || self.copies_in(first, second, fp) > 0)
    }

    /// Counts the copies of the item.
    ///
    /// Zero needs no lock. More than zero needs both locks: two words cannot be read at one moment, and
    /// copies are inserted and removed one by one without a version change.
    pub fn count(self, place: Place) -> Result<usize, L::Lapsed> {
        if !self.contains(place)? {
            return Ok(0);
        }
        let locked = self.lock(place)?;
        _ = self.sweep_own(&locked, place);
        Ok(self.count_locked(&locked, place))
    }

    pub fn count_locked(self, locked: &impl Locks, place: Place) -> usize {
        let (first, second) = self.read_both(locked, place);
        self.copies_in(first, second, place.fp)
    }

    /// Returns the copies of the item, by recent words.
    pub fn matches_of(self, place: Place) -> Matches {
        let [first, second] = [place.first, place.second].map(|bucket| self.read(bucket));
        if !self.heads_match(first, second, place.fp) {
            return Matches::default();
        }
        let both = [(place.first, first), (place.second, second)];
        both.into_iter().fold(Matches::default(), |copies, (bucket, heads)| {
            let words = self.read_rest(bucket, heads);
            let among = self.matching(words, place.fp);
            among.fold(copies, |Matches { lanes, whole, lost }, lane| {
                let own =
                    self.lease.most_precise(words, among.only(lane)).map_or(0, |(own, _)| own);
                let whole = whole + usize::from(own == 0);
                Matches { lanes: lanes + 1, whole, lost: lost + own }
            })
        })
    }

    /// Counts the copies of an item in its two buckets.
    pub fn copies_in(self, first: Words, second: Words, fp: Fingerprint) -> usize {
        self.matching(first, fp).len() + self.matching(second, fp).len()
    }
}
