//! Chooses the [`Geometry`] for the capacity and false-positive rate that the caller asks for.
//!
//! The rate determines how buckets are cut into lanes, and the capacity how many buckets there are. The
//! promise is that `capacity` distinct items fit. So the planned load is not the one that a table
//! reaches on average before it first refuses an item, but the one it reaches in the worst of very
//! many fills.

use crate::error::{BuildError, BuildErrorKind};
use crate::layout::bucket::Lanes;
use crate::layout::geometry::{Geometry, MAX_SHARDS, SHARD_BUCKETS};
use crate::layout::roots::Roots;
use crate::layout::shrinking::{GROWING_BUCKETS, Shrinking, lasts_for};
use crate::layout::stagger::Stagger;

/// One way to cut buckets into lanes, and how full such tables get.
struct Layout {
    lanes: Lanes,
    /// The load that large tables are planned for: 1 to 3 % less than they reach on average.
    load: f64,
    /// The load up to which hardly any shard is split: 2 to 4 % less than the lowest of 400.
    unsplit: f64,
}

/// The layouts, in ascending order of bits per item. `benches/src/loads.rs` measures the loads that tables reach. A
/// wide bucket fills up like a narrow one with as many lanes, since only the heads determine where items can move.
const LAYOUTS: [Layout; 11] = [
    Layout { lanes: Lanes::of_bits(8), load: 0.97, unsplit: 0.94 },
    Layout { lanes: Lanes::of_bits(9), load: 0.968, unsplit: 0.925 },
    Layout { lanes: Lanes::of_bits(10), load: 0.965, unsplit: 0.925 },
    Layout { lanes: Lanes::of_bits(12), load: 0.957, unsplit: 0.915 },
    Layout { lanes: Lanes::of_bits(16), load: 0.945, unsplit: 0.905 },
    Layout { lanes: Lanes::of_wide(18), load: 0.973, unsplit: 0.925 },
    Layout { lanes: Lanes::of_wide(20), load: 0.969, unsplit: 0.925 },
    Layout { lanes: Lanes::of_bits(21), load: 0.92, unsplit: 0.84 },
    Layout { lanes: Lanes::of_wide(24), load: 0.9645, unsplit: 0.915 },
    Layout { lanes: Lanes::of_wide(32), load: 0.9585, unsplit: 0.905 },
    Layout { lanes: Lanes::of_bits(32), load: 0.857, unsplit: 0.73 },
];

impl Layout {
    /// Returns the same layout for a filter that remembers items for `ticks` ticks (or, with 0, for ever), if a lane
    /// has enough bits left for the fingerprint. The load depends on the bits of the fingerprint that choose the other
    /// bucket. With 8 such bits, tables reach the planned load.
    fn remembering(&self, ticks: u8) -> Option<Layout> {
        let lanes = if ticks == 0 { self.lanes } else { self.lanes.remembering(ticks) };
        let left = lanes.bits() - lanes.stamp_bits();
        let is_enough = if lanes.is_wide() { left >= 4 } else { left >= 8 };
        is_enough.then_some(Layout { lanes, ..*self })
    }

    /// Returns the number of buckets that a shard needs for this many items. The smaller the table,
    /// the more the load at its first refusal varies, and the larger the margin has to be.
    fn buckets_for(&self, items: f64) -> f64 {
        let slots = self.lanes.slots() as f64;
        let by_load = (items + 3.0 * items.sqrt() + 3.0) / (slots * self.load);
        by_load.max(self.buckets_against_overfull_pairs(items)).ceil()
    }

    /// Returns the number of buckets at which one fill in 10^7 has an overfull pair of buckets.
    ///
    /// A pair is overfull if the number of items that belong to its two buckets exceeds the number of its slots. These
    /// items cannot all be placed, however empty the rest of the table is. With `n` items and `p` pairs of buckets, `k`
    /// items share a pair in one fill out of `p^(k-1) / C(n, k)`.
    fn buckets_against_overfull_pairs(&self, items: f64) -> f64 {
        let too_many = 2 * self.lanes.slots() + 1;
        let choices: f64 =
            (0..too_many).map(|i| (items - i as f64).max(0.0) / (i + 1) as f64).product();
        let pairs = (1e7 * choices).powf(1.0 / (too_many as f64 - 1.0));
        // A pair has one bucket of even index and one of odd index.
        2.0 * pairs.sqrt()
    }

    /// Plans the first table of a growing filter. If it has many shards, their number is a multiple
    /// of 16, so that batches can be sorted by groups of shards.
    fn growing_geometry(&self, capacity: usize) -> Option<Geometry> {
        let slots = self.lanes.slots() as f64 * f64::from(GROWING_BUCKETS);
        // Items are spread over the shards at random. No shard should get more items than fit without a split.
        let fit = slots * self.unsplit;
        let shards = (capacity as f64 / (fit - 6.0 * fit.sqrt()).max(1.0)).ceil().max(1.0);
        let words = self.lanes.words() as f64;
        let bytes = shards * f64::from(GROWING_BUCKETS) * words * 8.0 * 1.01;
        if bytes > isize::MAX as f64 || shards > f64::from(MAX_SHARDS) {
            return None;
        }
        let shards =
            if shards > 64.0 { (shards as usize).next_multiple_of(16) } else { shards as usize };
        Some(Geometry::new(self.lanes, shards, GROWING_BUCKETS))
    }

    fn geometry(&self, capacity: usize) -> Option<Geometry> {
        let capacity = capacity as f64;
        let most = f64::from(SHARD_BUCKETS);
        let buckets = self.buckets_for(capacity);
        if buckets <= most {
            return Some(Geometry::new(self.lanes, 1, buckets as u32));
        }
        // The stripes take far less than a hundredth of the memory of the buckets.
        let most_shards = (isize::MAX as f64 / (1.01 * 8.0 * most)).min(MAX_SHARDS.into());
        let mut shards = (buckets / most).floor().max(2.0);
        while shards <= most_shards {
            // Items are spread over the shards at random. Fewer than one shard in 10^8 gets six
            // standard deviations more than the mean.
            let mean = capacity / shards;
            let fullest = mean + 6.0 * (mean * (1.0 - 1.0 / shards)).sqrt();
            let buckets = self.buckets_for(fullest);
            if buckets <= most {
                return Some(Geometry::new(self.lanes, shards as usize, buckets as u32));
            }
            shards = (shards * 1.001).ceil();
        }
        None
    }
}

/// Returns the load up to which hardly any shard of these lanes is split.
pub fn unsplit_load(lanes: Lanes) -> f64 {
    let shape = |lanes: Lanes| (lanes.bits(), lanes.is_wide());
    let layout = LAYOUTS.iter().find(|layout| shape(layout.lanes) == shape(lanes));
    // Models have lanes of their own.
    layout.map_or(0.7, |layout| layout.unsplit)
}

/// Returns the probability that an item that was never inserted finds its fingerprint in one of the lanes of its two
/// buckets, when the fraction `load` of all lanes is taken.
///
/// This is the worst case, in which no two of these lanes hold the same fingerprint, as in a filter
/// filled by `insert_if_absent`. `insert` also adds the second of two items with the same
/// fingerprint. The fingerprints are then random, and the probability is
/// `1 - (1 - 1/fingerprints)^lanes`, which is 3 % less at 8 bits and the same from 16 bits on.
pub fn rate_at(lanes: Lanes, load: f64) -> f64 {
    2.0 * lanes.slots() as f64 * load / lanes.fingerprints() as f64
}

/// Returns the smallest table that holds `capacity` items, remembers them for `ticks` ticks (or, with 0, for ever) and
/// keeps `rate`.
pub fn geometry_for(capacity: usize, rate: f64, ticks: u8) -> Result<Geometry, BuildError> {
    let layout = layout_for(rate, ticks, 1.0, |full| rate_at(full.lanes, full.load))?;
    layout.geometry(capacity).ok_or_else(|| too_large(capacity))
}

/// Returns the layout with the fewest bits that keeps `rate` in a filter that grows by this factor, and in which no
/// lane becomes void before.
fn layout_for(
    rate: f64,
    ticks: u8,
    growth: f64,
    rate_of: impl Fn(&Layout) -> f64,
) -> Result<Layout, BuildError> {
    if !(rate > 0.0 && rate < 1.0) {
        let text = format!(
            "the false-positive rate has to be more than 0 and less than 1, and {rate} is not (1 % is 0.01)"
        );
        return Err(BuildError::new(BuildErrorKind::InvalidRate, text));
    }
    let lasting = || {
        let layouts = LAYOUTS.iter().filter_map(|layout| layout.remembering(ticks));
        layouts.filter(|layout| lasts_for(layout.lanes, growth))
    };
    let layout = lasting().find(|layout| rate_of(layout) <= rate);
    layout.ok_or_else(|| {
        let least = lasting().next_back().map_or(1.0, |layout| rate_of(&layout));
        let text = format!(
            "a false-positive rate of {rate:e} is out of reach: ask for {:.1e} or more, or for less \
             growth if the filter grows, or use an exact set",
            rounded_up(least)
        );
        BuildError::new(BuildErrorKind::RateTooSmall, text)
    })
}

/// Rounds up to two digits, so that the filter can be built with the printed rate.
fn rounded_up(rate: f64) -> f64 {
    let unit = 10f64.powf(rate.log10().floor() - 1.0);
    (rate / unit).ceil() * unit
}

fn too_large(capacity: usize) -> BuildError {
    let text = format!(
        "a filter for {capacity} items would exceed the address space: ask for a smaller capacity"
    );
    BuildError::new(BuildErrorKind::CapacityOverflow, text)
}

/// Returns the greatest growth for which any layout has enough bits.
fn most_growth(ticks: u8) -> f64 {
    let layouts = || LAYOUTS.iter().filter_map(|layout| layout.remembering(ticks));
    let lasts = |growth: &f64| layouts().any(|layout| lasts_for(layout.lanes, *growth));
    (0..64).map(f64::from).map(f64::exp2).take_while(lasts).last().unwrap_or(1.0)
}

/// Returns the lanes of filters with fingerprints of `bits` bits, in wide or narrow buckets, that remember items for
/// `ticks` ticks (or, with 0, for ever). Returns `None` if there are no such filters.
pub fn lanes_of(bits: u32, is_wide: bool, ticks: u8) -> Option<Lanes> {
    let mut all = LAYOUTS.iter().filter_map(|layout| Some(layout.remembering(ticks)?.lanes));
    all.find(|lanes| lanes.fingerprint_bits() == bits && lanes.is_wide() == is_wide)
}

/// The initial size of a growing filter, and the limit and growth that it is planned for.
#[derive(Clone, Debug)]
pub struct GrowthPlan {
    /// The geometry of the first table.
    pub geometry: Geometry,
    /// [`Stagger::FULL`], except in models.
    pub stagger: Stagger,
    pub max_bytes: usize,
    /// The size of the filter itself, without its heap.
    pub own_bytes: usize,
    pub expected_growth: f64,
    /// The false-positive rate after the expected growth.
    pub rate: f64,
}

impl GrowthPlan {
    pub fn forgets(&self) -> bool {
        self.geometry.lanes().forgets()
    }

    /// Returns the division of the lanes into anchor and suffix.
    pub fn shrinking<const WIDE: bool>(&self) -> Shrinking<WIDE> {
        Shrinking::new(self.geometry.lanes(), self.expected_growth)
    }

    pub fn roots(&self) -> Roots {
        Roots { count: self.geometry.shards(), stagger: self.stagger }
    }
}

/// How far the average load of a shard that is about to be split exceeds the planned load.
const LOAD_ABOVE_PLAN: f64 = 0.01;

/// Plans the smallest first table that holds `capacity` items, remembers them for `ticks` ticks (or, with 0, for ever)
/// and keeps `rate` after it has grown.
pub fn growth_plan(
    capacity: usize,
    rate: f64,
    ticks: u8,
    expected_growth: f64,
    [own_bytes, max_bytes]: [usize; 2],
) -> Result<GrowthPlan, BuildError> {
    let most = most_growth(ticks);
    if !(1.0..=most).contains(&expected_growth) {
        let text = format!(
            "the expected growth has to be from 1 to {most}, and {expected_growth:e} is not (a filter that \
             becomes a thousand times as large grows by 1000)"
        );
        return Err(BuildError::new(BuildErrorKind::InvalidGrowth, text));
    }
    let rate_of = |layout: &Layout| {
        let full = layout.lanes.slots() as f64 * (layout.load + LOAD_ABOVE_PLAN).min(1.0);
        // When the table has doubled, its old lanes contribute the same rate as before: each matches twice as many
        // items, among twice as many buckets. The new lanes that fill the table up again add half the rate of the full
        // first table.
        full * rate_of_a_lane(layout.lanes) * (1.0 + expected_growth.log2() / 2.0)
    };
    let layout = layout_for(rate, ticks, expected_growth, rate_of)?;
    let geometry = layout.growing_geometry(capacity).ok_or_else(|| too_large(capacity))?;
    let (stagger, rate) = (Stagger::FULL, rate_of(&layout));
    Ok(GrowthPlan { geometry, stagger, max_bytes, own_bytes, expected_growth, rate })
}

/// Returns the probability that a new lane of a growing filter matches another item, times the number of buckets. The
/// lane may be in either bucket of that item, and has to agree with it in all bits but the last `1`.
pub fn rate_of_a_lane(lanes: Lanes) -> f64 {
    match lanes.is_wide() {
        false => 2.0 / f64::from(lanes.bits() - lanes.stamp_bits() - 1).exp2(),
        // An anchor in a wide bucket is never zero.
        true => 4.0 / lanes.fingerprints() as f64,
    }
}
