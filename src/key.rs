//! The items that a filter accepts: anything that can be hashed, or its hash.

use std::hash::{BuildHasher, Hash};

/// An item that a filter can insert or look up: any [`Hash`], or the hash of an item, as [`Prehashed`].
///
/// The trait is sealed. To use a type of your own, implement [`Hash`] for it.
pub trait Key: sealed::Sealed {
    /// Returns the hash of the item.
    #[doc(hidden)]
    fn hash_with<S: BuildHasher>(&self, hasher: &S) -> u64;

    /// Returns the items if they are hashes.
    #[doc(hidden)]
    #[inline]
    fn prehashed(_items: &[Self]) -> Option<&[Prehashed]>
    where
        Self: Sized,
    {
        None
    }
}

/// The hash of an item, to be used in its place.
///
/// It is the result of [`hash_of`](crate::ConcurrentCuckooFilter::hash_of), which is worth keeping for an item that is
/// passed to a filter several times, or any other 64-bit hash of the item. In a filter that is used with both items and
/// hashes, take the hashes from `hash_of`. The keys of the default hasher are random, so its hashes are valid only
/// for this filter in this process.
///
/// ```
/// use koel::{ConcurrentCuckooFilter, Prehashed};
///
/// let filter = ConcurrentCuckooFilter::with_capacity(100);
/// filter.insert(&Prehashed(17))?;
/// assert_eq!(filter.contains_many(&[Prehashed(17), Prehashed(18)]), [true, false]);
///
/// let hash = filter.hash_of("an item");
/// filter.insert(&hash)?;
/// assert!(filter.contains("an item"));
/// # Ok::<(), koel::Full>(())
/// ```
// It does not implement `Hash`, because every `Hash` is an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Prehashed(pub u64);

impl<T: Hash + ?Sized> Key for T {
    #[inline]
    fn hash_with<S: BuildHasher>(&self, hasher: &S) -> u64 {
        hasher.hash_one(self)
    }
}

impl Key for Prehashed {
    #[inline]
    fn hash_with<S: BuildHasher>(&self, _: &S) -> u64 {
        self.0
    }

    #[inline]
    fn prehashed(items: &[Self]) -> Option<&[Prehashed]> {
        Some(items)
    }
}

/// The items of an iterator over a slice of hashes.
impl Key for &Prehashed {
    #[inline]
    fn hash_with<S: BuildHasher>(&self, _: &S) -> u64 {
        self.0
    }
}

mod sealed {
    pub trait Sealed {}

    impl<T: std::hash::Hash + ?Sized> Sealed for T {}

    impl Sealed for super::Prehashed {}

    impl Sealed for &super::Prehashed {}
}
