//! What is drawn, of good figures and of bad ones.

use koel_plot::{Axis, Bar, BarRow, Bars, Chart, Curve, Entry, Plot, Point, Row, Style};
use std::io::Write;
use std::process::{Command, Stdio};

/// Draws a plot, and checks that the result is a drawing.
fn drawn(plot: &Plot) -> String {
    let svg = plot.svg();
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"), "{svg}");
    let body = &svg[..svg.len() - "</svg>\n".len()];
    for element in body.lines().skip(1) {
        let whole = element.ends_with("/>") || element.ends_with("</text>");
        assert!(element.starts_with('<') && whole, "{element}");
        assert_eq!(element.matches('"').count() % 2, 0, "{element}");
        let figures = element.split('>').next().unwrap();
        assert!(!figures.contains("NaN") && !figures.contains("inf"), "{element}");
    }
    svg
}

fn chart(chart: Chart) -> Plot {
    let charts = Row::Charts { height: 200, charts: vec![chart] };
    Plot { title: "title".into(), rows: vec![charts], ..Plot::default() }
}

fn on_axes(log: bool, points: &[(f64, f64)]) -> Plot {
    let axis = || Axis { log, ..Axis::default() };
    let points = points.iter().map(|&(x, y)| Point { x, y, hollow: false }).collect();
    let curve = Curve { style: Style::default(), points };
    chart(Chart { x: axis(), y: axis(), curves: vec![curve], ..Chart::default() })
}

fn bars(bars: Bars) -> Plot {
    Plot { rows: vec![Row::Bars(bars)], ..Plot::default() }
}

fn row(name: &str, bar: Bar) -> BarRow {
    BarRow { name: name.into(), cells: vec![vec![bar]] }
}

fn bar(value: f64, label: &str) -> Bar {
    Bar { value: Some(value), label: label.into(), colour: "#34618e".into(), ..Bar::default() }
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
fn nothing_is_an_empty_picture() {
    for plot in [
        Plot::default(),
        chart(Chart::default()),
        on_axes(true, &[]),
        on_axes(false, &[]),
        bars(Bars::default()),
        bars(Bars { rows: vec![BarRow::default()], log: true, ..Bars::default() }),
        Plot { rows: vec![Row::Charts { height: 0, charts: Vec::new() }], ..Plot::default() },
    ] {
        let svg = drawn(&plot);
        assert!(!svg.contains("<polyline"), "{svg}");
    }
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
        (false, -1.0, 1),
    ] {
        let svg = drawn(&on_axes(log, &points(y)));
        assert_eq!(svg.matches("<polyline").count(), curves, "{y}, {log}: {svg}");
    }
}

#[test]
fn any_figures_make_a_drawing() {
    let any = [0.0, -0.0, 1.0, -1.0, 1e-9, 1e-310, 1e-99, 1e99, 1e200, f64::MAX, f64::MIN, 0.1];
    let any = any.into_iter().chain([f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e9 + 1.0]);
    let any: Vec<f64> = any.collect();
    for &one in &any {
        for &other in &any {
            for log in [false, true] {
                let points = [(one, other), (other, one)];
                drawn(&on_axes(log, &points));
                let spread = Bar { low: Some(other), high: Some(one), ..bar(one, "one") };
                let rows = vec![row("one", spread), row("other", bar(other, "other"))];
                drawn(&bars(Bars { log, rows: rows.clone(), ..Bars::default() }));
                let (low, high) = (Some(one), Some(other));
                drawn(&bars(Bars { log, low, high, rows, ..Bars::default() }));
            }
        }
    }
}

#[test]
fn bars_and_their_labels_fit_beside_each_other() {
    let rows = vec![
        row("plain keys", Bar { high: Some(150.0), low: Some(90.0), ..bar(130.0, "130") }),
        row("koel", bar(3.25, "3.25, with something that is said of it at length")),
    ];
    let svg = drawn(&bars(Bars { rows, ..Bars::default() }));
    assert!(!svg.contains('…'), "{svg}");
    let widths = figures(&svg, "rect", "width");
    let bars = &widths[widths.len() - 2..];
    assert!((bars[0] / bars[1] - 130.0 / 3.25).abs() < 0.2, "{bars:?}");
    let labels = figures(&svg, "text", "x");
    // The label is beyond the line from the least to the most.
    let end = figures(&svg, "line", "x2").into_iter().fold(0.0, f64::max);
    assert!(labels[1] > end && end > 100.0 && labels[1] < 980.0, "{svg}");
}

#[test]
fn a_bar_beyond_the_end_is_torn() {
    let rows = vec![row("slow", bar(900.0, "900")), row("fast", bar(10.0, "10"))];
    let svg = drawn(&bars(Bars { high: Some(20.0), rows, ..Bars::default() }));
    assert_eq!(svg.matches("<polygon").count(), 1, "{svg}");
    let widths = figures(&svg, "rect", "width");
    assert!((widths[widths.len() - 2] / widths[widths.len() - 1] - 2.0).abs() < 0.01, "{svg}");
}

#[test]
fn a_legend_is_above_if_it_fits_in_a_line() {
    let entry = |name: &str| Entry { name: name.into(), ..Entry::default() };
    let place = |legend: Vec<Entry>| {
        let point = Point { x: 1.0, y: 1.0, hollow: false };
        let curve = Curve { points: vec![point], ..Curve::default() };
        let plot = Plot {
            legend,
            ..chart(Chart { title: "a chart".into(), curves: vec![curve], ..Chart::default() })
        };
        let svg = drawn(&plot);
        svg.find(">a name").unwrap() < svg.find(">a chart").unwrap()
    };
    assert!(place(vec![entry("a name")]));
    assert!(!place(vec![entry("a name that is so long that two do not fit in a line"); 3]));
}

fn run(json: &str, file: &std::path::Path) -> (bool, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_koel-plot"))
        .arg(file)
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(json.as_bytes()).unwrap();
    let done = child.wait_with_output().unwrap();
    (done.status.success(), String::from_utf8(done.stderr).unwrap())
}

#[test]
fn the_program_draws_json() {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    let file = folder.join("plot.svg");
    std::fs::write(&file, "before").unwrap();
    for json in ["", "[1]", "{\"titel\": \"a\"}", "{\"width\": -1}", "{\"rows\": [{\"pies\": {}}]}"]
    {
        let (drawn, said) = run(json, &file);
        assert!(!drawn && said.contains("not a plot"), "{json}: {said}");
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "before");
    let json = r##"{"title": "from JSON", "rows": [
        {"charts": {"height": 100, "charts": [{"x": {"log": true, "ticks": [[1, "one"]]},
            "curves": [{"style": {"colour": "#123456", "mark": "square"}, "points": [{"x": 1, "y": 2}]}]}]}},
        {"bars": {"columns": ["a"], "rows": [{"name": "koel", "cells": [[{"value": 3, "label": "3"}]]}]}}]}"##;
    assert_eq!(run(json, &file), (true, String::new()));
    let svg = std::fs::read_to_string(&file).unwrap();
    for part in [">from JSON<", ">one<", "fill=\"#123456\"", ">koel<", ">3<"] {
        assert!(svg.contains(part), "{part}: {svg}");
    }
    let (drawn, said) = run(json, &folder.join("missing/plot.svg"));
    assert!(!drawn && said.contains("missing/plot.svg"), "{said}");
}
