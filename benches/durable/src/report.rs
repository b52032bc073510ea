//! The figures as a file, and as a table.

use crate::measure::Measured;
use crate::set::{Kind, Result};
use crate::sets::{KINDS, named};
use crate::timing::median;
use std::collections::BTreeMap;
use std::fmt::Write;

/// The median of a figure, its least and its most.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figure {
    pub median: f64,
    pub least: f64,
    pub most: f64,
}

/// All that was found in a run.
#[derive(Debug, PartialEq)]
pub struct Found {
    /// How, where and when.
    pub about: Vec<String>,
    figures: BTreeMap<(String, String), Figure>,
}

impl Found {
    pub fn of(about: Vec<String>, measured: Vec<(&'static Kind, Measured)>) -> Found {
        let mut figures = BTreeMap::new();
        for (kind, measured) in measured {
            for (name, rounds) in measured {
                let ends = |pick: fn(f64, f64) -> f64| rounds.iter().copied().reduce(pick);
                let figure = Figure {
                    median: median(rounds.iter().copied()),
                    least: ends(f64::min).unwrap_or(f64::NAN),
                    most: ends(f64::max).unwrap_or(f64::NAN),
                };
                figures.insert((kind.name.into(), name), figure);
            }
        }
        Found { about, figures }
    }

    pub fn get(&self, kind: &Kind, name: &str) -> Option<Figure> {
        self.figures.get(&(kind.name.into(), name.into())).copied()
    }

    /// The kinds that were measured, in their order.
    pub fn kinds(&self) -> impl Iterator<Item = &'static Kind> {
        KINDS.iter().filter(|kind| self.get(kind, "add").is_some())
    }

    /// Returns what koel has lost of what it had answered, which has to be nothing.
    pub fn lost_by_koel(&self) -> Option<String> {
        let durable = self.kinds().filter(|kind| kind.name.starts_with("koel"));
        let losses = durable.flat_map(|kind| {
            let lost = ["lost", "lost after the fill"].map(|name| self.get(kind, name));
            lost.into_iter().flatten().map(move |lost| (kind, lost.most))
        });
        let mut losses = losses.filter(|(_, lost)| *lost > 0.0);
        losses.next().map(|(kind, lost)| format!("{} has lost {lost} items", kind.label))
    }

    pub fn csv(&self) -> String {
        let mut text: String = self.about.iter().map(|line| format!("# {line}\n")).collect();
        text.push_str("set,figure,median,least,most\n");
        for ((kind, name), Figure { median, least, most }) in &self.figures {
            let _ = writeln!(text, "{kind},{name},{median},{least},{most}");
        }
        text
    }

    /// Reads what `csv` wrote.
    pub fn read(csv: &str) -> Result<Found> {
        let about = csv.lines().filter_map(|line| line.strip_prefix("# ")).map(Into::into);
        let mut found = Found { about: about.collect(), figures: BTreeMap::new() };
        for line in csv.lines().filter(|line| !line.starts_with('#')).skip(1) {
            let fields: Vec<&str> = line.split(',').collect();
            let [kind, name, median, least, most] = fields[..] else {
                return Err(format!("not a figure: {line}").into());
            };
            named(kind).ok_or(format!("not a set: {kind}"))?;
            let (median, least, most) = (median.parse()?, least.parse()?, most.parse()?);
            found.figures.insert((kind.into(), name.into()), Figure { median, least, most });
        }
        Ok(found)
    }

    /// The table, in Markdown.
    pub fn table(&self) -> String {
        let mut text = String::from("# Sets that outlive their process\n\n");
        for line in &self.about {
            let _ = writeln!(text, "{line}");
        }
        text.push_str(SPEEDS);
        for kind in self.kinds() {
            let _ = write!(text, "| {} |", kind.label);
            for name in ["add", "present", "hit", "miss"] {
                let figure = self.get(kind, name).map(|figure| rate(figure.median));
                let _ = write!(text, " {} |", figure.unwrap_or("–".into()));
            }
            text.push('\n');
        }
        text.push_str(PLACE);
        let costs = |kind: &Kind, name: &str, scale: f64| {
            let figure = self.get(kind, name);
            figure.map_or("–".into(), |figure| short(figure.median * scale))
        };
        for kind in self.kinds().filter(|kind| kind.tells_room()) {
            let _ = write!(text, "| {} |", kind.label);
            for (name, scale) in [
                ("memory", 1.0),
                ("anonymous", 1.0),
                ("on disk", 1.0),
                ("most on disk", 1.0),
                ("open after a kill", 1e3),
                ("open", 1e3),
            ] {
                let _ = write!(text, " {} |", costs(kind, name, scale));
            }
            text.push('\n');
        }
        text.push_str(LOSSES);
        for kind in self.kinds().filter(|kind| kind.threads == 1) {
            let (lost, answered) = (self.get(kind, "lost"), self.get(kind, "answered"));
            let kill = match lost.zip(answered) {
                None => "everything".into(),
                Some((lost, _)) if lost.most > 0.0 => {
                    format!("up to {} of the last adds", count(lost.most))
                }
                Some((_, answered)) => format!("nothing (of {} a round)", count(answered.median)),
            };
            let _ = writeln!(text, "| {} | {kill} | {} |", kind.label, kind.power);
        }
        text
    }
}

const SPEEDS: &str = "
## Speed

Sets that sync each add have 2,000 items, and those that make a system call or a transaction of each have a quarter or
a tenth of all: their lookups meet small sets. On a busy machine, differences below a factor of two mean nothing.

| items a second | add, new | add, present | look up, present | look up, absent |
|---|---:|---:|---:|---:|
";

const PLACE: &str = "
## Room, and the time to open

Bytes an item, and milliseconds until the first answer. Of resident memory, the second column is what belongs to no
file (SQLite's is a cache of a fixed size). On disk is what there is after the set was closed, and at most, the most that
there was meanwhile.

| | resident memory | of it, of no file | on disk | on disk, at most | opened after a kill, ms | after it was closed, ms |
|---|---:|---:|---:|---:|---:|---:|
";

const LOSSES: &str = "
## What is lost

`kill -9` was tried in the middle of adds; in brackets, how many were answered before the kills of a round. What a power failure takes is what the documentation of each says.

| | `kill -9` takes | a power failure takes |
|---|---|---|
";

/// A number of operations a second.
pub fn rate(figure: f64) -> String {
    match figure {
        1e6.. => format!("{} M", short(figure / 1e6)),
        1e3.. => format!("{} k", short(figure / 1e3)),
        _ => short(figure),
    }
}

/// Three digits.
pub fn short(figure: f64) -> String {
    match figure.abs() {
        100.0.. => format!("{figure:.0}"),
        10.0.. => format!("{figure:.1}"),
        _ => format!("{figure:.2}"),
    }
}

fn count(figure: f64) -> String {
    let digits = format!("{figure:.0}");
    let groups: Vec<&str> = digits
        .as_bytes()
        .rchunks(3)
        .rev()
        .map(|group| std::str::from_utf8(group).expect("digits"))
        .collect();
    groups.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_survive_the_csv() {
        let measured = |figures: &[f64]| Measured::from([("add".into(), figures.to_vec())]);
        let kinds = vec![(&KINDS[0], measured(&[1.0, 3.0, 2.0])), (&KINDS[3], measured(&[0.1]))];
        let found = Found::of(vec!["2 cores".into(), "today".into()], kinds);
        assert_eq!(found.get(&KINDS[0], "add").map(|of| of.median), Some(2.0));
        assert_eq!(Found::read(&found.csv()).unwrap(), found);
    }

    #[test]
    fn a_broken_csv_is_an_error() {
        for line in ["koel-memory,add,1,2", "koel-memory,add,1,2,much", "nobody,add,1,2,3"] {
            assert!(Found::read(&format!("set,figure\n{line}\n")).is_err(), "{line}");
        }
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!([rate(12_345_678.0), rate(4_321.0), rate(87.65)], ["12.3 M", "4.32 k", "87.7"]);
        assert_eq!([count(1_234_567.0), count(12.0)], ["1,234,567", "12"]);
    }
}
