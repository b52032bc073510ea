//! The filter of the lines seen, built as the options ask.

use crate::arguments::common::{Forgetting, Making};
use crate::failure::Failure;
use crate::state::comparison::{Comparison, LineHash};
use crate::state::keys::url_key::UrlRules;
use indicatif::{BinaryBytes, HumanCount};
use koel::{
    BuildError, BuildErrorKind, Builder, ConcurrentCuckooFilter, PersistentHasher, Plan, Window,
};
use std::path::Path;
use std::time::Duration;

pub type Seen = ConcurrentCuckooFilter<LineHash>;

/// Growing takes time. If the size of the input is known, a filter therefore starts with room for
/// half of the lines that the input may contain. This is the limit, about 60 MB: there may be far
/// fewer distinct lines.
const MAX_GUESSED: u64 = 10_000_000;
const BYTES_OF_LINE: u64 = 64;

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

    /// Returns the builder of an empty filter for an input of `bytes` bytes. The number of bytes is 0 if it is not known,
    /// and for a state, which should be no larger than its contents require.
    pub fn builder(&self, bytes: u64) -> Result<Builder<LineHash>, Failure> {
        let comparison = self.comparison();
        let hasher = self.seed.map_or_else(
            || LineHash::random(comparison),
            |seed| LineHash::with_seed(comparison, seed),
        );
        let mut builder = ConcurrentCuckooFilter::builder().hasher(hasher).seen_set();
        if let Some(rate) = self.rate {
            builder = builder.false_positive_rate(rate);
        }
        match &self.forgetting {
            Forgetting { forget_after: Some(seconds), .. } => {
                builder = builder.forgets_after(Duration::from_secs(*seconds));
            }
            Forgetting { refresh: true, .. } => {
                let what = "--refresh is for lines that are forgotten; use it with --forget-after";
                return Err(Failure::new(what));
            }
            _ => {}
        }
        if let Some(lines) = self.capacity {
            builder = builder.capacity(usize::try_from(lines).unwrap_or(usize::MAX));
        } else {
            // A guess lets the filter grow as far as if nothing were known.
            let plan = builder.plan().map_err(cannot_build)?;
            let first = plan.capacity as u64;
            // With a memory limit, the guess could exceed it.
            let most = self.max_memory.map_or(MAX_GUESSED, |_| first);
            let guess = (bytes / BYTES_OF_LINE / 2).clamp(first, most);
            builder = builder.capacity(guess as usize).expected_growth(plan.expected_growth);
        }
        Ok(builder.max_bytes(most_bytes(self.max_memory)))
    }

    /// Builds an empty filter for an input of `bytes` bytes, if that is known.
    pub fn build(&self, bytes: u64) -> Result<Seen, Failure> {
        self.builder(bytes)?.build().map_err(cannot_build)
    }

    /// Returns what a new filter would be.
    pub fn plan(&self) -> Result<Plan, Failure> {
        self.builder(0)?.plan().map_err(cannot_build)
    }

    /// Returns a note if a filter has grown so much that its rate is higher than these options allow.
    pub fn exceeded(&self, stats: &koel::Stats) -> Option<String> {
        let most =
            self.rate.unwrap_or(Plan::SEEN_SET_RATE).max(stats.false_positive_rate_at_capacity);
        let rate = Some(stats.false_positive_rate).filter(|rate| *rate > most)?;
        Some(format!(
            "the rate is {rate:.1e} now, higher than {most:.1e}: {} lines are more than the {} that \
             the filter was planned for; use a larger --capacity (a state keeps that of its first run)",
            HumanCount(stats.items as u64),
            HumanCount((stats.capacity as f64 * stats.expected_growth) as u64)
        ))
    }

    /// Checks that an existing state is what these options ask for, and sets its memory limit. Notes what they ask for
    /// in vain.
    pub fn accept(
        &self,
        seen: Seen,
        path: &Path,
        notes: &mut Vec<String>,
    ) -> Result<Seen, Failure> {
        let (is, asked) = (seen.hasher().comparison(), self.comparison());
        let window = seen.window();
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
            if self.rate.is_some_and(|asked| stores_more_than(&seen, asked))
                || self.capacity.is_some_and(|asked| asked != seen.capacity() as u64)
            {
                notes.push(format!(
                    "{}: --rate and --capacity are for new states, and this one keeps those that it was made with",
                    path.display()
                ));
            }
            notes.extend(ahead(&seen).map(|ahead| format!("{}: {ahead}", path.display())));
            return Ok(seen);
        };
        Err(Failure::about(path, format_args!("{why}, or use another state")))
    }
}

/// Whether a state stores more of each line than it would if it had been made for this rate. Most rates are not kept
/// exactly, but as the next number of bits.
fn stores_more_than(seen: &Seen, rate: f64) -> bool {
    let stats = seen.stats();
    let mut builder =
        ConcurrentCuckooFilter::builder().capacity(stats.capacity).false_positive_rate(rate);
    if let Some(ticks) = seen.remembers() {
        builder = builder.remembers(ticks);
    }
    let plan = builder.growing().expected_growth(stats.expected_growth).plan();
    plan.is_ok_and(|plan| plan.fingerprint_bits < stats.fingerprint_bits)
}

fn cannot_build(error: BuildError) -> Failure {
    Failure::new(match (error.kind(), error.least_rate()) {
        (_, Some(least)) => format!(
            "--rate is too low: {least:.1e} is the least if it is not known how many lines will come; --capacity says that"
        ),
        (BuildErrorKind::LimitTooSmall, _) => format!("--max-memory is too small: {error}"),
        _ => format!("cannot allocate the filter: {error}"),
    })
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

/// Checks that this command can know for how long a state remembers lines.
pub fn check_window(seen: &Seen, path: &Path) -> Result<(), Failure> {
    match (seen.remembers(), seen.window()) {
        (Some(ticks), None) => Err(Failure::about(
            path,
            format_args!(
                "it remembers items for {ticks} ticks, which another program counts, so this command does not \
             know when to forget a line; koel query and koel info can read it"
            ),
        )),
        _ => Ok(()),
    }
}

/// Says by how much the time of a filter is ahead of the system's clock, if it is.
fn ahead(filter: &Seen) -> Option<String> {
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
