//! What a picture shows, but not where on the page.

use serde::Deserialize;

/// A picture: a title, then rows of charts or bars, one below the other.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Plot {
    /// The heading.
    pub title: String,
    /// Lines below the title.
    pub about: Vec<String>,
    /// The width of the picture in pixels. The height follows from what is in it.
    pub width: u32,
    /// What is drawn, from the top down.
    pub rows: Vec<Row>,
    /// The names of the styles: in one line above the rows if they fit, else below them.
    pub legend: Vec<Entry>,
    /// Lines at the end.
    pub notes: Vec<String>,
}

/// What goes from the left side of a picture to the right.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Row {
    /// Charts of one size, side by side. They are not written as JSON.
    #[serde(skip)]
    Charts {
        /// The height of the area between the axes, in pixels.
        height: u32,
        /// From left to right.
        charts: Vec<Chart>,
    },
    /// Bars, in columns side by side.
    Bars(Bars),
}

/// Curves over two axes.
#[derive(Clone, Debug, Default)]
pub struct Chart {
    /// The heading.
    pub title: String,
    /// The axis at the bottom.
    pub x: Axis,
    /// The axis at the left.
    pub y: Axis,
    /// A curve covers those before it.
    pub curves: Vec<Curve>,
}

/// An axis, as far as the figures along it.
#[derive(Clone, Debug, Default)]
pub struct Axis {
    /// What is measured, and its unit.
    pub label: String,
    /// Whether the axis is logarithmic. A linear one begins at zero.
    pub log: bool,
    /// The places that are named. Without any, these are round numbers.
    pub ticks: Vec<(f64, String)>,
}

/// Points that are connected in their order.
#[derive(Clone, Debug, Default)]
pub struct Curve {
    /// How it looks.
    pub style: Style,
    /// The figures.
    pub points: Vec<Point>,
}

/// A point of a curve.
#[derive(Clone, Copy, Debug, Default)]
pub struct Point {
    /// Where it is on the axis at the bottom.
    pub x: f64,
    /// Where it is on the axis at the left.
    pub y: f64,
    /// Whether only the outline of its mark is drawn.
    pub hollow: bool,
}

/// How a curve looks.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Style {
    /// A colour as SVG has them: `#34618e`.
    pub colour: String,
    /// The width of the line in pixels.
    pub width: f64,
    /// What is drawn at each point.
    pub mark: Mark,
    /// Whether the line is dashed.
    pub dashed: bool,
}

impl Default for Style {
    fn default() -> Self {
        Style { colour: "#222222".into(), width: 2.0, mark: Mark::None, dashed: false }
    }
}

/// What is drawn at each point of a curve.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum Mark {
    #[default]
    None,
    Circle,
    Square,
    Triangle,
    Diamond,
    /// A piece of a bar, for legends of bars. It has no line.
    Bar,
}

/// The name of a style.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Entry {
    /// What looks like this.
    pub name: String,
    /// How it looks.
    pub style: Style,
    /// Whether only the outline of its mark is drawn.
    pub hollow: bool,
}

/// A table of horizontal bars. All of them have one length per unit in a column.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Bars {
    /// The heading.
    pub title: String,
    /// The heading of each column. A single column may have none.
    pub columns: Vec<String>,
    /// Where lengths begin if they are logarithms. Otherwise they begin at zero.
    pub low: Option<f64>,
    /// What the longest bar stands for. Longer ones are drawn torn. Without it, the greatest value of a column.
    pub high: Option<f64>,
    /// From the top down.
    pub rows: Vec<BarRow>,
}

/// A name, and bars at the right of it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BarRow {
    /// What is measured.
    pub name: String,
    /// The bars in each column, one below the other.
    pub cells: Vec<Vec<Bar>>,
}

/// A bar.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Bar {
    /// Its length. Without it, the label tells why there is none.
    pub value: Option<f64>,
    /// The least that was measured.
    pub low: Option<f64>,
    /// The most that was measured.
    pub high: Option<f64>,
    /// The text at its end.
    pub label: String,
    /// A colour as SVG has them.
    pub colour: String,
}
