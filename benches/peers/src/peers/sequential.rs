//! The single-threaded peers, which are measured behind locks.

use crate::peer::{KeyHasher, Prehashed, Refused, Sequential, slots_for};
use std::hash::BuildHasherDefault;

pub type Cuckoofilter = cuckoofilter::CuckooFilter<Prehashed>;

/// It has 8-bit fingerprints only: half the memory, and a false-positive rate of 3 %.
impl Sequential for Cuckoofilter {
    const NAME: &str = "cuckoofilter";
    const RATE: f64 = 0.03;

    /// The capacity is the number of slots, and is rounded up to a power of two.
    fn build(items: u64) -> Self {
        cuckoofilter::CuckooFilter::with_capacity(slots_for(items) as usize)
    }

    #[inline]
    fn insert(&mut self, hash: u64) -> Result<(), Refused> {
        self.add(&hash).map_err(|_| Refused)
    }

    #[inline]
    fn contains(&self, hash: u64) -> bool {
        self.contains(&hash)
    }

    #[inline]
    fn insert_if_absent(&mut self, hash: u64) -> Result<bool, Refused> {
        self.test_and_add(&hash).map_err(|_| Refused)
    }

    #[inline]
    fn remove(&mut self, hash: u64) -> bool {
        self.delete(&hash)
    }
}

/// The first table of a chain gets half the requested rate, so twice the rate makes 16 bits.
pub const CHAIN_OF_16_BITS: f64 = 2.0 * 8.0 / 65_536.0;

pub type Autoscale = autoscale_cuckoo_filter::CuckooFilter<u64, KeyHasher>;

/// It grows when it is full, so it refuses nothing.
impl Sequential for Autoscale {
    const NAME: &str = "autoscale_cuckoo_filter";

    fn build(items: u64) -> Self {
        let builder = autoscale_cuckoo_filter::CuckooFilterBuilder::<KeyHasher>::default();
        let builder = builder.initial_capacity(items as usize);
        builder.false_positive_probability(CHAIN_OF_16_BITS).finish()
    }

    #[inline]
    fn insert(&mut self, hash: u64) -> Result<(), Refused> {
        self.add_hash(hash);
        Ok(())
    }

    #[inline]
    fn contains(&self, hash: u64) -> bool {
        self.contains_hash(hash)
    }

    #[inline]
    fn insert_if_absent(&mut self, hash: u64) -> Result<bool, Refused> {
        Ok(!self.add_hash_if_not_exist(hash))
    }

    #[inline]
    fn remove(&mut self, hash: u64) -> bool {
        self.remove_hash(hash)
    }
}

pub type BloomLib = bloom_lib::CuckooFilter<u64, BuildHasherDefault<Prehashed>>;

impl Sequential for BloomLib {
    const NAME: &str = "bloom-lib";

    fn build(items: u64) -> Self {
        let hasher = BuildHasherDefault::default();
        bloom_lib::CuckooFilter::with_hasher(items as usize, hasher).expect("more than no items")
    }

    #[inline]
    fn insert(&mut self, hash: u64) -> Result<(), Refused> {
        self.insert(&hash).map_err(|_| Refused)
    }

    #[inline]
    fn contains(&self, hash: u64) -> bool {
        self.contains(&hash)
    }

    #[inline]
    fn remove(&mut self, hash: u64) -> bool {
        self.remove(&hash)
    }
}

/// It takes hashes as fingerprints, so its own hasher is never used.
pub type Quotient = qfilter::Filter;

impl Sequential for Quotient {
    const NAME: &str = "qfilter";

    /// The rate gives 13 bits of remainder.
    fn build(items: u64) -> Self {
        qfilter::Filter::new(items, 1.0 / 8_192.0).expect("a rate that fits")
    }

    #[inline]
    fn insert(&mut self, hash: u64) -> Result<(), Refused> {
        self.insert_fingerprint(true, hash).map(|_| ()).map_err(|_| Refused)
    }

    #[inline]
    fn contains(&self, hash: u64) -> bool {
        self.contains_fingerprint(hash)
    }

    #[inline]
    fn insert_if_absent(&mut self, hash: u64) -> Result<bool, Refused> {
        self.insert_fingerprint(false, hash).map_err(|_| Refused)
    }

    #[inline]
    fn remove(&mut self, hash: u64) -> bool {
        self.remove_fingerprint(hash)
    }
}
