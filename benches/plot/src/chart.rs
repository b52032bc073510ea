//! Charts side by side: axes and curves.

use crate::plot::{Chart, Curve, Mark, Style};
use crate::scale::{Scale, has_place};
use crate::svg::{Drawing, END, FAINT, GRID, INK, MIDDLE, fitted, widest, width_of};

const TICK: u32 = 12;
/// The distance between two charts.
pub const GAP: f64 = 24.0;

/// Draws charts that begin here, and returns where they end. With the distance to the next one, each is as wide
/// as `each`.
pub fn row(
    drawing: &mut Drawing,
    charts: &[Chart],
    height: u32,
    (left, top): (f64, f64),
    each: f64,
) -> f64 {
    let height = f64::from(height.clamp(60, 5_000));
    let titled = charts.iter().any(|chart| !chart.title.is_empty());
    let top = top + if titled { 36.0 } else { 16.0 };
    for (at, chart) in charts.iter().enumerate() {
        let place = (left + each * at as f64, top);
        Area::of(chart, place, each - GAP, height).draw(drawing, chart);
    }
    let labelled = charts.iter().any(|chart| !chart.x.label.is_empty());
    top + height + if labelled { 44.0 } else { 26.0 }
}

/// The area between the axes.
struct Area {
    /// The room for the title, which begins at the left side.
    title: f64,
    /// The room for the names of the ticks at the left of the area.
    ticks: f64,
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
        // The last tick may be named beyond the end.
        let beyond = x.ticks.last().map_or(0.0, |tick| width_of(&tick.1, TICK) / 2.0 - 8.0);
        let after = beyond.clamp(0.0, width / 2.0);
        let title = width - before + GAP / 2.0;
        let width = (width - before - after).max(20.0);
        Area { title, ticks, left: left + before, top, width, height, x, y }
    }

    fn point(&self, (x, y): (f64, f64)) -> (f64, f64) {
        let x = self.left + 8.0 + self.x.place(x) * (self.width - 16.0);
        (x, self.top + (1.0 - self.y.place(y)) * self.height)
    }

    fn draw(&self, drawing: &mut Drawing, chart: &Chart) {
        self.axes(drawing, chart);
        chart.curves.iter().for_each(|curve| self.curve(drawing, curve));
    }

    fn axes(&self, drawing: &mut Drawing, chart: &Chart) {
        let (left, top) = (self.left, self.top);
        let (right, bottom) = (left + self.width, top + self.height);
        drawing.heading((left, top - 14.0), 14, &chart.title, self.title);
        for (value, name) in &self.y.ticks {
            let (_, at) = self.point((self.x.low, *value));
            drawing.line((left, at), (right, at), GRID);
            let name = fitted(name, TICK, self.ticks);
            drawing.text((left - 8.0, at + 4.0), TICK, END, FAINT, &name);
        }
        let mut last = f64::NEG_INFINITY;
        for (value, name) in &self.x.ticks {
            let (at, _) = self.point((*value, self.y.low));
            drawing.line((at, bottom), (at, bottom + 5.0), FAINT);
            let name = fitted(name, TICK, self.width);
            // Names that would touch are left out.
            let half = width_of(&name, TICK) / 2.0;
            if at - half > last + 4.0 {
                drawing.text((at, bottom + 19.0), TICK, MIDDLE, FAINT, &name);
                last = at + half;
            }
        }
        drawing.line((left, bottom), (right, bottom), FAINT);
        let label = fitted(&chart.x.label, TICK, self.width);
        drawing.text((left + self.width / 2.0, bottom + 38.0), TICK, MIDDLE, INK, &label);
        let label = fitted(&chart.y.label, TICK, self.height + 60.0);
        let place = (left - self.ticks - 18.0, top + self.height / 2.0);
        drawing.text_upwards(place, TICK, INK, &label);
    }

    /// Draws a curve, which has gaps where points have no place.
    fn curve(&self, drawing: &mut Drawing, curve: &Curve) {
        let style = Style { width: bounded(curve.style.width), ..curve.style.clone() };
        let drawn = |x, y| has_place(self.x.log, x) && has_place(self.y.log, y);
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
        }
    }
}

/// Returns a width that a line can have.
pub fn bounded(width: f64) -> f64 {
    if width.is_finite() { width.clamp(0.0, 20.0) } else { 1.0 }
}
