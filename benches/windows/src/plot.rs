//! The picture of twenty windows: items, memory and rate.

use crate::peer::{RATE, WINDOW};
use crate::report::Line;
use crate::stream::Moment;
use koel_plot::{Axis, Chart, Charts, Curve, Entry, Plot, Row, Style};

/// The least rate that is drawn.
const LEAST: f64 = 1e-5;

pub fn window(lines: &[Line]) -> String {
    let of_each = |figure: fn(&Moment) -> f64| -> Vec<Curve> {
        let curve = |line: &Line| curve(style(&line.name), line, figure);
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

    let windows = lines.iter().map(|line| line.moments.len() as u64 / WINDOW).max().unwrap_or(1);
    let ticks = (0..=windows).step_by(2).map(|window| (window as f64, window.to_string()));
    let x = Axis { label: "windows".into(), ticks: ticks.collect(), ..Axis::default() };
    let row = |(title, unit, curves): (&str, &str, Vec<Curve>)| {
        let y = Axis { label: unit.into(), log: unit == "percent", ..Axis::default() };
        let chart = Chart { title: title.into(), x: x.clone(), y, curves };
        Row::Charts(Charts { height: 150, charts: vec![chart] })
    };
    let entry =
        |line: &Line| Entry { name: line.name.clone(), style: style(&line.name), hollow: false };
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

fn curve(style: Style, line: &Line, figure: fn(&Moment) -> f64) -> Curve {
    let at = |moment: &Moment| (moment.tick + 1) as f64 / WINDOW as f64;
    Curve::new(style, line.moments.iter().map(|moment| (at(moment), figure(moment))))
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
