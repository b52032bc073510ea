//! The filter of the lines seen, built as the options ask.

use crate::arguments::common::{Forgetting, Making};
use crate::failure::Failure;
use crate::state::comparison::{Comparison, LineHash};
use crate::state::keys::url_key::UrlRules;
use indicatif::{BinaryBytes, HumanCount};
use koel::Window;
use koel::{ConcurrentCuckooFilter, PersistentHasher};
use std::path::Path;

pub type Seen = ConcurrentCuckooFilter<LineHash>;

const DEFAULT_RATE: f64 = 1e-6;

/// The capacity of a new filter, unless more is known: little enough for it to begin with one shard.
const FIRST_CAPACITY: u64 = 10_000;

/// Growing takes time. If the size of the input is known, a filter therefore starts with room for
/// half of the lines that the input may contain. This is the limit, about 60 MB: there may be far
/// fewer distinct lines.
const MAX_GUESSED: u64 = 10_000_000;
const BYTES_OF_LINE: u64 = 64;

/// The growth of a filter up to which its rate stays below the default rate: some 200 million lines. More would take
/// longer fingerprints.
const EXPECTED_GROWTH: f64 = 8_192.0;

/// The same for a rate that was asked for. At a higher rate, fingerprints are too short for more.
const EXPECTED_GROWTH_OF_RATE: f64 = 256.0;

/// The same, if lines are forgotten: ages take up to 6 of the bits that growth would take.
const EXPECTED_GROWTH_OF_WINDOW: f64 = 128.0;

/// The same, if the number of lines to expect is given.
const EXPECTED_GROWTH_OF_KNOWN: f64 = 4.0;

impl Making {
    /// Returns how the options ask for lines to be compared.
    pub fn comparison(&self) -> Comparison {
        let Making { url, sort_query, ignore_tracking, ignore_case, .. } = *self;
        match (url, ignore_case) {
            (true, _) => Comparison::Urls(UrlRules { sort_query, ignore_tracking }),
            (false, true) => Comparison::IgnoringCase,
            (false, false) => Comparison::Bytes,
        }
    }

    /// Builds an empty filter for an input of `bytes` bytes, with a capacity that is halved this number of times, if it
    /// is known. The number of bytes is 0 if it is not known, and for a state, which should be no larger than its
    /// contents require.
    pub fn build(&self, bytes: u64, halvings: u32) -> Result<Seen, Failure> {
        let (capacity, mut growth) = match self.capacity {
            Some(lines) => ((lines >> halvings).max(1), EXPECTED_GROWTH_OF_KNOWN),
            None => {
                // With a memory limit, the guess could exceed it.
                let most = self.max_memory.map_or(MAX_GUESSED, |_| FIRST_CAPACITY);
                let guess = (bytes / BYTES_OF_LINE / 2).clamp(FIRST_CAPACITY, most);
                (guess, self.rate.map_or(EXPECTED_GROWTH, |_| EXPECTED_GROWTH_OF_RATE))
            }
        };
        let cannot = |error| Failure::new(format!("cannot allocate the filter: {error}"));
        let capacity = usize::try_from(capacity).map_err(|error| cannot(error.to_string()))?;
        let window = self.forgetting.window()?;
        let mut builder = ConcurrentCuckooFilter::builder()
            .capacity(capacity)
            .false_positive_rate(self.rate.unwrap_or(DEFAULT_RATE))
            .hasher(self.seed.map_or_else(
                || LineHash::random(self.comparison()),
                |seed| LineHash::with_seed(self.comparison(), seed),
            ));
        if let Some(window) = window {
            builder = builder.remembers(window.ticks());
            growth = growth.min(EXPECTED_GROWTH_OF_WINDOW);
        }
        let builder =
            builder.growing().expected_growth(growth).max_bytes(most_bytes(self.max_memory));
        let seen = builder.build().map_err(|error| cannot(error.to_string()))?;
        if let Some(window) = window {
            seen.tick_to(window.number_now());
        }
        Ok(seen)
    }

    /// Returns what these options ask for that an existing state decides.
    pub fn ignored(&self, seen: &Seen) -> Option<String> {
        let is_ignored = self.rate.is_some_and(|asked| stores_more_than(seen, asked))
            || self.capacity.is_some_and(|asked| asked != seen.capacity() as u64);
        is_ignored.then(|| {
            "--rate and --capacity are for new states, and this one keeps those that it was made with".into()
        })
    }

    /// Returns a note if a filter has grown so much that its rate is higher than these options allow.
    pub fn exceeded(&self, stats: &koel::Stats) -> Option<String> {
        let most = self.rate.unwrap_or(DEFAULT_RATE).max(stats.false_positive_rate_at_capacity);
        let rate = Some(stats.false_positive_rate).filter(|rate| *rate > most)?;
        Some(format!(
            "the rate is {rate:.1e} now, higher than {most:.1e}: {} lines are more than the {} that \
             the filter was planned for; use a larger --capacity (a state keeps that of its first run)",
            HumanCount(stats.items as u64),
            HumanCount((stats.capacity as f64 * stats.expected_growth) as u64)
        ))
    }

    /// Checks that an existing state is what these options ask for, and sets its memory limit.
    pub fn accept(&self, seen: Seen, path: &Path) -> Result<Seen, Failure> {
        let (is, asked) = (seen.hasher().comparison(), self.comparison());
        let window = window_of(&seen, path)?;
        let Forgetting { forget_after, refresh } = self.forgetting;
        let period = forget_after.map(Window::of_seconds);
        let rate = seen.false_positive_rate_at_capacity();
        // Without such options, a state is used as it was created.
        let why = if asked != Comparison::Bytes && is != asked {
            format!("this state compares {is}, but the options ask for {asked}; omit them")
        } else if self.seed.is_some_and(|asked| seen.hasher().seed() as u64 != asked) {
            "this state has another seed, which cannot be changed; omit --seed".into()
        } else if window.is_none() && (period.is_some() || refresh) {
            let option = if period.is_some() { "--forget-after" } else { "--refresh" };
            format!("this state remembers lines for ever; omit {option}")
        } else if let (Some(is), true) = (window, period.is_some() && period != window) {
            format!("this state forgets lines after {is}; omit --forget-after")
        } else if self.rate.is_some_and(|asked| asked < rate) {
            "it was made for a higher rate, which cannot be lowered; omit --rate".into()
        } else {
            limit_memory(&seen, self.max_memory, path)?;
            return Ok(seen);
        };
        Err(Failure::new(format!("{}: {why}, or use another state", path.display())))
    }
}

impl Forgetting {
    /// Returns for how long a new filter is to remember lines, if not for ever.
    fn window(&self) -> Result<Option<Window>, Failure> {
        match self.forget_after {
            None if self.refresh => Err(Failure::new(
                "--refresh is for lines that are forgotten; use it with --forget-after",
            )),
            period => Ok(period.map(Window::of_seconds)),
        }
    }
}

/// Whether a state stores more of each line than it would if it had been made for this rate. Most rates are not kept
/// exactly, but as the next number of bits.
fn stores_more_than(seen: &Seen, rate: f64) -> bool {
    let stats = seen.stats();
    let mut builder = ConcurrentCuckooFilter::builder()
        .capacity(stats.capacity.min(FIRST_CAPACITY as usize))
        .false_positive_rate(rate)
        .hasher(*seen.hasher());
    if let Some(ticks) = seen.remembers() {
        builder = builder.remembers(ticks);
    }
    let made = builder.growing().expected_growth(stats.expected_growth).build();
    made.is_ok_and(|made| made.stats().fingerprint_bits < stats.fingerprint_bits)
}

/// The limit of a filter's memory, by an option.
fn most_bytes(max_memory: Option<u64>) -> usize {
    max_memory.map_or(usize::MAX, |most| usize::try_from(most).unwrap_or(usize::MAX))
}

/// Limits the memory of a state from this file, unless it already takes more.
pub fn limit_memory(seen: &Seen, max_memory: Option<u64>, path: &Path) -> Result<(), Failure> {
    let (takes, most) = (seen.size_in_bytes(), most_bytes(max_memory));
    if takes > most {
        return Err(Failure::new(format!(
            "{}: it already takes {} of memory; raise --max-memory",
            path.display(),
            BinaryBytes(takes as u64)
        )));
    }
    seen.set_max_bytes(most);
    Ok(())
}

/// Returns for how long a state remembers lines, if not for ever, or an error if this command cannot know.
pub fn window_of(seen: &Seen, path: &Path) -> Result<Option<Window>, Failure> {
    let Some(ticks) = seen.remembers() else { return Ok(None) };
    seen.window().map(Some).ok_or_else(|| {
        Failure::new(format!(
            "{}: it remembers items for {ticks} ticks, which another program counts, so this command does not \
             know when to forget a line; koel query and koel info can read it",
            path.display()
        ))
    })
}

/// Says by how much the time of a filter is ahead of the system's clock, if it is.
pub fn ahead(filter: &Seen) -> Option<String> {
    let window = filter.window()?;
    let (began, now) = (window.began(filter.present_tick()?), Window::now());
    let ahead = began.checked_sub(now).filter(|ahead| *ahead > 0)?;
    Some(format!(
        "its time is {} ahead of this machine's clock; until then, it forgets nothing",
        duration(ahead)
    ))
}

/// Seconds, in words: `2.1 d`.
pub fn duration(seconds: u64) -> String {
    let units = [(86_400, "d"), (3_600, "h"), (60, "min"), (1, "s")];
    let (unit, name) = units.into_iter().find(|(unit, _)| seconds >= *unit).unwrap_or((1, "s"));
    format!("{:.1} {name}", seconds as f64 / unit as f64)
}
