//! Pictures of rows: a curve for each set, in one style in all charts.

use koel_plot::{Axis, Chart, Curve, Entry, Plot, Point, Row, Style};
use std::collections::BTreeSet;

/// Rows of figures, each of a set that has a name.
pub struct Lines<'a, R, S> {
    pub rows: &'a [R],
    pub name: fn(&R) -> &str,
    pub style: S,
}

impl<'a, R, S: Fn(&str) -> Style> Lines<'a, R, S> {
    /// Returns the names of the sets, in the order of their first rows.
    pub fn names(&self) -> Vec<&'a str> {
        let mut names = Vec::new();
        for name in self.rows.iter().map(self.name) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    /// Returns the curves of one chart, of the rows that have a point in it. The last one is on top: that of the first
    /// set.
    pub fn curves(&self, point: impl Fn(&R) -> Option<Point>) -> Vec<Curve> {
        let curve = |name: &str| {
            let rows = self.rows.iter().filter(|row| (self.name)(row) == name);
            Curve { points: rows.filter_map(&point).collect(), style: (self.style)(name) }
        };
        self.names().into_iter().rev().map(curve).collect()
    }

    /// Returns the legend: what a set is called, and whether its marks are hollow.
    pub fn legend(&self, label: impl Fn(&str) -> (String, bool)) -> Vec<Entry> {
        let entry = |name: &str| {
            let (label, hollow) = label(name);
            Entry { name: label, style: (self.style)(name), hollow }
        };
        self.names().into_iter().map(entry).collect()
    }
}

pub fn point(x: u64, y: f64) -> Option<Point> {
    Some(Point { x: x as f64, y, hollow: false })
}

pub fn axis(label: &str, log: bool) -> Axis {
    Axis { label: label.into(), log, ticks: Vec::new() }
}

/// Returns a logarithmic axis on which these values are named.
pub fn named(label: &str, values: impl Iterator<Item = u64>, name: fn(u64) -> String) -> Axis {
    let values: BTreeSet<u64> = values.collect();
    let ticks = values.into_iter().map(|value| (value as f64, name(value))).collect();
    Axis { ticks, ..axis(label, true) }
}

/// Draws charts of this height, so many of them side by side.
pub fn picture(
    title: &str,
    width: u32,
    (height, beside, charts): (u32, usize, Vec<Chart>),
    legend: Vec<Entry>,
    note: &str,
) -> String {
    let row = |charts: &[Chart]| Row::Charts { height, charts: charts.to_vec() };
    let rows = charts.chunks(beside).map(row).collect();
    let notes = (!note.is_empty()).then(|| note.into()).into_iter().collect();
    Plot { title: title.into(), width, rows, legend, notes, ..Plot::default() }.svg()
}
