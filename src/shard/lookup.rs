//! Lookups: whether an item is here, and how many copies of it. Why they are right without a lock:
//! [kicks](mod@crate::guide::kick), and [splits](mod@crate::guide::split). The table of a fixed filter
//! [looks](crate::table::Table::look) by itself.

use crate::layout::SMALL;
use crate::layout::bucket::Fingerprint;
use crate::layout::geometry::Place;
use crate::layout::shrinking::Matches;
use crate::shard::{Lease, Shard};
use crate::table::memory::prefetch;
use crate::table::stripe::{Locks, SeenVersion};

/// The number of times that an invalidated reader retries before it acquires the locks.
const TRIES: usize = if SMALL { 0 } else { 16 };

/// The versions of an item's stripes that a lookup has to validate.
pub(crate) struct SeenVersions<'a> {
    last: SeenVersion<'a>,
    first: Option<SeenVersion<'a>>,
}

impl SeenVersions<'_> {
    #[inline(always)]
    pub(crate) fn still_hold(self) -> bool {
        self.last.still_holds() && self.first.is_none_or(SeenVersion::still_holds)
    }
}

impl<'a, L: Lease<'a>> Shard<L> {
    /// Returns whether the item is here. The answer was right at some moment during the call.
    #[inline]
    pub(crate) fn contains(self, place: Place) -> Result<bool, L::Lapsed> {
        self.look(place).map_or_else(|| self.contains_again(place), Ok)
    }

    /// Prefetches everything that a lookup reads.
    #[inline]
    pub(crate) fn prefetch(self, place: Place) {
        prefetch(self.version(place.second));
        self.prefetch_words(place);
    }

    /// Prefetches both buckets, for an operation that takes a lock first: loads wait for a lock, prefetches do not.
    #[inline]
    pub(crate) fn prefetch_words(self, place: Place) {
        prefetch(self.heads(place.first));
        prefetch(self.heads(place.second));
    }

    /// Looks once, without a lock. Returns `None` if the item may have been moving, unless [hits need no
    /// version](Self::hits_need_no_version), or if the meaning of the words may have changed.
    #[inline(always)]
    pub(crate) fn look(self, place: Place) -> Option<bool> {
        if L::IS_PERMANENT {
            let spot = (self.index(place.first), self.index(place.second), place.fp);
            return if self.is_wide() { self.table.look_wide(spot) } else { self.table.look(spot) };
        }
        if self.is_wide() && self.lanes().forgets() {
            return self.look_since(self.see(place), place);
        }
        // One version is enough here, and fewer instructions.
        let last = SeenVersion::of(self.version(place.second));
        self.look_since(SeenVersions { last, first: None }, place)
    }

    #[inline(always)]
    fn look_since(self, seen: SeenVersions<'_>, place: Place) -> Option<bool> {
        let heads = [self.read(place.first), self.read(place.second)];
        let tails = self.both_tails(place);
        let found = || self.either_matches(heads, tails, place.fp);
        // Validation comes first, so that the comparison does not occupy registers yet.
        self.still_holds(seen).then(found)
    }

    /// Whether the words that were read after these versions all stood at one moment, at which this shard owned the
    /// item. The versions come last, because an entry may have changed and come back.
    #[inline(always)]
    pub(crate) fn still_holds(self, seen: SeenVersions<'_>) -> bool {
        self.check().is_ok() && seen.still_hold()
    }

    /// Reads the versions that a lookup of an item has to [validate](mod@crate::guide::sweep#is-a-lookup-right).
    #[inline(always)]
    pub(crate) fn see(self, place: Place) -> SeenVersions<'a> {
        let both = self.is_wide() && self.lanes().forgets();
        let last = SeenVersion::of(self.version(place.second));
        SeenVersions { last, first: both.then(|| SeenVersion::of(self.version(place.first))) }
    }

    /// Reads the second words of two wide buckets. Which bucket has the head is random, so a branch on it would be
    /// mispredicted.
    #[inline(always)]
    pub(crate) fn both_tails(self, place: Place) -> [u64; 2] {
        [self.tails(place.first), self.tails(place.second)]
    }

    /// Whether a hit needs no version, because the meaning of its word never changes and the word was stored at once.
    #[inline]
    pub(crate) fn hits_need_no_version(self) -> bool {
        L::IS_PERMANENT && !self.is_wide()
    }

    /// Looks again after a [look](Self::look) without an answer, and finally under the locks.
    #[cold]
    #[inline(never)]
    pub(crate) fn contains_again(self, place: Place) -> Result<bool, L::Lapsed> {
        for _ in (0..).take(TRIES) {
            std::hint::spin_loop();
            self.check()?;
            if let Some(found) = self.look(place) {
                return Ok(found);
            }
        }
        Ok(self.contains_locked(&self.lock(place)?, place))
    }

    #[inline]
    pub(crate) fn contains_locked(self, locked: &impl Locks, place: Place) -> bool {
        let (first, second) = self.read_both(locked, place);
        self.has_match([first.heads, second.heads], || [first.tails, second.tails], place.fp)
    }

    /// Whether a lane of two buckets matches the item. In wide buckets, the tails are read only if a head matches.
    #[inline(always)]
    pub(crate) fn has_match(
        self,
        heads: [u64; 2],
        tails: impl FnOnce() -> [u64; 2],
        fp: Fingerprint,
    ) -> bool {
        let has_head = || {
            let [first, second] = heads.map(|heads| self.matching_heads(heads, fp));
            !first.or(second).is_empty()
        };
        (!self.is_wide() || has_head()) && self.either_matches(heads, tails(), fp)
    }

    /// Counts the copies of the item. Zero needs no lock. More than zero needs both locks: two words cannot be read at
    /// one moment, and copies are inserted and removed one by one without a version change.
    #[inline]
    pub(crate) fn count(self, place: Place) -> Result<usize, L::Lapsed> {
        if !self.contains(place)? {
            return Ok(0);
        }
        let locked = self.lock(place)?;
        _ = self.sweep_own(&locked, place);
        Ok(self.count_locked(&locked, place))
    }

    #[inline]
    pub(crate) fn count_locked(self, locked: &impl Locks, place: Place) -> usize {
        let (first, second) = self.read_both(locked, place);
        self.matching(first, place.fp).len_with(self.matching(second, place.fp))
    }

    /// Returns the copies of the item, by recent words.
    pub(crate) fn matches_of(self, place: Place) -> Matches {
        let both = [place.first, place.second].map(|bucket| (bucket, self.read(bucket)));
        both.into_iter().fold(Matches::default(), |copies, (bucket, heads)| {
            let words = self.read_rest(bucket, heads);
            let among = self.matching(words, place.fp);
            among.fold(copies, |Matches { lanes, whole, lost }, lane| {
                let own = self.lost(words, lane);
                let whole = whole + usize::from(own == 0);
                Matches { lanes: lanes + 1, whole, lost: lost + own }
            })
        })
    }
}
