//! Horizontal bars: a name at the left of each row, and the figure at the end of each bar.

use crate::plot::{Bar, Bars};
use crate::scale::{Scale, has_place};
use crate::svg::{Drawing, END, FAINT, INK, PAPER, START, fitted, widest, width_of};

const SIZE: u32 = 13;
/// The height of a bar, and that of a bar and what is below it.
const BAR: f64 = 15.0;
const LINE: f64 = 18.0;
/// The distance between two rows, between two columns, and between a bar and its label.
const ROW: f64 = 7.0;
const GAP: f64 = 18.0;
const BESIDE: f64 = 6.0;

/// What all blocks of bars have in common, so that their columns and their lengths are comparable.
pub struct Sizes {
    width: f64,
    /// The room for the names of rows.
    names: f64,
    /// The length of the longest bar, as a share of the width of its column.
    longest: f64,
}

impl Sizes {
    /// Returns the sizes of blocks that are as wide as this.
    pub fn of(blocks: Vec<&Bars>, width: f64) -> Sizes {
        let rows = blocks.iter().flat_map(|bars| &bars.rows);
        let names = widest(rows.map(|row| &*row.name), SIZE).min(width * 0.4);
        let mut sizes = Sizes { width, names, longest: 1.0 };
        let longest = |bars: &&Bars| longest(bars, sizes.column(columns(bars)) - GAP);
        sizes.longest = blocks.iter().map(longest).fold(1.0, f64::min).max(0.3);
        sizes
    }

    /// Returns the width of one of so many columns, with the distance to the next one.
    fn column(&self, columns: usize) -> f64 {
        ((self.width - self.names - 10.0 + GAP) / columns as f64).max(GAP + 20.0)
    }

    /// Draws bars in an area that begins here, and returns where it ends.
    pub fn draw(&self, drawing: &mut Drawing, bars: &Bars, (left, top): (f64, f64)) -> f64 {
        let begin = left + self.names + 10.0;
        let column = self.column(columns(bars));
        let scales: Vec<Scale> = (0..columns(bars)).map(|column| scale(bars, column)).collect();
        let mut y = top;
        if !bars.title.is_empty() {
            y += 26.0;
            drawing.heading((left, y), 14, &bars.title, self.width);
        }
        if bars.columns.iter().any(|title| !title.is_empty()) {
            y += 28.0;
            for (at, title) in bars.columns.iter().enumerate() {
                let place = (begin + column * at as f64, y);
                drawing.heading(place, SIZE, title, column - GAP / 2.0);
            }
        }
        y += 14.0;
        for row in &bars.rows {
            let lines = row.cells.iter().map(Vec::len).max().unwrap_or(0).max(1) as f64;
            let middle = y + (LINE * lines - LINE + BAR) / 2.0;
            let name = fitted(&row.name, SIZE, self.names);
            drawing.text((begin - 10.0, middle + 4.5), SIZE, END, INK, &name);
            for (at, (cell, scale)) in row.cells.iter().zip(&scales).enumerate() {
                let width = column - GAP;
                let place =
                    Place { x: begin + column * at as f64, width, longest: self.longest * width };
                for (line, bar) in cell.iter().enumerate() {
                    place.draw(drawing, bar, scale, y + LINE * line as f64);
                }
            }
            y += LINE * lines + ROW;
        }
        y
    }
}

fn columns(bars: &Bars) -> usize {
    let cells = bars.rows.iter().map(|row| row.cells.len());
    cells.max().unwrap_or(0).max(bars.columns.len()).max(1)
}

/// Returns the scale of a column.
fn scale(bars: &Bars, column: usize) -> Scale {
    let log = bars.log;
    let bars_of = bars.rows.iter().filter_map(|row| row.cells.get(column)).flatten();
    let values = bars_of.flat_map(|bar| [bar.value, bar.low, bar.high]).flatten();
    let (least, most) = values
        .filter(|&value| has_place(log, value))
        .fold((f64::INFINITY, 0.0), |(least, most): (f64, f64), value| {
            (least.min(value), most.max(value))
        });
    let given = |end: Option<f64>| end.filter(|&end| has_place(log, end));
    let high = given(bars.high).unwrap_or(most);
    // One that is the only one in its column is as long as can be.
    let low = if log { given(bars.low).unwrap_or(least / 2.0) } else { 0.0 };
    Scale { log, low, high, ticks: Vec::new() }
}

/// How much of the longest bar a value takes, if it takes any.
fn share(scale: &Scale, value: Option<f64>) -> Option<f64> {
    let value = value.filter(|&value| has_place(scale.log, value) && value > 0.0)?;
    Some(scale.place(value))
}

/// Returns which share of this width the longest bar can take, so that each has the room for its label.
fn longest(bars: &Bars, width: f64) -> f64 {
    let scales: Vec<Scale> = (0..columns(bars)).map(|column| scale(bars, column)).collect();
    let cells = bars.rows.iter().flat_map(|row| row.cells.iter().zip(&scales));
    let drawn = cells.flat_map(|(cell, scale)| cell.iter().map(move |bar| (bar, scale)));
    let rooms = drawn.filter_map(|(bar, scale)| {
        let share = share(scale, bar.value)?.max(share(scale, bar.high).unwrap_or(0.0));
        Some((width - BESIDE - width_of(&bar.label, SIZE)) / share.max(0.001))
    });
    rooms.fold(width, f64::min) / width
}

/// The place of a bar and its label.
struct Place {
    x: f64,
    width: f64,
    longest: f64,
}

impl Place {
    fn draw(&self, drawing: &mut Drawing, bar: &Bar, scale: &Scale, y: f64) {
        let value = bar.value.filter(|value| value.is_finite());
        let (mut end, mut before) = (self.x, 0.0);
        if let Some(share) = share(scale, value) {
            end += (share * self.longest).max(1.0);
            before = BESIDE;
            drawing.rectangle((self.x, y), (end - self.x, BAR), &bar.colour);
            if value > Some(scale.high) {
                tear(drawing, (end - 22.0, y));
            } else {
                end = end.max(self.spread(drawing, bar, scale, y));
            }
        }
        let colour = if value.is_some() { INK } else { FAINT };
        let label = fitted(&bar.label, SIZE, self.x + self.width - end - before);
        drawing.text((end + before, y + 12.0), SIZE, START, colour, &label);
    }

    /// Draws a line from the least that was measured to the most, and returns where it ends.
    fn spread(&self, drawing: &mut Drawing, bar: &Bar, scale: &Scale, y: f64) -> f64 {
        let at = |value| share(scale, value).map(|share| self.x + share * self.longest);
        let (Some(low), Some(high)) = (at(bar.low), at(bar.high)) else { return self.x };
        if high - low < 2.0 {
            return self.x;
        }
        let middle = y + BAR / 2.0;
        drawing.line((low, middle), (high, middle), INK);
        for (value, end) in [(bar.low, low), (bar.high, high)] {
            // A line without an end goes on beyond the area.
            if value <= Some(scale.high) {
                drawing.line((end, middle - 3.0), (end, middle + 3.0), INK);
            }
        }
        high
    }
}

/// Draws a gap, which says that the bar is longer than the area.
fn tear(drawing: &mut Drawing, (x, y): (f64, f64)) {
    let (top, middle, bottom) = (y - 1.0, y + BAR / 2.0, y + BAR + 1.0);
    let corners = [
        (x, top),
        (x + 7.0, middle),
        (x, bottom),
        (x + 6.0, bottom),
        (x + 13.0, middle),
        (x + 6.0, top),
    ];
    drawing.polygon(&corners, PAPER);
}
