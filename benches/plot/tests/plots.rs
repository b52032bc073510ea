//! What is drawn, of good figures and of bad ones. The committed pictures show the rest: `.ci/benches` draws them again.

use koel_plot::{Axis, Bar, BarRow, Bars, Chart, Curve, Plot, Point, Row, Style};
use std::io::Write;
use std::process::{Command, Stdio};

/// Draws rows, and checks that the result is a drawing.
fn drawn(rows: Vec<Row>) -> String {
    let svg = Plot { width: 1000, rows, ..Plot::default() }.svg();
    let body = svg.strip_prefix("<svg ").and_then(|svg| svg.strip_suffix("</svg>\n")).unwrap();
    for element in body.lines().skip(1) {
        let whole = element.ends_with("/>") || element.ends_with("</text>");
        assert!(element.starts_with('<') && whole, "{element}");
        assert!(!element.contains("NaN") && !element.contains("inf"), "{element}");
    }
    svg
}

fn chart(log: bool, points: &[(f64, f64)]) -> Row {
    let axis = || Axis { log, ..Axis::default() };
    let points = points.iter().map(|&(x, y)| Point { x, y, hollow: false }).collect();
    let curves = vec![Curve { style: Style::default(), points }];
    let chart = Chart { x: axis(), y: axis(), curves, ..Chart::default() };
    Row::Charts { height: 200, charts: vec![chart] }
}

fn bars(high: Option<f64>, bars: &[Bar]) -> Row {
    let rows = bars.iter().map(|bar| BarRow { name: "a".into(), cells: vec![vec![bar.clone()]] });
    Row::Bars(Bars { high, rows: rows.collect(), ..Bars::default() })
}

fn bar(value: f64, label: &str) -> Bar {
    Bar { value: Some(value), label: label.into(), ..Bar::default() }
}

/// The values of an attribute of these elements.
fn figures(svg: &str, element: &str, attribute: &str) -> Vec<f64> {
    let elements = svg.lines().filter(|line| line.starts_with(&format!("<{element} ")));
    let values = elements.filter_map(|line| {
        let (_, rest) = line.split_once(&format!(" {attribute}=\""))?;
        rest.split('"').next()?.parse().ok()
    });
    values.collect()
}

#[test]
fn a_point_without_a_place_is_a_gap() {
    let points =
        |y| [(1.0, 1.0), (2.0, 2.0), (3.0, y), (4.0, 4.0), (5.0, 5.0), (f64::NAN, 6.0), (7.0, y)];
    for (log, y, curves) in [
        (true, 0.0, 2),
        (true, -1.0, 2),
        (true, f64::INFINITY, 2),
        (false, f64::NAN, 2),
        (false, 0.0, 1),
    ] {
        let svg = drawn(vec![chart(log, &points(y))]);
        assert_eq!(svg.matches("<polyline").count(), curves, "{y}, {log}: {svg}");
    }
}

#[test]
fn few_figures_make_a_drawing() {
    let one = (2.0, 3.0);
    for points in [&[][..], &[one], &[one, one], &[(0.0, 0.0)], &[(f64::NAN, 1.0)]] {
        drawn(vec![chart(false, points), chart(true, points)]);
    }
    for figures in [&[][..], &[Bar::default()], &[bar(0.0, "zero")], &[bar(f64::NAN, "none")]] {
        drawn(vec![bars(None, figures), bars(Some(1.0), figures)]);
    }
}

#[test]
fn bars_are_as_long_as_their_figures_and_torn_beyond_the_end() {
    let long = Bar { high: Some(150.0), low: Some(90.0), ..bar(130.0, "130") };
    let short = bar(3.25, "3.25, with something that is said of it at length");
    for (high, ratio, torn) in [(None, 130.0 / 3.25, 0), (Some(26.0), 26.0 / 3.25, 1)] {
        let svg = drawn(vec![bars(high, &[long.clone(), short.clone()])]);
        let widths = figures(&svg, "rect", "width");
        let [long, short] = widths.last_chunk().unwrap();
        assert!((long / short - ratio).abs() < 0.2, "{widths:?}");
        assert_eq!(svg.matches("<polygon").count(), torn, "{svg}");
        // The label is beyond the line from the least to the most.
        let end = figures(&svg, "line", "x2").into_iter().fold(0.0, f64::max);
        assert!(figures(&svg, "text", "x")[1] > end, "{svg}");
    }
}

#[test]
fn the_program_draws_json() {
    let file = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("plot.svg");
    let run = |json: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_koel-plot"));
        let mut child = command.arg(&file).stdin(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(json.as_bytes()).unwrap();
        child.wait().unwrap().success()
    };
    let json = r##"{"title": "<from> & \"JSON\"", "width": 500, "rows": [
        {"charts": {"height": 100, "charts": [{"x": {"log": true, "ticks": [[1, "one"]]},
            "curves": [{"style": {"colour": "#123456", "mark": "square"}, "points": [{"x": 1, "y": 2}]}]}]}},
        {"bars": {"columns": ["a"], "rows": [{"name": "koel", "cells": [[{"value": 3, "label": "3"}]]}]}}]}"##;
    assert!(run(json));
    let drawn = || std::fs::read_to_string(&file).unwrap();
    let svg = drawn();
    for part in [">&lt;from> &amp; &quot;JSON&quot;<", ">one<", "fill=\"#123456\"", ">koel<", ">3<"]
    {
        assert!(svg.contains(part), "{part}: {svg}");
    }
    for json in ["", "[1]", "{\"titel\": \"a\"}", "{\"width\": -1}", "{\"rows\": [{\"pies\": {}}]}"]
    {
        assert!(!run(json) && drawn() == svg, "{json}");
    }
}
