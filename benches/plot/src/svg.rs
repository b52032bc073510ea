//! An SVG drawing of lines, marks and text, and how much room a text takes.

use crate::plot::{Mark, Style};

pub const INK: &str = "#222222";
pub const FAINT: &str = "#666666";
pub const GRID: &str = "#e4e4e4";
/// Pictures have a background of their own, so that they look the same on dark pages.
pub const PAPER: &str = "#ffffff";

/// Which end of a text is at its place.
pub const START: &str = "start";
pub const MIDDLE: &str = "middle";
pub const END: &str = "end";

#[derive(Default)]
pub struct Drawing {
    body: String,
}

impl Drawing {
    pub fn text(&mut self, at: (f64, f64), size: u32, anchor: &str, colour: &str, words: &str) {
        self.words(at, size, anchor, colour, "", words);
    }

    pub fn heading(&mut self, at: (f64, f64), size: u32, words: &str) {
        self.words(at, size, START, INK, " font-weight=\"bold\"", words);
    }

    /// Adds text that runs upwards.
    pub fn text_upwards(&mut self, at: (f64, f64), size: u32, colour: &str, words: &str) {
        let turned = format!(" transform=\"rotate(-90 {:.1} {:.1})\"", at.0, at.1);
        self.words(at, size, MIDDLE, colour, &turned, words);
    }

    fn words(
        &mut self,
        (x, y): (f64, f64),
        size: u32,
        anchor: &str,
        colour: &str,
        more: &str,
        words: &str,
    ) {
        if words.is_empty() {
            return;
        }
        let (colour, words) = (escaped(colour), escaped(words));
        self.add(format!(
            "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"{size}\" text-anchor=\"{anchor}\" \
             fill=\"{colour}\"{more}>{words}</text>"
        ));
    }

    pub fn line(&mut self, from: (f64, f64), to: (f64, f64), colour: &str) {
        let ((x1, y1), (x2, y2)) = (from, to);
        self.add(format!(
            "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" stroke=\"{colour}\"/>"
        ));
    }

    pub fn rectangle(&mut self, (x, y): (f64, f64), (width, height): (f64, f64), colour: &str) {
        let colour = escaped(colour);
        self.add(format!(
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" fill=\"{colour}\"/>"
        ));
    }

    pub fn curve(&mut self, points: &[(f64, f64)], style: &Style) {
        let points: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let (colour, width) = (escaped(&style.colour), style.width);
        let dashes = if style.dashed { " stroke-dasharray=\"6 4\"" } else { "" };
        self.add(format!(
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"{width}\" \
             stroke-linejoin=\"round\"{dashes}/>",
            points.join(" ")
        ));
    }

    /// Adds the mark of a style, or its outline.
    pub fn mark(&mut self, at: (f64, f64), style: &Style, hollow: bool) {
        let size = 2.2 + style.width * 0.8;
        if hollow {
            self.shape(at, size + 0.8, style.mark, &style.colour);
            self.shape(at, size - 1.0, style.mark, PAPER);
        } else {
            self.shape(at, size, style.mark, &style.colour);
        }
    }

    fn shape(&mut self, (x, y): (f64, f64), size: f64, mark: Mark, colour: &str) {
        let corners: &[(f64, f64)] = match mark {
            Mark::None => return,
            Mark::Circle => {
                let colour = escaped(colour);
                return self.add(format!(
                    "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{size:.1}\" fill=\"{colour}\"/>"
                ));
            }
            Mark::Bar => return self.rectangle((x - 7.0, y - 7.0), (14.0, 14.0), colour),
            Mark::Square => &[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)],
            Mark::Triangle => &[(0.0, -1.2), (1.1, 0.9), (-1.1, 0.9)],
            Mark::Diamond => &[(0.0, -1.3), (1.1, 0.0), (0.0, 1.3), (-1.1, 0.0)],
        };
        let corners: Vec<_> =
            corners.iter().map(|(dx, dy)| (x + dx * size, y + dy * size)).collect();
        self.polygon(&corners, colour);
    }

    pub fn polygon(&mut self, corners: &[(f64, f64)], colour: &str) {
        let corners: Vec<String> = corners.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let colour = escaped(colour);
        self.add(format!("<polygon points=\"{}\" fill=\"{colour}\"/>", corners.join(" ")));
    }

    fn add(&mut self, element: String) {
        self.body += &element;
        self.body.push('\n');
    }

    pub fn finish(self, width: f64, height: f64) -> String {
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
             viewBox=\"0 0 {width:.0} {height:.0}\" font-family=\"Helvetica, Arial, sans-serif\">\n\
             <rect width=\"100%\" height=\"100%\" fill=\"{PAPER}\"/>\n{}</svg>\n",
            self.body
        )
    }
}

/// Replaces what has a meaning in XML.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;")
}

/// Estimates the width of a text, in a wide font.
pub fn width_of(words: &str, size: u32) -> f64 {
    let widths = words.chars().map(|character| match character {
        'f' | 'i' | 'j' | 'l' | 'r' | 't' | ' ' | '.' | ',' | ':' | '(' | ')' | '/' | '|' | '-' => {
            0.39
        }
        'm' | 'w' | '%' => 0.92,
        'A'..='Z' => 0.7,
        ' '..='~' => 0.62,
        _ => 1.0,
    });
    f64::from(size) * widths.sum::<f64>()
}

/// Returns the width of the widest text.
pub fn widest<'a>(texts: impl Iterator<Item = &'a str>, size: u32) -> f64 {
    texts.map(|words| width_of(words, size)).fold(0.0, f64::max)
}
