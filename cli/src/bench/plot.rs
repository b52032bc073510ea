//! The results as a plot: throughput by number of threads, with a panel for each group of workloads
//! and a curve for each workload.
//!
//! Both axes are logarithmic, so that linear scaling has the same slope everywhere, and slow
//! workloads are as readable as fast ones. Each curve is labelled at its end.

use super::axes::{Axis, Frame};
use super::svg::{Anchor, Drawing, FAINT, GRID, Mark, Style};
use super::table::Figures;
use super::workloads::{GROUPS, Workload};
use std::collections::BTreeSet;

const PANEL: (f64, f64) = (230.0, 330.0);
/// The distance between the left sides of two panels, including the labels between them.
const STEP: f64 = 390.0;
/// The distance between two labels.
const LINE: f64 = 16.0;

/// Draws the plot. `below` is a description in two lines.
pub fn svg(figures: &Figures<'_>, below: &str) -> String {
    let threads: BTreeSet<u64> = figures.threads.iter().copied().collect();
    let x = Axis::of_powers("threads", &threads, |threads| threads.to_string());
    let mut drawing = Drawing::new(70.0 + STEP * GROUPS.len() as f64, 520.0);
    drawing.heading((24.0, 32.0), 18, "koel: throughput by threads");
    for (line, y) in below.lines().zip([54.0, 72.0]) {
        drawing.text((24.0, y), 13, Anchor::Start, FAINT, line);
    }
    let all = GROUPS.iter().flat_map(|(_, workloads)| *workloads);
    let rates = all.flat_map(|&workload| threads.iter().map(move |&n| figures.of(workload, n)));
    let rates = rates.filter(|rate| rate.is_finite());
    if let Some(mut y) = Axis::of_decades("million operations / s", rates, &[1.0, 2.0, 5.0]) {
        for (at, (group, workloads)) in GROUPS.iter().enumerate() {
            let left_top = (70.0 + STEP * at as f64, 120.0);
            let frame = Frame { left_top, width: PANEL.0, height: PANEL.1 };
            frame.draw(&mut drawing, group, &x, &y);
            panel(&mut drawing, &frame, (&x, &y), figures, workloads);
            // Only the first panel has this label. The labels of the curves take its place in the
            // others.
            y.label.clear();
        }
    }
    drawing.finish()
}

fn panel(
    drawing: &mut Drawing,
    frame: &Frame,
    axes: (&Axis, &Axis),
    figures: &Figures<'_>,
    workloads: &[Workload],
) {
    let mut ends = Vec::new();
    for &workload in workloads {
        let point = |&threads: &u64| (threads as f64, figures.of(workload, threads));
        let points: Vec<(f64, f64)> = figures.threads.iter().map(point).collect();
        frame.curve(drawing, axes, &points, style(workload));
        ends.extend(points.last().map(|&end| (frame.point(axes, end), workload)));
    }
    ends.sort_by(|((_, a), _), ((_, b), _)| a.total_cmp(b));
    let wanted: Vec<f64> = ends.iter().map(|((_, y), _)| *y).collect();
    let (top, bottom) = (frame.left_top.1, frame.left_top.1 + frame.height);
    for (((x, y), workload), at) in ends.into_iter().zip(apart(&wanted, LINE, top..=bottom)) {
        // A line connects each label to its curve, because the label may have been moved.
        let Style { colour, .. } = style(workload);
        drawing.line((x + 6.0, y), (x + 22.0, at), GRID);
        drawing.text((x + 26.0, at + 4.0), 13, Anchor::Start, colour, workload.name());
    }
}

/// Moves sorted labels apart, as little as necessary: labels that would touch are centred around
/// the middle of their wanted positions.
fn apart(wanted: &[f64], line: f64, within: std::ops::RangeInclusive<f64>) -> Vec<f64> {
    // Blocks of labels: their number, and the wanted position of their middle.
    let mut blocks: Vec<(usize, f64)> = Vec::new();
    let half = |names: usize| line * names as f64 / 2.0;
    for &y in wanted {
        let mut block = (1, y);
        while let Some(&(names, middle)) = blocks.last() {
            if middle + half(names) <= block.1 - half(block.0) {
                break;
            }
            blocks.pop();
            let together = names + block.0;
            let weighted = middle * names as f64 + block.1 * block.0 as f64;
            block = (together, weighted / together as f64);
        }
        let (low, high) = (within.start() + half(block.0), within.end() - half(block.0));
        blocks.push((block.0, block.1.min(high).max(low)));
    }
    let places = |(names, middle): (usize, f64)| {
        (0..names).map(move |at| middle + line * (at as f64 - (names - 1) as f64 / 2.0))
    };
    blocks.into_iter().flat_map(places).collect()
}

/// Returns the style of a workload. Workloads of one kind look the same in each panel.
fn style(workload: Workload) -> Style {
    let (colour, mark) = match workload {
        Workload::Insert | Workload::InsertMany | Workload::InsertGrowing => {
            ("#d62f0e", Mark::Circle)
        }
        Workload::InsertKnown => ("#a67c00", Mark::Triangle),
        Workload::Hit | Workload::HitMany | Workload::HitGrowing => ("#34618e", Mark::Square),
        Workload::Miss | Workload::MissGrowing => ("#3a9ab0", Mark::Diamond),
        Workload::Remove => ("#6b6b6b", Mark::Square),
        Workload::Mix => ("#2f8a66", Mark::Triangle),
    };
    Style { colour, mark, width: 2.0, dashed: false }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_do_not_touch() {
        for wanted in [
            vec![50.0],
            vec![50.0, 50.0, 50.0],
            vec![0.0, 1.0, 2.0, 99.0, 100.0],
            vec![10.0, 12.0, 30.0, 32.0, 34.0, 90.0],
            vec![100.0, 100.0, 100.0],
        ] {
            let placed = apart(&wanted, 10.0, 0.0..=100.0);
            assert_eq!(placed.len(), wanted.len());
            assert!(placed.is_sorted_by(|a, b| b - a > 9.99), "{wanted:?}: {placed:?}");
            assert!(placed.iter().all(|at| (5.0..=95.0).contains(at)), "{placed:?}");
        }
    }

    #[test]
    fn names_that_do_not_touch_stay() {
        assert_eq!(apart(&[10.0, 30.0, 31.0], 10.0, 0.0..=100.0), [10.0, 25.5, 35.5]);
    }
}
