//! The peers that threads can share as they are.

use crate::peer::{KeyHasher, Peer, Refused, hasher, slots_for};
use foldhash::quality::FixedState;

pub type AtomicBloom = fastbloom::AtomicBloomFilter<FixedState>;

impl Peer for AtomicBloom {
    fn name() -> String {
        "fastbloom".into()
    }

    fn build(items: u64) -> Self {
        let builder = fastbloom::AtomicBloomFilter::with_false_pos(Self::RATE);
        builder.hasher(hasher()).expected_items(items as usize)
    }

    #[inline]
    fn insert(&self, key: u64) -> Result<(), Refused> {
        self.insert(&key);
        Ok(())
    }

    #[inline]
    fn contains(&self, key: u64) -> bool {
        self.contains(&key)
    }

    #[inline]
    fn insert_if_absent(&self, key: u64) -> Result<bool, Refused> {
        Ok(!self.insert(&key))
    }

    #[inline]
    fn remove(&self, _: u64) -> Option<bool> {
        None
    }
}

pub type AtomicCuckoo = atomic_cuckoo_filter::CuckooFilter<KeyHasher>;

impl Peer for AtomicCuckoo {
    fn name() -> String {
        "atomic-cuckoo-filter".into()
    }

    /// The capacity is the number of slots, 16 bits each, and is rounded up to a power of two.
    fn build(items: u64) -> Self {
        let slots = slots_for(items) as usize;
        let builder = atomic_cuckoo_filter::CuckooFilterBuilder::default().capacity(slots);
        builder.build().expect("a valid setup")
    }

    #[inline]
    fn insert(&self, key: u64) -> Result<(), Refused> {
        self.insert(&key).map_err(|_| Refused)
    }

    #[inline]
    fn contains(&self, key: u64) -> bool {
        self.contains(&key)
    }

    #[inline]
    fn insert_if_absent(&self, key: u64) -> Result<bool, Refused> {
        self.insert_unique(&key).map_err(|_| Refused)
    }

    #[inline]
    fn remove(&self, key: u64) -> Option<bool> {
        Some(self.remove(&key))
    }
}

pub type DashSet = dashmap::DashSet<u64, FixedState>;

impl Peer for DashSet {
    const RATE: f64 = 0.0;

    fn name() -> String {
        "DashSet".into()
    }

    fn build(items: u64) -> Self {
        dashmap::DashSet::with_capacity_and_hasher(items as usize, hasher())
    }

    #[inline]
    fn insert(&self, key: u64) -> Result<(), Refused> {
        self.insert(key);
        Ok(())
    }

    #[inline]
    fn contains(&self, key: u64) -> bool {
        self.contains(&key)
    }

    #[inline]
    fn insert_if_absent(&self, key: u64) -> Result<bool, Refused> {
        Ok(self.insert(key))
    }

    #[inline]
    fn remove(&self, key: u64) -> Option<bool> {
        Some(self.remove(&key).is_some())
    }
}
