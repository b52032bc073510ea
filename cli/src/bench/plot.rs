//! The results as a plot: throughput by number of threads, with a chart for each group of workloads
//! and a curve for each workload.
//!
//! Both axes are logarithmic, so that linear scaling has the same slope everywhere, and slow
//! workloads are as readable as fast ones. Each curve is labelled at its end.

use super::table::Figures;
use super::workloads::{GROUPS, Workload};
use koel_plot::{Axis, Chart, Charts, Curve, Mark, Plot, Row, Style};

/// Draws the plot. `about` is a description in two lines.
pub fn svg(figures: &Figures<'_>, about: &str) -> String {
    let threads = || figures.threads.iter();
    let all = GROUPS.iter().flat_map(|(_, workloads)| *workloads);
    let rates = all.flat_map(|&workload| threads().map(move |&n| figures.of(workload, n)));
    let rates: Vec<f64> = rates.collect();
    let chart = |(at, (group, workloads)): (usize, &(&str, &[Workload]))| Chart {
        title: (*group).into(),
        x: Axis {
            label: "threads".into(),
            log: true,
            ticks: threads().map(|&n| (n as f64, n.to_string())).collect(),
            ..Axis::default()
        },
        y: Axis {
            // The labels of the curves take its place in the other charts.
            label: if at == 0 { "million operations / s".into() } else { String::new() },
            log: true,
            covers: rates.clone(),
            ..Axis::default()
        },
        curves: workloads.iter().map(|&workload| curve(figures, workload)).collect(),
    };
    let charts = GROUPS.iter().enumerate().map(chart).collect();
    let plot = Plot {
        title: "koel: throughput by threads".into(),
        about: about.lines().map(String::from).collect(),
        width: 1240,
        rows: vec![Row::Charts(Charts { height: 330, charts })],
        ..Plot::default()
    };
    plot.svg()
}

fn curve(figures: &Figures<'_>, workload: Workload) -> Curve {
    let points = figures.threads.iter().map(|&n| (n as f64, figures.of(workload, n)));
    Curve { label: workload.name().into(), ..Curve::new(style(workload), points) }
}

/// Returns the style of a workload. Workloads of one kind look the same in each chart.
fn style(workload: Workload) -> Style {
    let (colour, mark) = match workload {
        Workload::Insert | Workload::InsertMany | Workload::InsertGrowing => {
            ("#d62f0e", Mark::Circle)
        }
        Workload::InsertKnown => ("#a67c00", Mark::Triangle),
        Workload::Hit | Workload::HitMany | Workload::HitGrowing => ("#34618e", Mark::Square),
        Workload::Miss | Workload::MissGrowing => ("#3a9ab0", Mark::Diamond),
        Workload::Remove => ("#6b6b6b", Mark::Square),
        Workload::Mix => ("#2f8a66", Mark::Triangle),
    };
    Style { colour: colour.into(), mark, ..Style::default() }
}
