//! What was measured and reckoned: as text, as JSON and as a picture.

use crate::json::{koel_version, listed, number, quoted};
use crate::machine::{Machine, Processor};
use crate::model::Design;
use crate::reckoning::{Point, Report, Row, Table, WORKLOADS};
use koel_plot::{Axis, Chart, Charts, Curve, Entry, Mark, Plot, Row as Rows, Style};
use std::fmt::Write;
use std::time::{SystemTime, UNIX_EPOCH};

/// A prediction that is off by more is wrong.
const TOLERANCE: f64 = 1.5;

pub fn text(machine: &Machine, report: &Report) -> String {
    let mut text = format!("{machine}\n\nnanoseconds\n");
    let costs = &report.costs;
    let _ = writeln!(text, "  {:44} {:8.1}", "a swap of a word that the core has", costs.swap);
    for transfer in &costs.transfers {
        let name = format!("a transfer between {}", transfer.distance);
        let _ = writeln!(
            text,
            "  {name:44} {:8.1} of a lock, {:.1} of a word, {:.1} in turns",
            transfer.of_locks, transfer.of_words, transfer.alone
        );
    }
    text += "\nmillion random lines a second from memory\n";
    for (threads, lines) in &costs.memory {
        let _ = writeln!(text, "  {threads:3} threads {lines:8.0}");
    }
    let cache = machine.cache_bytes() >> 10;
    let _ = writeln!(text, "\na table of less than {cache} KiB counts as in cache");
    text += "\nmillion operations a second: measured, and below that reckoned\n";
    for table in &report.tables {
        write_table(&mut text, table);
    }
    text + "\n" + &verdict(report)
}

fn write_table(text: &mut String, table: &Table) {
    let _ = write!(text, "\n{:40}", format!("{}, {}", table.size, table.kind));
    if let Some(row) = table.rows.first() {
        row.points.iter().for_each(|point| _ = write!(text, " {:>7}", point.threads));
    }
    text.push('\n');
    for row in &table.rows {
        let mut line = |name: &str, of: fn(&Point) -> Option<f64>| {
            let _ = write!(text, "  {name:38}");
            for point in &row.points {
                let figure = of(point).map_or("–".into(), |figure| format!("{figure:.0}"));
                let _ = write!(text, " {figure:>7}");
            }
            text.push('\n');
        };
        let name = format!("{}{}", row.workload, row.design.name());
        if row.design == Design::Koel {
            line(&name, |point| point.measured);
            line("    reckoned", |point| point.reckoned);
        } else {
            line(&format!("    reckoned{}", row.design.name()), |point| point.reckoned);
        }
    }
    if table.split > 0.0 {
        let (time, often) = (table.split / 1e3, table.splits * 1e5);
        let _ =
            writeln!(text, "  a split takes {time:.0} µs; {often:.1} splits in 100,000 inserts");
    }
}

/// Where the model is wrong.
fn verdict(report: &Report) -> String {
    let (mut predictions, mut wrong) = (0, Vec::new());
    for table in &report.tables {
        for row in table.rows.iter().filter(|row| row.design == Design::Koel) {
            for (point, ratio) in row.points.iter().filter_map(|it| Some((it, it.ratio()?))) {
                predictions += 1;
                if !(1.0 / TOLERANCE..=TOLERANCE).contains(&ratio) {
                    wrong.push(format!(
                        "  {}, {}, {}, {} threads: {ratio:.2} of what was reckoned\n",
                        table.size, table.kind, row.workload, point.threads
                    ));
                }
            }
        }
    }
    let count = wrong.len();
    format!(
        "{predictions} predictions, {count} of them wrong by more than half:\n{}",
        wrong.concat()
    )
}

pub fn json(machine: &Machine, report: &Report) -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let costs = &report.costs;
    let transfer = |it: &crate::transfer::Transfer| {
        format!(
            "{{\"between\": {}, \"of_a_lock_ns\": {}, \"of_a_word_ns\": {}, \"in_turns_ns\": {}}}",
            quoted(&it.distance.to_string()),
            number(Some(it.of_locks)),
            number(Some(it.of_words)),
            number(Some(it.alone))
        )
    };
    let memory = |(threads, lines): &(usize, f64)| {
        format!("{{\"threads\": {threads}, \"million_lines\": {}}}", number(Some(*lines)))
    };
    let points = report.tables.iter().flat_map(|table| {
        table
            .rows
            .iter()
            .flat_map(move |row| row.points.iter().map(move |point| json_of(table, row, point)))
    });
    format!(
        "{{\n\"seconds_since_1970\": {since},\n\"koel\": {},\n\"model\": {},\n\"processors\": [\n{}\n],\n\
         \"swap_ns\": {},\n\"transfers\": [\n{}\n],\n\"memory\": [\n{}\n],\n\"throughput\": [\n{}\n]\n}}\n",
        koel_version(),
        quoted(&machine.model),
        listed(machine.processors.iter().map(Processor::json)),
        number(Some(costs.swap)),
        listed(costs.transfers.iter().map(transfer)),
        listed(costs.memory.iter().map(memory)),
        listed(points),
    )
}

fn json_of(table: &Table, row: &Row, point: &Point) -> String {
    format!(
        "{{\"size\": {}, \"kind\": {}, \"workload\": {}, \"threads\": {}, \"measured\": {}, \"reckoned\": {}}}",
        quoted(table.size),
        quoted(table.kind),
        quoted(&format!("{}{}", row.workload, row.design.name())),
        point.threads,
        number(point.measured),
        number(point.reckoned),
    )
}

const COLOURS: [&str; 5] = ["#1b6ca8", "#3a9679", "#b5471c", "#8a4fa3", "#555555"];

pub fn svg(machine: &Machine, report: &Report) -> String {
    let chart = |table: &Table| {
        let of_koel = table.rows.iter().filter(|row| row.design == Design::Koel);
        let curves = of_koel.flat_map(|row| {
            let colour = COLOURS[WORKLOADS.iter().position(|it| *it == row.workload).unwrap_or(0)];
            let style =
                |dashed, mark| Style { colour: colour.into(), mark, dashed, ..Style::default() };
            let curve = |style, of: fn(&Point) -> Option<f64>| {
                let points = row.points.iter();
                Curve::new(style, points.filter_map(|it| Some((it.threads as f64, of(it)?))))
            };
            [
                curve(style(true, Mark::None), |point| point.reckoned),
                curve(style(false, Mark::Circle), |point| point.measured),
            ]
        });
        let counts = table.rows.iter().flat_map(|row| row.points.iter().map(|it| it.threads));
        let mut counts: Vec<usize> = counts.collect();
        counts.sort_unstable();
        counts.dedup();
        let ticks = counts.iter().map(|count| (*count as f64, count.to_string())).collect();
        let x = Axis { label: "threads".into(), log: true, ticks, ..Axis::default() };
        let y = Axis { label: "million operations / s".into(), log: true, ..Axis::default() };
        Chart { title: format!("{}, {}", table.size, table.kind), x, y, curves: curves.collect() }
    };
    let rows = report
        .tables
        .chunks(2)
        .map(|two| Rows::Charts(Charts { height: 260, charts: two.iter().map(chart).collect() }));
    let entry = |(name, colour): (&&str, &&str)| {
        let style = Style { colour: (*colour).into(), mark: Mark::Circle, ..Style::default() };
        Entry { name: (*name).into(), style, hollow: false }
    };
    let plot = Plot {
        title: "Throughput by threads".into(),
        about: vec![
            machine.to_string(),
            "Dashed: reckoned from one thread and what a line costs".into(),
        ],
        rows: rows.collect(),
        legend: WORKLOADS.iter().zip(&COLOURS).map(entry).collect(),
        ..Plot::default()
    };
    plot.svg()
}
