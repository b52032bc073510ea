//! Axes, and frames that curves are drawn in.
//!
//! `benches/peers` includes this file, so it must not use `crate` paths.

use super::svg::{Anchor, Drawing, FAINT, GRID, INK, Style};
use std::collections::BTreeSet;

/// An axis from the lowest value to the highest, with labelled ticks.
pub struct Axis {
    pub label: String,
    pub low: f64,
    pub high: f64,
    pub logarithmic: bool,
    pub ticks: Vec<(f64, String)>,
}

impl Axis {
    pub fn of_powers(label: &str, values: &BTreeSet<u64>, name: impl Fn(u64) -> String) -> Axis {
        let ticks: Vec<(f64, String)> =
            values.iter().map(|&value| (value as f64, name(value))).collect();
        let (low, high) = (ticks.first().map_or(1.0, |t| t.0), ticks.last().map_or(1.0, |t| t.0));
        Axis { label: label.into(), low, high, logarithmic: true, ticks }
    }

    /// Creates a logarithmic axis with these steps in each power of ten, as far as the values go.
    pub fn of_decades(
        label: &str,
        values: impl Iterator<Item = f64> + Clone,
        steps: &[f64],
    ) -> Option<Axis> {
        let (low, high) = (values.clone().min_by(f64::total_cmp)?, values.max_by(f64::total_cmp)?);
        let decades = low.log10().floor() as i32..=high.log10().ceil() as i32;
        let rungs = decades.flat_map(|power| {
            steps.iter().map(move |step| (step * 10_f64.powi(power), (-power).max(0) as usize))
        });
        let rungs: Vec<(f64, usize)> = rungs.collect();
        let first = rungs.iter().rposition(|(rung, _)| *rung <= low)?;
        let last = rungs.iter().position(|(rung, _)| *rung >= high)?;
        let named =
            rungs[first..=last].iter().map(|&(rung, digits)| (rung, format!("{rung:.digits$}")));
        let ticks: Vec<(f64, String)> = named.collect();
        let (low, high) = (rungs[first].0, rungs[last].0);
        Some(Axis { label: label.into(), low, high, logarithmic: true, ticks })
    }

    /// Returns the position of a value between the ends, from 0 to 1.
    fn place(&self, value: f64) -> f64 {
        let scale = |value: f64| if self.logarithmic { value.ln() } else { value };
        let span = scale(self.high) - scale(self.low);
        if span > 0.0 { (scale(value) - scale(self.low)) / span } else { 0.5 }
    }
}

/// An area of a drawing.
pub struct Frame {
    pub left_top: (f64, f64),
    pub width: f64,
    pub height: f64,
}

impl Frame {
    pub fn point(&self, (x, y): (&Axis, &Axis), (at_x, at_y): (f64, f64)) -> (f64, f64) {
        let (left, top) = self.left_top;
        let y = (1.0 - y.place(at_y)).clamp(0.0, 1.0);
        (left + 8.0 + x.place(at_x) * (self.width - 16.0), top + y * self.height)
    }

    pub fn draw(&self, drawing: &mut Drawing, title: &str, x: &Axis, y: &Axis) {
        let (left, top) = self.left_top;
        let (right, bottom) = (left + self.width, top + self.height);
        drawing.heading((left, top - 12.0), 14, title);
        for (value, name) in &y.ticks {
            let (_, at) = self.point((x, y), (x.low, *value));
            drawing.line((left, at), (right, at), GRID);
            drawing.text((left - 8.0, at + 4.0), 12, Anchor::End, FAINT, name);
        }
        let mut last = f64::NEG_INFINITY;
        for (value, name) in &x.ticks {
            let (at, _) = self.point((x, y), (*value, y.low));
            drawing.line((at, bottom), (at, bottom + 5.0), FAINT);
            // Labels that would touch are left out.
            if at - last > 7.0 * name.len() as f64 {
                drawing.text((at, bottom + 19.0), 12, Anchor::Middle, FAINT, name);
                last = at;
            }
        }
        drawing.line((left, bottom), (right, bottom), FAINT);
        drawing.text((left + self.width / 2.0, bottom + 38.0), 12, Anchor::Middle, INK, &x.label);
        drawing.text_upwards((left - 46.0, top + self.height / 2.0), 12, INK, &y.label);
    }

    pub fn curve(
        &self,
        drawing: &mut Drawing,
        axes: (&Axis, &Axis),
        points: &[(f64, f64)],
        style: Style,
    ) {
        let points: Vec<(f64, f64)> = points.iter().map(|&point| self.point(axes, point)).collect();
        drawing.curve(&points, style);
        points.iter().for_each(|&point| drawing.mark(point, style));
    }
}
