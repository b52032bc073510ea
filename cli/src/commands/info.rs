//! `koel info`: shows what a state contains.

use crate::arguments::tools::Info;
use crate::commands::report::{self, Ending};
use crate::failure::Failure;
use crate::run::screen::Report;
use crate::state::comparison::LineHash;
use crate::state::keeper::{cannot_use, open};
use crate::state::seen::{Seen, duration};
use crate::unsaved;
use indicatif::{HumanBytes, HumanCount};
use koel::{PersistentHasher, Window};
use serde_json::{Value, json};

pub fn info(options: &Info) -> Result<Ending, Failure> {
    let path = &options.state;
    let file = open(path)?;
    let in_file = &file.info().stats;
    // Of what is in the file, some may be forgotten by now.
    let forgets = file.info().remembers.is_some();
    let seen =
        forgets.then(|| file.load().map_err(|error| cannot_use(path, &error))).transpose()?;
    let stats = match &seen {
        None => in_file.clone(),
        Some(seen) => {
            seen.keep_up();
            seen.stats()
        }
    };
    let unsaved = unsaved::waiting(path);
    let load = stats.items as f64 / in_file.slots as f64;
    let (rate, expected) = (stats.false_positive_rate, stats.false_positive_rate_at_capacity);
    let compares = stats.grows.then(|| file.hasher().comparison().to_string());
    let size = in_file.size_in_bytes as u64;

    let count = |number: usize| HumanCount(number as u64);
    let bits = match load {
        // For a nearly empty state, this number would be meaningless.
        ..=0.1 => String::new(),
        _ => format!(", {:.1} bits per item", 8.0 * size as f64 / stats.items.max(1) as f64),
    };
    let now = if rate == 0.0 { "0".into() } else { format!("{rate:.1e}") };
    let then = if stats.grows { "after the expected growth" } else { "when full" };
    let mut rows = vec![
        ("items", count(stats.items).to_string()),
        ("file", format!("{}{bits}", HumanBytes(size))),
        ("memory", format!("{}, {:.0} % full", HumanBytes(size), 100.0 * load)),
        ("stores", format!("{} bits per item", stats.fingerprint_bits)),
        ("rate", format!("{now} now, {expected:.1e} {then}")),
        ("hasher", LineHash::NAME.into()),
    ];
    rows.extend(compares.clone().map(|compares| ("compares", compares)));
    rows.extend(seen.iter().flat_map(ages_in_words));
    if let Some((file, bytes)) = &unsaved {
        let bytes = HumanBytes(*bytes);
        rows.push(("besides", format!("{bytes} of newer changes, in {}", file.display())));
    }
    let built = format!("{} items", count(stats.capacity));
    if stats.grows {
        let most = HumanCount(stats.expected_growth as u64);
        let (growth, splits) = (in_file.growth, count(in_file.splits));
        rows.push(("built for", format!("{built}, growing up to {most} times")));
        rows.push(("grown", format!("{growth:.1} times, by {splits} splits")));
    } else {
        rows.push(("built for", built));
    }
    let text = report::table(path.display(), rows);
    let fields = vec![
        ("state", json!(path.display().to_string())),
        ("file_bytes", json!(size)),
        ("items", json!(stats.items)),
        ("memory_bytes", json!(size)),
        // The fraction of slots that are filled.
        ("load", json!(load)),
        ("fingerprint_bits", json!(stats.fingerprint_bits)),
        ("rate", json!(rate)),
        // When the filter is full, or has grown as much as expected.
        ("rate_expected", json!(expected)),
        ("hasher", json!(LineHash::NAME)),
        ("compares", json!(compares)),
        // The number of items that the filter was built for.
        ("capacity", json!(stats.capacity)),
        ("grows", json!(stats.grows)),
        // The size of the filter relative to its first size.
        ("growth", json!(in_file.growth)),
        ("expected_growth", json!(stats.expected_growth)),
        ("splits", json!(in_file.splits)),
        ("forgets", json!(seen.as_ref().map(ages))),
        ("unsaved_bytes", json!(unsaved.map_or(0, |(_, bytes)| bytes))),
    ];
    report::print(&Report { text, fields }, options.json)
}

/// Returns the window of a state that forgets, and the items that go with each of the next ticks. Seconds are not known
/// if another program counts the ticks.
fn ages(seen: &Seen) -> Value {
    let window = seen.window();
    let expiring = (1..)
        .zip(seen.expiring())
        .map(|(tick, items)| json!({ "items": items, "in_seconds": seconds_until(seen, tick) }));
    json!({
        "ticks": seen.remembers(),
        "seconds": window.map(Window::seconds),
        "tick_seconds": window.map(Window::tick_seconds),
        "expiring": expiring.collect::<Vec<_>>(),
    })
}

/// Returns in how many seconds that many ticks have passed.
fn seconds_until(seen: &Seen, ticks: u64) -> Option<u64> {
    let began = seen.window()?.began(seen.present_tick()? + ticks);
    Some(began.saturating_sub(Window::now()))
}

fn ages_in_words(seen: &Seen) -> Vec<(&'static str, String)> {
    let mut rows = vec![match seen.window() {
        Some(window) => {
            let later = duration(window.tick_seconds());
            ("forgets", format!("lines after {window}, or up to {later} later"))
        }
        None => {
            let ticks = seen.remembers().unwrap_or(0);
            ("forgets", format!("items after {ticks} ticks of another program"))
        }
    }];
    for (tick, items) in (1..).zip(seen.expiring()).filter(|(_, items)| *items > 0) {
        let name = if rows.len() == 1 { "will go" } else { "" };
        let when = match seconds_until(seen, tick) {
            Some(seconds) => format!("in {}", duration(seconds)),
            None => format!("with tick {tick} from now"),
        };
        rows.push((name, format!("{} {when}", HumanCount(items as u64))));
    }
    rows
}
