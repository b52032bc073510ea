//! The picture: adds a second, by what a power failure takes.

use crate::report::{Found, rate, short};
use crate::set::{Group, Kind};
use koel_plot::{Bar, BarRow, Bars, Entry, Mark, Plot, Row, Style};

pub fn picture(found: &Found) -> String {
    let of_all = |name| found.kinds().filter_map(move |kind| found.get(kind, name));
    let ends = of_all("add").fold((f64::INFINITY, 0.0_f64), |(least, most), figure| {
        (least.min(figure.least), most.max(figure.most))
    });
    let block = |group: Group| {
        let kinds = found.kinds().filter(|kind| kind.group == group);
        let rows: Vec<BarRow> = kinds.map(|kind| row(found, kind)).collect();
        let bars = Bars {
            title: group.title().into(),
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
