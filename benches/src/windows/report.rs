//! The figures as a table and a picture.

use super::sets::{RATE, WINDOW};
use super::stream::{History, Moment};
use crate::kit::curves::{Lines, axis, picture as picture_of};
use crate::kit::table::Table;
use koel_plot::{Axis, Chart, Point, Style};

/// Returns the table of the second half of a steady stream, which begins with a note on the run.
pub fn text(note: &str, keys: u64, rows: &[History]) -> String {
    let columns = ["bits", "stay", "missed", "found", "tick", "put", "hit", "miss"];
    let mut table = Table::new("", &columns);
    for row in rows {
        let speeds = ["tick", "put", "hit", "miss"].map(|name| row.speeds.median(&name));
        let late = &row.moments[row.moments.len() / 2..];
        let bits = late.iter().map(|moment| 8.0 * moment.bytes as f64 / moment.items as f64);
        let rates = late.iter().map(|moment| moment.false_positive_rate);
        let cells = [
            format!("{:.1}", bits.fold(0.0, f64::max)),
            format!("{}–{}", row.stays.0, row.stays.1),
            format!("{:.4} %", 100.0 * row.missed),
            format!("{:.4} %", 100.0 * rates.sum::<f64>() / late.len() as f64),
        ];
        table.row(row.name, cells.into_iter().chain(speeds.map(|speed| format!("{speed:.1}"))));
    }
    format!(
        "{note}\nA stream of {keys} new keys a tick, which are to be remembered for {WINDOW} ticks.\n\
         Bits for each key of the window, at most; how many ticks a key stays, from when it came; keys of\n\
         the window that are missed, and absent ones that are found; milliseconds for a tick; million\n\
         operations a second of one thread, medians: put if absent, of new keys; lookups of keys of the\n\
         window and of absent ones.\n\n{table}"
    )
}

/// The least rate that is drawn.
const LEAST: f64 = 1e-5;

/// The picture of twenty windows: items, memory and rate.
pub fn picture(moments: &[Moment]) -> String {
    let lines = Lines { rows: moments, name: |moment| &moment.peer, style };
    let curves = |figure: fn(&Moment) -> f64| {
        lines.curves(|moment| {
            let x = (moment.tick + 1) as f64 / WINDOW as f64;
            Some(Point { x, y: figure(moment), hollow: false })
        })
    };
    // The same for all of them.
    let mut items = curves(|moment| moment.items as f64 / 1e6);
    items.truncate(1);
    items.iter_mut().for_each(|curve| curve.style = Style::default());
    // An exact set has none, and a sample may have none.
    let mut rates = curves(|moment| 100.0 * moment.false_positive_rate.max(LEAST));
    rates.retain(|curve| curve.points.iter().any(|point| point.y > 100.0 * LEAST));
    let windows = moments.iter().map(|moment| (moment.tick + 1) / WINDOW).max().unwrap_or(1);
    let ticks = (0..=windows).step_by(2).map(|window| (window as f64, window.to_string()));
    let x = Axis { ticks: ticks.collect(), ..axis("windows", false) };
    let chart = |title: &str, y, curves| Chart { title: title.into(), x: x.clone(), y, curves };
    let asked = format!("false positives ({} % was asked for)", 100.0 * RATE);
    let memory = curves(|moment| moment.bytes as f64 / 1e6);
    let charts = vec![
        chart("keys of the window", axis("million", false), items),
        chart("memory", axis("MB", false), memory),
        chart(&asked, axis("percent", true), rates),
    ];
    let title = "Twenty windows, of which the tenth has ten times as many keys";
    let legend = lines.legend(|name| (name.into(), false));
    let note = "At the end of each tick, a seventh of a window. Keys stay for 7 to 8 ticks in koel \
                and in 8 Blooms, 8 to 12 in 3, 7 to 14 in 2.";
    picture_of(title, 1000, (150, 1, charts), legend, note)
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
