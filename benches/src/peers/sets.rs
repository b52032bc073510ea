//! The sets that threads share: koel and its peers, each set up as its author would for speed.
//!
//! Every peer hashes its keys with the same hasher, within the measured time and once per operation. Peers that hash
//! for themselves are built with [`KeyHasher`], and peers that take hashes get [`hash_of`]. The single-threaded ones
//! are behind locks, as a user would share them.

use crossbeam_utils::CachePadded;
use cuckoo_clock::config::{BitCount, CuckooConfiguration, TtlConfig};
use foldhash::quality::{FixedState, FoldHasher};
use koel::ConcurrentCuckooFilter;
use parking_lot::Mutex;
use std::cell::RefCell;
use std::hash::{BuildHasher, BuildHasherDefault, Hasher};
use std::num::{NonZeroU32, NonZeroUsize};

pub const KOEL: &str = "koel";

/// The false-positive rate when full: that of 16-bit fingerprints.
pub const RATE: f64 = 1.2e-4;
/// That of koel's fingerprints of 16 bits when it grows.
pub const GROWING_RATE: f64 = 0.001_4;

/// A set of keys.
pub trait Peer {
    /// Adds a key. Returns whether there was room.
    fn insert(&self, key: u64) -> bool;
    fn contains(&self, key: u64) -> bool;
    /// Adds a key unless it is there. Returns whether it was new, or `None` if there was no room. Of racing threads
    /// with one key, one should be told that it was new.
    #[inline]
    fn claim(&self, key: u64) -> Option<bool> {
        if self.contains(key) { Some(false) } else { self.insert(key).then_some(true) }
    }
    /// Returns whether the key was there, or `None` if the peer cannot remove keys.
    fn remove(&self, _: u64) -> Option<bool> {
        None
    }
    /// Returns the bytes that the peer touches, if it allocates more than that.
    fn says_it_holds(&self) -> Option<usize> {
        None
    }
    /// Returns the false-positive rate that the peer reports, if it does.
    fn told(&self) -> Option<f64> {
        None
    }
}

/// Returns the hasher of all peers. It is the quality variant, because some peers use the bits of the hash as they are.
pub fn hasher() -> FixedState {
    FixedState::with_seed(0)
}

#[inline]
pub fn hash_of(key: u64) -> u64 {
    hasher().hash_one(key)
}

pub struct Koel(pub ConcurrentCuckooFilter<FixedState>);

/// Returns a builder of a koel filter with the hasher of all peers.
pub fn builder(capacity: u64, rate: f64) -> koel::Builder<FixedState> {
    let builder = ConcurrentCuckooFilter::builder().capacity(capacity as usize);
    builder.false_positive_rate(rate).hasher(hasher())
}

impl Koel {
    pub fn build(builder: koel::Builder<FixedState>) -> Self {
        Koel(builder.build().expect("memory for the filter"))
    }

    /// Of fixed size, with room for this many items.
    pub fn fixed(items: u64) -> Self {
        Koel::build(builder(items, RATE))
    }

    /// Of fixed size, and filled to 94 % by this many items.
    pub fn tight(items: u64) -> Self {
        let slots = items as f64 / 0.94;
        let capacity = slots * 0.93;
        let close = Self::fixed(capacity as u64).0.stats().slots as f64;
        Self::fixed((capacity * slots / close) as u64)
    }

    /// Growing to so many items, as far as it expects: 256-fold. Beyond, it would not remove its oldest items.
    pub fn growing(items: u64) -> Self {
        Koel::build(builder(items.div_ceil(256), GROWING_RATE).growing())
    }
}

impl Peer for Koel {
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
}

/// Implements [`Peer`] or [`Sequential`]: how a set inserts, finds, removes, and, if it can do so at once, claims.
macro_rules! set {
    (
        $trait:ident for $peer:ty, $this:ty,
        |$a:ident, $b:ident| $insert:expr, |$c:ident, $d:ident| $contains:expr,
        |$e:pat_param, $f:pat_param| $remove:expr $(, |$g:ident, $h:ident| $claim:expr)?
    ) => {
        impl $trait for $peer {
            #[inline]
            fn insert(self: $this, key: u64) -> bool {
                let ($a, $b) = (self, key);
                $insert
            }

            #[inline]
            fn contains(&self, key: u64) -> bool {
                let ($c, $d) = (self, key);
                $contains
            }

            #[inline]
            fn remove(self: $this, key: u64) -> Option<bool> {
                let ($e, $f) = (self, key);
                $remove
            }

            $(
                #[inline]
                fn claim(self: $this, key: u64) -> Option<bool> {
                    let ($g, $h) = (self, key);
                    $claim
                }
            )?
        }
    };
}

pub type AtomicBloom = fastbloom::AtomicBloomFilter<FixedState>;
pub type AtomicCuckoo = atomic_cuckoo_filter::CuckooFilter<KeyHasher>;
pub type CuckooClock = cuckoo_clock::CuckooFilter<FixedState>;
pub type DashSet = dashmap::DashSet<u64, FixedState>;

pub fn atomic_bloom(items: u64, rate: f64) -> AtomicBloom {
    let builder = fastbloom::AtomicBloomFilter::with_false_pos(rate);
    builder.hasher(hasher()).expected_items(items as usize)
}

set!(
    Peer for AtomicBloom, &Self,
    |set, key| {
        set.insert(&key);
        true
    },
    |set, key| set.contains(&key),
    |_, _| None,
    |set, key| Some(!set.insert(&key))
);

/// The capacity is the number of slots, 16 bits each, and is rounded up to a power of two.
pub fn atomic_cuckoo(items: u64) -> AtomicCuckoo {
    let builder = atomic_cuckoo_filter::CuckooFilterBuilder::default();
    builder.capacity(slots_for(items)).build().expect("a valid setup")
}

set!(
    Peer for AtomicCuckoo, &Self,
    |set, key| set.insert(&key).is_ok(),
    |set, key| set.contains(&key),
    |set, key| Some(set.remove(&key)),
    |set, key| set.insert_unique(&key).ok()
);

/// A mutex per bucket. An insert that finds no room has thrown another item out. It does not say whether an item was
/// there, so racing threads may both be told that it was new.
///
/// With 16 bits and buckets of four, its rate is [`RATE`]. Items stay for `ttl` of its ticks, if that is given.
pub fn cuckoo_clock(items: u64, ttl: Option<u32>) -> CuckooClock {
    let bits = |bits: usize| BitCount::try_from(bits).expect("a number of bits");
    let builder = CuckooConfiguration::builder(slots_for(items)).fingerprint_bits(bits(16));
    let builder = builder.bucket_size(NonZeroUsize::new(4).expect("four"));
    let configuration = match ttl.and_then(NonZeroU32::new) {
        Some(ttl) => builder.with_ttl(TtlConfig { ttl, ttl_bits: bits(4) }).build(),
        None => builder.build(),
    };
    cuckoo_clock::CuckooFilter::new(configuration.expect("a valid setup"), hasher())
}

set!(
    Peer for CuckooClock, &Self,
    |set, key| set.insert(&key).is_none(),
    |set, key| set.contains(&key),
    |set, key| Some(set.remove(&key))
);

pub fn dash_set(items: u64) -> DashSet {
    dashmap::DashSet::with_capacity_and_hasher(items as usize, hasher())
}

set!(
    Peer for DashSet, &Self,
    |set, key| {
        set.insert(key);
        true
    },
    |set, key| set.contains(&key),
    |set, key| Some(set.remove(&key).is_some()),
    |set, key| Some(set.insert(key))
);

/// A single-threaded filter that takes hashes. Its operations return what those of a [`Peer`] do.
pub trait Sequential {
    fn insert(&mut self, hash: u64) -> bool;
    fn contains(&self, hash: u64) -> bool;
    #[inline]
    fn claim(&mut self, hash: u64) -> Option<bool> {
        if self.contains(hash) { Some(false) } else { self.insert(hash).then_some(true) }
    }
    fn remove(&mut self, hash: u64) -> Option<bool>;
}

pub type Cuckoofilter = cuckoofilter::CuckooFilter<Prehashed>;
pub type Autoscale = autoscale_cuckoo_filter::CuckooFilter<u64, KeyHasher>;
pub type Scalable = scalable_cuckoo_filter::ScalableCuckooFilter<u64, Prehashed>;
pub type Aleph = aleph_filter::AlephFilter;
pub type BloomLib = bloom_lib::CuckooFilter<u64, BuildHasherDefault<Prehashed>>;
pub type Quotient = qfilter::Filter;

/// The first table of a chain gets half the requested rate, so twice the rate makes 16 bits.
const CHAIN_OF_16_BITS: f64 = 2.0 * 8.0 / 65_536.0;

/// It has 8-bit fingerprints only: half the memory, and a false-positive rate of 3 %. The number of slots is rounded up
/// to a power of two.
pub fn cuckoofilter(items: u64) -> Cuckoofilter {
    cuckoofilter::CuckooFilter::with_capacity(slots_for(items))
}

set!(
    Sequential for Cuckoofilter, &mut Self,
    |set, hash| set.add(&hash).is_ok(),
    |set, hash| set.contains(&hash),
    |set, hash| Some(set.delete(&hash)),
    |set, hash| set.test_and_add(&hash).ok()
);

/// It grows when it is full, so it refuses nothing.
pub fn autoscale(items: u64) -> Autoscale {
    let builder = autoscale_cuckoo_filter::CuckooFilterBuilder::<KeyHasher>::default();
    let builder = builder.initial_capacity(items as usize);
    builder.false_positive_probability(CHAIN_OF_16_BITS).finish()
}

set!(
    Sequential for Autoscale, &mut Self,
    |set, hash| {
        set.add_hash(hash);
        true
    },
    |set, hash| set.contains_hash(hash),
    |set, hash| Some(set.remove_hash(hash)),
    |set, hash| Some(!set.add_hash_if_not_exist(hash))
);

/// A chain of tables. Each is twice as large as the one before, and has one more bit per item, so that all of them
/// together keep the rate.
pub fn scalable(items: u64) -> Scalable {
    let builder = scalable_cuckoo_filter::ScalableCuckooFilterBuilder::new();
    let builder = builder.initial_capacity(items as usize).hasher(Prehashed::default());
    builder.false_positive_probability(CHAIN_OF_16_BITS).finish()
}

set!(
    Sequential for Scalable, &mut Self,
    |set, hash| {
        set.insert(&hash);
        true
    },
    |set, hash| set.contains(&hash),
    |_, _| None
);

/// It takes bytes and hashes them itself, with XXH3. When it doubles its table, each item gives up a bit of its
/// fingerprint, and new items have as few bits as the old ones. A slot takes nine bytes whatever it holds.
pub fn aleph(items: u64) -> Aleph {
    Aleph::new(items as usize, CHAIN_OF_16_BITS)
}

impl Peer for RefCell<Aleph> {
    #[inline]
    fn insert(&self, key: u64) -> bool {
        self.borrow_mut().insert(&key.to_le_bytes());
        true
    }

    #[inline]
    fn contains(&self, key: u64) -> bool {
        self.borrow().contains(&key.to_le_bytes())
    }
}

pub fn bloom_lib(items: u64) -> BloomLib {
    let hasher = BuildHasherDefault::default();
    bloom_lib::CuckooFilter::with_hasher(items as usize, hasher).expect("more than no items")
}

set!(
    Sequential for BloomLib, &mut Self,
    |set, hash| set.insert(&hash).is_ok(),
    |set, hash| set.contains(&hash),
    |set, hash| Some(set.remove(&hash))
);

/// It takes hashes as fingerprints, so its own hasher is never used. The rate gives 13 bits of remainder.
pub fn quotient(items: u64) -> Quotient {
    qfilter::Filter::new(items, 1.0 / 8_192.0).expect("a rate that fits")
}

set!(
    Sequential for Quotient, &mut Self,
    |set, hash| set.insert_fingerprint(true, hash).is_ok(),
    |set, hash| set.contains_fingerprint(hash),
    |set, hash| Some(set.remove_fingerprint(hash)),
    |set, hash| set.insert_fingerprint(false, hash).ok()
);

/// Filters behind mutexes, one per shard. The hash chooses the shard, so operations on the same key exclude each other.
pub struct Locked<F>(Box<[CachePadded<Mutex<F>>]>);

impl<F: Sequential> Locked<F> {
    /// Gives each shard room for six standard deviations more than its share. Items fall to shards by chance, and one
    /// in 10^9 shards gets more than that. The number of shards is a power of two.
    pub fn new(shards: usize, items: u64, build: fn(u64) -> F) -> Self {
        let share = items as f64 / shards as f64;
        let deviation = (share * (1.0 - 1.0 / shards as f64)).sqrt();
        let room = (share + 6.0 * deviation).ceil() as u64;
        Locked((0..shards).map(|_| CachePadded::new(Mutex::new(build(room)))).collect())
    }

    /// Does this to the shard that the bits from 40 on choose. No filter uses these bits within a shard: fingerprints
    /// come from the highest 16 bits, and buckets from at most the lowest 40. If the filters used them, all items of a
    /// shard would share a part of their fingerprints or buckets.
    #[inline]
    fn with<T>(&self, key: u64, act: impl FnOnce(&mut F, u64) -> T) -> T {
        let hash = hash_of(key);
        act(&mut self.0[(hash >> 40) as usize & (self.0.len() - 1)].lock(), hash)
    }
}

impl<F: Sequential> Peer for Locked<F> {
    #[inline]
    fn insert(&self, key: u64) -> bool {
        self.with(key, F::insert)
    }

    #[inline]
    fn contains(&self, key: u64) -> bool {
        self.with(key, |filter, hash| filter.contains(hash))
    }

    #[inline]
    fn claim(&self, key: u64) -> Option<bool> {
        self.with(key, F::claim)
    }

    #[inline]
    fn remove(&self, key: u64) -> Option<bool> {
        self.with(key, F::remove)
    }
}

/// A filter that one thread uses.
impl<F: Sequential> Peer for RefCell<F> {
    #[inline]
    fn insert(&self, key: u64) -> bool {
        self.borrow_mut().insert(hash_of(key))
    }

    #[inline]
    fn contains(&self, key: u64) -> bool {
        self.borrow().contains(hash_of(key))
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
