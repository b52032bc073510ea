//! Hashes that are the same in every process: for filters that are saved.

use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// A hasher that can be named in a file and made again from it. A filter has to have one to be saved.
///
/// [`StableHash`] is the one that comes with koel. To save filters with another, implement this for
/// it; then it must give the same hashes in all processes, on all machines and in all versions of your
/// program that share the file. When a file is loaded, the name has to be the same, and so has the
/// hash of a probe; no more can be checked. (The standard library's `DefaultHasher` does not promise to stay what it
/// is. And mind that integers are written in the machine's order of bytes, unless a hasher has its own
/// `write_u32` and so on, as the one below has not: then a file is refused where that is another.)
///
/// ```
/// use koel::{ConcurrentCuckooFilter, PersistentHasher};
/// use std::hash::{BuildHasher, Hasher};
///
/// #[derive(Clone)]
/// struct Fnv(u64);
///
/// struct FnvHasher(u64);
///
/// impl Hasher for FnvHasher {
///     fn write(&mut self, bytes: &[u8]) {
///         for byte in bytes {
///             self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x100_0000_01B3);
///         }
///     }
///
///     fn finish(&self) -> u64 {
///         self.0
///     }
/// }
///
/// impl BuildHasher for Fnv {
///     type Hasher = FnvHasher;
///
///     fn build_hasher(&self) -> FnvHasher {
///         FnvHasher(self.0)
///     }
/// }
///
/// impl PersistentHasher for Fnv {
///     const NAME: &'static str = "example.org FNV-1a 64";
///
///     fn seed(&self) -> u128 {
///         self.0.into()
///     }
///
///     fn from_seed(seed: u128) -> Option<Self> {
///         Some(Fnv(seed.try_into().ok()?))
///     }
/// }
///
/// let filter = ConcurrentCuckooFilter::builder().capacity(100).hasher(Fnv(7)).build()?;
/// filter.insert("an item").expect("room for a hundred");
/// let mut file = Vec::new();
/// filter.write_to(&mut file)?;
/// let again = ConcurrentCuckooFilter::<Fnv>::read_from(&file[..])?;
/// assert!(again.contains("an item"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "a filter that hashes with `{Self}` cannot be saved or loaded",
    label = "the hashes of `{Self}` are not known to be the same in another process",
    note = "give the filter a hasher that is: `.hasher(StableHash::random())` when it is built, and \
            `ConcurrentCuckooFilter::<StableHash>::load` for its file, or \
            `GrowingCuckooFilter::<StableHash>::load` if it grows",
    note = "or implement `PersistentHasher` for a hasher of your own"
)]
pub trait PersistentHasher: BuildHasher + Sized {
    /// What the file calls it: at most 32 bytes, and another one as soon as any hash is another.
    const NAME: &'static str;

    /// All that two hashers of this type can differ in; or, if that is to be kept out of the file, what
    /// [`from_seed`](Self::from_seed) finds it by, such as the number of a key. The probes notice a wrong one.
    fn seed(&self) -> u128;

    /// The hasher of this seed, if there is one.
    fn from_seed(seed: u128) -> Option<Self>;
}

/// A hasher whose output is fixed for good: XXH3, 64 bits, with a seed. To be given to the
/// [builder](crate::Builder::hasher) of a filter that will be [saved](crate::ConcurrentCuckooFilter::save).
///
/// ```
/// use koel::{ConcurrentCuckooFilter, StableHash};
///
/// let seen = ConcurrentCuckooFilter::builder().capacity(1_000).hasher(StableHash::random()).build()?;
/// # let folder = std::env::temp_dir().join(format!("koel-doc-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder)?;
/// # let path = folder.join("seen.koel");
/// seen.insert("https://a.example/").expect("room for a thousand");
/// seen.save(&path)?;
///
/// let seen = ConcurrentCuckooFilter::<StableHash>::load(&path)?;
/// assert!(seen.contains("https://a.example/"));
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # What is hashed
///
/// An item's [`Hash`](std::hash::Hash) writes bytes, in one piece or several. The first piece is hashed
/// with the seed, and each other one with the hash of those before it as its seed: `XXH3(last, … XXH3(second,
/// XXH3(first, seed)))`. Integers are little-endian pieces, `usize` and `isize` of 64 bits.
///
/// What the types of the standard library write, Rust does not promise for ever. Today a `str` or
/// `String` writes its bytes, and then a piece of one byte, 255; a slice, `Vec` or array of `u8` its
/// length, as 64 bits, and then its bytes; a tuple what its fields do. Slices of longer integers, and of
/// `usize`, and IP addresses are written as they lie in memory, so they hash differently where bytes are in the other
/// order, or words shorter.
///
/// Each file has the hash of a probe (a `str`, integers, a slice of `u8`, an `Option` and a `char`),
/// and is refused if a later Rust hashes that differently. Of other types nobody would notice: not
/// even of a type of yours, if it derives `Hash` and gets another field. Then nothing is found that was in. If
/// that may happen, insert a tuple of plain fields instead of your type.
///
/// For files that have to last longer than that, or that programs in other languages are to read,
/// hash bytes yourself and use the forms for hashes:
///
/// ```
/// use koel::{ConcurrentCuckooFilter, StableHash};
///
/// let hash = StableHash::with_seed(7);
/// let seen = ConcurrentCuckooFilter::builder().capacity(1_000).hasher(hash).build()?;
/// let url = "https://a.example/";
/// seen.insert_hash(hash.hash_bytes(url.as_bytes())).expect("room for a thousand");
/// assert!(seen.contains_hash(seen.hasher().hash_bytes(url.as_bytes())));
/// assert_eq!(hash.hash_bytes(b"xxh3"), 0x1438_8809_DB81_35AF);
/// # Ok::<(), koel::BuildError>(())
/// ```
///
/// # Who chooses the items
///
/// XXH3 is fast and spreads well, but it is no cipher. Keep the seed, and the file, which has it, from whoever chooses the items, and
/// take a [random](Self::random) one: who knows it can choose items that meet in one bucket, and are
/// then refused, or that hash the same and count as one. Against someone who has the time to find out, implement
/// [`PersistentHasher`] for a keyed hash such as SipHash.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct StableHash {
    seed: u64,
}

impl StableHash {
    /// The hasher of this seed: the same everywhere, and always.
    ///
    /// ```
    /// use koel::StableHash;
    /// use std::hash::BuildHasher;
    ///
    /// let (one, other) = (StableHash::with_seed(1), StableHash::with_seed(2));
    /// assert_eq!(one.hash_one("an item"), StableHash::with_seed(1).hash_one("an item"));
    /// assert_ne!(one.hash_one("an item"), other.hash_one("an item"));
    /// ```
    #[must_use]
    pub const fn with_seed(seed: u64) -> Self {
        StableHash { seed }
    }

    /// A hasher of a random seed. The seed is in the filter's file, so it need not be kept otherwise.
    ///
    /// ```
    /// use koel::StableHash;
    ///
    /// assert_ne!(StableHash::random(), StableHash::random());
    /// ```
    #[must_use]
    pub fn random() -> Self {
        // The keys of a `RandomState` are random.
        StableHash { seed: RandomState::new().hash_one(0) }
    }

    /// XXH3 of these bytes, 64 bits, with the seed, and nothing else.
    ///
    /// It is not what a `str` or a slice of these bytes hashes to as an item, so stay with one of the two.
    ///
    /// ```
    /// let hash = koel::StableHash::with_seed(0);
    /// assert_eq!(hash.hash_bytes(b""), 0x2D06_8005_38D3_94C2);
    /// ```
    #[inline]
    #[must_use]
    pub fn hash_bytes(&self, bytes: &[u8]) -> u64 {
        xxh3_64_with_seed(bytes, self.seed)
    }
}

/// Its seed is not shown, lest it get into logs.
impl fmt::Debug for StableHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StableHash").finish_non_exhaustive()
    }
}

impl BuildHasher for StableHash {
    type Hasher = StableHasher;

    #[inline]
    fn build_hasher(&self) -> StableHasher {
        StableHasher { hash: self.seed }
    }
}

impl PersistentHasher for StableHash {
    const NAME: &'static str = "XXH3-64";

    fn seed(&self) -> u128 {
        self.seed.into()
    }

    fn from_seed(seed: u128) -> Option<Self> {
        Some(StableHash { seed: seed.try_into().ok()? })
    }
}

/// Hashes one item for [`StableHash`].
pub struct StableHasher {
    /// Of what was written so far; at first the seed.
    hash: u64,
}

impl fmt::Debug for StableHasher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StableHasher").finish_non_exhaustive()
    }
}

/// Integers whose bytes are written in the order that they have on most machines, on all.
macro_rules! little_endian {
    ($($write:ident($number:ty as $as:ty))*) => {
        $(#[inline]
        fn $write(&mut self, number: $number) {
            self.write(&(number as $as).to_le_bytes());
        })*
    };
}

impl Hasher for StableHasher {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        self.hash = xxh3_64_with_seed(bytes, self.hash);
    }

    little_endian! {
        write_u16(u16 as u16)
        write_u32(u32 as u32)
        write_u64(u64 as u64)
        write_u128(u128 as u128)
        write_usize(usize as u64)
        write_i16(i16 as i16)
        write_i32(i32 as i32)
        write_i64(i64 as i64)
        write_i128(i128 as i128)
        write_isize(isize as i64)
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.hash
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn items_write_what_the_docs_say() {
        let hash = StableHash::with_seed(42);
        let of = |pieces: &[&[u8]]| {
            pieces.iter().fold(42, |hash, piece| StableHash::with_seed(hash).hash_bytes(piece))
        };
        assert_eq!(hash.hash_one("item"), of(&[b"item", b"\xFF"]));
        assert_eq!(hash.hash_one(String::from("item")), of(&[b"item", b"\xFF"]));
        let with_length = of(&[b"\x04\0\0\0\0\0\0\0", b"item"]);
        assert_eq!(hash.hash_one(&b"item"[..]), with_length);
        assert_eq!(hash.hash_one(b"item".to_vec()), with_length);
        assert_eq!(hash.hash_one(*b"item"), with_length);
        assert_eq!(hash.hash_one(0x0102_0304_u32), of(&[&[4, 3, 2, 1]]));
        assert_eq!(hash.hash_one(-2i16), of(&[&[0xFE, 0xFF]]));
        assert_eq!(hash.hash_one(3usize), of(&[&[3, 0, 0, 0, 0, 0, 0, 0]]));
        assert_eq!(hash.hash_one(-1isize), of(&[&[0xFF; 8]]));
        assert_eq!(hash.hash_one((7u8, "a")), of(&[&[7], b"a", b"\xFF"]));
        assert_eq!(hash.hash_one(1u128 << 64), of(&[&(1u128 << 64).to_le_bytes()]));
    }

    #[test]
    fn a_seed_that_is_none_is_refused() {
        assert_eq!(StableHash::from_seed(7), Some(StableHash::with_seed(7)));
        assert_eq!(StableHash::from_seed(1 << 64), None);
    }
}
