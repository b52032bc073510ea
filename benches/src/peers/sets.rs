//! The sets that threads share: koel and its peers, each set up as its author would for speed.
//!
//! Every peer hashes its keys with the same hasher, within the measured time and once per operation. Peers that hash
//! for themselves are built with [`KeyHasher`], and peers that take hashes get [`hash_of`]. The single-threaded ones
//! are behind locks, as a user would share them.

use crossbeam_utils::CachePadded;
use cuckoo_clock::config::CuckooConfiguration;
use foldhash::quality::{FixedState, FoldHasher};
use koel::ConcurrentCuckooFilter;
use parking_lot::Mutex;
use std::cell::RefCell;
use std::hash::{BuildHasher, BuildHasherDefault, Hasher};
use std::marker::PhantomData;
use std::num::NonZeroUsize;
use std::ops::DerefMut;

pub const KOEL: &str = "koel";
pub const KOEL_GROWING: &str = "koel (growing)";

/// The false-positive rate when full: that of 16-bit fingerprints.
const RATE: f64 = 1.2e-4;

/// A set of keys.
pub trait Peer: Sized {
    /// The supported false-positive rate that is nearest to [`RATE`].
    const RATE: f64;
    /// Whether the peer has batch methods.
    const MANY: bool = false;
    /// Whether the peer takes more keys than it was built for.
    const GROWS: bool;

    fn name() -> String;
    /// Builds a set with room for this many items.
    fn build(items: u64) -> Self;
    /// Builds a set whose slots are 94 % full with this many items, if the peer supports that.
    fn build_tight(items: u64) -> Self {
        Self::build(items)
    }
    /// Adds a key. Returns whether there was room.
    fn insert(&self, key: u64) -> bool;
    fn contains(&self, key: u64) -> bool;
    /// Adds a key unless it is there. Returns whether it was new, or `None` if there was no room. Of racing threads
    /// with one key, one should be told that it was new.
    fn claim(&self, key: u64) -> Option<bool>;
    /// Returns whether the key was there, or `None` if the peer cannot remove keys.
    fn remove(&self, key: u64) -> Option<bool>;
    /// Returns the bytes that the peer touches, if it allocates more than that.
    fn says_it_holds(&self) -> Option<usize> {
        None
    }
    /// Returns the false-positive rate that the peer reports, if it does.
    fn told(&self) -> Option<f64> {
        None
    }
    /// Returns the bytes of a file that the peer has mapped.
    fn mapped(&self) -> usize {
        0
    }
    /// Returns the number of keys without room.
    fn insert_many(&self, _: &[u64]) -> u64 {
        unreachable!("a peer without batches")
    }
    /// Returns the number of keys found.
    fn contains_many(&self, _: &[u64]) -> u64 {
        unreachable!("a peer without batches")
    }
}

/// A set that threads share.
pub trait Shared: Peer + Sync {}

impl<P: Peer + Sync> Shared for P {}

/// Returns the hasher of all peers. It is the quality variant, because some peers use the bits of the hash as they are.
pub fn hasher() -> FixedState {
    FixedState::with_seed(0)
}

#[inline]
pub fn hash_of(key: u64) -> u64 {
    hasher().hash_one(key)
}

/// koel: of fixed size, built so that the items fill it to 94 %, or growing from nothing.
pub struct Koel<const GROWS: bool>(ConcurrentCuckooFilter<FixedState>);

impl<const GROWS: bool> Peer for Koel<GROWS> {
    /// At these rates, fingerprints have 16 bits.
    const RATE: f64 = if GROWS { 0.001_4 } else { RATE };
    const MANY: bool = true;
    const GROWS: bool = GROWS;

    fn name() -> String {
        if GROWS { KOEL_GROWING.into() } else { KOEL.into() }
    }

    fn build(items: u64) -> Self {
        let builder = ConcurrentCuckooFilter::builder().false_positive_rate(Self::RATE);
        let builder = builder.capacity(if GROWS { 1 } else { items as usize }).hasher(hasher());
        let builder = if GROWS { builder.growing() } else { builder };
        Koel(builder.build().expect("memory for the filter"))
    }

    fn build_tight(items: u64) -> Self {
        let slots = items as f64 / 0.94;
        let capacity = slots * 0.93;
        let close = Self::build(capacity as u64).0.stats().slots as f64;
        Self::build((capacity * slots / close) as u64)
    }

    #[inline]
    fn insert(&self, key: u64) -> bool {
        self.0.insert(&key).is_ok()
    }

    #[inline]
    fn contains(&self, key: u64) -> bool {
        self.0.contains(&key)
    }

    #[inline]
    fn claim(&self, key: u64) -> Option<bool> {
        self.0.insert_if_absent(&key).ok()
    }

    #[inline]
    fn remove(&self, key: u64) -> Option<bool> {
        Some(self.0.remove(&key))
    }

    fn says_it_holds(&self) -> Option<usize> {
        Some(self.0.size_in_bytes())
    }

    fn told(&self) -> Option<f64> {
        Some(self.0.stats().false_positive_rate)
    }

    fn insert_many(&self, keys: &[u64]) -> u64 {
        self.0.insert_many(keys).iter().filter(|result| result.is_err()).count() as u64
    }

    fn contains_many(&self, keys: &[u64]) -> u64 {
        self.0.contains_many(keys).into_iter().filter(|&found| found).count() as u64
    }
}

/// Implements [`Peer`] or [`Sequential`]: its name and rate, whether it grows, how it is built, and how it inserts,
/// finds, claims and removes; and what else it has.
macro_rules! set {
    (
        $trait:ident, $peer:ty, [&$($mutable:tt)?], $name:expr, $rate:expr, $grows:expr,
        |$items:ident| $build:expr, |$a:ident, $b:ident| $insert:expr,
        |$c:ident, $d:ident| $contains:expr, |$e:ident, $f:ident| $claim:expr,
        |$g:pat_param, $h:pat_param| $remove:expr $(, { $($more:tt)* })?
    ) => {
        impl $trait for $peer {
            const RATE: f64 = $rate;
            const GROWS: bool = $grows;

            fn name() -> String {
                $name.into()
            }

            fn build(items: u64) -> Self {
                let $items = items;
                $build
            }

            #[inline]
            fn insert(&$($mutable)? self, key: u64) -> bool {
                let ($a, $b) = (self, key);
                $insert
            }

            #[inline]
            fn contains(&self, key: u64) -> bool {
                let ($c, $d) = (self, key);
                $contains
            }

            #[inline]
            fn claim(&$($mutable)? self, key: u64) -> Option<bool> {
                let ($e, $f) = (self, key);
                $claim
            }

            #[inline]
            fn remove(&$($mutable)? self, key: u64) -> Option<bool> {
                let ($g, $h) = (self, key);
                $remove
            }

            $($($more)*)?
        }
    };
}

pub type AtomicBloom = fastbloom::AtomicBloomFilter<FixedState>;
pub type AtomicCuckoo = atomic_cuckoo_filter::CuckooFilter<KeyHasher>;
pub type CuckooClock = cuckoo_clock::CuckooFilter<FixedState>;
pub type DashSet = dashmap::DashSet<u64, FixedState>;

set!(
    Peer, AtomicBloom, [&], "fastbloom", RATE, false,
    |items| {
        let builder = fastbloom::AtomicBloomFilter::with_false_pos(RATE);
        builder.hasher(hasher()).expected_items(items as usize)
    },
    |set, key| {
        set.insert(&key);
        true
    },
    |set, key| set.contains(&key),
    |set, key| Some(!set.insert(&key)),
    |_, _| None
);

// The capacity is the number of slots, 16 bits each, and is rounded up to a power of two.
set!(
    Peer, AtomicCuckoo, [&], "atomic-cuckoo-filter", RATE, false,
    |items| {
        let builder = atomic_cuckoo_filter::CuckooFilterBuilder::default();
        builder.capacity(slots_for(items)).build().expect("a valid setup")
    },
    |set, key| set.insert(&key).is_ok(),
    |set, key| set.contains(&key),
    |set, key| set.insert_unique(&key).ok(),
    |set, key| Some(set.remove(&key))
);

// A mutex per bucket. An insert that finds no room has thrown another item out. It does not say whether an item was
// there, so racing threads may both be told that it was new.
set!(
    Peer, CuckooClock, [&], "cuckoo-clock", RATE, false,
    |items| {
        let builder = CuckooConfiguration::builder(slots_for(items));
        let builder = builder.bucket_size(NonZeroUsize::new(4).expect("four"));
        let builder = builder.fingerprint_bits(16.try_into().expect("a number of bits"));
        cuckoo_clock::CuckooFilter::new(builder.build().expect("a valid setup"), hasher())
    },
    |set, key| set.insert(&key).is_none(),
    |set, key| set.contains(&key),
    |set, key| if set.contains(&key) {
        Some(false)
    } else {
        set.insert(&key).is_none().then_some(true)
    },
    |set, key| Some(set.remove(&key))
);

set!(
    Peer, DashSet, [&], "DashSet", 0.0, true,
    |items| dashmap::DashSet::with_capacity_and_hasher(items as usize, hasher()),
    |set, key| {
        set.insert(key);
        true
    },
    |set, key| set.contains(&key),
    |set, key| Some(set.insert(key)),
    |set, key| Some(set.remove(&key).is_some())
);

/// A filter in a mapped file, and the bytes of that, behind a lock for readers and writers. The file has no name any
/// more, so it goes with the filter.
pub struct InFile(cuckoofilter_mmap::ConcurrentCuckooFilter<u64>, usize);

// Its insert looks into one of the two buckets only, so it may take what is there for new.
set!(
    Peer, InFile, [&], "cuckoofilter-mmap", RATE, false,
    |items| {
        let folder = tempfile::tempdir().expect("a folder for the file");
        let builder = cuckoofilter_mmap::CuckooFilter::<u64>::builder(slots_for(items));
        let filter = builder.build(folder.path().join("filter")).expect("a file");
        let bytes = filter.capacity() * 2;
        InFile(cuckoofilter_mmap::ConcurrentCuckooFilter::new(filter), bytes)
    },
    |set, key| set.0.insert(&key).is_ok(),
    |set, key| set.0.contains(&key),
    |set, key| if set.contains(key) { Some(false) } else { set.0.insert(&key).ok() },
    |set, key| set.0.delete(&key).ok(),
    {
        fn mapped(&self) -> usize {
            self.1
        }
    }
);

/// A single-threaded filter that takes hashes. Its operations return what those of a [`Peer`] do.
pub trait Sequential {
    const RATE: f64;
    const GROWS: bool;
    fn name() -> String;
    fn build(items: u64) -> Self;
    fn insert(&mut self, hash: u64) -> bool;
    fn contains(&self, hash: u64) -> bool;
    fn claim(&mut self, hash: u64) -> Option<bool>;
    fn remove(&mut self, hash: u64) -> Option<bool>;
}

pub type Cuckoofilter = cuckoofilter::CuckooFilter<Prehashed>;
pub type Autoscale = autoscale_cuckoo_filter::CuckooFilter<u64, KeyHasher>;
pub type Scalable = scalable_cuckoo_filter::ScalableCuckooFilter<u64, Prehashed>;
pub type BloomLib = bloom_lib::CuckooFilter<u64, BuildHasherDefault<Prehashed>>;
pub type Quotient = qfilter::Filter;

/// The first table of a chain gets half the requested rate, so twice the rate makes 16 bits.
const CHAIN_OF_16_BITS: f64 = 2.0 * 8.0 / 65_536.0;

// It has 8-bit fingerprints only: half the memory, and a false-positive rate of 3 %. The number of slots is rounded up
// to a power of two.
set!(
    Sequential, Cuckoofilter, [&mut], "cuckoofilter", 0.03, false,
    |items| cuckoofilter::CuckooFilter::with_capacity(slots_for(items)),
    |set, hash| set.add(&hash).is_ok(),
    |set, hash| set.contains(&hash),
    |set, hash| set.test_and_add(&hash).ok(),
    |set, hash| Some(set.delete(&hash))
);

// It grows when it is full, so it refuses nothing.
set!(
    Sequential, Autoscale, [&mut], "autoscale_cuckoo_filter", RATE, true,
    |items| {
        let builder = autoscale_cuckoo_filter::CuckooFilterBuilder::<KeyHasher>::default();
        let builder = builder.initial_capacity(items as usize);
        builder.false_positive_probability(CHAIN_OF_16_BITS).finish()
    },
    |set, hash| {
        set.add_hash(hash);
        true
    },
    |set, hash| set.contains_hash(hash),
    |set, hash| Some(!set.add_hash_if_not_exist(hash)),
    |set, hash| Some(set.remove_hash(hash))
);

// A chain of tables. Each is twice as large as the one before, and has one more bit per item, so that all of them
// together keep the rate.
set!(
    Sequential, Scalable, [&mut], "scalable_cuckoo_filter", RATE, true,
    |items| {
        let builder = scalable_cuckoo_filter::ScalableCuckooFilterBuilder::new();
        let builder = builder.initial_capacity(items as usize).hasher(Prehashed::default());
        builder.false_positive_probability(CHAIN_OF_16_BITS).finish()
    },
    |set, hash| {
        set.insert(&hash);
        true
    },
    |set, hash| set.contains(&hash),
    |set, hash| if set.contains(&hash) {
        Some(false)
    } else {
        set.insert(&hash);
        Some(true)
    },
    |_, _| None
);

set!(
    Sequential, BloomLib, [&mut], "bloom-lib", RATE, false,
    |items| {
        let hasher = BuildHasherDefault::default();
        bloom_lib::CuckooFilter::with_hasher(items as usize, hasher).expect("more than no items")
    },
    |set, hash| set.insert(&hash).is_ok(),
    |set, hash| set.contains(&hash),
    |set, hash| if set.contains(&hash) {
        Some(false)
    } else {
        set.insert(&hash).ok().map(|_| true)
    },
    |set, hash| Some(set.remove(&hash))
);

// It takes hashes as fingerprints, so its own hasher is never used. The rate gives 13 bits of remainder.
set!(
    Sequential, Quotient, [&mut], "qfilter", RATE, false,
    |items| qfilter::Filter::new(items, 1.0 / 8_192.0).expect("a rate that fits"),
    |set, hash| set.insert_fingerprint(true, hash).is_ok(),
    |set, hash| set.contains_fingerprint(hash),
    |set, hash| set.insert_fingerprint(false, hash).ok(),
    |set, hash| Some(set.remove_fingerprint(hash))
);

/// What lets threads, or one thread alone, change a filter.
pub trait Lock<F> {
    fn around(filter: F) -> Self;
    fn lock(&self) -> impl DerefMut<Target = F>;
}

impl<F> Lock<F> for Mutex<F> {
    fn around(filter: F) -> Self {
        Mutex::new(filter)
    }

    #[inline]
    fn lock(&self) -> impl DerefMut<Target = F> {
        self.lock()
    }
}

impl<F> Lock<F> for RefCell<F> {
    fn around(filter: F) -> Self {
        RefCell::new(filter)
    }

    #[inline]
    fn lock(&self) -> impl DerefMut<Target = F> {
        self.borrow_mut()
    }
}

/// Filters behind locks, one per shard. The hash chooses the shard, so operations on the same key exclude each other.
pub struct Shards<F, L, const SHARDS: usize>(Box<[CachePadded<L>]>, PhantomData<fn() -> F>);

pub type Locked<F, const SHARDS: usize> = Shards<F, Mutex<F>, SHARDS>;
/// A filter that one thread uses.
pub type Alone<F> = Shards<F, RefCell<F>, 1>;

impl<F: Sequential, L: Lock<F>, const SHARDS: usize> Shards<F, L, SHARDS> {
    /// Locks the shard that the bits from 40 on choose. No filter uses these bits within a shard: fingerprints come
    /// from the highest 16 bits, and buckets from at most the lowest 40. If the filters used them, all items of a shard
    /// would share a part of their fingerprints or buckets.
    #[inline]
    fn lock(&self, hash: u64) -> impl DerefMut<Target = F> {
        self.0[(hash >> 40) as usize % SHARDS].lock()
    }
}

impl<F: Sequential, L: Lock<F>, const SHARDS: usize> Peer for Shards<F, L, SHARDS> {
    const RATE: f64 = F::RATE;
    const GROWS: bool = F::GROWS;

    fn name() -> String {
        match SHARDS {
            1 => format!("{} (mutex)", F::name()),
            _ => format!("{} ({SHARDS} shards)", F::name()),
        }
    }

    /// Gives each shard room for six standard deviations more than its share. Items fall to shards by chance, and one
    /// in 10^9 shards gets more than that.
    fn build(items: u64) -> Self {
        let share = items as f64 / SHARDS as f64;
        let deviation = (share * (1.0 - 1.0 / SHARDS as f64)).sqrt();
        let room = (share + 6.0 * deviation).ceil() as u64;
        let shards = (0..SHARDS).map(|_| CachePadded::new(L::around(F::build(room))));
        Shards(shards.collect(), PhantomData)
    }

    #[inline]
    fn insert(&self, key: u64) -> bool {
        let hash = hash_of(key);
        self.lock(hash).insert(hash)
    }

    #[inline]
    fn contains(&self, key: u64) -> bool {
        let hash = hash_of(key);
        self.lock(hash).contains(hash)
    }

    #[inline]
    fn claim(&self, key: u64) -> Option<bool> {
        let hash = hash_of(key);
        self.lock(hash).claim(hash)
    }

    #[inline]
    fn remove(&self, key: u64) -> Option<bool> {
        let hash = hash_of(key);
        self.lock(hash).remove(hash)
    }
}

/// The hasher of all peers, for those that create it by `Default`, and for those that cannot take hashes: it returns a
/// given `u64` unchanged, because that is a hash already, and hashes all else, which are the fingerprints.
#[derive(Clone)]
pub struct PeerHasher<const GIVEN: bool> {
    given: Option<u64>,
    own: FoldHasher<'static>,
}

pub type KeyHasher = PeerHasher<false>;
pub type Prehashed = PeerHasher<true>;

impl<const GIVEN: bool> Default for PeerHasher<GIVEN> {
    #[inline]
    fn default() -> Self {
        PeerHasher { given: None, own: hasher().build_hasher() }
    }
}

impl<const GIVEN: bool> Hasher for PeerHasher<GIVEN> {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        self.own.write(bytes);
    }

    #[inline]
    fn write_u64(&mut self, number: u64) {
        if GIVEN {
            self.given = Some(number);
        } else {
            self.own.write_u64(number);
        }
    }

    #[inline]
    fn write_usize(&mut self, number: usize) {
        self.own.write_usize(number);
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.given.unwrap_or_else(|| self.own.finish())
    }
}

/// Returns the number of slots that a cuckoo filter needs for this many items. It can fill 95 % of them.
fn slots_for(items: u64) -> usize {
    (items as f64 / 0.95).ceil() as usize
}
