//! `koel info`: shows what a state contains.

use crate::arguments::tools::Info;
use crate::commands::report::{self, Ending};
use crate::failure::Failure;
use crate::state::comparison::LineHash;
use crate::state::keeper::{cannot_use, open};
use crate::state::seen::{Seen, duration};
use crate::unsaved;
use indicatif::{HumanBytes, HumanCount};
use koel::Window;
use koel::{PersistentHasher, Stats};
use serde::Serialize;
use std::fmt::{self, Display};
use std::path::PathBuf;

/// The field names are those of the JSON.
#[derive(Serialize)]
struct Report {
    state: String,
    file_bytes: u64,
    items: usize,
    memory_bytes: usize,
    /// The fraction of slots that are filled.
    load: f64,
    fingerprint_bits: u32,
    /// The false-positive rate now.
    rate: f64,
    /// The false-positive rate when the filter is full, or has grown as much as expected.
    rate_expected: f64,
    hasher: &'static str,
    compares: Option<String>,
    /// The number of items that the filter was built for.
    capacity: usize,
    grows: bool,
    /// The size of the filter relative to its first size.
    growth: f64,
    expected_growth: f64,
    splits: usize,
    forgets: Option<Ages>,
    /// Number of bytes of newer changes, which the state does not have.
    unsaved_bytes: u64,
    #[serde(skip)]
    unsaved: Option<PathBuf>,
}

pub fn info(options: &Info) -> Result<Ending, Failure> {
    let path = &options.state;
    let file = open(path)?;
    let info = file.info();
    // Of what is in the file, some may be forgotten by now.
    let (stats, ages) = match info.remembers {
        None => (info.stats.clone(), None),
        Some(_) => ages_of(&file.load().map_err(|error| cannot_use(path, &error))?),
    };
    let (unsaved, bytes) = unsaved::waiting(path).unzip();
    let report = Report {
        state: path.display().to_string(),
        file_bytes: info.stats.size_in_bytes as u64,
        items: stats.items,
        memory_bytes: info.stats.size_in_bytes,
        load: stats.items as f64 / info.stats.slots as f64,
        fingerprint_bits: stats.fingerprint_bits,
        rate: stats.false_positive_rate,
        rate_expected: stats.false_positive_rate_at_capacity,
        hasher: LineHash::NAME,
        compares: stats.grows.then(|| file.hasher().comparison().to_string()),
        capacity: stats.capacity,
        grows: stats.grows,
        growth: info.stats.growth,
        expected_growth: stats.expected_growth,
        splits: info.stats.splits,
        forgets: ages,
        unsaved_bytes: bytes.unwrap_or(0),
        unsaved,
    };
    report::print(&report, options.json)
}

impl Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = |number: usize| HumanCount(number as u64);
        let bits = 8.0 * self.file_bytes as f64 / self.items.max(1) as f64;
        // For a nearly empty state, this number would be meaningless.
        let bits =
            if self.load > 0.1 { format!(", {bits:.1} bits per item") } else { String::new() };
        let (memory, full) = (HumanBytes(self.memory_bytes as u64), 100.0 * self.load);
        let now = if self.rate == 0.0 { "0".into() } else { format!("{:.1e}", self.rate) };
        let then = if self.grows { "after the expected growth" } else { "when full" };
        let mut rows = vec![
            ("items", count(self.items).to_string()),
            ("file", format!("{}{bits}", HumanBytes(self.file_bytes))),
            ("memory", format!("{memory}, {full:.0} % full")),
            ("stores", format!("{} bits per item", self.fingerprint_bits)),
            ("rate", format!("{now} now, {:.1e} {then}", self.rate_expected)),
            ("hasher", self.hasher.into()),
        ];
        rows.extend(self.compares.clone().map(|compares| ("compares", compares)));
        rows.extend(self.forgets.iter().flat_map(Ages::rows));
        if let Some(file) = &self.unsaved {
            let bytes = HumanBytes(self.unsaved_bytes);
            rows.push(("besides", format!("{bytes} of newer changes, in {}", file.display())));
        }
        let (capacity, growth) = (count(self.capacity), HumanCount(self.expected_growth as u64));
        rows.push(match self.grows {
            false => ("built for", format!("{capacity} items")),
            true => ("built for", format!("{capacity} items, growing up to {growth} times")),
        });
        if self.grows {
            let (growth, splits) = (self.growth, count(self.splits));
            rows.push(("grown", format!("{growth:.1} times, by {splits} splits")));
        }
        writeln!(f, "{}", self.state)?;
        rows.into_iter().try_for_each(|(name, value)| writeln!(f, "  {name:9}  {value}"))
    }
}

/// The window of a state that forgets, and what it will forget when. The field names are those of the JSON.
#[derive(Serialize)]
struct Ages {
    /// The ticks for which an item is remembered at least.
    ticks: u32,
    /// The same in seconds, and the length of a tick. Not known if another program counts the ticks.
    seconds: Option<u64>,
    tick_seconds: Option<u64>,
    /// The items that go with each of the next ticks.
    expiring: Vec<Expiring>,
    #[serde(skip)]
    window: Option<Window>,
}

#[derive(Serialize)]
struct Expiring {
    items: usize,
    /// When they go, in seconds from now.
    in_seconds: Option<u64>,
}

/// Lets the ticks pass that are due, and returns the filter's figures and its ages, if it forgets.
fn ages_of(filter: &Seen) -> (Stats, Option<Ages>) {
    filter.keep_up();
    let window = filter.window();
    let (now, tick) = (Window::now(), filter.present_tick());
    let ages = filter.remembers().map(|ticks| Ages {
        ticks,
        seconds: window.map(Window::seconds),
        tick_seconds: window.map(Window::tick_seconds),
        expiring: (1..)
            .zip(filter.expiring())
            .map(|(after, items)| Expiring {
                items,
                in_seconds: window
                    .zip(tick)
                    .map(|(window, tick)| window.began(tick + after).saturating_sub(now)),
            })
            .collect(),
        window,
    });
    (filter.stats(), ages)
}

impl Ages {
    /// Returns what is said of them, by names.
    fn rows(&self) -> Vec<(&'static str, String)> {
        let mut rows = vec![match self.window {
            Some(window) => {
                let later = duration(window.tick_seconds());
                ("forgets", format!("lines after {window}, or up to {later} later"))
            }
            None => ("forgets", format!("items after {} ticks of another program", self.ticks)),
        }];
        let some = (1..).zip(&self.expiring).filter(|(_, expiring)| expiring.items > 0);
        for (tick, Expiring { items, in_seconds }) in some {
            let name = if rows.len() == 1 { "will go" } else { "" };
            let when = match in_seconds {
                Some(seconds) => format!("in {}", duration(*seconds)),
                None => format!("with tick {tick} from now"),
            };
            rows.push((name, format!("{} {when}", HumanCount(*items as u64))));
        }
        rows
    }
}
