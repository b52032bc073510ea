//! The figures as a file, a table and a picture.

use super::sets::{GROUPS, KINDS, Kind};
use crate::kit::figures::{Rounds, Table, median};
use koel_plot::{Bar, BarRow, Bars, Entry, Mark, Plot, Row, Style};
use serde::{Deserialize, Serialize};

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
    pub about: String,
    pub figures: Vec<Figure>,
}

/// Returns the figures of all rounds, by sets and names.
pub fn figures(rounds: Rounds<(String, String)>) -> Vec<Figure> {
    let figure = |((set, figure), all): ((String, String), Vec<f64>)| {
        let least = all.iter().copied().fold(f64::INFINITY, f64::min);
        let most = all.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        Figure { set, figure, median: median(all), least, most }
    };
    rounds.0.into_iter().map(figure).collect()
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

    /// The tables, in Markdown.
    pub fn table(&self) -> String {
        let cell = |kind: &Kind, name: &str, show: &dyn Fn(f64) -> String| {
            self.get(kind, name).map_or("–".into(), |figure| show(figure.median))
        };
        let columns = ["add, new", "add, present", "look up, present", "look up, absent"];
        let mut speeds = Table::new("items a second", &columns);
        for kind in self.kinds() {
            let names = ["add", "present", "hit", "miss"];
            speeds.row(kind.label, names.map(|name| cell(kind, name, &rate)));
        }
        let columns = [
            ("resident memory", "memory", 1.0),
            ("of it, of no file", "anonymous", 1.0),
            ("on disk", "on disk", 1.0),
            ("on disk, at most", "most on disk", 1.0),
            ("opened after a kill, ms", "open after a kill", 1e3),
            ("after it was closed, ms", "open", 1e3),
        ];
        let mut room = Table::new("bytes an item", &columns.map(|column| column.0));
        for kind in self.kinds().filter(|kind| kind.tells_room()) {
            let cell = |(_, name, scale)| cell(kind, name, &|figure| short(figure * scale));
            room.row(kind.label, columns.map(cell));
        }
        let mut losses = Table::new("what is lost", &["`kill -9` takes", "a power failure takes"]);
        for kind in self.kinds().filter(|kind| kind.threads == 1) {
            let kill = match (self.get(kind, "lost"), self.get(kind, "answered")) {
                (Some(lost), _) if lost.most > 0.0 => {
                    format!("up to {} of the last adds", lost.most)
                }
                (Some(_), Some(all)) => format!("nothing (of {} a round)", rate(all.median)),
                _ => "everything".into(),
            };
            losses.row(kind.label, [kill, kind.power.into()]);
        }
        let about = &self.about;
        let [speeds, room] = [speeds, room].map(|table| table.markdown("---:"));
        let losses = losses.markdown("---");
        format!(
            "# Sets that outlive their process\n\n{about}\n[What each figure means](../../durable.md).\n\n\
             {speeds}\n{room}\n{losses}"
        )
    }
}

/// A number of operations a second.
fn rate(figure: f64) -> String {
    match figure {
        1e6.. => format!("{} M", short(figure / 1e6)),
        1e3.. => format!("{} k", short(figure / 1e3)),
        _ => short(figure),
    }
}

/// Three digits.
fn short(figure: f64) -> String {
    match figure.abs() {
        100.0.. => format!("{figure:.0}"),
        10.0.. => format!("{figure:.1}"),
        _ => format!("{figure:.2}"),
    }
}

/// The picture: adds a second, by what a power failure takes.
pub fn picture(found: &Found) -> String {
    let of_all = |name| found.kinds().filter_map(move |kind| found.get(kind, name));
    let ends = of_all("add").fold((f64::INFINITY, 0.0_f64), |(least, most), figure| {
        (least.min(figure.least), most.max(figure.most))
    });
    let block = |group: &str| {
        let kinds = found.kinds().filter(|kind| kind.group == group);
        let rows: Vec<BarRow> = kinds.map(|kind| row(found, kind)).collect();
        let bars = Bars {
            title: group.into(),
            low: Some(ends.0 / 2.0),
            high: Some(ends.1),
            rows,
            ..Bars::default()
        };
        (!bars.rows.is_empty()).then_some(Row::Bars(bars))
    };
    let entry = |(name, colour): (&str, &str)| Entry {
        name: name.into(),
        style: Style { colour: colour.into(), mark: Mark::Bar, ..Style::default() },
        hollow: false,
    };
    let plot = Plot {
        width: 1000,
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
        rows: GROUPS.into_iter().filter_map(block).collect(),
        legend: COLOURS.into_iter().map(entry).collect(),
        ..Plot::default()
    };
    plot.svg()
}

fn row(found: &Found, kind: &Kind) -> BarRow {
    let add = found.get(kind, "add");
    let figure = add.map_or(String::new(), |add| rate(add.median));
    let memory = found.get(kind, "anonymous").filter(|_| kind.tells_room());
    let memory = memory.map_or(String::new(), |memory| format!("  ({})", short(memory.median)));
    let colour = COLOURS.iter().find(|(name, _)| kind.label.starts_with(name));
    let bar = Bar {
        value: add.map(|add| add.median),
        low: add.map(|add| add.least),
        high: add.map(|add| add.most),
        label: format!("{figure}{memory}"),
        colour: colour.map_or("", |(_, colour)| colour).into(),
    };
    BarRow { name: kind.label.into(), cells: vec![vec![bar]] }
}

const COLOURS: [(&str, &str); 5] = [
    ("koel", "#d62f0e"),
    ("SQLite", "#4c78a8"),
    ("fjall", "#3f9c7a"),
    ("Redis", "#8a6bb8"),
    ("Scrapy", "#c9a227"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_koel_loses_is_told() {
        let mut rounds = Rounds::new();
        for (set, lost) in [("koel-each", 0.0), ("redis", 9.0), ("koel-each", 3.0)] {
            rounds.note((set.into(), "lost".into()), lost);
        }
        let found = Found { about: String::new(), figures: figures(rounds) };
        assert_eq!(found.lost_by_koel().unwrap(), "koel-each has lost 3 items");
    }
}
