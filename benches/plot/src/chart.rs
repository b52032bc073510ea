//! Charts side by side: axes and curves.

use crate::plot::{Chart, Curve, Point};
use crate::scale::{Scale, has_place};
use crate::svg::{Drawing, END, FAINT, GRID, INK, MIDDLE, widest, width_of};

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
    let height = f64::from(height);
    let titled = charts.iter().any(|chart| !chart.title.is_empty());
    let top = top + if titled { 36.0 } else { 16.0 };
    for (at, chart) in charts.iter().enumerate() {
        let area = Area::of(chart, (left + each * at as f64, top), each - GAP, height);
        area.axes(drawing, chart);
        chart.curves.iter().for_each(|curve| area.curve(drawing, curve));
    }
    top + height + 44.0
}

/// The area between the axes.
struct Area {
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
        let x = Scale::of(&chart.x, points().map(|it| it.x));
        let y = Scale::of(&chart.y, points().map(|it| it.y));
        let ticks = widest(y.ticks.iter().map(|tick| &*tick.1), TICK).max(28.0);
        let before = ticks + 30.0;
        // The last tick may be named beyond the end.
        let beyond = x.ticks.last().map_or(0.0, |tick| width_of(&tick.1, TICK) / 2.0 - 8.0);
        let width = width - before - beyond.max(0.0);
        Area { ticks, left: left + before, top, width, height, x, y }
    }

    fn point(&self, (x, y): (f64, f64)) -> (f64, f64) {
        let x = self.left + 8.0 + self.x.place(x) * (self.width - 16.0);
        (x, self.top + (1.0 - self.y.place(y)) * self.height)
    }

    fn axes(&self, drawing: &mut Drawing, chart: &Chart) {
        let (left, top) = (self.left, self.top);
        let (right, bottom) = (left + self.width, top + self.height);
        drawing.heading((left, top - 14.0), 14, &chart.title);
        for (value, name) in &self.y.ticks {
            let (_, at) = self.point((self.x.low, *value));
            drawing.line((left, at), (right, at), GRID);
            drawing.text((left - 8.0, at + 4.0), TICK, END, FAINT, name);
        }
        let mut last = f64::NEG_INFINITY;
        for (value, name) in &self.x.ticks {
            let (at, _) = self.point((*value, self.y.low));
            drawing.line((at, bottom), (at, bottom + 5.0), FAINT);
            // Names that would touch are left out.
            let half = width_of(name, TICK) / 2.0;
            if at - half > last + 4.0 {
                drawing.text((at, bottom + 19.0), TICK, MIDDLE, FAINT, name);
                last = at + half;
            }
        }
        drawing.line((left, bottom), (right, bottom), FAINT);
        let middle = left + self.width / 2.0;
        drawing.text((middle, bottom + 38.0), TICK, MIDDLE, INK, &chart.x.label);
        let place = (left - self.ticks - 18.0, top + self.height / 2.0);
        drawing.text_upwards(place, TICK, INK, &chart.y.label);
    }

    /// Draws a curve, which has gaps where points have no place.
    fn curve(&self, drawing: &mut Drawing, Curve { style, points }: &Curve) {
        let is_drawn =
            |point: &Point| has_place(self.x.log, point.x) && has_place(self.y.log, point.y);
        for points in points.split(|point| !is_drawn(point)) {
            let places: Vec<(f64, f64)> =
                points.iter().map(|it| self.point((it.x, it.y))).collect();
            if places.len() > 1 {
                drawing.curve(&places, style);
            }
            for (point, &place) in points.iter().zip(&places) {
                drawing.mark(place, style, point.hollow);
            }
        }
    }
}
