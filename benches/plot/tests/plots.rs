//! Drawings of few figures and of bad ones. Good ones are in the committed pictures, which `.ci/benches` draws again.

use koel_plot::{Axis, Bar, BarRow, Bars, Chart, Curve, Plot, Point, Row, Style};
use std::io::Write;
use std::process::{Command, Stdio};

fn chart(log: bool, points: &[(f64, f64)]) -> Row {
    let axis = || Axis { log, ..Axis::default() };
    let points = points.iter().map(|&(x, y)| Point { x, y, hollow: false }).collect();
    let curves = vec![Curve { style: Style::default(), points }];
    let chart = Chart { x: axis(), y: axis(), curves, ..Chart::default() };
    Row::Charts { height: 200, charts: vec![chart] }
}

fn bars(low: Option<f64>, value: Option<f64>) -> Row {
    let bar = Bar { value, label: "a figure".into(), ..Bar::default() };
    let rows = vec![BarRow { name: "a".into(), cells: vec![vec![bar]] }];
    Row::Bars(Bars { low, rows, ..Bars::default() })
}

#[test]
fn few_figures_and_bad_ones_make_a_drawing() {
    let (one, bad) = ((2.0, 3.0), (f64::NAN, 1.0));
    let some = [&[][..], &[one], &[one, one], &[(0.0, 0.0)], &[bad], &[one, bad, one]];
    let charts = some.iter().flat_map(|points| [chart(false, points), chart(true, points)]);
    let values = [None, Some(0.0), Some(3.0), Some(-1.0), Some(f64::INFINITY)];
    let bars = values.into_iter().flat_map(|value| [bars(None, value), bars(Some(1.0), value)]);
    for row in charts.chain(bars).chain([Row::Bars(Bars::default())]) {
        let svg = Plot { width: 1000, rows: vec![row], ..Plot::default() }.svg();
        let body = svg.strip_prefix("<svg ").and_then(|svg| svg.strip_suffix("</svg>\n")).unwrap();
        for element in body.lines().skip(1) {
            let whole = element.ends_with("/>") || element.ends_with("</text>");
            assert!(element.starts_with('<') && whole, "{element}");
            assert!(!element.contains("NaN") && !element.contains("inf"), "{element}");
        }
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
    let drawn = || std::fs::read_to_string(&file).unwrap();
    assert!(run(r#"{"title": "<from> & \"JSON\"", "rows": [{"bars": {"columns": ["a"]}}]}"#));
    let svg = drawn();
    assert!(svg.contains(">&lt;from> &amp; &quot;JSON&quot;<") && svg.contains(">a<"), "{svg}");
    for json in ["", "[1]", "{\"titel\": \"a\"}", "{\"width\": -1}", "{\"rows\": [{\"pies\": {}}]}"]
    {
        assert!(!run(json) && drawn() == svg, "{json}");
    }
}
