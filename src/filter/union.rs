//! Filters that meet: one takes over what another one knows.

use crate::backend::union;
use crate::error::union::{Different, Reason, UnionError};
use crate::filter::ConcurrentCuckooFilter;
use crate::probes;
use std::hash::BuildHasher;

/// # Union
///
/// Workers that went apart meet: one filter takes over what another one knows. Both have to be made alike:
/// with hashers that agree ([`StableHash::with_seed`](crate::StableHash::with_seed), or copies of one hasher),
/// for the same rate, and for the same capacity. (Growing filters may have different capacities as long as they
/// [began with as many shards](crate::guide::growth#filters-that-meet): with one, if they are for up to
/// 19,000 items.) However they have grown since, they can meet. Filters that were not made alike are
/// refused before anything has changed.
///
/// What is asked of the hashers is whether they give the same hashes to some items of each kind: integers of
/// each size, text and bytes of several lengths, a slice of integers, and a tuple. This finds out other
/// seeds and other versions. Hashers that agree on these and differ on others are beyond it: the filters would then
/// be united, and items of the other one not found here.
///
/// What both know is there once, as if each item of the other filter had been passed to
/// [`insert_if_absent`](Self::insert_if_absent): a copy of an item is not added again, and an item may be
/// taken for another one. So this may be repeated, and changes nothing the second time. For the same reason,
/// **remove with care** afterwards: of two items that are one to the filter, each from one side, one entry
/// is left, and removing either item removes both.
///
/// The false-positive rate is then at most the sum of both, mostly: each entry adds as much as it did in its
/// filter. (More, if it goes to several shards.) [`stats`](Self::stats) tells the rate.
impl<S: BuildHasher> ConcurrentCuckooFilter<S> {
    /// Takes over what the other filter knows, and returns how many entries were added.
    ///
    /// Everything that was in the other filter when the call began is in this one when it returns, except for
    /// what other threads remove meanwhile. Both filters may be in use, and may take over from each other.
    /// This goes through the other filter shard by shard, copies each, and inserts what is missing; it
    /// takes the memory of one more shard, or of three if the filters grow. It holds all locks of a shard here for some
    /// thousand entries at a time, which is some ten microseconds. Lookups do not wait for that.
    ///
    /// If the filters [forget](Self#forgetting), an item is found here as long as it would be there, or here if
    /// that is longer. Where ticks have [numbers](Self::tick_to), this filter first goes on to the present
    /// tick of the other one, and takes its items for as old as the numbers tell; without numbers, the
    /// present ticks of both are the same. No ticks begin meanwhile in either filter; ticks and unions that
    /// follow one another without end take turns. (After the [last number](Self::tick_to), numbers tell no
    /// ages apart.)
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
        Ok(union::union_with(self.backend(), other.backend())?)
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
        if !probes::agree(self.hasher(), other.hasher()) {
            return Err(Reason::Different(Different::Hasher).into());
        }
        Ok(union::check(self.backend(), other.backend())?)
    }
}
