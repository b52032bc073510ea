//! Horizontal bars: a name at the left of each row, and the figure at the end of each bar.

use crate::plot::{Bar, Bars};
use crate::scale::{Scale, ends, has_place};
use crate::svg::{Drawing, END, FAINT, INK, PAPER, START, widest, width_of};

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
        let names = widest(rows.map(|row| &*row.name), SIZE);
        let mut sizes = Sizes { width, names, longest: 1.0 };
        let longest = |bars: &&Bars| longest(bars, sizes.column(bars) - GAP);
        sizes.longest = blocks.iter().map(longest).fold(1.0, f64::min).max(0.3);
        sizes
    }

    /// Returns the width of a column, with the distance to the next one.
    fn column(&self, bars: &Bars) -> f64 {
        (self.width - self.names - 10.0 + GAP) / columns(bars) as f64
    }

    /// Draws bars in an area that begins here, and returns where it ends.
    pub fn draw(&self, drawing: &mut Drawing, bars: &Bars, (left, top): (f64, f64)) -> f64 {
        let begin = left + self.names + 10.0;
        let column = self.column(bars);
        let longest = self.longest * (column - GAP);
        let scales = scales(bars);
        let mut y = top;
        if !bars.title.is_empty() {
            y += 26.0;
            drawing.heading((left, y), 14, &bars.title);
        }
        if !bars.columns.is_empty() {
            y += 28.0;
            for (at, title) in bars.columns.iter().enumerate() {
                drawing.heading((begin + column * at as f64, y), SIZE, title);
            }
        }
        y += 14.0;
        for row in &bars.rows {
            let lines = row.cells.iter().map(Vec::len).max().unwrap_or(0).max(1) as f64;
            let middle = y + (LINE * lines - LINE + BAR) / 2.0;
            drawing.text((begin - 10.0, middle + 4.5), SIZE, END, INK, &row.name);
            for (at, (cell, scale)) in row.cells.iter().zip(&scales).enumerate() {
                let x = begin + column * at as f64;
                for (line, bar) in cell.iter().enumerate() {
                    Place { scale, longest, x, y: y + LINE * line as f64 }.draw(drawing, bar);
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

/// Returns the scales of all columns.
fn scales(bars: &Bars) -> Vec<Scale> {
    let scale = |column: usize| {
        let bars_of = bars.rows.iter().filter_map(|row| row.cells.get(column)).flatten();
        let values = bars_of.flat_map(|bar| [bar.value, bar.low, bar.high]).flatten();
        let log = bars.low.is_some();
        let high = bars.high.unwrap_or(ends(log, values).1);
        Scale { log, low: bars.low.unwrap_or(0.0), high, ticks: Vec::new() }
    };
    (0..columns(bars)).map(scale).collect()
}

/// How much of the longest bar a value takes, if it takes any.
fn share(scale: &Scale, value: Option<f64>) -> Option<f64> {
    let value = value.filter(|&value| has_place(scale.log, value) && value > 0.0)?;
    Some(scale.place(value))
}

/// Returns which share of this width the longest bar can take, so that each has the room for its label.
fn longest(bars: &Bars, width: f64) -> f64 {
    let scales = scales(bars);
    let cells = bars.rows.iter().flat_map(|row| row.cells.iter().zip(&scales));
    let drawn = cells.flat_map(|(cell, scale)| cell.iter().map(move |bar| (bar, scale)));
    let rooms = drawn.filter_map(|(bar, scale)| {
        let share = share(scale, bar.value)?.max(share(scale, bar.high).unwrap_or(0.0));
        Some((width - BESIDE - width_of(&bar.label, SIZE)) / share.max(0.001))
    });
    rooms.fold(width, f64::min) / width
}

/// The place of a bar and its label.
struct Place<'a> {
    scale: &'a Scale,
    /// The length of the longest bar of the column.
    longest: f64,
    x: f64,
    y: f64,
}

impl Place<'_> {
    fn draw(&self, drawing: &mut Drawing, bar: &Bar) {
        let (mut end, mut before) = (self.x, 0.0);
        if let Some(share) = share(self.scale, bar.value) {
            end += (share * self.longest).max(1.0);
            before = BESIDE;
            drawing.rectangle((self.x, self.y), (end - self.x, BAR), &bar.colour);
            if bar.value > Some(self.scale.high) {
                tear(drawing, (end - 22.0, self.y));
            } else {
                end = end.max(self.spread(drawing, bar));
            }
        }
        let colour = if bar.value.is_some() { INK } else { FAINT };
        drawing.text((end + before, self.y + 12.0), SIZE, START, colour, &bar.label);
    }

    /// Draws a line from the least that was measured to the most, and returns where it ends.
    fn spread(&self, drawing: &mut Drawing, bar: &Bar) -> f64 {
        let at = |value| share(self.scale, value).map(|share| self.x + share * self.longest);
        let (Some(low), Some(high)) = (at(bar.low), at(bar.high)) else { return self.x };
        if high - low < 2.0 {
            return self.x;
        }
        let middle = self.y + BAR / 2.0;
        drawing.line((low, middle), (high, middle), INK);
        for (value, end) in [(bar.low, low), (bar.high, high)] {
            // A line without an end goes on beyond the area.
            if value <= Some(self.scale.high) {
                drawing.line((end, middle - 3.0), (end, middle + 3.0), INK);
            }
        }
        high
    }
}

/// Draws a gap, which says that the bar is longer than the area.
fn tear(drawing: &mut Drawing, (x, y): (f64, f64)) {
    let (top, middle, bottom) = (y - 1.0, y + BAR / 2.0, y + BAR + 1.0);
    let left = [(x, top), (x + 7.0, middle), (x, bottom)];
    let right = [(x + 6.0, bottom), (x + 13.0, middle), (x + 6.0, top)];
    drawing.polygon(&[left, right].concat(), PAPER);
}
