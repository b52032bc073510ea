//! The builder and the constructors. `plan` and `build` check all settings, once.

use crate::backend::Backend;
use crate::error::{BuildError, BuildErrorKind};
use crate::filter::ConcurrentCuckooFilter;
use crate::hash::RandomState;
use crate::layout::sizing::{Layout, layout_for};
use crate::layout::stamps::MAX_TICKS;
use crate::snapshot::write::file_bytes_with;
use crate::window::Window;
use std::time::Duration;

impl ConcurrentCuckooFilter<RandomState> {
    /// Creates a filter in which `capacity` distinct items fit.
    ///
    /// Its false-positive rate is at most 0.012 %, at 17 bits an item, and its hash keys are random.
    ///
    /// # Panics
    ///
    /// Panics if the table exceeds the address space, as `Vec::with_capacity` does, or if it cannot be allocated. The
    /// [`builder`](Self::builder) returns an error instead. Many systems overcommit: they grant memory that they may not
    /// have, and end a process when it is first written.
    ///
    /// ```
    /// let filter = koel::ConcurrentCuckooFilter::with_capacity(1_000_003);
    /// assert_eq!(filter.capacity(), 1_000_003);
    /// assert!(filter.size_in_bytes() < 2_200_000);
    /// ```
    #[must_use]
    #[track_caller]
    pub fn with_capacity(capacity: usize) -> Self {
        Self::with_capacity_and_hasher(capacity, RandomState::new())
    }

    /// Returns a builder, to choose another false-positive rate or hasher, or a filter that grows.
    pub fn builder() -> Builder {
        Builder { settings: Settings::default(), hasher: RandomState::new() }
    }
}

impl<S> ConcurrentCuckooFilter<S> {
    /// As [`with_capacity`](ConcurrentCuckooFilter::with_capacity), with a hasher of the caller's.
    ///
    /// # Panics
    ///
    /// As `with_capacity`.
    /// ```
    /// use koel::{ConcurrentCuckooFilter, StableHash};
    ///
    /// let filter = ConcurrentCuckooFilter::with_capacity_and_hasher(1_000, StableHash::random());
    /// assert_eq!(filter.capacity(), 1_000);
    /// ```
    #[must_use]
    #[track_caller]
    pub fn with_capacity_and_hasher(capacity: usize, hasher: S) -> Self {
        match ConcurrentCuckooFilter::builder().capacity(capacity).hasher(hasher).build() {
            Ok(filter) => filter,
            Err(error) => panic!("{error}"),
        }
    }
}

/// The rate that the 16-bit layout achieves.
const DEFAULT_RATE: f64 = 0.000_12;

/// From one shard of 16-bit fingerprints to seven million items. At a rate of a percent, less growth takes as many
/// bits.
const DEFAULT_GROWTH: f64 = 256.0;

/// The capacity of a [seen-set](Builder::seen_set), unless one is set: little enough to begin with one shard.
const SEEN_CAPACITY: usize = 10_000;

fn growth_of_seen(is_capacity_known: bool, forgets: bool, rate: f64) -> f64 {
    match (is_capacity_known, forgets) {
        (true, _) => 4.0,
        // Stamps take up to 6 of the bits that growth would take.
        (false, true) => 128.0,
        // At 32 bits a fingerprint, which the rate takes anyway: some 200 million items.
        (false, false) if rate == Plan::SEEN_SET_RATE => 8_192.0,
        // At a higher rate, more growth would take longer fingerprints.
        (false, false) => DEFAULT_GROWTH,
    }
}

/// Configures and builds a filter, from [`ConcurrentCuckooFilter::builder`].
///
/// ```
/// use koel::ConcurrentCuckooFilter;
///
/// let filter = ConcurrentCuckooFilter::builder()
///     .capacity(1_000_000)
///     .false_positive_rate(0.01)
///     .build()?;
/// assert_eq!(filter.capacity(), 1_000_000);
/// # Ok::<(), koel::BuildError>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until .build() is called"]
pub struct Builder<S = RandomState> {
    pub(crate) settings: Settings,
    hasher: S,
}

/// What was set, and nothing else.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Settings {
    pub capacity: Option<usize>,
    pub false_positive_rate: Option<f64>,
    pub remembers: Option<u32>,
    /// The window of [`forgets_after`](Builder::forgets_after), whose ticks are in `remembers`.
    pub window: Option<Window>,
    pub grows: bool,
    /// Whether what is not set is that of a [seen-set](Builder::seen_set).
    pub is_seen_set: bool,
    pub expected_growth: Option<f64>,
    pub max_bytes: Option<usize>,
}

impl Settings {
    /// Returns the layout of a new filter, but for the size of its own fields.
    pub(crate) fn layout(&self) -> Result<Layout, BuildError> {
        let Settings { remembers, grows, is_seen_set, expected_growth, max_bytes, .. } = *self;
        let capacity = self.capacity.or(is_seen_set.then_some(SEEN_CAPACITY)).ok_or_else(|| {
            let text = "no capacity was given: set the number of items with .capacity(n)";
            BuildError::new(BuildErrorKind::NoCapacity, text)
        })?;
        let ticks = remembers.map_or(Ok(0), |ticks| {
            let as_byte = u8::try_from(ticks).ok().filter(|ticks| (1..=MAX_TICKS).contains(ticks));
            as_byte.ok_or_else(|| {
                let text = format!("a filter remembers items for 1 to 62 ticks, not for {ticks}");
                BuildError::new(BuildErrorKind::InvalidTicks, text)
            })
        })?;
        if !grows && (expected_growth.is_some() || max_bytes.is_some()) {
            let setting = if expected_growth.is_some() { "expected_growth" } else { "max_bytes" };
            let text = format!(
                ".{setting} is for a filter that grows, and this one does not: call .growing() as \
                 well, or leave it out"
            );
            return Err(BuildError::new(BuildErrorKind::NotGrowing, text));
        }
        let default_rate = if is_seen_set { Plan::SEEN_SET_RATE } else { DEFAULT_RATE };
        let rate = self.false_positive_rate.unwrap_or(default_rate);
        let default_growth = match is_seen_set {
            true => growth_of_seen(self.capacity.is_some(), ticks > 0, rate),
            false => DEFAULT_GROWTH,
        };
        let growth = grows.then(|| expected_growth.unwrap_or(default_growth));
        let layout = layout_for(capacity, rate, ticks, growth)?;
        Ok(Layout { max_bytes: max_bytes.unwrap_or(usize::MAX), ..layout })
    }
}

impl<S> Builder<S> {
    /// Sets the number of distinct items that have to fit. There is no default. By chance, fewer than one filter of
    /// fixed size in ten million refuses one of them.
    pub fn capacity(mut self, items: usize) -> Self {
        self.settings.capacity = Some(items);
        self
    }

    /// Sets the highest acceptable false-positive rate of the full filter: the fraction of never-inserted items that
    /// the filter may report as contained. It has to be more than 0 and less than 1. The default is 0.00012. The filter
    /// uses [the shortest fingerprints](crate::guide::rates) that keep the rate.
    ///
    /// Beyond 2^32 buckets, which are 16 billion items at 16 bits, a filter of fixed size needs longer fingerprints for
    /// the same rate.
    ///
    /// ```
    /// # use koel::ConcurrentCuckooFilter;
    /// let filter = ConcurrentCuckooFilter::builder()
    ///     .capacity(1_000_000)
    ///     .false_positive_rate(0.065)
    ///     .build()?;
    /// assert_eq!(filter.stats().fingerprint_bits, 8);
    /// assert!(filter.size_in_bytes() < 1_100_000);
    /// # Ok::<(), koel::BuildError>(())
    /// ```
    pub fn false_positive_rate(mut self, rate: f64) -> Self {
        self.settings.false_positive_rate = Some(rate);
        self
    }

    /// Sets the hasher, instead of a randomly keyed [`RandomState`].
    ///
    /// A fixed hasher makes the filter reproducible: the same inserts in the same order give the same table. It also
    /// lets anyone who knows the hasher choose items that meet in one bucket.
    ///
    /// The filter mixes each hash. So a hasher may have weak low or high bits, or may return integers unchanged. But
    /// items with equal hashes are one item to the filter: with a hasher of 32 bits, it errs far more often than its
    /// rate.
    ///
    /// ```
    /// use koel::ConcurrentCuckooFilter;
    /// use std::hash::{BuildHasherDefault, DefaultHasher};
    ///
    /// let filter = ConcurrentCuckooFilter::builder()
    ///     .capacity(100)
    ///     .hasher(BuildHasherDefault::<DefaultHasher>::default())
    ///     .build()?;
    /// filter.insert("an item").unwrap();
    /// assert!(filter.contains("an item"));
    /// # Ok::<(), koel::BuildError>(())
    /// ```
    pub fn hasher<H>(self, hasher: H) -> Builder<H> {
        Builder { settings: self.settings, hasher }
    }

    /// Makes the filter [forget](ConcurrentCuckooFilter#forgetting): it remembers each item for this number of ticks,
    /// from 1 to 62, and removes it with the next. By default it remembers items for ever.
    ///
    /// The capacity is the number of items that are remembered at once: those of the present tick, and of as many
    /// before it. What expires takes room until its tick has passed, so leave room for one tick more if items keep
    /// coming meanwhile. In a growing filter what has expired makes room, so a steady stream of items needs no more
    /// than the room of its window.
    ///
    /// A stamp takes the binary logarithm of `ticks + 2` of a fingerprint's bits, rounded up: 3 bits for 6 ticks, 4 for
    /// 7 to 14.
    ///
    /// ```
    /// # use koel::ConcurrentCuckooFilter;
    /// let week = ConcurrentCuckooFilter::builder()
    ///     .capacity(1_000_000)
    ///     .false_positive_rate(0.001)
    ///     .remembers(6)
    ///     .build()?;
    /// assert_eq!(week.stats().fingerprint_bits, 16);
    /// assert!(week.size_in_bytes() < 2_200_000);
    /// # Ok::<(), koel::BuildError>(())
    /// ```
    ///
    /// The ticks are yours, and pass when you say so. [`forgets_after`](Self::forgets_after) is for the system's clock.
    pub fn remembers(mut self, ticks: u32) -> Self {
        self.settings.remembers = Some(ticks);
        self.settings.window = None;
        self
    }

    /// Makes the filter forget an item once this time has passed since it was inserted or last
    /// [refreshed](ConcurrentCuckooFilter::refresh), by the system's clock: never earlier, and up to one tick and a
    /// second later. A tick is a fourteenth of the time, rounded up to whole seconds. The filter
    /// [remembers](Self::remembers) items for up to 14 of them, a [`Window`] of a second to a hundred years. Call
    /// [`keep_up`](ConcurrentCuckooFilter::keep_up) before each insert, refresh or lookup: it lets the ticks pass that
    /// are due.
    ///
    /// ```
    /// use koel::ConcurrentCuckooFilter;
    /// use std::thread::sleep;
    /// use std::time::Duration;
    ///
    /// let builder = ConcurrentCuckooFilter::builder().capacity(100);
    /// let tokens = builder.forgets_after(Duration::from_secs(1)).build()?;
    /// tokens.insert_if_absent("token").expect("room for a hundred");
    /// assert!(tokens.contains("token"));
    ///
    /// sleep(Duration::from_secs(2));
    /// tokens.keep_up();
    /// assert!(!tokens.contains("token"));
    /// # Ok::<(), koel::BuildError>(())
    /// ```
    #[doc(alias = "ttl")]
    #[doc(alias = "expire")]
    pub fn forgets_after(mut self, time: Duration) -> Self {
        let window = Window::new(time);
        self.settings.remembers = Some(window.ticks());
        self.settings.window = Some(window);
        self
    }

    /// Makes the filter [grow](ConcurrentCuckooFilter#growth) when it is full.
    ///
    /// The [`capacity`](Self::capacity) is then that with which it begins, in at least one shard of 64 or 128 KiB.
    /// Items are placed by chance, so in rare cases a shard is split a little sooner. The
    /// [rate](Self::false_positive_rate) is kept up to the [expected growth](Self::expected_growth), for which a
    /// growing filter takes [longer fingerprints](crate::guide::growth#what-it-costs) than a fixed one.
    ///
    /// ```
    /// use koel::ConcurrentCuckooFilter;
    ///
    /// let seen = ConcurrentCuckooFilter::builder().capacity(10).growing().build()?;
    /// assert!(seen.size_in_bytes() < 70_000);
    /// for page in 0..100_000 {
    ///     seen.insert(&page).expect("memory for another shard");
    /// }
    /// assert!((0..100_000).all(|page| seen.contains(&page)));
    /// # Ok::<(), koel::BuildError>(())
    /// ```
    pub fn growing(mut self) -> Self {
        self.settings.grows = true;
        self
    }

    /// Makes the filter [grow](Self::growing), and lets it choose what is not set: for a set of items that were seen, of
    /// which nobody knows how many will come. `koel dedup` and the wheel build their filters so.
    ///
    /// | | unless it is set |
    /// |---|---|
    /// | [rate](Self::false_positive_rate) | [a millionth](Plan::SEEN_SET_RATE) |
    /// | [capacity](Self::capacity) | 10,000: one shard |
    /// | [growth](Self::expected_growth) | 4 if the capacity is set; otherwise 8,192 at a rate of a millionth, 256 at another rate, and 128 if the filter forgets |
    ///
    /// ```
    /// # use koel::ConcurrentCuckooFilter;
    /// let seen = ConcurrentCuckooFilter::builder().seen_set();
    /// assert_eq!(seen.plan()?.planned_items, 81_920_000);
    /// let seen = seen.capacity(1_000_000).plan()?;
    /// assert_eq!(seen.planned_items, 4_000_000);
    /// assert!(seen.false_positive_rate_at_capacity < 1e-6);
    /// # Ok::<(), koel::BuildError>(())
    /// ```
    pub fn seen_set(mut self) -> Self {
        (self.settings.grows, self.settings.is_seen_set) = (true, true);
        self
    }

    /// Sets the factor by which a [growing](Self::growing) filter may grow before it exceeds its false-positive rate,
    /// and before the oldest fingerprints run out of bits: of the slots that it begins with, which fill 64 or 128 KiB
    /// at least. It has to be from 1 to 2^23, or less in a filter that forgets. The default is 256. [What growth
    /// costs](crate::guide::growth#what-it-costs) depends on the rate.
    ///
    /// [Beyond it](crate::guide::growth#beyond-the-expected-growth) the filter keeps growing, and its rate keeps rising
    /// at the same pace. An item that came long before is found, but neither counted nor removed.
    ///
    /// ```
    /// # use koel::ConcurrentCuckooFilter;
    /// let builder = ConcurrentCuckooFilter::builder().capacity(10).growing();
    /// let filter = builder.false_positive_rate(0.000_1).expected_growth(1e6).build()?;
    /// assert!(filter.stats().false_positive_rate_at_capacity <= 0.000_1);
    /// # Ok::<(), koel::BuildError>(())
    /// ```
    pub fn expected_growth(mut self, factor: f64) -> Self {
        self.settings.expected_growth = Some(factor);
        self
    }

    /// Sets the most memory that a [growing](Self::growing) filter may take in all. An insert that would need more is
    /// refused; items whose shards have room still go in. By default there is no limit.
    ///
    /// If the capacity needs several shards, these are all split soon after it is exceeded, which doubles the memory.
    /// Choose a limit of at least twice the first size: with less, the first items are refused when half of it is in
    /// use.
    ///
    /// ```
    /// # use koel::ConcurrentCuckooFilter;
    /// let builder = ConcurrentCuckooFilter::builder().capacity(1_000).growing();
    /// let filter = builder.max_bytes(500_000).build()?;
    /// let fit = (0..).take_while(|item| filter.insert(item).is_ok()).count();
    /// assert!(fit > 100_000);
    /// assert!(filter.size_in_bytes() <= 500_000);
    /// # Ok::<(), koel::BuildError>(())
    /// ```
    pub fn max_bytes(mut self, bytes: usize) -> Self {
        self.settings.max_bytes = Some(bytes);
        self
    }

    /// Builds the filter.
    ///
    /// # Errors
    ///
    /// Returns an error if the settings contradict each other or cannot be met, or if what the filter begins with does not
    /// fit in memory, or in its limit: [`BuildErrorKind`] lists the reasons. The least rate is 8e-10, up to 2e-7 in a
    /// filter that forgets, and more in one that grows.
    ///
    /// ```
    /// use koel::{BuildErrorKind, ConcurrentCuckooFilter};
    ///
    /// let error = ConcurrentCuckooFilter::builder().capacity(usize::MAX).build().unwrap_err();
    /// assert_eq!(error.kind(), BuildErrorKind::CapacityOverflow);
    ///
    /// let builder = ConcurrentCuckooFilter::builder().capacity(1_000_000).max_bytes(1_000);
    /// let error = builder.clone().build().unwrap_err();
    /// assert_eq!(error.kind(), BuildErrorKind::NotGrowing);
    /// let error = builder.growing().build().unwrap_err();
    /// assert_eq!(error.kind(), BuildErrorKind::LimitTooSmall);
    /// ```
    pub fn build(self) -> Result<ConcurrentCuckooFilter<S>, BuildError> {
        let backend = Backend::new(self.layout()?)?;
        let filter = ConcurrentCuckooFilter::from_parts(backend, self.hasher);
        if let Some(window) = self.settings.window {
            filter.tick_to(window.number_now());
        }
        Ok(filter)
    }

    /// Returns what the filter would be, without building it. Allocates nothing.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`build`](Self::build), but for those of memory and its limit.
    ///
    /// ```
    /// let builder = koel::ConcurrentCuckooFilter::builder().capacity(1 << 40);
    /// assert!(builder.plan()?.initial_bytes > 1 << 41);
    /// # Ok::<(), koel::BuildError>(())
    /// ```
    pub fn plan(&self) -> Result<Plan, BuildError> {
        self.layout().map(Plan::of)
    }

    fn layout(&self) -> Result<Layout, BuildError> {
        let own_bytes = size_of::<ConcurrentCuckooFilter<S>>();
        Ok(Layout { own_bytes, ..self.settings.layout()? })
    }
}

/// What a filter would be, as [`Builder::plan`] returns it.
///
/// ```
/// use koel::ConcurrentCuckooFilter;
///
/// let builder = ConcurrentCuckooFilter::builder().capacity(100_000).growing();
/// let plan = builder.false_positive_rate(0.001).expected_growth(100.0).plan()?;
/// assert_eq!(plan.fingerprint_bits, 20);
/// assert!(plan.false_positive_rate_at_capacity < 0.001);
/// assert_eq!(plan.planned_items, 10_000_000);
/// assert!(plan.bytes_for(10_000_000) < 50_000_000);
/// # Ok::<(), koel::BuildError>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Plan {
    /// Whether the filter grows.
    pub grows: bool,
    /// The number of distinct items that fit at first, and at all if the filter does not grow.
    pub capacity: usize,
    /// The growth up to which the filter keeps its rate, which is 1 for a fixed filter.
    pub expected_growth: f64,
    /// The number of distinct items up to which the filter keeps its rate, at least: its capacity times its growth.
    pub planned_items: usize,
    /// The number of bits in a fingerprint.
    pub fingerprint_bits: u32,
    /// The false-positive rate of the filter with `capacity` items, or after its expected growth. This is at most the
    /// rate that was asked for.
    pub false_positive_rate_at_capacity: f64,
    /// The number of bytes that the filter takes when it is built. A fixed filter never takes more.
    pub initial_bytes: usize,
    layout: Layout,
}

impl Plan {
    /// The false-positive rate of a [seen-set](Builder::seen_set), unless one is set.
    pub const SEEN_SET_RATE: f64 = 1e-6;

    fn of(layout: Layout) -> Self {
        Plan {
            grows: layout.grows,
            capacity: layout.capacity,
            expected_growth: layout.expected_growth,
            planned_items: (layout.capacity as f64 * layout.expected_growth) as usize,
            fingerprint_bits: layout.lanes().fingerprint_bits(),
            false_positive_rate_at_capacity: layout.rate,
            initial_bytes: Backend::initial_bytes(&layout),
            layout,
        }
    }

    /// Estimates the number of bytes of the filter with this number of distinct items, which were added one after the
    /// other: to within a few percent, or to within one shard, or one table of 2 MiB in filters of more than 16 MiB.
    /// Beyond the [expected growth](Builder::expected_growth), a filter takes more.
    ///
    /// ```
    /// # use koel::ConcurrentCuckooFilter;
    /// let builder = ConcurrentCuckooFilter::builder().capacity(1_000).growing();
    /// let (planned, filter) = (builder.plan()?.bytes_for(1_000_000), builder.build()?);
    /// assert!((0..1_000_000).all(|item| filter.insert(&item).is_ok()));
    /// assert!((0.95..1.05).contains(&(planned as f64 / filter.size_in_bytes() as f64)));
    /// # Ok::<(), koel::BuildError>(())
    /// ```
    #[must_use]
    pub fn bytes_for(&self, items: usize) -> usize {
        Backend::bytes_with(&self.layout, self.layout.shards_with(items))
    }

    /// Estimates the number of bytes of a file of the filter with this number of distinct items, as
    /// [`bytes_for`](Self::bytes_for) does.
    #[must_use]
    pub fn file_bytes_for(&self, items: usize) -> u64 {
        file_bytes_with(&self.layout, self.layout.shards_with(items))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a rate as the tables of the guide show it.
    fn shown(rate: f64) -> String {
        match 100.0 * rate {
            percent if percent >= 1.0 => format!("{percent:.1} %"),
            percent if percent >= 0.1 => format!("{percent:.2} %"),
            percent if percent >= 0.01 => format!("{percent:.3} %"),
            _ => format!("{rate:.1e}"),
        }
    }

    #[test]
    fn the_layouts_in_the_guide_are_those_of_plans() {
        let page = include_str!("../guide/rates.md");
        let rows = page.lines().filter(|line| line.starts_with("| ")).skip(1);
        let plan = |rate| {
            ConcurrentCuckooFilter::builder().capacity(1_000_003).false_positive_rate(rate).plan()
        };
        let mut last = None;
        for (number, row) in rows.enumerate() {
            let cells: Vec<&str> = row.split(" | ").collect();
            let asked: f64 = cells[0][2..].replace(" (default)", "").parse().expect("a rate");
            let Plan { layout, initial_bytes, .. } = plan(asked).expect("a layout");
            let (lanes, items) = (layout.lanes(), layout.capacity as f64);
            let slots = layout.geometry.all_buckets() as f64 * lanes.slots() as f64;
            let told = [
                format!("{} × {}", lanes.fingerprint_bits(), lanes.slots()),
                format!("{:.1} %", 100.0 * items / slots),
                shown(layout.rate),
                format!("{:.1}", 8.0 * initial_bytes as f64 / items),
            ];
            assert_eq!(cells[1..5], told, "row {number}");
            // No layout is between two rows, and none after the last one.
            assert!(last.is_none_or(|next| next == Some(lanes)), "row {number}");
            last = Some(plan(0.9 * asked).ok().map(|plan| plan.layout.lanes()));
        }
        assert_eq!(last, Some(None));
    }
}
