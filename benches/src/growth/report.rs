//! The figures of sets that grow, as a table and as pictures.

use crate::kit::curves::{Lines, axis, picture, point};
use crate::kit::table::Table;
use crate::peers::plot;
use koel_plot::{Axis, Chart, Curve, Mark, Style};
use serde::{Deserialize, Serialize};

pub const KOEL: &str = "koel";
pub const FORESEEN: &str = "koel made for n items";

/// The figures of a set that has grown to this many items. Rates are in million operations a second. The rate of the
/// fill is measured from the first item on.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Grown {
    pub peer: String,
    pub items: u64,
    pub fill: f64,
    pub hit: f64,
    pub miss: f64,
    #[serde(rename = "false-positive rate")]
    pub false_positive_rate: f64,
    /// The rate that the set reports, if it does.
    pub told: Option<f64>,
    pub lost: u64,
}

impl Grown {
    /// Returns whether nothing is lost, and the rate among so many absent keys is what the set reports, as far as
    /// chance leaves it alone.
    pub fn is_right(&self, absent: u64) -> bool {
        let close = |told: f64| {
            let deviation = (told / absent as f64).sqrt();
            (self.false_positive_rate - told).abs() <= 0.1 * told + 8.0 * deviation + 1e-6
        };
        self.lost == 0 && self.told.is_none_or(close)
    }
}

/// The bytes that a set holds when it contains this many items.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Held {
    pub peer: String,
    pub items: u64,
    pub bytes: u64,
}

/// Returns the report, which begins with a note on the run.
pub fn text(note: &str, grown: &[Grown], held: &[Held]) -> String {
    let mut text = format!(
        "{note}\nSets that grow, on one thread. Million operations a second, medians; the fill is that of all items so \
         far.\n"
    );
    for rows in grown.chunk_by(|a, b| a.peer == b.peer) {
        let columns = ["fill", "hit", "miss", "false positives", "as told", "bytes/item", "lost"];
        let mut table = Table::new(&rows[0].peer, &columns);
        for row in rows {
            let percent = |rate: f64| format!("{:.4} %", 100.0 * rate);
            let held = held.iter().find(|it| it.peer == row.peer && it.items == row.items);
            let bytes = held.map_or(0, |held| held.bytes) as f64 / row.items as f64;
            let rates = [row.fill, row.hit, row.miss].map(|rate| format!("{rate:.1}"));
            let others = [
                percent(row.false_positive_rate),
                row.told.map_or(String::new(), percent),
                format!("{bytes:.2}"),
                row.lost.to_string(),
            ];
            table.row(row.items, rates.into_iter().chain(others));
        }
        text += &format!("\n{table}");
    }
    text + &beside_fixed(held)
}

/// Compares the memory of koel, as it grows, with that of a filter that is made for as many items.
fn beside_fixed(held: &[Held]) -> String {
    let ratio = |fixed: &Held| {
        let same = |held: &&Held| held.peer == KOEL && held.items == fixed.items;
        Some(held.iter().find(same)?.bytes as f64 / fixed.bytes as f64)
    };
    let large = held.iter().filter(|held| held.peer == FORESEEN && held.items >= 1 << 19);
    let ratios: Vec<f64> = large.filter_map(ratio).collect();
    if ratios.is_empty() {
        return String::new();
    }
    let (worst, mean) = (ratios.iter().copied().fold(0.0, f64::max), ratios.iter().sum::<f64>());
    let mean = mean / ratios.len() as f64;
    format!(
        "\nmemory of koel : {FORESEEN}, from 2^19 on: at most {worst:.2}, {mean:.2} on average\n"
    )
}

/// Draws lookups and false positives at each doubling.
pub fn lookups(grown: &[Grown]) -> String {
    let lines = Lines { rows: grown, name: |row| &row.peer, style };
    let curves = |figure: fn(&Grown) -> f64| lines.curves(|row| point(row.items, figure(row)));
    let dashed = |curve: Curve| Curve {
        style: Style { dashed: true, mark: Mark::None, ..curve.style },
        ..curve
    };
    let misses = curves(|row| row.miss).into_iter().map(dashed);
    let hits = misses.zip(curves(|row| row.hit)).flat_map(|(miss, hit)| [miss, hit]);
    let x = doublings(grown.iter().map(|row| row.items));
    let chart = |title: &str, unit, curves| Chart {
        title: title.into(),
        x: x.clone(),
        y: axis(unit, true),
        curves,
    };
    let charts = vec![
        chart("Lookups: hits, and misses (dashed)", "million lookups / s", hits.collect()),
        chart("False positives", "percent", curves(|row| 100.0 * row.false_positive_rate)),
    ];
    let legend = lines.legend(|name| (label(name), false));
    picture("Sets that grow, one thread: at each doubling", 1200, (300, 2, charts), legend, "")
}

/// Draws the memory by number of items.
pub fn memory(held: &[Held]) -> String {
    let style = |name: &str| Style { mark: Mark::None, ..style(name) };
    let lines = Lines { rows: held, name: |held| &held.peer, style };
    let curves = lines.curves(|held| point(held.items, held.bytes as f64 / held.items as f64));
    let x = doublings(held.iter().map(|held| held.items));
    let charts = vec![Chart { x, y: axis("bytes per item", true), curves, ..Chart::default() }];
    let legend = lines.legend(|name| (label(name), false));
    picture("Memory of sets that grow, by items so far", 1330, (400, 1, charts), legend, "")
}

fn label(name: &str) -> String {
    if name == KOEL { "koel, growing".into() } else { name.into() }
}

/// Returns the style of a set that grows. The filter built for each size stands out less than the growing one.
fn style(peer: &str) -> Style {
    let style = plot::style(peer);
    match peer {
        FORESEEN => Style { colour: "#e9a08f".into(), width: 2.2, mark: Mark::Square, ..style },
        // The curves of the two chains mostly cover each other.
        "autoscale_cuckoo_filter" => Style { colour: "#e5cb80".into(), width: 4.5, ..style },
        _ => style,
    }
}

/// Returns an axis of numbers of items, in powers of two.
fn doublings(items: impl Iterator<Item = u64>) -> Axis {
    let powers: Vec<u32> = items.map(|items| items.max(1).ilog2()).collect();
    let (low, high) = (powers.iter().min().copied(), powers.iter().max().copied());
    let named = |power: u32| match power {
        20.. => format!("{}M", 1_u64 << (power - 20)),
        10.. => format!("{}k", 1 << (power - 10)),
        _ => (1 << power).to_string(),
    };
    let powers = low.unwrap_or(0)..=high.unwrap_or(0);
    let ticks = powers.map(|power| ((1_u64 << power) as f64, named(power))).collect();
    Axis { ticks, ..axis("items (k = 1024, M = 1024k)", true) }
}
