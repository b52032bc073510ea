//! The plots: throughput by threads and by table size, and bits per item by capacity.

use crate::axes::{Axis, Frame};
use crate::csv::{Grown, Held, Row};
use crate::peers::KOEL;
use crate::report::{is_heavy, size_name};
use crate::svg::{Anchor, Drawing, INK, Mark, Style};
use std::collections::BTreeSet;

/// The workloads that are drawn, each in a panel of its own, and the panels' titles.
const PANELS: [(&str, &str); 6] = [
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
pub fn all(rows: &[Row], held: &[Held]) -> Vec<(String, String)> {
    let sizes: BTreeSet<u64> = rows.iter().map(|row| row.size).collect();
    let threads: BTreeSet<u64> = rows.iter().map(|row| row.threads).collect();
    let mut plots = Vec::new();
    for &size in &sizes {
        let name = size_name(size);
        let title = format!("Throughput by threads, {name} of 16-bit fingerprints at 94 % load");
        let rows = rows.iter().filter(|row| row.size == size);
        let axis = Axis::of_powers("threads", &threads, |threads| threads.to_string());
        if let Some(svg) = panels(&title, rows, axis, |row| row.threads) {
            plots.push((format!("threads-{}.svg", name.replace(' ', "")), svg));
        }
    }
    let two = threads.iter().copied().find(|&threads| threads >= 2).or(threads.first().copied());
    if let Some(two) = two.filter(|_| sizes.len() > 1) {
        let title = format!("Throughput by table size, {two} threads, 94 % load");
        let rows = rows.iter().filter(|row| row.threads == two);
        let axis = Axis::of_powers("table size (16-bit fingerprints)", &sizes, size_name);
        plots.extend(
            panels(&title, rows, axis, |row| row.size).map(|svg| ("sizes.svg".into(), svg)),
        );
    }
    plots.extend(memory(held).map(|svg| ("memory.svg".into(), svg)));
    plots
}

fn panels<'a>(
    title: &str,
    rows: impl Iterator<Item = &'a Row> + Clone,
    x: Axis,
    at: fn(&Row) -> u64,
) -> Option<String> {
    let rows = rows.filter(|row| !row.peer.contains("(mutex)") || row.peer == MUTEX);
    let rows: Vec<&Row> = rows.collect();
    let mut drawing = Drawing::new(1170.0, 800.0);
    drawing.heading((24.0, 32.0), 18, title);
    let names: Vec<&str> = unique(rows.iter().map(|row| &*row.peer));
    let mut places =
        (0..6).map(|at| (70.0 + 385.0 * f64::from(at % 3), 80.0 + 305.0 * f64::from(at / 3)));
    let mut any = false;
    for (workload, title) in PANELS {
        let shown = rows.iter().filter(|row| row.workload == workload);
        let Some(most) = shown.clone().map(|row| row.median).max_by(f64::total_cmp) else {
            continue;
        };
        let place = Frame { left_top: places.next()?, width: 300.0, height: 215.0 };
        let y = Axis::up_to("million operations / s", most);
        place.draw(&mut drawing, title, &x, &y);
        for name in names.iter().rev() {
            let of_peer = shown.clone().filter(|row| row.peer == *name);
            let point = |row: &Row| (at(row) as f64, row.median);
            let points: Vec<_> = of_peer.clone().map(|row| point(row)).collect();
            place.curve(&mut drawing, (&x, &y), &points, style(name));
            for row in of_peer.filter(|row| is_heavy(&rows, row)) {
                hollow(&mut drawing, place.point((&x, &y), point(row)), style(name));
            }
        }
        any = true;
    }
    legend_of_panels(&mut drawing, (70.0, 680.0), &names, &rows);
    any.then(|| drawing.finish())
}

/// Draws the legend in three columns, with the memory of each peer.
fn legend_of_panels(drawing: &mut Drawing, (left, top): (f64, f64), names: &[&str], rows: &[&Row]) {
    let place = |at: usize| (left + 345.0 * (at % 3) as f64, top + 28.0 * (at / 3) as f64);
    for (at, name) in names.iter().enumerate() {
        let of_peer = || rows.iter().filter(|row| row.peer == *name);
        let bits = || of_peer().map(|row| row.bits_per_item);
        let least = bits().fold(f64::INFINITY, f64::min);
        let most = bits().fold(0.0, f64::max);
        let (low, high) = (format!("{least:.0}"), format!("{most:.0}"));
        let bits = if low == high { high } else { format!("{low}–{high}") };
        legend(drawing, place(at), &[(format!("{name}: {bits} bits"), style(name))]);
        if of_peer().all(|row| is_heavy(rows, row)) {
            hollow(drawing, middle(place(at)), style(name));
        }
    }
    let (left, top) = place(names.len().next_multiple_of(3));
    let words = "Bits are per item. A hollow mark: this table takes more than 1.3 times the \
                 memory of koel's.";
    drawing.text((left, top + 4.0), 13, Anchor::Start, INK, words);
}

/// Makes a mark hollow that is drawn already.
fn hollow(drawing: &mut Drawing, at: (f64, f64), style: Style) {
    drawing.mark(at, Style { width: style.width + 1.0, ..style });
    drawing.mark(at, Style { colour: "#ffffff", width: style.width - 1.2, ..style });
}

fn memory(held: &[Held]) -> Option<String> {
    let bits = |held: &Held| held.bytes as f64 * 8.0 / held.items as f64;
    let lowest = held.iter().map(|held| held.items).min()?;
    let highest = held.iter().map(|held| held.items).max()?;
    let mut drawing = Drawing::new(1000.0, 560.0);
    drawing.heading(
        (24.0, 32.0),
        18,
        "Memory by capacity, for as many items as the filter was built for",
    );
    let decades = (lowest.ilog10()..=highest.ilog10()).map(|power| 10_u64.pow(power)).collect();
    let x = Axis::of_powers("capacity (items)", &decades, |items| match items.ilog10() {
        power @ 6.. => format!("{} million", 10_u64.pow(power - 6)),
        power => format!("{} thousand", 10_u64.pow(power - 3)),
    });
    let x = Axis { high: highest as f64, ..x };
    let rungs = (3..=8).map(|power| 1 << power).collect();
    let y = Axis::of_powers("bits per item", &rungs, |bits| bits.to_string());
    let place = Frame { left_top: (80.0, 70.0), width: 620.0, height: 420.0 };
    place.draw(&mut drawing, "", &x, &y);
    // Only single tables: sharded peers hold the same per item, but with steps at other capacities.
    let line = |peer: &str| {
        let plain = Style { dashed: false, mark: Mark::None, ..style(peer) };
        match peer.trim_end_matches(" (mutex)") {
            "DashSet" => ("DashSet (exact)".into(), plain),
            "cuckoofilter" => ("cuckoofilter (8 bits)".into(), plain),
            // Mostly covered by the curve of bloom-lib, so one is wide and the other dashed.
            "atomic-cuckoo-filter" => {
                ("atomic-cuckoo-filter".into(), Style { colour: "#a8d5c5", width: 4.5, ..plain })
            }
            "bloom-lib" => ("bloom-lib".into(), Style { dashed: true, ..plain }),
            name => (name.to_string(), plain),
        }
    };
    let mut peers = unique(held.iter().map(|held| &*held.peer));
    legend(&mut drawing, (730.0, 90.0), &peers.iter().map(|peer| line(peer)).collect::<Vec<_>>());
    // The last curve is on top: koel's.
    peers.sort_by_key(|&peer| peer == KOEL);
    for peer in peers {
        let of_peer = held.iter().filter(|held| held.peer == peer);
        let points: Vec<_> = of_peer.map(|held| (held.items as f64, bits(held))).collect();
        place.curve(&mut drawing, (&x, &y), &points, line(peer).1);
    }
    Some(drawing.finish())
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
    let x = Axis::of_doublings(grown.iter().map(|row| row.items))?;
    let mut drawing = Drawing::new(1170.0, 520.0);
    drawing.heading((24.0, 32.0), 18, "Sets that grow, one thread: at each doubling");
    let panel = |left| Frame { left_top: (left, 90.0), width: 480.0, height: 300.0 };

    let speeds = || grown.iter().flat_map(|row| [row.hit, row.miss]);
    let y = Axis::of_decades("million lookups / s", speeds(), &[1.0, 2.0, 5.0])?;
    let place = panel(70.0);
    place.draw(&mut drawing, "Lookups: hits, and misses (dashed)", &x, &y);
    for name in names.iter().rev() {
        let of = |figure: fn(&Grown) -> f64| -> Vec<(f64, f64)> {
            let rows = grown.iter().filter(|row| row.peer == *name);
            rows.map(|row| (row.items as f64, figure(row))).collect()
        };
        let dashed = Style { dashed: true, mark: Mark::None, ..grown_style(name) };
        place.curve(&mut drawing, (&x, &y), &of(|row| row.miss), dashed);
        place.curve(&mut drawing, (&x, &y), &of(|row| row.hit), grown_style(name));
    }

    let percent = |row: &Grown| 100.0 * row.false_positive_rate;
    let erring = || grown.iter().filter(|row| row.false_positive_rate > 0.0);
    let y = Axis::of_decades("", erring().map(percent), &[1.0, 2.0, 5.0])?;
    let place = panel(660.0);
    place.draw(&mut drawing, "False positives, percent", &x, &y);
    for name in names.iter().rev() {
        let rows = erring().filter(|row| row.peer == *name);
        let points: Vec<_> = rows.map(|row| (row.items as f64, percent(row))).collect();
        place.curve(&mut drawing, (&x, &y), &points, grown_style(name));
    }
    legend_in_a_row(&mut drawing, (70.0, 480.0), &names, grown_style);
    Some(drawing.finish())
}

/// Draws the memory by number of items.
fn growth_memory(held: &[Held]) -> Option<String> {
    let bytes = |held: &Held| held.bytes as f64 / held.items as f64;
    let names = unique(held.iter().map(|held| &*held.peer));
    let x = Axis::of_doublings(held.iter().map(|held| held.items))?;
    let y = Axis::of_decades("bytes per item", held.iter().map(bytes), &[1.0, 2.0, 3.0, 5.0])?;
    let mut drawing = Drawing::new(1330.0, 600.0);
    drawing.heading((24.0, 32.0), 18, "Memory of sets that grow, by items so far");
    let plain = |name: &str| Style { mark: Mark::None, ..grown_style(name) };
    let place = Frame { left_top: (80.0, 70.0), width: 1210.0, height: 400.0 };
    place.draw(&mut drawing, "", &x, &y);
    for name in names.iter().rev() {
        let of_peer = held.iter().filter(|held| held.peer == *name);
        let points: Vec<_> = of_peer.map(|held| (held.items as f64, bytes(held))).collect();
        place.curve(&mut drawing, (&x, &y), &points, plain(name));
    }
    legend_in_a_row(&mut drawing, (80.0, 560.0), &names, plain);
    Some(drawing.finish())
}

/// Returns the style of a set that grows. The filter built for each size stands out less than the
/// growing one.
fn grown_style(peer: &str) -> Style {
    match peer {
        KOEL => style(peer),
        _ if peer.starts_with("koel until") => {
            Style { colour: "#a7a09d", width: 1.5, mark: Mark::None, dashed: true }
        }
        _ if peer.starts_with(KOEL) => {
            Style { colour: "#e9a08f", width: 2.2, mark: Mark::Square, dashed: false }
        }
        // The curves of the two chains mostly cover each other.
        "autoscale_cuckoo_filter" => Style { colour: "#e5cb80", width: 4.5, ..style(peer) },
        _ => style(peer),
    }
}

fn legend_in_a_row(
    drawing: &mut Drawing,
    (mut left, top): (f64, f64),
    names: &[&str],
    style: fn(&str) -> Style,
) {
    for &name in names {
        let label = if name == KOEL { "koel, growing" } else { name };
        legend(drawing, (left, top), &[(label.into(), style(name))]);
        left += 80.0 + 7.2 * label.len() as f64;
    }
}

impl Axis {
    /// Returns an axis of numbers of items, in powers of two.
    fn of_doublings(items: impl Iterator<Item = u64> + Clone) -> Option<Axis> {
        let (low, high) = (items.clone().min()?, items.max()?);
        let powers = (low.ilog2()..=high.ilog2()).map(|power| 1 << power).collect();
        let name = |items: u64| match items.ilog2() {
            power @ 20.. => format!("{}M", 1_u64 << (power - 20)),
            power @ 10.. => format!("{}k", 1 << (power - 10)),
            _ => items.to_string(),
        };
        Some(Axis::of_powers("items (k = 1024, M = 1024k)", &powers, name))
    }

    /// Returns an axis from zero to a round number above `most`.
    fn up_to(label: &str, most: f64) -> Axis {
        let power = 10_f64.powf((most.max(1e-9) / 4.0).log10().floor());
        let steps = [1.0, 2.0, 2.5, 5.0, 10.0].map(|step| step * power);
        let step = steps.into_iter().find(|step| step * 5.0 >= most).unwrap_or(most);
        let count = (most / step).ceil().max(1.0);
        let digits = if step < 1.0 || step.fract() > 0.0 { 1 } else { 0 };
        let ticks = (0..=count as u32).map(|at| f64::from(at) * step);
        let ticks = ticks.map(|value| (value, format!("{value:.digits$}"))).collect();
        Axis { label: label.into(), low: 0.0, high: count * step, logarithmic: false, ticks }
    }
}

fn legend(drawing: &mut Drawing, (left, top): (f64, f64), names: &[(String, Style)]) {
    for (at, (name, style)) in names.iter().enumerate() {
        let y = top + 24.0 * at as f64;
        drawing.curve(&[(left, y), (left + 34.0, y)], *style);
        drawing.mark(middle((left, y)), *style);
        drawing.text((left + 44.0, y + 4.0), 13, Anchor::Start, INK, name);
    }
}

/// Returns the middle of the line in a legend.
fn middle((left, y): (f64, f64)) -> (f64, f64) {
    (left + 17.0, y)
}

/// Returns the style of a peer. koel stands out, and the others have one colour each, with any
/// lock.
fn style(peer: &str) -> Style {
    let (colour, mark) = match peer.split(' ').next().unwrap_or_default() {
        KOEL => ("#d62f0e", Mark::Circle),
        "fastbloom" => ("#4c78a8", Mark::Square),
        "atomic-cuckoo-filter" => ("#3f9c7a", Mark::Triangle),
        "DashSet" => ("#7a7a7a", Mark::Diamond),
        "cuckoofilter" => ("#b279a2", Mark::Square),
        "autoscale_cuckoo_filter" => ("#c9a227", Mark::Triangle),
        "bloom-lib" => ("#6fb7c9", Mark::Diamond),
        _ => ("#8f6b52", Mark::Circle),
    };
    let width = if peer == KOEL { 3.2 } else { 1.7 };
    Style { colour, mark, width, dashed: peer.contains("(mutex)") }
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
