//! How many bits, and how many buckets: from what the caller asks for to a [`Geometry`].
//!
//! The rate chooses how the words are cut, the capacity how many there are. The promise is that
//! `capacity` distinct items fit, so what counts is not how full a table gets on average before it
//! first refuses an item, but how full it gets in the worst of very many.

use crate::bucket::Lanes;
use crate::error::{BuildError, Reason};
use crate::geometry::{Geometry, SHARD_BUCKETS};

/// One way to cut the words, and how full such a table gets.
struct Layout {
    bits: u32,
    /// The load of a large table when it first refuses an item, on average.
    load: f64,
}

/// From the fewest bits to the most. `examples/loads.rs` measures the loads.
const LAYOUTS: [Layout; 7] = [
    Layout { bits: 8, load: 0.98 },
    Layout { bits: 9, load: 0.977 },
    Layout { bits: 10, load: 0.97 },
    Layout { bits: 12, load: 0.96 },
    Layout { bits: 16, load: 0.95 },
    Layout { bits: 21, load: 0.92 },
    Layout { bits: 32, load: 0.85 },
];

impl Layout {
    fn lanes(&self) -> Lanes {
        Lanes::of_bits(self.bits)
    }

    fn rate_when_full(&self) -> f64 {
        rate_at(self.lanes(), self.load)
    }

    /// The buckets of a shard in which this many items fit.
    fn buckets_for(&self, items: f64) -> f64 {
        let slots = self.lanes().slots() as f64;
        ((items + 4.0 * items.sqrt() + 2.0) / (slots * self.load)).ceil()
    }

    fn geometry(&self, capacity: usize) -> Option<Geometry> {
        let capacity = capacity as f64;
        let most = f64::from(SHARD_BUCKETS);
        let buckets = self.buckets_for(capacity);
        if buckets <= most {
            return Some(Geometry::new(self.lanes(), 1, buckets as u32));
        }
        // What the stripes take beside the buckets is far less than a hundredth.
        let most_shards = isize::MAX as f64 / (1.01 * 8.0 * most);
        let mut shards = (buckets / most).floor().max(2.0);
        while shards <= most_shards {
            let mean = capacity / shards;
            let fullest = mean + 5.0 * mean.sqrt();
            let buckets = self.buckets_for(fullest);
            if buckets <= most {
                return Some(Geometry::new(self.lanes(), shards as usize, buckets as u32));
            }
            shards = (shards * 1.001).ceil();
        }
        None
    }
}

/// The chance that an item that was never inserted meets its fingerprint in one of the lanes of
/// its two buckets, when `load` of all lanes are taken.
pub fn rate_at(lanes: Lanes, load: f64) -> f64 {
    let compared = 2.0 * lanes.slots() as f64 * load;
    // 1 - (1 - 1/fingerprints)^compared, without losing what is small.
    -(compared * (-1.0 / lanes.fingerprints() as f64).ln_1p()).exp_m1()
}

/// The smallest table that holds `capacity` items and keeps `rate`.
pub fn geometry_for(capacity: usize, rate: f64) -> Result<Geometry, BuildError> {
    if !(rate > 0.0 && rate < 1.0) {
        return Err(Reason::InvalidRate { rate }.into());
    }
    let Some(layout) = LAYOUTS.iter().find(|layout| layout.rate_when_full() <= rate) else {
        let least = LAYOUTS[LAYOUTS.len() - 1].rate_when_full();
        return Err(Reason::RateTooSmall { rate, least }.into());
    };
    layout.geometry(capacity).ok_or(Reason::CapacityOverflow { capacity }.into())
}
