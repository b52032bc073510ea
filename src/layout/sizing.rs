//! The [`Layout`] of a filter: all numbers that are chosen when it is built, and how they are chosen.
//!
//! The rate determines how buckets are cut into lanes, and the capacity how many buckets there are. The promise is that
//! `capacity` distinct items fit, but in one fill of ten million. So the planned load is that which a table reaches in
//! the worst of very many fills before it first refuses an item, and not on average.

use crate::error::{BuildError, BuildErrorKind};
use crate::layout::bucket::Lanes;
use crate::layout::geometry::{Geometry, MAX_SHARDS, MIN_BY_DISTANCE, SHARD_BUCKETS};
use crate::layout::roots::Roots;
use crate::layout::shrinking::{GROWING_BUCKETS, Shrinking, lasts_for};
use crate::stats::Stats;

/// The numbers of a filter, most of which are in its files. None of them changes but the limit of its memory.
#[doc(hidden)]
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    /// The geometry of the shards that the filter begins with.
    pub geometry: Geometry,
    /// The number of distinct items that was asked for.
    pub capacity: usize,
    /// The false-positive rate at the capacity, or after the expected growth.
    pub rate: f64,
    pub grows: bool,
    /// The growth that the filter was built for: 1 if it does not grow.
    pub expected_growth: f64,
    /// The limit of the memory of a filter that grows, or `usize::MAX`.
    pub max_bytes: usize,
    /// The size of a filter that grows, without its heap.
    pub own_bytes: usize,
}

impl Layout {
    /// Returns the layout of a filter of fixed size.
    pub(crate) fn fixed(geometry: Geometry, capacity: usize) -> Self {
        let buckets = geometry.all_buckets();
        let load = capacity as f64 / (buckets as f64 * geometry.lanes().slots() as f64);
        let rate = rate_at(geometry.lanes(), load, buckets);
        let growing = Layout::growing(geometry, capacity, 1.0, rate);
        Layout { grows: false, ..growing }
    }

    /// Returns the layout of a filter that grows, without a limit.
    pub(crate) fn growing(
        geometry: Geometry,
        capacity: usize,
        expected_growth: f64,
        rate: f64,
    ) -> Self {
        let (grows, max_bytes, own_bytes) = (true, usize::MAX, 0);
        Layout { geometry, capacity, rate, grows, expected_growth, max_bytes, own_bytes }
    }

    pub(crate) fn lanes(&self) -> Lanes {
        self.geometry.lanes()
    }

    /// Returns the shards that the filter begins with, as divisions of the hashes.
    pub(crate) fn roots(&self) -> Roots {
        Roots { count: self.geometry.shards() }
    }

    /// Returns the division of the lanes into anchor and suffix, in a filter that grows.
    pub(crate) fn shrinking(&self) -> Shrinking {
        Shrinking::new(self.lanes(), self.expected_growth)
    }

    /// The caller adds the size, and the depth of a directory.
    pub(crate) fn stats(&self, shards: usize, items: usize) -> Stats {
        let (geometry, lanes) = (&self.geometry, self.lanes());
        Stats {
            grows: self.grows,
            items,
            capacity: self.capacity,
            // A file may tell of more than memory has.
            slots: shards.saturating_mul(geometry.buckets() as usize * lanes.slots()),
            fingerprint_bits: lanes.fingerprint_bits(),
            slots_per_bucket: lanes.slots(),
            shards,
            segments: shards.saturating_mul(geometry.stripes() as usize),
            size_in_bytes: 0,
            false_positive_rate: self.rate_with(shards, items),
            false_positive_rate_at_capacity: self.rate,
            max_bytes: Some(self.max_bytes).filter(|bytes| *bytes < usize::MAX),
            splits: shards - geometry.shards(),
            directory_depth: 0,
            growth: shards as f64 / geometry.shards() as f64,
            expected_growth: self.expected_growth,
        }
    }

    /// Estimates how many shards a filter of this layout has once this number of distinct items was added. Within a
    /// root, the share of a shard rises with its position, so the shards of a level that are full are its last ones.
    pub(crate) fn shards_with(&self, items: usize) -> usize {
        if !self.grows {
            return self.geometry.shards();
        }
        let slots = f64::from(self.geometry.buckets()) * self.lanes().slots() as f64;
        let full = slots * form_of(self.lanes()).load;
        let in_a_root = items as f64 / self.geometry.shards() as f64;
        let root = Roots { count: 1 };
        let split_at = |level: u32| {
            let (mut first, mut end) = (0, 1usize << level);
            while first < end {
                let middle = first.midpoint(end);
                match in_a_root * root.share(middle, level) > full {
                    true => end = middle,
                    false => first = middle + 1,
                }
            }
            (1 << level) - first
        };
        let splits: usize = (0..31).map(split_at).take_while(|splits| *splits > 0).sum();
        (1 + splits).saturating_mul(self.geometry.shards()).min(MAX_SHARDS as usize)
    }

    /// Estimates the false-positive rate with this number of shards and items that came while the filter grew to this
    /// size.
    fn rate_with(&self, shards: usize, items: usize) -> f64 {
        let in_a_bucket = items as f64 / (shards as f64 * f64::from(self.geometry.buckets()));
        if !self.grows {
            let load = in_a_bucket / self.lanes().slots() as f64;
            return rate_at(self.lanes(), load, self.geometry.all_buckets());
        }
        let growth = shards as f64 / self.geometry.shards() as f64;
        in_a_bucket * rate_of_a_lane(self.lanes()) * weight_after(growth)
    }
}

/// One form of a bucket: the lanes that it is cut into, and how full tables of such buckets get.
#[derive(Clone, Copy)]
struct Form {
    lanes: Lanes,
    /// The highest load that tables are planned for, which determines the rate.
    load: f64,
    /// The load that the largest shards reach on average before they first refuse an item. Smaller ones reach more.
    reached: f64,
    /// The load up to which hardly any shard is split: 2 to 4 % less than the lowest of 400.
    unsplit: f64,
}

/// All forms, in ascending order of bits per item. `benches/src/loads.rs` measures their loads. A wide bucket fills up
/// like a narrow one with as many lanes, since only the heads determine where items can move.
const FORMS: [Form; 11] = [
    Form { lanes: Lanes::of_bits(8), load: 0.97, reached: 0.995, unsplit: 0.94 },
    Form { lanes: Lanes::of_bits(9), load: 0.968, reached: 0.993, unsplit: 0.925 },
    Form { lanes: Lanes::of_bits(10), load: 0.965, reached: 0.99, unsplit: 0.925 },
    Form { lanes: Lanes::of_bits(12), load: 0.957, reached: 0.983, unsplit: 0.915 },
    Form { lanes: Lanes::of_bits(16), load: 0.945, reached: 0.972, unsplit: 0.905 },
    Form { lanes: Lanes::of_wide(18), load: 0.973, reached: 0.993, unsplit: 0.925 },
    Form { lanes: Lanes::of_wide(20), load: 0.969, reached: 0.99, unsplit: 0.925 },
    Form { lanes: Lanes::of_bits(21), load: 0.92, reached: 0.946, unsplit: 0.84 },
    Form { lanes: Lanes::of_wide(24), load: 0.9645, reached: 0.983, unsplit: 0.915 },
    Form { lanes: Lanes::of_wide(32), load: 0.9585, reached: 0.972, unsplit: 0.905 },
    Form { lanes: Lanes::of_bits(32), load: 0.857, reached: 0.876, unsplit: 0.73 },
];

impl Form {
    /// Returns the same form for a filter that remembers items for `ticks` ticks, or for ever with 0, if a lane has
    /// enough bits left for the fingerprint. The load depends on the bits of the fingerprint that choose the other
    /// bucket. With 8 such bits, tables reach the planned load.
    fn remembering(&self, ticks: u8) -> Option<Form> {
        let lanes = if ticks == 0 { self.lanes } else { self.lanes.remembering(ticks) };
        let left = lanes.bits() - lanes.stamp_bits();
        let is_enough = if lanes.is_wide() { left >= 4 } else { left >= 8 };
        is_enough.then_some(Form { lanes, ..*self })
    }

    /// Returns the number of buckets that a table of one shard needs for this many items. The smaller the table, the
    /// more the load at its first refusal varies, and the larger the margin has to be.
    fn buckets_for(&self, items: f64) -> f64 {
        let slots = self.lanes.slots() as f64;
        let by_chance = (items + 3.0 * items.sqrt() + 3.0) / (slots * self.reached);
        let buckets = by_chance.max(items / (slots * self.load));
        buckets.max(self.buckets_against_overfull_pairs(items)).ceil()
    }

    /// Returns how many items each of several shards with this many buckets takes on average. Items are spread over the
    /// shards at random, and the load at which a shard first refuses one varies, by half as much or less. Fewer than
    /// one shard in 10^8 deviates by six standard deviations of the number of its items.
    fn items_in_a_shard(&self, buckets: f64) -> f64 {
        let slots = self.lanes.slots() as f64 * buckets;
        let root = (9.0 + slots * self.reached).sqrt() - 3.0;
        (root * root).min(slots * self.load)
    }

    /// Returns the number of buckets at which one fill in 10^7 has an overfull pair of buckets: one to which more items
    /// belong than it has slots, however empty the rest of the table is. With `n` items and `p` pairs of buckets, `k`
    /// items share a pair in one fill out of `p^(k-1) / C(n, k)`.
    fn buckets_against_overfull_pairs(&self, items: f64) -> f64 {
        let too_many = 2 * self.lanes.slots() + 1;
        let choices: f64 =
            (0..too_many).map(|i| (items - i as f64).max(0.0) / (i + 1) as f64).product();
        let pairs = (1e7 * choices).powf(1.0 / (too_many as f64 - 1.0));
        // A pair has one bucket of even index and one of odd index.
        2.0 * pairs.sqrt()
    }

    /// Plans the first table of a growing filter. If it has many shards, their number is a multiple of 16, so that
    /// batches can be sorted by groups of shards.
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
        let buckets = self.buckets_for(capacity);
        if buckets <= f64::from(SHARD_BUCKETS) {
            return Some(Geometry::new(self.lanes, 1, buckets as u32));
        }
        let sizes = (0..).map(|halvings| SHARD_BUCKETS >> halvings);
        let tables = sizes.take_while(|buckets| *buckets >= MIN_BY_DISTANCE).map(|buckets| {
            let shards = (capacity / self.items_in_a_shard(buckets.into())).ceil().max(2.0);
            (shards, buckets, shards * f64::from(buckets))
        });
        // The fewer shards there are, the more room is left in the last one. The smaller they are, the more room chance
        // needs. So shards are as large as they can be for an excess of 2 %, or else of the size with the least excess.
        let enough = 1.02 * capacity / (self.lanes.slots() as f64 * self.load);
        let of_all = |table: &(f64, u32, f64)| table.2;
        let best = tables.clone().find(|table| of_all(table) <= enough);
        let least = || tables.min_by(|one, other| of_all(one).total_cmp(&of_all(other)));
        let (shards, buckets, all) = best.or_else(least)?;
        // The stripes take far less than a hundredth of the memory of the buckets.
        let bytes = all * 8.0 * self.lanes.words() as f64 * 1.01;
        let fits = bytes <= isize::MAX as f64 && shards <= f64::from(MAX_SHARDS);
        fits.then(|| Geometry::new(self.lanes, shards as usize, buckets))
    }
}

fn form_of(lanes: Lanes) -> Form {
    let shape = |lanes: Lanes| (lanes.bits(), lanes.is_wide());
    let form = FORMS.iter().find(|form| shape(form.lanes) == shape(lanes));
    // Models have lanes of their own.
    form.map_or(Form { lanes, load: 0.7, reached: 0.7, unsplit: 0.7 }, |form| Form {
        lanes,
        ..*form
    })
}

/// Returns the load up to which hardly any shard of these lanes is split.
pub(crate) fn unsplit_load(lanes: Lanes) -> f64 {
    form_of(lanes).unsplit
}

/// Returns the probability that an item that was never inserted finds its fingerprint in one of the lanes of its two
/// buckets, when the fraction `load` of all lanes is taken. This is the worst case, in which no two of these lanes hold
/// the same fingerprint, as in a filter filled by `insert_if_absent`. `insert` also adds the second of two items with
/// the same fingerprint, so the probability is a little less, `1 - (1 - 1/fingerprints)^lanes`.
///
/// Beyond 2^32 buckets, the index of a bucket takes bits of the hash that the fingerprint is made of, so the
/// fingerprints that meet in a bucket have these bits in common.
pub(crate) fn rate_at(lanes: Lanes, load: f64, buckets: u64) -> f64 {
    let in_common = (buckets as f64 * (-32f64).exp2()).max(1.0);
    2.0 * lanes.slots() as f64 * load * in_common / lanes.fingerprints() as f64
}

/// Returns the probability that a new lane of a growing filter matches another item, times the number of buckets. The
/// lane may be in either bucket of that item, and has to agree with it in all bits but the last `1`.
pub(crate) fn rate_of_a_lane(lanes: Lanes) -> f64 {
    match lanes.is_wide() {
        false => 2.0 / f64::from(lanes.bits() - lanes.stamp_bits() - 1).exp2(),
        // An anchor in a wide bucket is never zero.
        true => 4.0 / lanes.fingerprints() as f64,
    }
}

/// Returns by how much more the lanes of a filter match after this growth than as many new lanes would. When the table
/// has doubled, its old lanes contribute the same rate as before: each matches twice as many items, among twice as many
/// buckets. The new lanes that fill the table up again add half the rate of the full first table.
fn weight_after(growth: f64) -> f64 {
    1.0 + growth.log2() / 2.0
}

fn lasting(ticks: u8, growth: f64) -> impl DoubleEndedIterator<Item = Form> {
    let forms = FORMS.iter().filter_map(move |form| form.remembering(ticks));
    forms.filter(move |form| lasts_for(form.lanes, growth))
}

/// Returns the lanes with fingerprints of `bits` bits in filters that remember items for `ticks` ticks, if there are
/// any.
pub(crate) fn lanes_of(bits: u32, is_wide: bool, ticks: u8) -> Option<Lanes> {
    let mut all = FORMS.iter().filter_map(|form| Some(form.remembering(ticks)?.lanes));
    all.find(|lanes| lanes.fingerprint_bits() == bits && lanes.is_wide() == is_wide)
}

/// How far the average load of a shard that is about to be split exceeds the planned load.
const LOAD_ABOVE_PLAN: f64 = 0.01;

/// Plans the smallest filter that holds `capacity` items, remembers them for `ticks` ticks, or for ever with 0, and
/// keeps `rate`. With an expected growth, the filter begins with the capacity, and keeps the rate, and some bits of
/// each fingerprint, until it has grown by that factor.
pub(crate) fn layout_for(
    capacity: usize,
    rate: f64,
    ticks: u8,
    expected_growth: Option<f64>,
) -> Result<Layout, BuildError> {
    if let Some(growth) = expected_growth {
        check_growth(growth, ticks)?;
    }
    if !(rate > 0.0 && rate < 1.0) {
        let text = format!(
            "the false-positive rate has to be more than 0 and less than 1, and {rate} is not (1 % is 0.01)"
        );
        return Err(BuildError::new(BuildErrorKind::InvalidRate, text));
    }
    let rate_of = |form: &Form| match expected_growth {
        // A table that no memory holds is refused for its size, and not for its rate.
        None => {
            let buckets = form.geometry(capacity).map_or(1, |geometry| geometry.all_buckets());
            rate_at(form.lanes, form.load, buckets)
        }
        Some(growth) => {
            let full = form.lanes.slots() as f64 * (form.load + LOAD_ABOVE_PLAN).min(1.0);
            full * rate_of_a_lane(form.lanes) * weight_after(growth)
        }
    };
    let lasting = || lasting(ticks, expected_growth.unwrap_or(1.0));
    let form = lasting().find(|form| rate_of(form) <= rate).ok_or_else(|| {
        let least = rounded_up(lasting().map(|form| rate_of(&form)).fold(1.0, f64::min));
        let text = format!(
            "a false-positive rate of {rate:e} is out of reach: ask for {least:.1e} or more, or for less \
             growth if the filter grows, or use an exact set"
        );
        BuildError::new(BuildErrorKind::RateTooSmall, text).with_least_rate(least)
    })?;
    let layout = match expected_growth {
        None => form.geometry(capacity).map(|geometry| Layout::fixed(geometry, capacity)),
        Some(growth) => {
            let geometry = form.growing_geometry(capacity);
            geometry.map(|geometry| Layout::growing(geometry, capacity, growth, rate_of(&form)))
        }
    };
    layout.ok_or_else(|| {
        let text = format!(
            "a filter for {capacity} items would exceed the address space: ask for a smaller capacity"
        );
        BuildError::new(BuildErrorKind::CapacityOverflow, text)
    })
}

/// Checks that some fingerprints last for this growth.
fn check_growth(growth: f64, ticks: u8) -> Result<(), BuildError> {
    let powers = (0..64).map(|power| f64::from(power).exp2());
    let most =
        powers.take_while(|most| lasting(ticks, *most).next().is_some()).last().unwrap_or(1.0);
    if (1.0..=most).contains(&growth) {
        return Ok(());
    }
    let text = format!(
        "the expected growth has to be from 1 to {most}, and {growth:e} is not (a filter that \
         becomes a thousand times as large grows by 1000)"
    );
    Err(BuildError::new(BuildErrorKind::InvalidGrowth, text))
}

/// Rounds up to two digits, so that the filter can be built with the printed rate.
fn rounded_up(rate: f64) -> f64 {
    let exponent = rate.log10().floor() as i32 - 1;
    let digits = (rate / 10f64.powi(exponent)).ceil();
    format!("{digits}e{exponent}").parse().unwrap_or(rate)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::geometry::Mixed;

    /// Returns by how much the table of the items that fill `mib` MiB at the planned load exceeds that size.
    fn excess(form: &Form, mib: f64) -> f64 {
        let words = mib * f64::from(1 << 17);
        let buckets = words / form.lanes.words() as f64;
        let items = buckets * form.lanes.slots() as f64 * form.load;
        let geometry = form.geometry(items as usize).expect("a table");
        geometry.all_buckets() as f64 / buckets - 1.0
    }

    #[test]
    fn a_table_takes_little_more_than_its_items_at_any_size() {
        for form in &FORMS {
            // In percent, from each size in MiB to the double of it.
            let least = match form.lanes.slots() {
                ..=3 => [(1.0, 8.0), (2.0, 6.0), (4.0, 4.5), (8.0, 3.0)],
                4 => [(1.0, 6.5), (2.0, 5.0), (4.0, 3.5), (8.0, 2.5)],
                _ => [(1.0, 5.5), (2.0, 4.0), (4.0, 3.0), (8.0, 2.0)],
            };
            let small = [(0.125, 1.0), (0.25, 1.0), (0.5, 1.0)];
            let large = [(16.0, 2.0), (64.0, 2.0), (1_024.0, 2.0)];
            // Up to what an address space of 32 bits holds.
            let addressable = |(mib, _): &(f64, f64)| *mib * 2.0 < (isize::MAX >> 21) as f64;
            let sizes = small.into_iter().chain(least).chain(large);
            for (mib, percent) in sizes.filter(addressable) {
                for step in 0..1_000 {
                    // Wide buckets are twice as large.
                    let mib = mib * form.lanes.words() as f64 * (f64::from(step) / 1_000.0).exp2();
                    let excess = 100.0 * excess(form, mib);
                    assert!(excess <= percent + 0.01, "{mib} MiB of {:?}: {excess} %", form.lanes);
                }
            }
        }
    }

    #[test]
    fn no_shard_gets_more_items_than_it_takes() {
        for form in &FORMS {
            for step in 0..1_000 {
                let items = 1e5 * (f64::from(step) / 50.0).exp2();
                // An address space of 32 bits holds no more.
                if items > (isize::MAX >> 3) as f64 {
                    break;
                }
                let geometry = form.geometry(items as usize).expect("a table");
                let shards = geometry.shards() as f64;
                let slots = f64::from(geometry.buckets()) * form.lanes.slots() as f64;
                let mean = items / shards;
                let deviation = if shards > 1.0 { mean.sqrt() } else { 0.0 };
                assert!(mean + 6.0 * deviation <= slots * form.reached + 1.0, "{items}");
                assert!(mean <= slots * form.load + 1.0, "{items}");
            }
        }
    }

    #[test]
    fn fingerprints_of_a_huge_table_have_bits_in_common_and_no_more() {
        let (lanes, shards, samples) = (Lanes::of_bits(12), 1 << 17, 1_000_000u64);
        let geometry = Geometry::new(lanes, shards, SHARD_BUCKETS);
        let hash_in_one_bucket = |low: u64| Mixed(0x5555_5555 << 32 | Mixed::of(low).0 >> 34);
        let (_, searched) = geometry.locate_mixed(hash_in_one_bucket(samples), false);
        let matching = (0..samples).filter(|low| {
            let (_, place) = geometry.locate_mixed(hash_in_one_bucket(*low), false);
            assert_eq!(place.first, searched.first);
            place.fp == searched.fp
        });
        // Of the lanes of one bucket.
        let expected = rate_at(lanes, 1.0, geometry.all_buckets()) / (2.0 * lanes.slots() as f64);
        let found = matching.count() as f64 / samples as f64;
        assert!((0.8..1.2).contains(&(found / expected)), "{found:e} instead of {expected:e}");
    }
}
