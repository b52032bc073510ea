//! What was seen: a filter, as the options ask for it.

use crate::arguments::common::Making;
use crate::failure::Failure;
use crate::state::comparison::{Comparison, LineHash};
use crate::state::url_key::UrlRules;
use indicatif::BinaryBytes;
use koel::{ConcurrentCuckooFilter, GrowingCuckooFilter};
use std::path::Path;

pub type Seen = GrowingCuckooFilter<LineHash>;

/// One in a million.
const DEFAULT_RATE: f64 = 1e-6;

/// Lines that a new filter has room for, unless others are expected.
const FIRST_CAPACITY: u64 = 50_000;

/// Growing takes time. So if it is known how much will come, a filter begins with room for half of the lines that this
/// may be; but not with more than this, some 60 MB, as there may be far fewer different ones.
const MOST_GUESSED: u64 = 10_000_000;
const BYTES_OF_LINE: u64 = 64;

/// How many times as many lines a filter takes before its rate may be higher than was asked for.
const EXPECTED_GROWTH: f64 = 1e6;

/// The same, if it was told how many lines to expect.
const EXPECTED_GROWTH_OF_KNOWN: f64 = 4.0;

impl Making {
    pub fn comparison(&self) -> Comparison {
        match self.url {
            false => Comparison::Bytes,
            true => Comparison::Urls(UrlRules {
                sort_query: self.sort_query,
                ignore_tracking: self.ignore_tracking,
            }),
        }
    }

    /// An empty filter, as these options ask for, for input of so many bytes.
    pub fn build_for(&self, bytes: u64) -> Result<Seen, Failure> {
        let guess = (bytes / BYTES_OF_LINE / 2).clamp(FIRST_CAPACITY, MOST_GUESSED);
        match self.capacity {
            // A guess is no reason to fail.
            None if self.max_memory.is_none() => self.build_with(guess, EXPECTED_GROWTH),
            None => self.build_with(FIRST_CAPACITY, EXPECTED_GROWTH),
            Some(lines) => self.build_with(lines.max(1), EXPECTED_GROWTH_OF_KNOWN),
        }
    }

    /// The same for input of which nothing is known, or for a state, which should be no larger than what is in it.
    pub fn build(&self) -> Result<Seen, Failure> {
        self.build_for(0)
    }

    fn build_with(&self, capacity: u64, growth: f64) -> Result<Seen, Failure> {
        let no_room = |error| Failure::new(format!("no room for what was seen: {error}"));
        let capacity = usize::try_from(capacity).map_err(|error| no_room(error.to_string()))?;
        ConcurrentCuckooFilter::builder()
            .capacity(capacity)
            .false_positive_rate(self.rate.unwrap_or(DEFAULT_RATE))
            .hasher(LineHash::random(self.comparison()))
            .growing()
            .expected_growth(growth)
            .max_bytes(self.most_bytes())
            .build()
            .map_err(|error| no_room(error.to_string()))
    }

    fn most_bytes(&self) -> usize {
        let most = self.max_memory.map(|most| usize::try_from(most).unwrap_or(usize::MAX));
        most.unwrap_or(usize::MAX)
    }

    /// Whether a state that is there is what these options ask for.
    pub fn accept(&self, mut seen: Seen, path: &Path) -> Result<Seen, Failure> {
        let (is, asked) = (seen.hasher().comparison(), self.comparison());
        // Without --url a state is used as it is meant.
        if asked != Comparison::Bytes && is != asked {
            return Err(Failure::new(format!(
                "{}: it compares {is}, and {asked} were asked for; use it without these options, or another state",
                path.display()
            )));
        }
        let rate = seen.stats().false_positive_rate_at_capacity();
        if self.rate.is_some_and(|asked| asked < rate) {
            return Err(Failure::new(format!(
                "{}: it was made for a rate of {rate:.1e}, which cannot be lowered; use it without --rate, or \
                 another state",
                path.display()
            )));
        }
        let (takes, most) = (seen.size_in_bytes(), self.most_bytes());
        if takes > most {
            return Err(Failure::new(format!(
                "{}: it takes {} of memory already; allow more with --max-memory",
                path.display(),
                BinaryBytes(takes as u64)
            )));
        }
        seen.set_max_bytes(most);
        Ok(seen)
    }
}
