//! Draws figures as SVG: curves over two axes, and tables of horizontal bars.
//!
//! A [`Plot`] says what is shown: names, figures, and how each curve looks. Where all of it goes follows from
//! that: the ticks of an axis, the room for labels, the lines of a legend.
//!
//! ```
//! use koel_plot::{Axis, Chart, Curve, Entry, Plot, Point, Row, Style};
//!
//! let style = Style { colour: "#34618e".into(), ..Style::default() };
//! let points = [(1.0, 40.0), (2.0, 78.0)].map(|(x, y)| Point { x, y, hollow: false }).into();
//! let plot = Plot {
//!     title: "Throughput by threads".into(),
//!     width: 600,
//!     rows: vec![Row::Charts {
//!         height: 200,
//!         charts: vec![Chart {
//!             x: Axis { label: "threads".into(), log: true, ..Axis::default() },
//!             y: Axis { label: "million operations / s".into(), ..Axis::default() },
//!             curves: vec![Curve { style: style.clone(), points }],
//!             ..Chart::default()
//!         }],
//!     }],
//!     legend: vec![Entry { name: "lookups".into(), style, hollow: false }],
//!     ..Plot::default()
//! };
//! assert!(plot.svg().starts_with("<svg "));
//! ```
//!
//! The program `koel-plot` draws bars that are written as JSON, for those who have their figures elsewhere. The
//! names of its fields are those of the structs, and all of them may be left out but the width:
//!
//! ```sh
//! echo '{"width": 600, "rows": [{"bars": {"rows": [{"name": "koel", "cells": [[{"value": 3}]]}]}}]}' |
//!     koel-plot bytes.svg
//! ```
//!
//! A figure that is not a number, or that its axis has no place for (a zero where it is logarithmic), is not
//! drawn.
//!
//! Reading order: `plot` → `page` → `chart` and `bars` → `scale` → `svg`.

mod bars;
mod chart;
mod page;
mod plot;
mod scale;
mod svg;

pub use plot::{Axis, Bar, BarRow, Bars, Chart, Curve, Entry, Mark, Plot, Point, Row, Style};
