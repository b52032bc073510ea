//! Merging one filter into another.

use crate::backend::union;
use crate::error::{UnionError, UnionErrorKind};
use crate::filter::ConcurrentCuckooFilter;
use crate::hasher_probes;
use std::hash::BuildHasher;

/// # Union
///
/// Workers that each filled a filter of their own can merge them. Both filters have to be made alike: both of a fixed
/// size or both growing, with hashers that agree ([`StableHash::with_seed`](crate::StableHash::with_seed), or copies of
/// one hasher), for the same rate, the same number of ticks that they remember, and the same capacity. (Growing filters
/// may have different capacities as long as they
/// [began with as many shards](crate::guide::growth#filters-that-meet): with one, if they are for up to 19,000 items.
/// How much they have grown since does not matter.) Filters that were not made alike are refused before anything has
/// changed.
///
/// The hashers are compared by their hashes of some items of each kind: integers of each size, text and bytes of
/// several lengths, a slice of integers, and a tuple. This finds other seeds and other versions. Hashers that agree
/// on these items and differ on others are not found out: the filters are merged then, and items of the other filter
/// may be missing from this one.
///
/// An item of both filters is there once, as if each item of the other filter had been passed to
/// [`insert_if_absent`](Self::insert_if_absent): a copy of an item is not added again, and an item may be
/// taken for another one. So a union may be repeated, and changes nothing the second time. For the same reason,
/// **remove with care** afterwards: if two items, one from each filter, have the same fingerprint and buckets, only one
/// entry is left, and removing either item removes both.
///
/// The false-positive rate is then about the sum of both rates, or less: each entry adds as much as it did in its
/// filter (more, if it goes to several shards). [`stats`](Self::stats) reports the rate.
impl<S: BuildHasher> ConcurrentCuckooFilter<S> {
    /// Adds the entries of the other filter that are not here, and returns how many were added.
    ///
    /// Everything that was in the other filter when the call began is in this one when it returns, except for
    /// items that other threads remove meanwhile. Both filters may be in use, and two threads may merge two filters
    /// into each other. The other filter's shards are copied one after the other; this takes the memory of one more
    /// shard, or of three if the filters grow. All locks of a shard here are held for some thousand entries at a time,
    /// which is some ten microseconds. Lookups do not wait for them.
    ///
    /// If the filters [forget](Self#forgetting), an item is found here as long as it would be there, or here if
    /// that is longer. Where ticks have [numbers](Self::tick_to), this filter first advances to the present
    /// tick of the other one, and the numbers give the ages of the other filter's items; without numbers, the
    /// present ticks of both are taken for the same. No tick begins meanwhile in either filter; ticks and unions that
    /// follow one another without end take turns. (After the [last number](Self::tick_to), all ages are the same.)
    ///
    /// # Errors
    ///
    /// Returns an error if the filters were not made alike; nothing has changed then. Or if there is no room
    /// for some entries: the others were added, unless more than a thousand were refused. Nothing is lost
    /// in either filter, and the call may be repeated when there is room.
    ///
    /// ```
    /// use koel::{ConcurrentCuckooFilter, StableHash};
    ///
    /// let builder = ConcurrentCuckooFilter::builder().capacity(1_000).hasher(StableHash::with_seed(7));
    /// let builder = builder.growing();
    /// let (monday, tuesday) = (builder.clone().build()?, builder.build()?);
    /// monday.insert("https://a.example/").expect("room");
    /// tuesday.insert("https://a.example/").expect("room");
    /// tuesday.insert("https://b.example/").expect("room");
    ///
    /// assert_eq!(monday.union(&tuesday), Ok(1));
    /// assert!(monday.contains("https://b.example/") && monday.len() == 2);
    /// assert_eq!(monday.union(&tuesday), Ok(0));
    /// # Ok::<(), koel::BuildError>(())
    /// ```
    pub fn union(&self, other: &Self) -> Result<usize, UnionError> {
        self.check_union(other)?;
        // Otherwise an item that is removed meanwhile could come back.
        if std::ptr::eq(self, other) {
            return Ok(0);
        }
        union::union_with(self.backend(), other.backend())
    }

    /// Checks that the filters were made alike, so that [`union`](Self::union) fails only for room or memory.
    ///
    /// Of several filters that are to be united, check each before the first is taken over, if it is to
    /// be all or none.
    ///
    /// # Errors
    ///
    /// Returns the error that `union` would, if they were not made alike.
    ///
    /// ```
    /// use koel::{ConcurrentCuckooFilter, StableHash, UnionErrorKind};
    ///
    /// let builder = ConcurrentCuckooFilter::builder().hasher(StableHash::with_seed(7)).growing();
    /// let seen = builder.clone().capacity(1_000).build()?;
    /// let [alike, other] = [2_000, 1_000_000].map(|capacity| builder.clone().capacity(capacity).build());
    /// assert_eq!(seen.check_union(&alike?), Ok(()));
    /// assert_eq!(seen.check_union(&other?).unwrap_err().kind(), UnionErrorKind::DifferentSize);
    /// # Ok::<(), koel::BuildError>(())
    /// ```
    pub fn check_union(&self, other: &Self) -> Result<(), UnionError> {
        // Before anything is locked: a hasher may panic.
        if !hasher_probes::agree(self.hasher(), other.hasher()) {
            let text = "the filters have different hashers (or different seeds), so neither can tell what \
                        the other knows: build both with one StableHash::with_seed";
            return Err(UnionError::new(UnionErrorKind::DifferentHasher, text));
        }
        union::check(self.backend(), other.backend())
    }
}
