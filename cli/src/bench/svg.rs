//! A minimal SVG drawing of lines, marks and text.

use std::fmt::Write;

pub struct Drawing {
    width: f64,
    height: f64,
    body: String,
}

#[derive(Clone, Copy)]
pub enum Mark {
    Circle,
    Square,
    Triangle,
    Diamond,
    None,
}

/// The style of a curve and its marks.
#[derive(Clone, Copy)]
pub struct Style {
    pub colour: &'static str,
    pub mark: Mark,
    pub width: f64,
    pub dashed: bool,
}

#[derive(Clone, Copy)]
pub enum Anchor {
    Start,
    Middle,
    End,
}

pub const INK: &str = "#222222";
pub const FAINT: &str = "#666666";
pub const GRID: &str = "#e4e4e4";

impl Drawing {
    pub fn new(width: f64, height: f64) -> Self {
        Drawing { width, height, body: String::new() }
    }

    pub fn text(&mut self, at: (f64, f64), size: u32, anchor: Anchor, colour: &str, words: &str) {
        self.words(at, size, anchor, colour, "", words);
    }

    pub fn heading(&mut self, at: (f64, f64), size: u32, words: &str) {
        self.words(at, size, Anchor::Start, INK, " font-weight=\"bold\"", words);
    }

    /// Adds text that runs upwards.
    pub fn text_upwards(&mut self, at: (f64, f64), size: u32, colour: &str, words: &str) {
        let turned = format!(" transform=\"rotate(-90 {:.1} {:.1})\"", at.0, at.1);
        self.words(at, size, Anchor::Middle, colour, &turned, words);
    }

    fn words(
        &mut self,
        (x, y): (f64, f64),
        size: u32,
        anchor: Anchor,
        colour: &str,
        more: &str,
        words: &str,
    ) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let words = words.replace('&', "&amp;").replace('<', "&lt;");
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

    pub fn curve(&mut self, points: &[(f64, f64)], style: Style) {
        let points: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let Style { colour, width, dashed, .. } = style;
        let dashes = if dashed { " stroke-dasharray=\"6 4\"" } else { "" };
        self.add(format!(
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"{width}\" \
             stroke-linejoin=\"round\"{dashes}/>",
            points.join(" ")
        ));
    }

    pub fn mark(&mut self, (x, y): (f64, f64), style: Style) {
        let (colour, r) = (style.colour, 2.2 + style.width * 0.8);
        let polygon = |corners: &[(f64, f64)]| {
            let corners: Vec<String> = corners
                .iter()
                .map(|(dx, dy)| format!("{:.1},{:.1}", x + dx * r, y + dy * r))
                .collect();
            format!("<polygon points=\"{}\" fill=\"{colour}\"/>", corners.join(" "))
        };
        self.add(match style.mark {
            Mark::Circle => {
                format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{r:.1}\" fill=\"{colour}\"/>")
            }
            Mark::Square => polygon(&[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)]),
            Mark::Triangle => polygon(&[(0.0, -1.2), (1.1, 0.9), (-1.1, 0.9)]),
            Mark::None => return,
            Mark::Diamond => polygon(&[(0.0, -1.3), (1.1, 0.0), (0.0, 1.3), (-1.1, 0.0)]),
        });
    }

    fn add(&mut self, element: String) {
        self.body += &element;
        self.body.push('\n');
    }

    pub fn finish(self) -> String {
        let Drawing { width, height, body } = self;
        let mut svg = String::new();
        write!(
            svg,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" font-family=\"Helvetica, Arial, sans-serif\">\n\
             <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n{body}</svg>\n"
        )
        .expect("a string takes all");
        svg
    }
}
