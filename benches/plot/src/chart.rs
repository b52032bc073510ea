//! Charts side by side: axes, curves, and the names at the ends of the curves.

use crate::plot::{Chart, Charts, Curve, Mark, Style};
use crate::scale::{Scale, has_place};
use crate::svg::{Anchor, Drawing, FAINT, GRID, INK, fitted, widest, width_of};
use std::ops::RangeInclusive;

const TICK: u32 = 12;
const NAME: u32 = 13;
/// The distance between two names.
const LINE: f64 = 16.0;
/// The distance between two charts.
pub const GAP: f64 = 24.0;

/// Draws charts that begin here, and returns where they end. With the distance to the next one, each is as wide
/// as `each`.
pub fn row(drawing: &mut Drawing, row: &Charts, (left, top): (f64, f64), each: f64) -> f64 {
    let height = f64::from(row.height.clamp(60, 5_000));
    let titled = row.charts.iter().any(|chart| !chart.title.is_empty());
    let top = top + if titled { 36.0 } else { 16.0 };
    for (at, chart) in row.charts.iter().enumerate() {
        let place = (left + each * at as f64, top);
        Area::of(chart, place, each - GAP, height).draw(drawing, chart);
    }
    let labelled = row.charts.iter().any(|chart| !chart.x.label.is_empty());
    top + height + if labelled { 44.0 } else { 26.0 }
}

/// The area between the axes.
struct Area {
    /// The room for the title, which begins at the left side.
    title: f64,
    /// The room for the names of the ticks at the left of the area.
    ticks: f64,
    /// The room for the names at the right of the area.
    names: f64,
    left: f64,
    top: f64,
    width: f64,
    height: f64,
    x: Scale,
    y: Scale,
}

impl Area {
    /// Makes room for the labels around the area.
    fn of(chart: &Chart, (left, top): (f64, f64), width: f64, height: f64) -> Area {
        let points = || chart.curves.iter().flat_map(|curve| &curve.points);
        let (x, y) = (
            Scale::of(&chart.x, points().map(|it| it.x)),
            Scale::of(&chart.y, points().map(|it| it.y)),
        );
        let ticks = widest(y.ticks.iter().map(|tick| &*tick.1), TICK).max(28.0).min(width / 4.0);
        let before = ticks + 8.0 + if chart.y.label.is_empty() { 0.0 } else { 22.0 };
        let names = widest(chart.curves.iter().map(|curve| &*curve.label), NAME);
        // The last tick may be named beyond the end.
        let beyond = x.ticks.last().map_or(0.0, |tick| width_of(&tick.1, TICK) / 2.0 - 8.0);
        let after = if names > 0.0 { names + 26.0 } else { beyond.max(0.0) }.min(width / 2.0);
        let (title, names) = (width - before + GAP / 2.0, after - 20.0);
        let width = (width - before - after).max(20.0);
        Area { title, ticks, names, left: left + before, top, width, height, x, y }
    }

    fn point(&self, (x, y): (f64, f64)) -> (f64, f64) {
        let x = self.left + 8.0 + self.x.place(x) * (self.width - 16.0);
        (x, self.top + (1.0 - self.y.place(y)) * self.height)
    }

    fn draw(&self, drawing: &mut Drawing, chart: &Chart) {
        self.axes(drawing, chart);
        let mut ends: Vec<((f64, f64), &Curve)> = Vec::new();
        for curve in &chart.curves {
            let end = self.curve(drawing, curve);
            ends.extend(end.filter(|_| !curve.label.is_empty()).map(|end| (end, curve)));
        }
        self.names(drawing, ends);
    }

    fn axes(&self, drawing: &mut Drawing, chart: &Chart) {
        let (left, top) = (self.left, self.top);
        let (right, bottom) = (left + self.width, top + self.height);
        drawing.heading((left, top - 14.0), 14, &chart.title, self.title);
        for (value, name) in &self.y.ticks {
            let (_, at) = self.point((self.x.low, *value));
            drawing.line((left, at), (right, at), GRID);
            let name = fitted(name, TICK, self.ticks);
            drawing.text((left - 8.0, at + 4.0), TICK, Anchor::End, FAINT, &name);
        }
        let mut last = f64::NEG_INFINITY;
        for (value, name) in &self.x.ticks {
            let (at, _) = self.point((*value, self.y.low));
            drawing.line((at, bottom), (at, bottom + 5.0), FAINT);
            let name = fitted(name, TICK, self.width);
            // Names that would touch are left out.
            let half = width_of(&name, TICK) / 2.0;
            if at - half > last + 4.0 {
                drawing.text((at, bottom + 19.0), TICK, Anchor::Middle, FAINT, &name);
                last = at + half;
            }
        }
        drawing.line((left, bottom), (right, bottom), FAINT);
        let label = fitted(&chart.x.label, TICK, self.width);
        drawing.text((left + self.width / 2.0, bottom + 38.0), TICK, Anchor::Middle, INK, &label);
        let label = fitted(&chart.y.label, TICK, self.height + 60.0);
        let place = (left - self.ticks - 18.0, top + self.height / 2.0);
        drawing.text_upwards(place, TICK, INK, &label);
    }

    /// Draws a curve, which has gaps where points have no place, and returns its last point.
    fn curve(&self, drawing: &mut Drawing, curve: &Curve) -> Option<(f64, f64)> {
        let style = Style { width: bounded(curve.style.width), ..curve.style.clone() };
        let drawn = |x, y| has_place(self.x.log, x) && has_place(self.y.log, y);
        let mut last = None;
        for points in curve.points.split(|point| !drawn(point.x, point.y)) {
            let places: Vec<(f64, f64)> =
                points.iter().map(|it| self.point((it.x, it.y))).collect();
            match (&*places, style.mark) {
                ([], _) => continue,
                // A point alone would be nothing without a mark.
                ([_], Mark::None) => {
                    drawing.mark(places[0], &Style { mark: Mark::Circle, ..style.clone() }, false);
                }
                ([_], _) => {}
                _ => drawing.curve(&places, &style),
            }
            for (point, &place) in points.iter().zip(&places) {
                drawing.mark(place, &style, point.hollow);
            }
            last = places.last().copied();
        }
        last
    }

    /// Writes the names of curves at their ends.
    fn names(&self, drawing: &mut Drawing, mut ends: Vec<((f64, f64), &Curve)>) {
        ends.sort_by(|((_, a), _), ((_, b), _)| a.total_cmp(b));
        let wanted: Vec<f64> = ends.iter().map(|((_, y), _)| *y).collect();
        let places = apart(&wanted, LINE, self.top..=self.top + self.height);
        for (((x, y), curve), at) in ends.into_iter().zip(places) {
            // A line connects each name to its curve, because the name may have been moved.
            let start = self.left + self.width + 8.0;
            drawing.line((x + 6.0, y), (start, at), GRID);
            let name = fitted(&curve.label, NAME, self.names);
            drawing.text((start + 4.0, at + 4.0), NAME, Anchor::Start, &curve.style.colour, &name);
        }
    }
}

/// Returns a width that a line can have.
pub fn bounded(width: f64) -> f64 {
    if width.is_finite() { width.clamp(0.0, 20.0) } else { 1.0 }
}

/// Moves sorted labels apart, as little as necessary: labels that would touch are centred around
/// the middle of their wanted positions.
pub fn apart(wanted: &[f64], line: f64, within: RangeInclusive<f64>) -> Vec<f64> {
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

    /// The blocks at the end of the area may be pushed into those before them.
    #[test]
    fn more_names_than_fit_are_no_panic() {
        assert_eq!(apart(&[5.0; 20], 10.0, 0.0..=100.0).len(), 20);
        assert!(apart(&[], 10.0, 0.0..=100.0).is_empty());
    }
}
