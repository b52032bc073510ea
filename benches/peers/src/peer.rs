//! What a peer has to do, and the two wrappers that make a filter for one thread safe to share.
//!
//! Each peer hashes its keys with [`KeyHasher`], within the measured time and once per operation:
//! those that hash for themselves are given it, those that take hashes get [`hash_of`].

use crossbeam_utils::CachePadded;
use foldhash::quality::{FixedState, FoldHasher};
use parking_lot::{Mutex, MutexGuard};
use std::hash::{BuildHasher, Hasher};

/// No room. What else has changed then is the peer's affair.
pub struct Refused;

/// A set of keys that threads share.
pub trait Peer: Sync + Sized {
    /// How often it errs when full: the rate nearest to 1.2e-4 that it can be built for.
    const RATE: f64 = 1.2e-4;
    /// Whether it has many-forms of its own. If not, its loop stands for them.
    const MANY: bool = false;

    fn name() -> String;
    /// With room for this many items.
    fn build(items: u64) -> Self;
    /// So that these items take 94 % of its slots, where a peer can be built like that.
    fn build_tight(items: u64) -> Self {
        Self::build(items)
    }
    fn insert(&self, key: u64) -> Result<(), Refused>;
    fn contains(&self, key: u64) -> bool;
    /// Whether the key was new: true for one of any number of racing threads.
    fn insert_if_absent(&self, key: u64) -> Result<bool, Refused>;
    /// Whether it was there; `None` if the peer cannot remove.
    fn remove(&self, key: u64) -> Option<bool>;
    /// The bytes that it touches, of a peer that takes more.
    fn says_it_holds(&self) -> Option<usize> {
        None
    }
    /// How many were refused.
    fn insert_many(&self, keys: &[u64]) -> u64 {
        keys.iter().filter(|&&key| self.insert(key).is_err()).count() as u64
    }
    /// How many are in.
    fn contains_many(&self, keys: &[u64]) -> u64 {
        keys.iter().filter(|&&key| self.contains(key)).count() as u64
    }
}

/// A filter for one thread, which knows items by their hashes.
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

/// A set that begins small and grows, on one thread. It refuses nothing.
pub trait Growing: Sized {
    const NAME: &str;
    /// If not, it is built again for each number of items.
    const GROWS: bool = true;
    /// With room for this many items to begin with.
    fn build(first: u64) -> Self;
    fn insert(&mut self, key: u64);
    fn contains(&self, key: u64) -> bool;
    /// The bytes that it touches, of a set that takes more.
    fn says_it_holds(&self) -> Option<usize> {
        None
    }
}

/// A filter behind locks. The shard is chosen by the hash, so a key's operations exclude each other.
pub struct Locked<F, const SHARDS: usize>(Box<[CachePadded<Mutex<F>>]>);

impl<F: Sequential, const SHARDS: usize> Locked<F, SHARDS> {
    /// The bits from 40 on are ones that no filter uses within a shard: they take their
    /// fingerprints from the highest 16, and their buckets from at most the lowest 40. With bits
    /// that they use, all items of a shard would share a part of their fingerprints or buckets.
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

    /// Items fall to shards by chance: one in 10^9 shards gets six deviations more than its share.
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

/// What all peers hash with: the quality variant, as some take bits of the hash as they are.
pub fn hasher() -> FixedState {
    FixedState::with_seed(0)
}

#[inline]
pub fn hash_of(key: u64) -> u64 {
    hasher().hash_one(key)
}

/// The same hasher for peers that make theirs by `Default`.
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

/// For peers that insist on hashing: takes a `u64` for the hash that it is, and hashes the rest,
/// which are the fingerprints.
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
