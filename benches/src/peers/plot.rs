//! The plots: throughput by threads and by table size, and sets that grow.

use super::report::{Grown, Held, LIMIT, Row, is_heavy, size_name};
use super::sets::{KOEL, KOEL_GROWING};
use koel_plot::{Axis, Chart, Charts, Curve, Entry, Mark, Plot, Point, Style};
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

/// Returns the file names and contents of all plots for which there are figures.
pub fn all(rows: &[Row]) -> Vec<(String, String)> {
    let sizes: BTreeSet<u64> = rows.iter().map(|row| row.size).collect();
    let threads: BTreeSet<u64> = rows.iter().map(|row| row.threads).collect();
    let mut plots = Vec::new();
    for &size in &sizes {
        let name = size_name(size);
        let title = format!("Throughput by threads, {name} of 16-bit fingerprints at 94 % load");
        let rows = rows.iter().filter(|row| row.size == size);
        let axis = axis("threads", threads.iter().copied(), |threads| threads.to_string());
        if let Some(svg) = throughput(title, rows, &axis, |row| row.threads) {
            plots.push((format!("threads-{}.svg", name.replace(' ', "")), svg));
        }
    }
    let two = threads.iter().copied().find(|&threads| threads >= 2).or(threads.first().copied());
    if let Some(two) = two.filter(|_| sizes.len() > 1) {
        let title = format!("Throughput by table size, {two} threads, 94 % load");
        let rows = rows.iter().filter(|row| row.threads == two);
        let axis = axis("table size (16-bit fingerprints)", sizes.iter().copied(), size_name);
        let svg = throughput(title, rows, &axis, |row| row.size);
        plots.extend(svg.map(|svg| ("sizes.svg".into(), svg)));
    }
    plots
}

/// Returns a logarithmic axis on which these values are named.
fn axis(label: &str, values: impl Iterator<Item = u64>, name: impl Fn(u64) -> String) -> Axis {
    let ticks = values.map(|value| (value as f64, name(value))).collect();
    Axis { label: label.into(), log: true, ticks }
}

fn throughput<'a>(
    title: String,
    rows: impl Iterator<Item = &'a Row>,
    x: &Axis,
    at: fn(&Row) -> u64,
) -> Option<String> {
    let rows = rows.filter(|row| !row.peer.contains("(mutex)") || row.peer == MUTEX);
    let rows: Vec<&Row> = rows.collect();
    let names: Vec<&str> = unique(rows.iter().map(|row| &*row.peer));
    let mut charts = Vec::new();
    for (workload, title) in CHARTS {
        let curve = |name: &str, workload: &str, style: Style| {
            let shown = rows.iter().filter(|row| row.workload == workload && row.peer == name);
            let point = |row: &&Row| Point {
                x: at(row) as f64,
                y: row.median,
                hollow: is_heavy(&rows, row),
            };
            Curve { points: shown.map(point).collect(), ..Curve::new(style, []) }
        };
        // The last curves are on top: koel's.
        let one_by_one = names.iter().rev().map(|name| curve(name, workload, style(name)));
        let batches = curve(KOEL, &format!("bulk {workload}"), in_batches());
        let curves: Vec<Curve> = one_by_one.chain([batches]).collect();
        if curves.iter().any(|curve| !curve.points.is_empty()) {
            let label = "million operations / s".into();
            let y = Axis { label, log: true, ..Axis::default() };
            charts.push(Chart { title: title.into(), x: x.clone(), y, curves });
        }
    }
    let in_rows =
        |charts: &[Chart]| koel_plot::Row::Charts(Charts { height: 215, charts: charts.to_vec() });
    let batches = rows.iter().any(|row| row.peer == KOEL && row.workload.starts_with("bulk"));
    let batches = batches.then(|| Entry {
        name: format!("{KOEL}, in batches"),
        style: in_batches(),
        hollow: false,
    });
    let plot = Plot {
        title,
        width: 1200,
        rows: charts.chunks(3).map(in_rows).collect(),
        legend: names.iter().map(|name| with_memory(name, &rows)).chain(batches).collect(),
        notes: vec![
            "Bits are per item. A hollow mark: this table takes more than 1.3 times the memory of \
             koel's."
                .into(),
        ],
        ..Plot::default()
    };
    (!charts.is_empty()).then(|| plot.svg())
}

/// The style of koel's batches.
fn in_batches() -> Style {
    Style { dashed: true, width: 2.2, ..style(KOEL) }
}

/// Returns a peer and its memory, for the legend.
fn with_memory(name: &str, rows: &[&Row]) -> Entry {
    let of_peer = || rows.iter().filter(|row| row.peer == name);
    let bits = || of_peer().map(|row| row.bits_per_item);
    let (low, high) = (bits().fold(f64::INFINITY, f64::min), bits().fold(0.0, f64::max));
    let (low, high) = (format!("{low:.0}"), format!("{high:.0}"));
    let bits = if low == high { high } else { format!("{low}–{high}") };
    let hollow = of_peer().all(|row| is_heavy(rows, row));
    let name_of = if name == LIMIT {
        "limit of the memory: one random line a lookup".into()
    } else {
        format!("{name}: {bits} bits")
    };
    Entry { name: name_of, style: style(name), hollow }
}

fn picture(
    title: &str,
    width: u32,
    (height, charts): (u32, Vec<Chart>),
    legend: Vec<Entry>,
) -> String {
    let rows = vec![koel_plot::Row::Charts(Charts { height, charts })];
    Plot { title: title.into(), width, rows, legend, ..Plot::default() }.svg()
}

/// Returns the file names and contents of the plots of sets that grow.
pub fn growth(grown: &[Grown], held: &[Held]) -> Vec<(String, String)> {
    let speed = growth_speed(grown).map(|svg| ("growth.svg".into(), svg));
    let memory = growth_memory(held).map(|svg| ("growth-memory.svg".into(), svg));
    speed.into_iter().chain(memory).collect()
}

/// Draws lookups and false positives at each doubling.
fn growth_speed(grown: &[Grown]) -> Option<String> {
    let names = unique(grown.iter().map(|row| &*row.peer));
    let x = doublings(grown.iter().map(|row| row.items))?;
    let curve = |name: &str, style: Style, figure: fn(&Grown) -> f64| {
        let rows = grown.iter().filter(|row| row.peer == name);
        Curve::new(style, rows.map(|row| (row.items as f64, figure(row))))
    };
    let lookups = |name: &&str| {
        let dashed = Style { dashed: true, mark: Mark::None, ..grown_style(name) };
        [curve(name, dashed, |row| row.miss), curve(name, grown_style(name), |row| row.hit)]
    };
    let errors =
        |name: &&str| curve(name, grown_style(name), |row| 100.0 * row.false_positive_rate);
    let y = |label: &str| Axis { label: label.into(), log: true, ..Axis::default() };
    let charts = vec![
        Chart {
            title: "Lookups: hits, and misses (dashed)".into(),
            x: x.clone(),
            y: y("million lookups / s"),
            curves: names.iter().rev().flat_map(lookups).collect(),
        },
        Chart {
            title: "False positives".into(),
            x,
            y: y("percent"),
            curves: names.iter().rev().map(errors).collect(),
        },
    ];
    let title = "Sets that grow, one thread: at each doubling";
    Some(picture(title, 1200, (300, charts), growth_legend(&names, grown_style)))
}

/// Draws the memory by number of items.
fn growth_memory(held: &[Held]) -> Option<String> {
    let bytes = |held: &Held| held.bytes as f64 / held.items as f64;
    let names = unique(held.iter().map(|held| &*held.peer));
    let x = doublings(held.iter().map(|held| held.items))?;
    let y = Axis { label: "bytes per item".into(), log: true, ..Axis::default() };
    let plain = |name: &str| Style { mark: Mark::None, ..grown_style(name) };
    let curve = |name: &&str| {
        let of_peer = held.iter().filter(|held| held.peer == *name);
        Curve::new(plain(name), of_peer.map(|held| (held.items as f64, bytes(held))))
    };
    let curves = names.iter().rev().map(curve).collect();
    let chart = Chart { x, y, curves, ..Chart::default() };
    let title = "Memory of sets that grow, by items so far";
    Some(picture(title, 1330, (400, vec![chart]), growth_legend(&names, plain)))
}

/// Returns the style of a set that grows. The filter built for each size stands out less than the
/// growing one.
fn grown_style(peer: &str) -> Style {
    let plain = Style { mark: Mark::Square, ..Style::default() };
    match peer {
        KOEL => style(peer),
        _ if peer.starts_with(KOEL) => Style { colour: "#e9a08f".into(), width: 2.2, ..plain },
        // The curves of the two chains mostly cover each other.
        "autoscale_cuckoo_filter" => Style { colour: "#e5cb80".into(), width: 4.5, ..style(peer) },
        _ => style(peer),
    }
}

fn growth_legend(names: &[&str], style: impl Fn(&str) -> Style) -> Vec<Entry> {
    let entry = |&name: &&str| {
        let label = if name == KOEL { "koel, growing" } else { name };
        Entry { name: label.into(), style: style(name), hollow: false }
    };
    names.iter().map(entry).collect()
}

/// Returns an axis of numbers of items, in powers of two.
fn doublings(items: impl Iterator<Item = u64> + Clone) -> Option<Axis> {
    let (low, high) = (items.clone().min()?.max(1), items.max()?.max(1));
    let powers = (low.ilog2()..=high.ilog2()).map(|power| 1 << power);
    Some(axis("items (k = 1024, M = 1024k)", powers, |items| match items.ilog2() {
        power @ 20.. => format!("{}M", 1_u64 << (power - 20)),
        power @ 10.. => format!("{}k", 1 << (power - 10)),
        _ => items.to_string(),
    }))
}

/// Returns the style of a peer. koel stands out, and the others have one colour each, with any
/// lock.
fn style(peer: &str) -> Style {
    let (colour, mark) = match peer.split(' ').next().unwrap_or_default() {
        _ if peer == KOEL_GROWING => ("#e9a08f", Mark::Square),
        _ if peer == LIMIT => ("#222222", Mark::None),
        KOEL => ("#d62f0e", Mark::Circle),
        "fastbloom" => ("#4c78a8", Mark::Square),
        "atomic-cuckoo-filter" => ("#3f9c7a", Mark::Triangle),
        "cuckoo-clock" => ("#9ab84a", Mark::Circle),
        "cuckoofilter-mmap" => ("#e0b0c8", Mark::Diamond),
        "DashSet" => ("#7a7a7a", Mark::Diamond),
        "cuckoofilter" => ("#b279a2", Mark::Square),
        "autoscale_cuckoo_filter" => ("#c9a227", Mark::Triangle),
        "bloom-lib" => ("#6fb7c9", Mark::Diamond),
        _ => ("#8f6b52", Mark::Circle),
    };
    let width = if peer == KOEL { 3.2 } else { 1.7 };
    Style { colour: colour.into(), mark, width, dashed: peer.contains("(mutex)") || peer == LIMIT }
}

fn unique<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut unique = Vec::new();
    names.for_each(|name| {
        if !unique.contains(&name) {
            unique.push(name);
        }
    });
    unique
}
