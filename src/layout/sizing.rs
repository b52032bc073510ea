//! How many bits, and how many buckets: from what the caller asks for to a [`Geometry`].
//!
//! The rate chooses how the words are cut, the capacity how many there are. The promise is that
//! `capacity` distinct items fit, so what counts is not how full a table gets on average before it
//! first refuses an item, but how full it gets in the worst of very many.

use crate::error::{BuildError, Reason};
use crate::layout::aging::GROWING_BUCKETS;
use crate::layout::bucket::Lanes;
use crate::layout::geometry::{Geometry, SHARD_BUCKETS};

/// One way to cut the words, and how full such tables get.
struct Layout {
    bits: u32,
    /// The load that large tables are planned for: some 2 % less than what they reach on average.
    load: f64,
    /// The load up to which hardly any shard is split: 2 to 4 % less than the least of 400.
    unsplit: f64,
}

/// From the fewest bits to the most. `examples/loads.rs` measures what the tables reach.
const LAYOUTS: [Layout; 7] = [
    Layout { bits: 8, load: 0.97, unsplit: 0.94 },
    Layout { bits: 9, load: 0.968, unsplit: 0.925 },
    Layout { bits: 10, load: 0.965, unsplit: 0.925 },
    Layout { bits: 12, load: 0.957, unsplit: 0.915 },
    Layout { bits: 16, load: 0.945, unsplit: 0.905 },
    Layout { bits: 21, load: 0.92, unsplit: 0.84 },
    Layout { bits: 32, load: 0.857, unsplit: 0.73 },
];

impl Layout {
    fn lanes(&self) -> Lanes {
        Lanes::of_bits(self.bits)
    }

    fn rate_when_full(&self) -> f64 {
        rate_at(self.lanes(), self.load)
    }

    /// The buckets of a shard in which this many items fit. The smaller the table, the more its
    /// first refusal varies, so the more it has to spare.
    fn buckets_for(&self, items: f64) -> f64 {
        let slots = self.lanes().slots() as f64;
        let by_load = (items + 3.0 * items.sqrt() + 3.0) / (slots * self.load);
        by_load.max(self.buckets_against_a_crowd(items)).ceil()
    }

    /// One item more than two buckets have slots, all in the same two buckets, cannot be placed
    /// however empty the rest is. With `n` items and `p` pairs of buckets, `k` items crowd together
    /// in one fill of `p^(k-1) / C(n, k)`; this many buckets make that one in 10^7.
    fn buckets_against_a_crowd(&self, items: f64) -> f64 {
        let crowd = 2 * self.lanes().slots() + 1;
        let crowds: f64 =
            (0..crowd).map(|i| (items - i as f64).max(0.0) / (i + 1) as f64).product();
        let pairs = (1e7 * crowds).powf(1.0 / (crowd as f64 - 1.0));
        // A pair is one bucket of even and one of odd index.
        2.0 * pairs.sqrt()
    }

    /// As many shards as it takes; if many, a multiple of 16, so that batches can be sorted by more than
    /// single shards.
    fn growing_geometry(&self, capacity: usize) -> Option<Geometry> {
        let slots = self.lanes().slots() as f64 * f64::from(GROWING_BUCKETS);
        // Items go to shards by chance; none is to get more than fit before it is split.
        let fit = slots * self.unsplit;
        let shards = (capacity as f64 / (fit - 6.0 * fit.sqrt()).max(1.0)).ceil().max(1.0);
        let bytes = shards * f64::from(GROWING_BUCKETS) * 8.0 * 1.01;
        if bytes > isize::MAX as f64 {
            return None;
        }
        let shards =
            if shards > 64.0 { (shards as usize).next_multiple_of(16) } else { shards as usize };
        Some(Geometry::new(self.lanes(), shards, GROWING_BUCKETS))
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
            // Items go to shards by chance: not one in 10^8 shards gets six deviations too many.
            let mean = capacity / shards;
            let fullest = mean + 6.0 * (mean * (1.0 - 1.0 / shards)).sqrt();
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
///
/// It is that of the filter that errs most, in which no two of these lanes hold the same
/// fingerprint: so it is where `insert_if_absent` filled it. `insert` adds the second of two items
/// with one fingerprint as well, and with fingerprints at random the chance is
/// `1 - (1 - 1/fingerprints)^lanes`, which is 3 % less at 8 bits and the same from 16 on.
pub fn rate_at(lanes: Lanes, load: f64) -> f64 {
    2.0 * lanes.slots() as f64 * load / lanes.fingerprints() as f64
}

/// The smallest table that holds `capacity` items and keeps `rate`.
pub fn geometry_for(capacity: usize, rate: f64) -> Result<Geometry, BuildError> {
    let layout = layout_for(rate, Layout::rate_when_full)?;
    layout.geometry(capacity).ok_or(Reason::CapacityOverflow { capacity }.into())
}

/// The layout of the fewest bits that keeps `rate`.
fn layout_for(rate: f64, rate_of: impl Fn(&Layout) -> f64) -> Result<&'static Layout, Reason> {
    if !(rate > 0.0 && rate < 1.0) {
        return Err(Reason::InvalidRate { rate });
    }
    LAYOUTS.iter().find(|layout| rate_of(layout) <= rate).ok_or_else(|| {
        let least = rate_of(&LAYOUTS[LAYOUTS.len() - 1]);
        Reason::RateTooSmall { rate, least }
    })
}

/// Whether words are ever cut into lanes of so many bits.
pub fn is_layout(bits: u32) -> bool {
    LAYOUTS.iter().any(|layout| layout.bits == bits)
}

/// What a filter that grows begins with, and what it is made for.
#[derive(Clone, Debug)]
pub struct GrowthPlan {
    /// Of the first table.
    pub geometry: Geometry,
    pub max_bytes: usize,
    /// What the filter takes beside the heap.
    pub own_bytes: usize,
    pub expected_growth: f64,
    /// After the expected growth.
    pub rate: f64,
}

/// How much fuller than planned for shards get on average before they are split.
const MORE_LOAD: f64 = 0.01;

/// The smallest first table that holds `capacity` items, and keeps `rate` after it has grown.
pub fn growth_plan(
    capacity: usize,
    rate: f64,
    expected_growth: f64,
    [own_bytes, max_bytes]: [usize; 2],
) -> Result<GrowthPlan, BuildError> {
    if !(expected_growth >= 1.0 && expected_growth.is_finite()) {
        return Err(Reason::InvalidGrowth { growth: expected_growth }.into());
    }
    let rate_of = |layout: &Layout| {
        let full = layout.lanes().slots() as f64 * (layout.load + MORE_LOAD).min(1.0);
        // What is there when the table has become twice as large adds as much as before, and what
        // comes until it is full again adds half of what filled the first.
        full * rate_of_a_lane(layout.lanes()) * (1.0 + expected_growth.log2() / 2.0)
    };
    let layout = layout_for(rate, rate_of)?;
    let geometry =
        layout.growing_geometry(capacity).ok_or(Reason::CapacityOverflow { capacity })?;
    Ok(GrowthPlan { geometry, max_bytes, own_bytes, expected_growth, rate: rate_of(layout) })
}

/// How often a lane of a growing filter that is new stands for another item, in a table of one
/// bucket: it may be in either bucket of that item, and has to agree in all bits but the last `1`.
pub fn rate_of_a_lane(lanes: Lanes) -> f64 {
    2.0 / f64::from(lanes.bits() - 1).exp2()
}
