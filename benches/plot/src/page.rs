//! The page: the title, the rows below each other, the legend and the notes.

use crate::plot::{Entry, Mark, Plot, Row};
use crate::svg::{Drawing, FAINT, INK, START, width_of};
use crate::{bars, chart};

const MARGIN: f64 = 24.0;
const SIZE: u32 = 13;
/// What is between two entries of the legend.
const GAP: f64 = 28.0;
const LINE: f64 = 24.0;

impl Plot {
    /// Draws the plot.
    pub fn svg(&self) -> String {
        let page = f64::from(self.width);
        let width = page - 2.0 * MARGIN;
        let mut drawing = Drawing::default();
        let mut y = 32.0;
        drawing.heading((MARGIN, y), 18, &self.title);
        y = lines(&mut drawing, &self.about, y + 2.0);
        let in_a_line = self.legend.iter().map(room).sum::<f64>() <= width + GAP;
        if in_a_line && !self.legend.is_empty() {
            y = legend(&mut drawing, &self.legend, y + 6.0, width, true) + 10.0;
        }
        y += 8.0;
        // The charts of all rows are equally wide.
        let (mut most, mut bars) = (1, Vec::new());
        for row in &self.rows {
            match row {
                Row::Charts { charts, .. } => most = most.max(charts.len()),
                Row::Bars(block) => bars.push(block),
            }
        }
        let each = (width + chart::GAP) / most as f64;
        let sizes = bars::Sizes::of(bars, width);
        for row in &self.rows {
            let place = (MARGIN, y);
            y = 10.0
                + match row {
                    Row::Charts { height, charts } => {
                        chart::row(&mut drawing, charts, *height, place, each)
                    }
                    Row::Bars(bars) => sizes.draw(&mut drawing, bars, place),
                };
        }
        if !in_a_line {
            y = legend(&mut drawing, &self.legend, y, width, false) + 8.0;
        }
        y = lines(&mut drawing, &self.notes, y);
        drawing.finish(page, y + 12.0)
    }
}

/// Writes lines one below the other, and returns where the last one is.
fn lines(drawing: &mut Drawing, lines: &[String], mut y: f64) -> f64 {
    for line in lines {
        y += 20.0;
        drawing.text((MARGIN, y), SIZE, START, FAINT, line);
    }
    y
}

/// Returns how much of a line an entry takes.
fn room(entry: &Entry) -> f64 {
    before_name(entry) + width_of(&entry.name, SIZE) + GAP
}

/// Returns how much the sample takes, which is before the name.
fn before_name(entry: &Entry) -> f64 {
    if entry.style.mark == Mark::Bar { 22.0 } else { 44.0 }
}

/// Draws the legend, either in one line or in columns, and returns where its last line is.
fn legend(drawing: &mut Drawing, entries: &[Entry], top: f64, width: f64, in_a_line: bool) -> f64 {
    let column = entries.iter().map(room).fold(0.0, f64::max);
    let (mut x, mut y) = (MARGIN, top + LINE);
    for entry in entries {
        let step = if in_a_line { room(entry) } else { column };
        if x + step > MARGIN + width + GAP + 0.5 {
            (x, y) = (MARGIN, y + LINE);
        }
        sample(drawing, (x, y), entry);
        drawing.text((x + before_name(entry), y + 4.5), SIZE, START, INK, &entry.name);
        x += step;
    }
    y
}

/// Draws a piece of a curve or of a bar.
fn sample(drawing: &mut Drawing, (x, y): (f64, f64), Entry { style, hollow, .. }: &Entry) {
    if style.mark == Mark::Bar {
        return drawing.mark((x + 7.0, y), style, false);
    }
    drawing.curve(&[(x, y), (x + 34.0, y)], style);
    drawing.mark((x + 17.0, y), style, *hollow);
}
