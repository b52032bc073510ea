//! The default hasher of a filter.

use std::fmt;
use std::hash::{BuildHasher, Hasher};

/// The default hasher of a filter: a fast hash with random keys.
///
/// Nobody who chooses the items can choose where they go, and no other process has the same hashes. (It is ahash today,
/// and may be another one in any version.)
#[derive(Clone, Default)]
pub struct RandomState(ahash::RandomState);

/// The [`Hasher`] of a [`RandomState`].
#[derive(Clone)]
pub struct RandomHasher(ahash::AHasher);

impl RandomState {
    /// Creates a hasher with keys of its own.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

impl BuildHasher for RandomState {
    type Hasher = RandomHasher;

    #[inline]
    fn build_hasher(&self) -> RandomHasher {
        RandomHasher(self.0.build_hasher())
    }
}

/// Without its keys.
impl fmt::Debug for RandomState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RandomState").finish_non_exhaustive()
    }
}

/// Without its state.
impl fmt::Debug for RandomHasher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RandomHasher").finish_non_exhaustive()
    }
}

/// Passes on these methods. The default of each would write bytes, which are hashed more slowly.
macro_rules! passed_on {
    ($($name:ident: $type:ty),+) => {
        $(#[inline]
        fn $name(&mut self, value: $type) {
            self.0.$name(value);
        })+
    };
}

impl Hasher for RandomHasher {
    passed_on! {
        write: &[u8], write_u8: u8, write_u16: u16, write_u32: u32, write_u64: u64, write_u128: u128,
        write_usize: usize, write_i8: i8, write_i16: i16, write_i32: i32, write_i64: i64, write_i128: i128,
        write_isize: isize
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0.finish()
    }
}
