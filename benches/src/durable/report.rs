//! The figures as a file, a table and a picture.

use super::sets::{Group, KINDS, Kind};
use crate::kit::figures::Rounds;
use koel_plot::{Bar, BarRow, Bars, Entry, Mark, Plot, Row, Style};
use serde::{Deserialize, Serialize};
use std::fmt::Write;

/// The median of a figure of a set, its least and its most.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    set: String,
    figure: String,
    median: f64,
    least: f64,
    most: f64,
}

/// All that was found in a run.
pub struct Found {
    /// How, where and when.
    pub about: Vec<String>,
    pub figures: Vec<Figure>,
}

/// Returns the figures of all rounds, by sets and names.
pub fn figures(rounds: &Rounds<(String, String)>) -> Vec<Figure> {
    let figure = |name: &(String, String)| {
        let all = rounds.all(name).iter().copied();
        Figure {
            set: name.0.clone(),
            figure: name.1.clone(),
            median: rounds.median(name),
            least: all.clone().fold(f64::INFINITY, f64::min),
            most: all.fold(f64::NEG_INFINITY, f64::max),
        }
    };
    rounds.names().map(figure).collect()
}

impl Found {
    fn get(&self, kind: &Kind, name: &str) -> Option<&Figure> {
        self.figures.iter().find(|figure| figure.set == kind.name && figure.figure == name)
    }

    /// Returns the kinds that were measured, in their order.
    fn kinds(&self) -> impl Iterator<Item = &'static Kind> {
        KINDS.iter().filter(|kind| self.get(kind, "add").is_some())
    }

    /// Returns what koel has lost of what it had answered, which has to be nothing.
    pub fn lost_by_koel(&self) -> Option<String> {
        let mut losses = self.figures.iter().filter(|figure| {
            let is_loss = ["lost", "lost after the fill"].contains(&&*figure.figure);
            is_loss && figure.set.starts_with("koel") && figure.most > 0.0
        });
        losses.next().map(|loss| format!("{} has lost {} items", loss.set, loss.most))
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

/// The picture: adds a second, by what a power failure takes.
pub fn picture(found: &Found) -> String {
    let of_all = |name| found.kinds().filter_map(move |kind| found.get(kind, name));
    let ends = of_all("add").fold((f64::INFINITY, 0.0_f64), |(least, most), figure| {
        (least.min(figure.least), most.max(figure.most))
    });
    let block = |(group, title): (Group, &str)| {
        let kinds = found.kinds().filter(|kind| kind.group == group);
        let rows: Vec<BarRow> = kinds.map(|kind| row(found, kind)).collect();
        let bars = Bars {
            title: title.into(),
            log: true,
            low: Some(ends.0 / 2.0),
            high: Some(ends.1),
            rows,
            ..Bars::default()
        };
        (!bars.rows.is_empty()).then_some(Row::Bars(bars))
    };
    let entry = |name: &str| Entry {
        name: name.into(),
        style: Style { colour: colour(name).into(), mark: Mark::Bar, ..Style::default() },
        hollow: false,
    };
    let plot = Plot {
        title: "New items a second, into sets that outlive their process".into(),
        about: vec![
            format!(
                "On a logarithmic scale that begins at {} a second, so equal distances are equal factors.",
                rate(ends.0 / 2.0)
            ),
            "A line reaches from the slowest round to the fastest.".into(),
            "In brackets: bytes of memory for each item, without pages of files, of sets that got all items."
                .into(),
        ],
        rows: Group::ALL.into_iter().filter_map(block).collect(),
        legend: ["koel", "SQLite", "fjall", "Redis", "Scrapy"].map(entry).into(),
        ..Plot::default()
    };
    plot.svg()
}

fn row(found: &Found, kind: &Kind) -> BarRow {
    let add = found.get(kind, "add");
    let figure = add.map_or(String::new(), |add| rate(add.median));
    let memory = found.get(kind, "anonymous").filter(|_| kind.tells_room());
    let memory = memory.map_or(String::new(), |memory| format!("  ({})", short(memory.median)));
    let bar = Bar {
        value: add.map(|add| add.median),
        low: add.map(|add| add.least),
        high: add.map(|add| add.most),
        label: format!("{figure}{memory}"),
        colour: colour(kind.label).into(),
    };
    BarRow { name: kind.label.into(), cells: vec![vec![bar]] }
}

fn colour(label: &str) -> &'static str {
    let colours = [
        ("koel", "#d62f0e"),
        ("SQLite", "#4c78a8"),
        ("fjall", "#3f9c7a"),
        ("Redis", "#8a6bb8"),
        ("Scrapy", "#c9a227"),
    ];
    colours.iter().find(|(start, _)| label.starts_with(start)).map_or("#222222", |(_, it)| it)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        assert_eq!([rate(12_345_678.0), rate(4_321.0), rate(87.65)], ["12.3 M", "4.32 k", "87.7"]);
        assert_eq!([count(1_234_567.0), count(12.0)], ["1,234,567", "12"]);
    }

    #[test]
    fn what_koel_loses_is_told() {
        let mut rounds = Rounds::new();
        for (set, lost) in [("koel-each", 0.0), ("redis", 9.0), ("koel-each", 3.0)] {
            rounds.note((set.into(), "lost".into()), lost);
        }
        let found = Found { about: Vec::new(), figures: figures(&rounds) };
        assert_eq!(found.lost_by_koel().unwrap(), "koel-each has lost 3 items");
    }
}
