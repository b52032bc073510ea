//! The plots: throughput by threads and by table size.

use super::report::{LIMIT, Row, is_heavy, size_name};
use super::sets::{KOEL, KOEL_GROWING};
use crate::kit::curves::{Lines, axis, named, picture};
use koel_plot::{Axis, Chart, Curve, Entry, Mark, Point, Style};
use std::collections::BTreeSet;

/// The workloads that are drawn, each in a chart of its own, and the charts' titles.
const CHARTS: [(&str, &str); 6] = [
    ("hit", "hit"),
    ("miss", "miss"),
    ("fill", "fill"),
    ("crawl", "crawl: check-and-insert, own streams"),
    ("check-and-insert (lockstep)", "check-and-insert, all threads in lockstep"),
    ("mix", "mix: nine lookups to one insert"),
];

/// The only peer behind one mutex that is drawn: the others' curves lie close to it.
const MUTEX: &str = "bloom-lib (mutex)";

/// Returns the file names and contents of all plots.
pub fn all(rows: &[Row]) -> Vec<(String, String)> {
    let sizes: BTreeSet<u64> = rows.iter().map(|row| row.size).collect();
    let threads: BTreeSet<u64> = rows.iter().map(|row| row.threads).collect();
    let mut plots = Vec::new();
    let mut draw =
        |file: String, title: String, x, which: &dyn Fn(&Row) -> bool, at: fn(&Row) -> u64| {
            let drawn = |row: &&Row| !row.peer.contains("(mutex)") || row.peer == MUTEX;
            let rows: Vec<&Row> = rows.iter().filter(|row| which(row)).filter(drawn).collect();
            plots.push((file, throughput(&title, &rows, &x, at)));
        };
    for &size in &sizes {
        let name = size_name(size);
        let title = format!("Throughput by threads, {name} of 16-bit fingerprints at 94 % load");
        let x = named("threads", threads.iter().copied(), |threads| threads.to_string());
        let file = format!("threads-{}.svg", name.replace(' ', ""));
        draw(file, title, x, &|row| row.size == size, |row| row.threads);
    }
    let two = *threads.range(2..).chain(&threads).next().expect("a number of threads");
    let title = format!("Throughput by table size, {two} threads, 94 % load");
    let x = named("table size (16-bit fingerprints)", sizes.into_iter(), size_name);
    draw("sizes.svg".into(), title, x, &|row| row.threads == two, |row| row.size);
    plots
}

fn throughput(title: &str, rows: &[&Row], x: &Axis, at: fn(&Row) -> u64) -> String {
    let lines = Lines { rows, name: |row| &row.peer, style };
    let batches = || Style { dashed: true, width: 2.2, ..style(KOEL) };
    let chart = |(workload, title): (&str, &str)| {
        let point = |row: &&Row, workload: &str| {
            let hollow = is_heavy(rows, row);
            let point = Point { x: at(row) as f64, y: row.median, hollow };
            (row.workload == workload).then_some(point)
        };
        let mut curves = lines.curves(|row| point(row, workload));
        let bulk = format!("bulk {workload}");
        let of_koel = rows.iter().filter(|row| row.peer == KOEL);
        let points = of_koel.filter_map(|row| point(row, &bulk)).collect();
        curves.push(Curve { points, style: batches() });
        let y = axis("million operations / s", true);
        Chart { title: title.into(), x: x.clone(), y, curves }
    };
    let charts = CHARTS.into_iter().map(chart).collect();
    let mut legend = lines.legend(|name| with_memory(name, rows));
    let name = format!("{KOEL}, in batches");
    legend.push(Entry { name, style: batches(), hollow: false });
    let note = "Bits are per item. A hollow mark: this table takes more than 1.3 times the memory of \
                koel's.";
    picture(title, 1200, (215, 3, charts), legend, note)
}

/// Returns a peer and its memory, for the legend, and whether that is more than koel's at all sizes.
fn with_memory(name: &str, rows: &[&Row]) -> (String, bool) {
    if name == LIMIT {
        return ("limit of the memory: one random line a lookup".into(), false);
    }
    let of_peer = || rows.iter().filter(|row| row.peer == name);
    let bits = || of_peer().map(|row| row.bits_per_item);
    let (low, high) = (bits().fold(f64::INFINITY, f64::min), bits().fold(0.0, f64::max));
    let (low, high) = (format!("{low:.0}"), format!("{high:.0}"));
    let bits = if low == high { high } else { format!("{low}–{high}") };
    (format!("{name}: {bits} bits"), of_peer().all(|row| is_heavy(rows, row)))
}

/// Returns the style of a peer. koel stands out, and the others have one colour each, with any lock.
pub fn style(peer: &str) -> Style {
    let (colour, mark) = match peer.split(' ').next().unwrap_or_default() {
        _ if peer == KOEL_GROWING => ("#e9a08f", Mark::Square),
        _ if peer == LIMIT => ("#222222", Mark::None),
        KOEL => ("#d62f0e", Mark::Circle),
        "fastbloom" => ("#4c78a8", Mark::Square),
        "atomic-cuckoo-filter" => ("#3f9c7a", Mark::Triangle),
        "cuckoo-clock" => ("#9ab84a", Mark::Circle),
        "DashSet" => ("#7a7a7a", Mark::Diamond),
        "cuckoofilter" => ("#b279a2", Mark::Square),
        "autoscale_cuckoo_filter" => ("#c9a227", Mark::Triangle),
        "bloom-lib" => ("#6fb7c9", Mark::Diamond),
        _ => ("#8f6b52", Mark::Circle),
    };
    let width = if peer == KOEL { 3.2 } else { 1.7 };
    Style { colour: colour.into(), mark, width, dashed: peer.contains("(mutex)") || peer == LIMIT }
}
