//! The peers that grow. The filters are set up with the false-positive rate of koel's 16-bit
//! fingerprints before the first split: 0.024 %.

use super::concurrent;
use super::koel::{self, Koel};
use super::sequential;
use crate::peer::{Growing, KeyHasher, Peer, Refused, Sequential, hash_of, hasher};

impl Growing for Koel {
    const NAME: &str = koel::KOEL;

    fn build(first: u64) -> Self {
        let builder = ::koel::ConcurrentCuckooFilter::builder().capacity(first as usize).growing();
        // About the lowest rate that 16 bits keep until the filter is a thousand times as large.
        let builder = builder.false_positive_rate(0.002).hasher(hasher());
        builder.build().expect("memory for the filter")
    }

    #[inline]
    fn insert(&mut self, key: u64) {
        Koel::insert(self, &key).expect("memory to grow");
    }

    #[inline]
    fn contains(&self, key: u64) -> bool {
        Koel::contains(self, &key)
    }

    fn says_it_holds(&self) -> Option<usize> {
        Some(self.size_in_bytes())
    }
}

/// A filter that is built for the right number of items, as if it had been known beforehand.
pub struct Foreseen(Koel);

impl Growing for Foreseen {
    const NAME: &str = "koel made for n items";
    const GROWS: bool = false;

    fn build(items: u64) -> Self {
        Foreseen(Peer::build(items))
    }

    #[inline]
    fn insert(&mut self, key: u64) {
        Peer::insert(&self.0, key).map_err(|Refused| "room was promised").expect("no refusal");
    }

    #[inline]
    fn contains(&self, key: u64) -> bool {
        Peer::contains(&self.0, key)
    }

    fn says_it_holds(&self) -> Option<usize> {
        Peer::says_it_holds(&self.0)
    }
}

pub type Scalable = scalable_cuckoo_filter::ScalableCuckooFilter<u64, KeyHasher>;

/// A chain of tables. Each is twice as large as the one before, and has one more bit per item, so
/// that all of them together keep the rate. It cannot take hashes.
impl Growing for Scalable {
    const NAME: &str = "scalable_cuckoo_filter";

    fn build(first: u64) -> Self {
        let builder = scalable_cuckoo_filter::ScalableCuckooFilterBuilder::new();
        let builder = builder.initial_capacity(first as usize).hasher(KeyHasher::default());
        builder.false_positive_probability(sequential::CHAIN_OF_16_BITS).finish()
    }

    #[inline]
    fn insert(&mut self, key: u64) {
        Scalable::insert(self, &key);
    }

    #[inline]
    fn contains(&self, key: u64) -> bool {
        Scalable::contains(self, &key)
    }
}

/// A chain of tables, too.
impl Growing for sequential::Autoscale {
    const NAME: &str = <Self as Sequential>::NAME;

    fn build(first: u64) -> Self {
        Sequential::build(first)
    }

    #[inline]
    fn insert(&mut self, key: u64) {
        self.add_hash(hash_of(key));
    }

    #[inline]
    fn contains(&self, key: u64) -> bool {
        self.contains_hash(hash_of(key))
    }
}

impl Growing for concurrent::DashSet {
    const NAME: &str = "DashSet";

    fn build(first: u64) -> Self {
        Peer::build(first)
    }

    #[inline]
    fn insert(&mut self, key: u64) {
        concurrent::DashSet::insert(self, key);
    }

    #[inline]
    fn contains(&self, key: u64) -> bool {
        concurrent::DashSet::contains(self, &key)
    }
}
