//! The interface of a peer, and the two wrappers that make a single-threaded filter safe to share.
//!
//! Every peer hashes its keys with the same hasher, within the measured time and once per
//! operation. Peers that hash for themselves are built with [`KeyHasher`], and peers that take
//! hashes get [`hash_of`].

use crossbeam_utils::CachePadded;
use foldhash::quality::{FixedState, FoldHasher};
use parking_lot::{Mutex, MutexGuard};
use std::hash::{BuildHasher, Hasher};

/// There is no room. Whether the failed insert changed the filter depends on the peer.
pub struct Refused;

/// A set of keys that threads share.
pub trait Peer: Sync + Sized {
    /// The false-positive rate when full: the supported rate that is nearest to 1.2e-4.
    const RATE: f64 = 1.2e-4;
    /// Whether the peer has batch methods. If not, the figures of its loops stand for them.
    const MANY: bool = false;

    fn name() -> String;
    /// Builds a filter with room for this many items.
    fn build(items: u64) -> Self;
    /// Builds a filter whose slots are 94 % full with this many items, if the peer supports that.
    fn build_tight(items: u64) -> Self {
        Self::build(items)
    }
    fn insert(&self, key: u64) -> Result<(), Refused>;
    fn contains(&self, key: u64) -> bool;
    /// Returns `true` if the key was new, which it should be for one of several racing threads.
    fn insert_if_absent(&self, key: u64) -> Result<bool, Refused>;
    /// Returns whether the key was there, or `None` if the peer cannot remove keys.
    fn remove(&self, key: u64) -> Option<bool>;
    /// Returns the bytes that the peer touches, if it allocates more than that.
    fn says_it_holds(&self) -> Option<usize> {
        None
    }
    /// Returns the number of refused keys.
    fn insert_many(&self, keys: &[u64]) -> u64 {
        keys.iter().filter(|&&key| self.insert(key).is_err()).count() as u64
    }
    /// Returns the number of keys found.
    fn contains_many(&self, keys: &[u64]) -> u64 {
        keys.iter().filter(|&&key| self.contains(key)).count() as u64
    }
}

/// A single-threaded filter that takes hashes.
pub trait Sequential: Send {
    const NAME: &str;
    const RATE: f64 = 1.2e-4;
    fn build(items: u64) -> Self;
    fn insert(&mut self, hash: u64) -> Result<(), Refused>;
    fn contains(&self, hash: u64) -> bool;
    fn insert_if_absent(&mut self, hash: u64) -> Result<bool, Refused> {
        if self.contains(hash) { Ok(false) } else { self.insert(hash).map(|()| true) }
    }
    fn remove(&mut self, hash: u64) -> bool;
}

/// A set that begins small and grows, used by one thread. It refuses no key.
pub trait Growing: Sized {
    const NAME: &str;
    /// Whether the set grows. If not, it is built again for each number of items.
    const GROWS: bool = true;
    /// Builds a set with room for this many items at first.
    fn build(first: u64) -> Self;
    fn insert(&mut self, key: u64);
    fn contains(&self, key: u64) -> bool;
    /// Returns the bytes that the set touches, if it allocates more than that.
    fn says_it_holds(&self) -> Option<usize> {
        None
    }
}

/// Filters behind locks, one per shard. The hash chooses the shard, so operations on the same key
/// exclude each other.
pub struct Locked<F, const SHARDS: usize>(Box<[CachePadded<Mutex<F>>]>);

impl<F: Sequential, const SHARDS: usize> Locked<F, SHARDS> {
    /// Locks the shard that the bits from 40 on choose. No filter uses these bits within a shard:
    /// fingerprints come from the highest 16 bits, and buckets from at most the lowest 40. If the
    /// filters used them, all items of a shard would share a part of their fingerprints or buckets.
    #[inline]
    fn lock(&self, hash: u64) -> MutexGuard<'_, F> {
        self.0[(hash >> 40) as usize % SHARDS].lock()
    }
}

impl<F: Sequential, const SHARDS: usize> Peer for Locked<F, SHARDS> {
    const RATE: f64 = F::RATE;

    fn name() -> String {
        match SHARDS {
            1 => format!("{} (mutex)", F::NAME),
            _ => format!("{} ({SHARDS} shards)", F::NAME),
        }
    }

    /// Gives each shard room for six standard deviations more than its share. Items fall to shards
    /// by chance, and one in 10^9 shards gets more than that.
    fn build(items: u64) -> Self {
        let share = items as f64 / SHARDS as f64;
        let deviation = (share * (1.0 - 1.0 / SHARDS as f64)).sqrt();
        let room = (share + 6.0 * deviation).ceil() as u64;
        Locked((0..SHARDS).map(|_| CachePadded::new(Mutex::new(F::build(room)))).collect())
    }

    #[inline]
    fn insert(&self, key: u64) -> Result<(), Refused> {
        let hash = hash_of(key);
        self.lock(hash).insert(hash)
    }

    #[inline]
    fn contains(&self, key: u64) -> bool {
        let hash = hash_of(key);
        self.lock(hash).contains(hash)
    }

    #[inline]
    fn insert_if_absent(&self, key: u64) -> Result<bool, Refused> {
        let hash = hash_of(key);
        self.lock(hash).insert_if_absent(hash)
    }

    #[inline]
    fn remove(&self, key: u64) -> Option<bool> {
        let hash = hash_of(key);
        Some(self.lock(hash).remove(hash))
    }
}

/// Returns the hasher of all peers. It is the quality variant, because some peers use the bits of
/// the hash as they are.
pub fn hasher() -> FixedState {
    FixedState::with_seed(0)
}

#[inline]
pub fn hash_of(key: u64) -> u64 {
    hasher().hash_one(key)
}

/// The same hasher, for peers that create it by `Default`.
#[derive(Clone)]
pub struct KeyHasher(FoldHasher<'static>);

impl Default for KeyHasher {
    #[inline]
    fn default() -> Self {
        KeyHasher(hasher().build_hasher())
    }
}

impl Hasher for KeyHasher {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        self.0.write(bytes);
    }

    #[inline]
    fn write_u64(&mut self, number: u64) {
        self.0.write_u64(number);
    }

    #[inline]
    fn write_usize(&mut self, number: usize) {
        self.0.write_usize(number);
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0.finish()
    }
}

/// A hasher for peers that cannot take hashes. It returns a `u64` unchanged, because that is a hash
/// already, and hashes all else, which are the fingerprints.
#[derive(Clone, Default)]
pub struct Prehashed {
    hash: u64,
    rest: Option<KeyHasher>,
}

impl Hasher for Prehashed {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        self.rest.get_or_insert_default().write(bytes);
    }

    #[inline]
    fn write_usize(&mut self, number: usize) {
        self.rest.get_or_insert_default().write_usize(number);
    }

    #[inline]
    fn write_u64(&mut self, hash: u64) {
        self.hash = hash;
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.rest.as_ref().map_or(self.hash, KeyHasher::finish)
    }
}

/// Returns the number of slots that a cuckoo filter needs for this many items. It can fill 95 % of
/// them.
pub fn slots_for(items: u64) -> u64 {
    (items as f64 / 0.95).ceil() as u64
}
