//! koel: fixed, built so that the items fill it to 94 %, and growing from nothing.

use crate::peer::{Peer, Refused, hasher};
use foldhash::quality::FixedState;

pub const KOEL: &str = "koel";
pub const KOEL_GROWING: &str = "koel (growing)";

pub type Koel = ::koel::ConcurrentCuckooFilter<FixedState>;

impl Peer for Koel {
    const MANY: bool = true;

    fn name() -> String {
        KOEL.into()
    }

    fn build(items: u64) -> Self {
        let builder = ::koel::ConcurrentCuckooFilter::builder().capacity(items as usize);
        builder.hasher(hasher()).build().expect("memory for the filter")
    }

    fn build_tight(items: u64) -> Self {
        let slots = items as f64 / 0.94;
        let capacity = slots * 0.93;
        let close = Self::build(capacity as u64).stats().slots as f64;
        Self::build((capacity * slots / close) as u64)
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
        self.insert_if_absent(&key).map_err(|_| Refused)
    }

    #[inline]
    fn remove(&self, key: u64) -> Option<bool> {
        Some(self.remove(&key))
    }

    fn says_it_holds(&self) -> Option<usize> {
        Some(self.size_in_bytes())
    }

    fn insert_many(&self, keys: &[u64]) -> u64 {
        self.insert_many(keys).iter().filter(|result| result.is_err()).count() as u64
    }

    fn contains_many(&self, keys: &[u64]) -> u64 {
        self.contains_many(keys).into_iter().filter(|&found| found).count() as u64
    }
}

/// A filter that begins with nothing, however many items are to come.
pub struct FromNothing(Koel);

impl Peer for FromNothing {
    const RATE: f64 = 0.001_4;
    const MANY: bool = true;

    fn name() -> String {
        KOEL_GROWING.into()
    }

    fn build(_: u64) -> Self {
        let builder = ::koel::ConcurrentCuckooFilter::builder().capacity(1).growing();
        // At this rate, fingerprints have 16 bits.
        let builder = builder.false_positive_rate(Self::RATE).hasher(hasher());
        FromNothing(builder.build().expect("memory for the filter"))
    }

    #[inline]
    fn insert(&self, key: u64) -> Result<(), Refused> {
        Peer::insert(&self.0, key)
    }

    #[inline]
    fn contains(&self, key: u64) -> bool {
        Peer::contains(&self.0, key)
    }

    #[inline]
    fn insert_if_absent(&self, key: u64) -> Result<bool, Refused> {
        Peer::insert_if_absent(&self.0, key)
    }

    #[inline]
    fn remove(&self, key: u64) -> Option<bool> {
        Peer::remove(&self.0, key)
    }

    fn insert_many(&self, keys: &[u64]) -> u64 {
        Peer::insert_many(&self.0, keys)
    }

    fn contains_many(&self, keys: &[u64]) -> u64 {
        Peer::contains_many(&self.0, keys)
    }
}
