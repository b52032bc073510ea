//! The figures as a table and a picture.

use super::sets::{RATE, WINDOW};
use super::stream::{History, Moment, Speed};
use crate::kit::figures::median;
use koel_plot::{Axis, Chart, Charts, Curve, Entry, Plot, Style};
use std::fmt::Write;

/// The figures of a peer in a steady stream.
pub struct Row {
    pub name: &'static str,
    /// Bits for each key of the window, at the end of a tick, and the most of them.
    bits: f64,
    false_positive_rate: f64,
    stays: (u64, u64),
    pub missed: f64,
    /// By number of threads.
    pub speeds: Vec<(u64, Speed)>,
}

impl Row {
    /// The figures of the second half of a stream.
    pub fn of(name: &'static str, history: History) -> Row {
        let History { moments, stays, missed } = history;
        let late = &moments[moments.len() / 2..];
        let bits = late.iter().map(|moment| 8.0 * moment.bytes as f64 / moment.items as f64);
        let rates = late.iter().map(|moment| moment.false_positive_rate);
        Row {
            name,
            bits: bits.fold(0.0, f64::max),
            false_positive_rate: rates.sum::<f64>() / late.len() as f64,
            stays,
            missed,
            speeds: Vec::new(),
        }
    }

    fn median(&self, threads: u64, figure: fn(&Speed) -> f64) -> f64 {
        let of = self.speeds.iter().filter(|(of, _)| *of == threads);
        median(of.map(|(_, speed)| figure(speed)))
    }
}

/// Returns the table, which begins with a note on the run.
pub fn text(note: &str, keys: u64, rows: &[Row]) -> String {
    let mut text = format!(
        "{note}\nA stream of {keys} new keys a tick, which are to be remembered for {WINDOW} ticks.\n\
         Bits for each key of the window, at most; how many ticks a key stays, from when it came; keys of\n\
         the window that are missed, and absent ones that are found; milliseconds for a tick; million\n\
         operations a second of one thread and of two, medians: put if absent, of new keys; lookups of keys\n\
         of the window and of absent ones.\n\n\
         {:30}{:>7}{:>8}{:>9}{:>10}{:>8}   put 1    2    hit 1    2   miss 1    2\n",
        "", "bits", "stay", "missed", "found", "tick"
    );
    for row in rows {
        let stays = format!("{}–{}", row.stays.0, row.stays.1);
        let _ = write!(
            text,
            "{:30}{:7.1}{stays:>8}{:>9}{:>8.4} %{:8.1}",
            row.name,
            row.bits,
            if row.missed == 0.0 { "none".into() } else { format!("{:.4}%", 100.0 * row.missed) },
            100.0 * row.false_positive_rate,
            row.median(1, |speed| speed.tick),
        );
        let figures: [fn(&Speed) -> f64; 3] = [|of| of.put, |of| of.hit, |of| of.miss];
        for figure in figures {
            let _ = write!(text, "{:8.1}{:5.0}", row.median(1, figure), row.median(2, figure));
        }
        text.push('\n');
    }
    text
}

/// The least rate that is drawn.
const LEAST: f64 = 1e-5;

/// The picture of twenty windows: items, memory and rate.
pub fn picture(moments: &[Moment]) -> String {
    // The moments of a peer are next to each other.
    let lines: Vec<&[Moment]> = moments.chunk_by(|a, b| a.peer == b.peer).collect();
    let of_each = |figure: fn(&Moment) -> f64| -> Vec<Curve> {
        let curve = |line: &&[Moment]| curve(style(&line[0].peer), line, figure);
        lines.iter().rev().map(curve).collect()
    };
    let items = lines.first().map(|line| curve(Style::default(), line, |of| of.items as f64 / 1e6));
    let memory = of_each(|moment| moment.bytes as f64 / 1e6);
    // An exact set has none, and a sample may have none.
    let mut rates = of_each(|moment| 100.0 * moment.false_positive_rate.max(LEAST));
    rates.retain(|curve| curve.points.iter().any(|point| point.y > 100.0 * LEAST));
    let asked = format!("false positives ({} % was asked for)", 100.0 * RATE);
    let charts = [
        ("keys of the window", "million", items.into_iter().collect()),
        ("memory", "MB", memory),
        (&*asked, "percent", rates),
    ];

    let windows = lines.iter().map(|line| line.len() as u64 / WINDOW).max().unwrap_or(1);
    let ticks = (0..=windows).step_by(2).map(|window| (window as f64, window.to_string()));
    let x = Axis { label: "windows".into(), ticks: ticks.collect(), ..Axis::default() };
    let row = |(title, unit, curves): (&str, &str, Vec<Curve>)| {
        let y = Axis { label: unit.into(), log: unit == "percent", ..Axis::default() };
        let chart = Chart { title: title.into(), x: x.clone(), y, curves };
        koel_plot::Row::Charts(Charts { height: 150, charts: vec![chart] })
    };
    let entry = |line: &&[Moment]| {
        let name = line[0].peer.clone();
        Entry { style: style(&name), name, hollow: false }
    };
    let plot = Plot {
        title: "Twenty windows, of which the tenth has ten times as many keys".into(),
        rows: charts.into_iter().map(row).collect(),
        legend: lines.iter().map(entry).collect(),
        notes: vec![
            "At the end of each tick, a seventh of a window. Keys stay for 7 to 8 ticks in koel \
             and in 8 Blooms, 8 to 12 in 3, 7 to 14 in 2."
                .into(),
        ],
        ..Plot::default()
    };
    plot.svg()
}

fn curve(style: Style, line: &[Moment], figure: fn(&Moment) -> f64) -> Curve {
    let at = |moment: &Moment| (moment.tick + 1) as f64 / WINDOW as f64;
    Curve::new(style, line.iter().map(|moment| (at(moment), figure(moment))))
}

fn style(name: &str) -> Style {
    let (colour, width) = match name {
        "koel, growing" => ("#d62f0e", 3.2),
        "fastbloom, 2 rotated" => ("#4c78a8", 1.7),
        "fastbloom, 3 rotated" => ("#3f9c7a", 1.7),
        "fastbloom, 8 rotated" => ("#c9a227", 1.7),
        _ => ("#8a8a8a", 1.7),
    };
    Style { colour: colour.into(), width, ..Style::default() }
}
