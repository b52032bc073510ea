//! The figures of a filter, and how they print.

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
/// assert_eq!(stats.items(), 500_000);
/// assert_eq!(stats.fingerprint_bits(), 16);
/// assert!(stats.load() > 0.45);
/// assert!(stats.to_string().starts_with("500000 of 1000000 items"));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Stats {
    pub(crate) items: usize,
    pub(crate) capacity: usize,
    pub(crate) slots: usize,
    pub(crate) fingerprint_bits: u32,
    pub(crate) slots_per_bucket: usize,
    pub(crate) shards: usize,
    pub(crate) segments: usize,
    pub(crate) size_in_bytes: usize,
    pub(crate) false_positive_rate: f64,
    pub(crate) false_positive_rate_at_capacity: f64,
    pub(crate) max_bytes: Option<usize>,
    pub(crate) growth: Option<Growth>,
}

/// The figures that only a growing filter has.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Growth {
    pub(crate) splits: usize,
    pub(crate) directory_depth: u32,
    pub(crate) factor: f64,
    pub(crate) expected: f64,
}

impl Stats {
    /// Returns the number of copies of items in the filter.
    ///
    /// ```
    /// let filter = koel::ConcurrentCuckooFilter::with_capacity(100);
    /// filter.insert("an item")?;
    /// assert_eq!(filter.stats().items(), 1);
    /// # Ok::<(), koel::Full>(())
    /// ```
    #[must_use]
    pub fn items(&self) -> usize {
        self.items
    }

    /// Returns the number of distinct items that fit.
    ///
    /// For a filter that grows, this is the capacity that it began with.
    ///
    /// ```
    /// let filter = koel::ConcurrentCuckooFilter::with_capacity(100);
    /// assert_eq!(filter.stats().capacity(), 100);
    /// ```
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Returns the number of fingerprints that the table would hold if every slot were taken.
    ///
    /// ```
    /// let filter = koel::ConcurrentCuckooFilter::with_capacity(100);
    /// assert!(filter.stats().slots() > 100);
    /// ```
    #[must_use]
    pub fn slots(&self) -> usize {
        self.slots
    }

    /// Returns the load factor: the fraction of the slots that is taken, from 0 to 1.
    ///
    /// ```
    /// let filter = koel::ConcurrentCuckooFilter::with_capacity(100);
    /// filter.insert("an item")?;
    /// let stats = filter.stats();
    /// assert_eq!(stats.load(), 1.0 / stats.slots() as f64);
    /// # Ok::<(), koel::Full>(())
    /// ```
    #[must_use]
    pub fn load(&self) -> f64 {
        self.items as f64 / self.slots as f64
    }

    /// Returns the number of bits in a fingerprint, which is what the filter keeps of an item.
    ///
    /// ```
    /// let filter = koel::ConcurrentCuckooFilter::with_capacity(100);
    /// assert_eq!(filter.stats().fingerprint_bits(), 16);
    /// ```
    #[must_use]
    pub fn fingerprint_bits(&self) -> u32 {
        self.fingerprint_bits
    }

    /// Returns the number of fingerprints that fit in one bucket, which has 8 or 16 bytes.
    ///
    /// ```
    /// let filter = koel::ConcurrentCuckooFilter::with_capacity(100);
    /// assert_eq!(filter.stats().slots_per_bucket(), 4);
    /// ```
    #[must_use]
    pub fn slots_per_bucket(&self) -> usize {
        self.slots_per_bucket
    }

    /// Returns the number of shards.
    ///
    /// A shard is an independent table of at most 131,072 buckets. In a filter that grows it has 8,192.
    ///
    /// ```
    /// let filter = koel::ConcurrentCuckooFilter::with_capacity(100);
    /// assert_eq!(filter.stats().shards(), 1);
    /// ```
    #[must_use]
    pub fn shards(&self) -> usize {
        self.shards
    }

    /// Returns the number of segments: groups of buckets with a lock and a version of their own.
    ///
    /// ```
    /// let filter = koel::ConcurrentCuckooFilter::with_capacity(100);
    /// assert_eq!(filter.stats().segments(), 1);
    /// ```
    #[must_use]
    pub fn segments(&self) -> usize {
        self.segments
    }

    /// Returns the number of bytes that the filter takes, itself included.
    ///
    /// ```
    /// let filter = koel::ConcurrentCuckooFilter::with_capacity(100);
    /// assert_eq!(filter.stats().size_in_bytes(), filter.size_in_bytes());
    /// ```
    #[must_use]
    pub fn size_in_bytes(&self) -> usize {
        self.size_in_bytes
    }

    /// Returns the highest false-positive rate to expect with the present number of items.
    ///
    /// For a filter that grows, it is computed from how many bits each fingerprint has lost.
    ///
    /// ```
    /// let filter = koel::ConcurrentCuckooFilter::with_capacity(100);
    /// assert_eq!(filter.stats().false_positive_rate(), 0.0); // it is empty
    /// ```
    #[must_use]
    pub fn false_positive_rate(&self) -> f64 {
        self.false_positive_rate
    }

    /// Returns the false-positive rate of the filter with `capacity` items.
    ///
    /// For a filter that grows, this is the rate after its
    /// [expected growth](Self::expected_growth).
    ///
    /// ```
    /// let filter = koel::ConcurrentCuckooFilter::with_capacity(100);
    /// assert!(filter.stats().false_positive_rate_at_capacity() < 0.000_12);
    /// ```
    #[must_use]
    pub fn false_positive_rate_at_capacity(&self) -> f64 {
        self.false_positive_rate_at_capacity
    }

    /// Returns the number of shard splits so far, which is 0 for a fixed filter.
    ///
    /// ```
    /// let filter = koel::ConcurrentCuckooFilter::builder().capacity(1_000).growing().build()?;
    /// assert_eq!(filter.stats().splits(), 0);
    /// (0..100_000).for_each(|item| filter.insert(&item).expect("memory"));
    /// assert!(filter.stats().splits() > 2);
    /// # Ok::<(), koel::BuildError>(())
    /// ```
    #[must_use]
    pub fn splits(&self) -> usize {
        self.growth.as_ref().map_or(0, |growth| growth.splits)
    }

    /// Returns the depth of a growing filter's directory, which is 0 for a fixed filter.
    ///
    /// This is the number of bits of a hash that the directory uses, in addition to those that
    /// choose among the shards that the filter began with.
    ///
    /// ```
    /// let filter = koel::ConcurrentCuckooFilter::builder().capacity(1_000).growing().build()?;
    /// (0..100_000).for_each(|item| filter.insert(&item).expect("memory"));
    /// assert!(filter.stats().directory_depth() >= 2);
    /// # Ok::<(), koel::BuildError>(())
    /// ```
    #[must_use]
    pub fn directory_depth(&self) -> u32 {
        self.growth.as_ref().map_or(0, |growth| growth.directory_depth)
    }

    /// Returns the factor by which the number of slots has grown, which is 1 for a fixed filter.
    ///
    /// ```
    /// let filter = koel::ConcurrentCuckooFilter::with_capacity(1_000);
    /// assert_eq!(filter.stats().growth(), 1.0);
    /// ```
    #[must_use]
    pub fn growth(&self) -> f64 {
        self.growth.as_ref().map_or(1.0, |growth| growth.factor)
    }

    /// Returns the [limit](crate::GrowingBuilder::max_bytes) of a growing filter's memory, if it has
    /// one.
    ///
    /// ```
    /// let builder = koel::ConcurrentCuckooFilter::builder().capacity(1_000).growing();
    /// let filter = builder.max_bytes(1_000_000).build()?;
    /// assert_eq!(filter.stats().max_bytes(), Some(1_000_000));
    /// # Ok::<(), koel::BuildError>(())
    /// ```
    #[must_use]
    pub fn max_bytes(&self) -> Option<usize> {
        self.max_bytes
    }

    /// Returns the growth that the filter was built for, which is 1 for a fixed filter.
    ///
    /// Beyond it, the false-positive rate may exceed the one that was asked for.
    ///
    /// ```
    /// let filter = koel::ConcurrentCuckooFilter::builder().capacity(1_000).growing().build()?;
    /// assert_eq!(filter.stats().expected_growth(), 1_024.0);
    /// # Ok::<(), koel::BuildError>(())
    /// ```
    #[must_use]
    pub fn expected_growth(&self) -> f64 {
        self.growth.as_ref().map_or(1.0, |growth| growth.expected)
    }
}

impl fmt::Display for Stats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Stats { items, capacity, slots, fingerprint_bits, slots_per_bucket, .. } = self;
        match self.growth {
            None => write!(f, "{items} of {capacity} items")?,
            Some(_) => write!(f, "{items} items, {capacity} to begin with")?,
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
        match &self.growth {
            None => f.write_str("at capacity"),
            Some(growth) => self.write_growth(growth, f),
        }
    }
}

impl Stats {
    fn write_growth(&self, growth: &Growth, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "after growing {} times as large", growth.expected)?;
        let Growth { splits, directory_depth, factor, expected } = growth;
        write!(
            f,
            "grown {factor:.1} times as large by {}, directory of {}",
            Counted(*splits, "split"),
            Counted(*directory_depth as usize, "bit"),
        )?;
        if factor > expected {
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
        match self.0.growth {
            None => {
                write!(f, "{:.1} bits an item at capacity", bits / self.0.capacity.max(1) as f64)
            }
            Some(_) if self.0.items == 0 => f.write_str("empty"),
            Some(_) => write!(f, "{:.1} bits an item now", bits / self.0.items as f64),
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
