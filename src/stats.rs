//! The figures of a filter, and their text.

use std::fmt;

/// The contents and layout of a filter in figures, as of the call to
/// [`ConcurrentCuckooFilter::stats`](crate::ConcurrentCuckooFilter::stats).
///
/// It prints as a short summary of a few lines.
///
/// ```
/// let filter = koel::ConcurrentCuckooFilter::with_capacity(1_000_000);
/// for item in 0..500_000u64 {
///     filter.insert(&item).unwrap();
/// }
/// let stats = filter.stats();
/// assert_eq!(stats.items, 500_000);
/// assert_eq!(stats.fingerprint_bits, 16);
/// assert!(stats.load() > 0.45);
/// assert!(stats.to_string().starts_with("500000 of 1000000 items"));
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Stats {
    /// Whether the filter grows.
    pub grows: bool,
    /// The number of copies of items in the filter.
    pub items: usize,
    /// The number of distinct items that fit. For a filter that grows, this is the capacity that it began with.
    pub capacity: usize,
    /// The number of fingerprints that the table would hold if every slot were taken.
    pub slots: usize,
    /// The number of bits in a fingerprint, which is what the filter keeps of an item.
    pub fingerprint_bits: u32,
    /// The number of fingerprints that fit in one bucket, which has 8 or 16 bytes.
    pub slots_per_bucket: usize,
    /// The number of shards: independent tables of at most 131,072 buckets. In a filter that grows, each has 8,192.
    pub shards: usize,
    /// The number of segments: groups of buckets with a lock and a version of their own.
    pub segments: usize,
    /// The number of bytes that the filter takes, itself included.
    pub size_in_bytes: usize,
    /// The highest false-positive rate to expect with the present number of items. For a filter that grows, it is
    /// computed from how many bits each fingerprint has lost.
    pub false_positive_rate: f64,
    /// The false-positive rate of the filter with `capacity` items, or after its expected growth.
    pub false_positive_rate_at_capacity: f64,
    /// The [limit](crate::Builder::max_bytes) of a growing filter's memory, if it has one.
    pub max_bytes: Option<usize>,
    /// The number of shards that splits have added, less the shards that were given back. It is 0 for a fixed filter.
    pub splits: usize,
    /// The depth of a growing filter's directory: the number of bits of a hash that it uses, in addition to those that
    /// choose among the shards that the filter began with. It is 0 for a fixed filter.
    pub directory_depth: u32,
    /// The factor by which the number of slots has grown, which is 1 for a fixed filter.
    pub growth: f64,
    /// The growth that the filter was built for, which is 1 for a fixed filter. Beyond it, the false-positive rate may
    /// exceed the one that was asked for.
    pub expected_growth: f64,
}

impl Stats {
    /// Returns the load factor: the fraction of the slots that is taken, from 0 to 1.
    ///
    /// ```
    /// let filter = koel::ConcurrentCuckooFilter::with_capacity(100);
    /// filter.insert("an item")?;
    /// assert!(filter.stats().load() < 0.01);
    /// # Ok::<(), koel::Full>(())
    /// ```
    #[must_use]
    pub fn load(&self) -> f64 {
        self.items as f64 / self.slots as f64
    }

    /// Returns all figures by their names, for whatever exports metrics. Each is the present value of a gauge; names
    /// stay as they are, and later versions may add some.
    ///
    /// ```
    /// let filter = koel::ConcurrentCuckooFilter::with_capacity(100);
    /// for (name, value) in filter.stats().metrics() {
    ///     println!("koel_{name} {value}");
    /// }
    /// # assert!(filter.stats().metrics().any(|it| it == ("capacity", 100.0)));
    /// ```
    pub fn metrics(&self) -> impl Iterator<Item = (&'static str, f64)> {
        let limit = self.max_bytes.map(|bytes| ("max_bytes", bytes as f64));
        let figures = [
            ("items", self.items as f64),
            ("capacity", self.capacity as f64),
            ("slots", self.slots as f64),
            ("load", self.load()),
            ("fingerprint_bits", self.fingerprint_bits.into()),
            ("slots_per_bucket", self.slots_per_bucket as f64),
            ("shards", self.shards as f64),
            ("segments", self.segments as f64),
            ("size_in_bytes", self.size_in_bytes as f64),
            ("false_positive_rate", self.false_positive_rate),
            ("false_positive_rate_at_capacity", self.false_positive_rate_at_capacity),
            ("splits", self.splits as f64),
            ("directory_depth", self.directory_depth.into()),
            ("growth", self.growth),
            ("expected_growth", self.expected_growth),
        ];
        figures.into_iter().chain(limit)
    }
}

impl fmt::Display for Stats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Stats { items, capacity, slots, fingerprint_bits, slots_per_bucket, .. } = self;
        match self.grows {
            false => write!(f, "{items} of {capacity} items")?,
            true => write!(f, "{items} items, {capacity} to begin with")?,
        }
        writeln!(f, ", load {:.1} % of {slots} slots", 100.0 * self.load())?;
        writeln!(
            f,
            "{} in {} of {slots_per_bucket} × {fingerprint_bits} bits, {}",
            Bytes(self.size_in_bytes),
            Counted(self.slots / slots_per_bucket, "bucket"),
            BitsPerItem(self),
        )?;
        writeln!(f, "{}, {}", Counted(self.segments, "segment"), Counted(self.shards, "shard"))?;
        let (now, then) = (self.false_positive_rate, self.false_positive_rate_at_capacity);
        write!(f, "false positives {} now, {} ", Percent(now), Percent(then))?;
        if self.grows { self.write_growth(f) } else { f.write_str("at capacity") }
    }
}

impl Stats {
    fn write_growth(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Stats { splits, directory_depth, growth, expected_growth, .. } = self;
        writeln!(f, "after growing {expected_growth} times as large")?;
        match *splits {
            0 => f.write_str("not grown yet")?,
            splits => {
                write!(f, "grown {growth:.1} times as large by {}", Counted(splits, "split"))?
            }
        }
        write!(f, ", directory of {}", Counted(*directory_depth as usize, "bit"))?;
        if growth > expected_growth {
            f.write_str(": more than expected")?;
        }
        match self.max_bytes {
            Some(most) => write!(f, ", at most {}", Bytes(most)),
            None => Ok(()),
        }
    }
}

struct Bytes(usize);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.0 as f64;
        match self.0 {
            0..10_240 => write!(f, "{} bytes", self.0),
            10_240..10_485_760 => write!(f, "{:.1} KiB", bytes / 1_024.0),
            _ => write!(f, "{:.1} MiB", bytes / 1_048_576.0),
        }
    }
}

struct Counted(usize, &'static str);

impl fmt::Display for Counted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Counted(count, noun) = self;
        write!(f, "{count} {noun}{}", if *count == 1 { "" } else { "s" })
    }
}

struct BitsPerItem<'a>(&'a Stats);

impl fmt::Display for BitsPerItem<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits = 8.0 * self.0.size_in_bytes as f64;
        match self.0.grows {
            false => {
                write!(f, "{:.1} bits an item at capacity", bits / self.0.capacity.max(1) as f64)
            }
            true if self.0.items == 0 => f.write_str("empty"),
            true => write!(f, "{:.1} bits an item now", bits / self.0.items as f64),
        }
    }
}

/// Prints a rate in percent, or as a plain fraction if it is too small to be readable in percent.
struct Percent(f64);

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = 100.0 * self.0;
        if percent == 0.0 {
            f.write_str("0 %")
        } else if percent < 0.001 {
            write!(f, "{:.1e}", self.0)
        } else {
            // Two significant digits.
            let digits = (1.0 - percent.log10().floor()).max(0.0) as usize;
            write!(f, "{percent:.digits$} %")
        }
    }
}
