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
    #[must_use]
    pub fn load(&self) -> f64 {
        self.items as f64 / self.slots as f64
    }
}

impl fmt::Display for Stats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Stats { items, capacity, slots, fingerprint_bits, slots_per_bucket, .. } = self;
        let bits = 8.0 * self.size_in_bytes as f64;
        let (contents, bits_per_item) = match self.grows {
            false => (
                format!("{items} of {capacity} items"),
                format!("{:.1} bits an item at capacity", bits / *capacity.max(&1) as f64),
            ),
            true => (
                format!("{items} items, {capacity} to begin with"),
                match items {
                    0 => "empty".into(),
                    _ => format!("{:.1} bits an item now", bits / *items as f64),
                },
            ),
        };
        writeln!(f, "{contents}, load {:.1} % of {slots} slots", 100.0 * self.load())?;
        let (size, buckets) =
            (bytes(self.size_in_bytes), counted(slots / slots_per_bucket, "bucket"));
        writeln!(
            f,
            "{size} in {buckets} of {slots_per_bucket} × {fingerprint_bits} bits, {bits_per_item}"
        )?;
        writeln!(f, "{}, {}", counted(self.segments, "segment"), counted(self.shards, "shard"))?;
        let (now, then) = (self.false_positive_rate, self.false_positive_rate_at_capacity);
        write!(f, "false positives {} now, {} ", percent(now), percent(then))?;
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
                write!(f, "grown {growth:.1} times as large by {}", counted(splits, "split"))?
            }
        }
        write!(f, ", directory of {}", counted(*directory_depth as usize, "bit"))?;
        if growth > expected_growth {
            f.write_str(": more than expected")?;
        }
        match self.max_bytes {
            Some(most) => write!(f, ", at most {}", bytes(most)),
            None => Ok(()),
        }
    }
}

fn bytes(bytes: usize) -> String {
    match bytes {
        0..10_240 => format!("{bytes} bytes"),
        10_240..10_485_760 => format!("{:.1} KiB", bytes as f64 / 1_024.0),
        _ => format!("{:.1} MiB", bytes as f64 / 1_048_576.0),
    }
}

fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// Returns a rate in percent, or as a plain fraction if it is too small to be readable in percent.
fn percent(rate: f64) -> String {
    let percent = 100.0 * rate;
    if percent == 0.0 {
        "0 %".into()
    } else if percent < 0.001 {
        format!("{rate:.1e}")
    } else {
        // Two significant digits.
        let digits = (1.0 - percent.log10().floor()).max(0.0) as usize;
        format!("{percent:.digits$} %")
    }
}
