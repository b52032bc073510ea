//! How a command ends: its summary, as text or JSON, and the exit code.

use crate::failure::{End, Failure};
use crate::lines::chunk::Counts;
use crate::lines::output::Sink;
use crate::lines::rules::{Field, Rules};
use crate::run::Outcome;
use crate::run::plan::{Plan, Verb};
use crate::run::screen::{self, Report};
use crate::state::comparison::Comparison;
use indicatif::HumanCount;
use serde_json::{Value, json};
use std::fmt::Display;
use std::path::Path;
use std::time::Instant;

/// How the process ends.
pub enum Ending {
    Code(u8),
    Signal(i32),
}

pub const DONE: Ending = Ending::Code(0);
pub const NONE: Ending = Ending::Code(1);
pub const FAILED: Ending = Ending::Code(2);

/// Prints what a command was asked for to standard output.
pub fn print(report: &Report, as_json: bool) -> Result<Ending, Failure> {
    let text = match as_json {
        true => serde_json::to_string_pretty(report).map_err(Failure::new)? + "\n",
        false => report.text.clone(),
    };
    Sink::standard(&[], None)?.print(text.as_bytes())?;
    Ok(DONE)
}

/// Returns a text of a title and rows, each a name and a value.
pub fn table(
    title: impl Display,
    rows: impl IntoIterator<Item = (&'static str, String)>,
) -> String {
    let rows = rows.into_iter().map(|(name, value)| format!("  {name:9}  {value}\n"));
    format!("{title}\n{}", rows.collect::<String>())
}

/// Returns the summary of a command that reads lines.
pub fn of_lines(plan: &Plan, outcome: &Outcome, rate_exceeded: Option<bool>) -> Report {
    let Outcome { tally, stats, saved, end, .. } = outcome;
    let Counts { lines, yes, kept, not_urls, without_field, emptied, too_long, .. } = tally.counts;
    let of_paragraphs = matches!(plan.rules.field, Some(Field::Paragraphs(_)));
    let not_urls = outcome.hash.comparison().expects_urls().then_some(not_urls);
    let without_field = plan.rules.field.map(|_| without_field);
    let mut fields = vec![("lines", json!(lines))];
    let mut text = match of_paragraphs {
        false => screen::lines(lines),
        true => {
            let records = HumanCount(tally.counts.records);
            format!("{} paragraphs in {records} records", HumanCount(lines))
        }
    };
    let mut is_saved = !matches!(end, End::Failed(_));
    let (answer, yes) = (plan.verb.done(), yes + outcome.recovered.unwrap_or(0));
    fields.push((answer, json!(yes)));
    text += &format!(", {} {answer}", HumanCount(yes));
    let others = HumanCount(lines - yes - kept);
    text += &match plan.verb {
        Verb::Dedup => format!(", {others} repeated"),
        Verb::Add => String::new(),
        Verb::Query => format!(", {others} not seen"),
        Verb::Forget => format!(", {others} not found"),
    };
    if plan.verb == Verb::Dedup {
        // --count and --repeated only read a state.
        is_saved &= saved.is_some();
        add_drops(plan, outcome, &mut text, &mut fields);
        fields.push(("saved", json!(is_saved)));
    }
    if plan.verb == Verb::Forget {
        fields.push(("kept", json!(kept)));
    }
    for (number, one, more) in [
        (kept, "is too old to be forgotten", "are too old to be forgotten"),
        (not_urls.unwrap_or(0), "is not a URL", "are not URLs"),
        (without_field.unwrap_or(0), "does not have the field", "do not have the field"),
        (emptied, "record has none left", "records have none left"),
        (too_long, "more was too long", "more were too long"),
    ] {
        match number {
            0 => {}
            1 => text += &format!("; 1 {one}"),
            lines => text += &format!("; {} {more}", HumanCount(lines)),
        }
    }
    let known = saved.as_ref().map_or(stats.items, |saved| saved.known);
    let unchanged = saved.as_ref().is_some_and(|saved| saved.is_unchanged);
    if let Some(state) = plan.state.as_ref().filter(|_| is_saved) {
        text += &format!("; {}", holds(state, known, unchanged));
    }
    let seconds = seconds(plan.began);
    text += &format!("; {seconds:.1} s");
    text += &match end {
        End::Signal(_) => format!("; ended by {}", end.name()),
        End::Enough => "; ended by --limit".into(),
        End::Failed(_) => "; failed".into(),
        End::Reached | End::BrokenPipe => String::new(),
    };
    fields.extend([
        ("bytes", json!(tally.counts.bytes)),
        ("not_urls", json!(not_urls)),
        ("without_field", json!(without_field)),
        ("unreadable", json!(tally.counts.unreadable)),
        ("too_long", json!(too_long)),
    ]);
    if of_paragraphs {
        fields.extend([("records", json!(tally.counts.records)), ("emptied", json!(emptied))]);
    }
    fields.extend([
        ("rate", json!(stats.false_positive_rate)),
        ("rate_exceeded", json!(rate_exceeded)),
        ("known", json!(known)),
        ("memory_bytes", json!(stats.size_in_bytes)),
        ("state", json!(plan.state.as_ref().map(|path| path.display().to_string()))),
        ("unchanged", json!(unchanged)),
        ("seconds", json!(seconds)),
        ("end", json!(end.name())),
    ]);
    Report { text, fields }
}

/// Adds what a summary says of the repeated lines, and of those among them that are new.
fn add_drops(
    plan: &Plan,
    outcome: &Outcome,
    text: &mut String,
    fields: &mut Vec<(&'static str, Value)>,
) {
    let Outcome { tally, recovered, .. } = outcome;
    let repeated = tally.counts.lines - tally.counts.yes - recovered.unwrap_or(0);
    let compared = compared(outcome.hash.comparison(), plan.rules);
    let expected = match recovered {
        None => tally.doubt.expected(repeated),
        Some(_) => 0.0,
    };
    // "None dropped" is only true for this meaning of equal, so the summary says which it is.
    *text += &match recovered {
        None => format!("; {}", drops(expected)),
        Some(0) => format!("; none dropped by mistake; compared {compared}"),
        Some(some) => {
            format!("; {} recovered in the second pass; compared {compared}", HumanCount(*some))
        }
    };
    fields.extend([
        ("repeated", json!(repeated)),
        ("expected_drops", json!(expected)),
        ("recovered", json!(recovered)),
        ("compared", json!(compared)),
    ]);
}

/// Returns what makes two lines equal, in words: what a run without loss promises depends on it.
fn compared(comparison: Comparison, rules: Rules) -> String {
    let part = match rules.field {
        None => String::new(),
        Some(Field::Numbered { number, .. }) => format!("by field {number}, "),
        Some(Field::Paragraphs(path)) => format!("by paragraphs of {}, ", path.names().join(".")),
        Some(Field::Json(path)) => format!("by JSON field {}, ", path.names().join(".")),
    };
    let how = match comparison {
        Comparison::Bytes => "byte by byte".into(),
        Comparison::IgnoringCase => "in lower case (--ignore-case)".into(),
        Comparison::Urls(_) => format!("as {comparison}"),
    };
    let end = if rules.folds_cr { ", ignoring a CR before the newline" } else { "" };
    format!("{part}{how}{end}")
}

/// Returns the seconds since then, rounded to milliseconds.
pub fn seconds(began: Instant) -> f64 {
    (began.elapsed().as_secs_f64() * 1e3).round() / 1e3
}

/// Returns the name of a state and the number of its lines, and whether it was left as it was.
pub fn holds(state: &Path, known: usize, unchanged: bool) -> String {
    let still = if unchanged { "still " } else { "" };
    format!("{} {still}has {}", state.display(), screen::lines(known as u64))
}

/// Returns the expected number of lines dropped by mistake, in words.
fn drops(expected: f64) -> String {
    match expected {
        0.0 => "none dropped by mistake".into(),
        ..0.001 => "below 0.1 % chance of a line dropped by mistake".into(),
        ..0.5 => {
            let chance = 100.0 * (1.0 - (-expected).exp());
            format!("{chance:.1} % chance of a line dropped by mistake")
        }
        _ => format!("about {} dropped by mistake", HumanCount(expected.round().max(1.0) as u64)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_are_reported_in_words() {
        for (expected, words) in [
            (0.0, "none dropped by mistake"),
            (1e-9, "below 0.1 % chance of a line dropped by mistake"),
            (0.01, "1.0 % chance of a line dropped by mistake"),
            (0.7, "about 1 dropped by mistake"),
            (1234.4, "about 1,234 dropped by mistake"),
        ] {
            assert_eq!(drops(expected), words);
        }
    }
}
