//! Filters that begin with one shard of 8 buckets, in every layout.

// Every test file is a crate of its own and uses a part of this.
#![allow(dead_code)]

use crate::common::Fixed;
use koel::{ConcurrentCuckooFilter, GrowingBuilder, GrowingCuckooFilter, PersistentHasher};

pub type Filter = GrowingCuckooFilter<Fixed>;

#[derive(Clone, Copy, Debug)]
pub struct Layout {
    pub bits: u32,
    /// One that chooses it when no growth is expected.
    pub rate: f64,
}

pub const LAYOUTS: [Layout; 7] = [
    Layout { bits: 8, rate: 0.13 },
    Layout { bits: 9, rate: 0.06 },
    Layout { bits: 10, rate: 0.025 },
    Layout { bits: 12, rate: 0.005 },
    Layout { bits: 16, rate: 0.000_25 },
    Layout { bits: 21, rate: 6e-6 },
    Layout { bits: 32, rate: 2e-9 },
];

/// The one that tells all items of a test apart: its windows are used up by 15 splits.
pub const EXACT: Layout = LAYOUTS[6];

impl Layout {
    pub fn builder(self) -> GrowingBuilder<Fixed> {
        let builder = ConcurrentCuckooFilter::builder().capacity(1).growing();
        let builder = builder.false_positive_rate(self.rate).expected_growth(1.0);
        builder.hasher(Fixed { key: 0 })
    }

    pub fn filter(self) -> Filter {
        let filter = self.builder().build().expect("a filter of one shard");
        assert_eq!(filter.stats().fingerprint_bits(), self.bits);
        assert_eq!(filter.stats().slots(), 8 * self.slots());
        filter
    }

    /// Fingerprints in a bucket.
    pub fn slots(self) -> usize {
        (64 / self.bits) as usize
    }
}

impl PersistentHasher for Fixed {
    const NAME: &'static str = "that of the tests";

    fn seed(&self) -> u128 {
        self.key.into()
    }

    fn from_seed(seed: u128) -> Option<Self> {
        Some(Fixed { key: seed.try_into().ok()? })
    }
}

/// What a save of the filter is when it is loaded.
pub fn loaded(filter: &Filter) -> Filter {
    let mut file = Vec::new();
    let report = filter.write_to(&mut file).expect("memory");
    assert_eq!(report.bytes(), file.len() as u64);
    let loaded = Filter::read_from(&file[..]).expect("what was saved cannot be loaded");
    assert_eq!(loaded.len(), report.items(), "loaded items are counted wrong");
    assert_eq!(loaded.stats().shards(), report.shards());
    loaded
}
