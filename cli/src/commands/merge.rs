//! `koel merge`: puts the lines of several states into one.

use crate::arguments::membership::Merge;
use crate::commands::report::{DONE, Ending, holds, seconds};
use crate::failure::{Failure, without_numbers};
use crate::run::screen::{Report, Screen};
use crate::state::keeper::load;
use crate::state::seen::{Seen, limit_memory};
use crate::unsaved;
use indicatif::HumanCount;
use koel::Window;
use koel::{FullKind, UnionError, UnionErrorKind};
use serde_json::json;
use std::path::Path;
use std::time::Instant;

pub fn merge(options: &Merge) -> Result<Ending, Failure> {
    let began = Instant::now();
    let Merge { state, states, .. } = options;
    for other in states.iter().filter(|other| *other != state) {
        unsaved::check_whole(other)?;
    }
    let screen = Screen::new(options.quiet, options.json);
    let mut notes = Vec::new();
    let keeper = unsaved::claim(state, &options.waiting, &mut notes)?;
    // What was taken in stays, whatever becomes of the merge.
    notes.iter().for_each(|note| screen.warn(note));
    let exists = state.exists();
    let first = if exists { state } else { &states[0] };
    let merged = load(first)?;
    limit_memory(&merged, options.max_memory, first)?;
    merged.keep_up();
    let before = if exists { merged.len() } else { 0 };
    let rate = merged.false_positive_rate();
    // The first is in it already if it began as a copy.
    for path in &states[usize::from(!exists)..] {
        take_over(&merged, path)?;
    }
    let added = merged.len().saturating_sub(before);
    // Lines may have become younger, or their fingerprints vaguer.
    let is_same = merged.remembers().is_none() && merged.false_positive_rate() == rate;
    let unchanged = exists && added == 0 && is_same;
    if !unchanged {
        keeper.save(&merged)?;
    }
    let stats = merged.stats();
    let (now, planned) = (stats.false_positive_rate, stats.false_positive_rate_at_capacity);
    let is_exceeded = now > planned;
    if is_exceeded {
        screen.note(format_args!(
            "the rate is {now:.1e} now, higher than the {planned:.1e} that the states are planned for; make \
             them with a lower --rate"
        ));
    }
    let (known, count, seconds) = (merged.len(), states.len(), seconds(began));
    let text = format!(
        "{count} state{}, {} lines added; {}; {seconds:.1} s",
        if count == 1 { "" } else { "s" },
        HumanCount(added as u64),
        holds(state, known, unchanged)
    );
    let fields = vec![
        // Those that were merged into this one.
        ("states", json!(count)),
        ("added", json!(added)),
        ("known", json!(known)),
        ("rate", json!(now)),
        ("rate_exceeded", json!(is_exceeded)),
        ("memory_bytes", json!(merged.size_in_bytes())),
        ("state", json!(state.display().to_string())),
        ("unchanged", json!(unchanged)),
        ("seconds", json!(seconds)),
    ];
    screen.sum_up(&Report { text, fields })?;
    Ok(DONE)
}

fn take_over(merged: &Seen, path: &Path) -> Result<usize, Failure> {
    let other = load(path)?;
    let differs = |what: String| {
        Err(Failure::about(path, format_args!("this state {what}; nothing was saved")))
    };
    let (is, has) = (merged.hasher().comparison(), other.hasher().comparison());
    if is != has {
        return differs(format!("compares {has}, and the others {is}"));
    }
    // As many ticks of other lengths would be taken for times long after each other.
    let [is, has] = [merged, &other].map(|seen| {
        seen.keep_up();
        seen.window()
    });
    if is != has {
        let told =
            |window: Option<Window>| window.map_or("never".into(), |it| format!("after {it}"));
        let [is, has] = [is, has].map(told);
        return differs(format!("forgets lines {has}, and the others {is}"));
    }
    merged.union(&other).or_else(|error| differs(refused(&error, &other, merged)))
}

/// Says why a state was refused. The texts of the library address programs.
fn refused(error: &UnionError, state: &Seen, others: &Seen) -> String {
    let [bits, of_others] = [state, others].map(|seen| seen.stats().fingerprint_bits);
    let [lines, for_others] = [state, others].map(|seen| HumanCount(seen.capacity() as u64));
    let (what, option) = match error.kind() {
        UnionErrorKind::DifferentHasher => {
            ("has another seed than the others".to_string(), "one --seed")
        }
        UnionErrorKind::DifferentLayout => {
            (format!("stores {bits} bits of a line, and the others {of_others}"), "one --rate")
        }
        // Such states divide the hashes in other ways, so a line of both would be there twice.
        UnionErrorKind::DifferentSize => (
            format!("was made for {lines} lines, and the others for {for_others}"),
            "one --capacity, or all without",
        ),
        UnionErrorKind::Full { reason: FullKind::LimitReached, .. } => {
            return "has lines for which there is no room; raise --max-memory".to_string();
        }
        _ => return format!("cannot be merged: {}", without_numbers(error)),
    };
    format!("{what}; states that are to be merged have to be made with {option}")
}
