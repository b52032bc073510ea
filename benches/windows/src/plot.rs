//! The picture of twenty windows: items, memory and rate.

use crate::axes::{Axis, Frame};
use crate::peer::{RATE, WINDOW};
use crate::report::Line;
use crate::stream::Moment;
use crate::svg::{Anchor, Drawing, FAINT, INK, Mark, Style};

type Points = Vec<(f64, f64)>;

pub fn window(lines: &[Line]) -> String {
    let mut drawing = Drawing::new(1000.0, 850.0);
    let title = "Twenty windows, of which the tenth and the eleventh have twice as many keys";
    drawing.heading((24.0, 32.0), 18, title);
    let windows = lines.iter().map(|line| line.moments.len() as u64 / WINDOW).max().unwrap_or(1);
    let ticks =
        (0..=windows).step_by(2).map(|window| (window as f64, window.to_string())).collect();
    let x =
        Axis { label: "windows".into(), low: 0.0, high: windows as f64, logarithmic: false, ticks };
    let at = |moment: &Moment| (moment.tick + 1) as f64 / WINDOW as f64;
    let frame = |top| Frame { left_top: (90.0, top), width: 860.0, height: 150.0 };

    let items: Points = lines.first().map_or(Vec::new(), |line| {
        line.moments.iter().map(|moment| (at(moment), moment.items as f64 / 1e6)).collect()
    });
    let plain = Style { colour: INK, mark: Mark::None, width: 2.0, dashed: false };
    panel(&mut drawing, frame(80.0), "keys of the window", (&x, "million"), &[(items, plain)]);

    let memory: Vec<(Points, Style)> = lines
        .iter()
        .map(|line| {
            let points = line.moments.iter().map(|moment| (at(moment), moment.bytes as f64 / 1e6));
            (points.collect(), style(line.name))
        })
        .collect();
    panel(&mut drawing, frame(310.0), "memory", (&x, "MB"), &memory);

    let rates: Vec<(Points, Style)> = lines
        .iter()
        .map(|line| {
            let rate = |moment: &Moment| (at(moment), 100.0 * moment.false_positive_rate);
            (line.moments.iter().map(rate).collect(), style(line.name))
        })
        .collect();
    let title = format!("false positives ({} % was asked for)", 100.0 * RATE);
    panel(&mut drawing, frame(540.0), &title, (&x, "percent"), &rates);

    let mut left = 90.0;
    for line in lines {
        let style = style(line.name);
        drawing.curve(&[(left, 780.0), (left + 34.0, 780.0)], style);
        drawing.text((left + 42.0, 784.0), 13, Anchor::Start, INK, line.name);
        left += 80.0 + 7.2 * line.name.len() as f64;
    }
    let note = "At the end of each tick, a seventh of a window. Keys stay for 7 to 8 ticks in koel and in 8 \
                Blooms, 8 to 12 in 3, 7 to 14 in 2.";
    drawing.text((90.0, 820.0), 13, Anchor::Start, FAINT, note);
    drawing.finish()
}

fn panel(
    drawing: &mut Drawing,
    frame: Frame,
    title: &str,
    (x, unit): (&Axis, &str),
    curves: &[(Points, Style)],
) {
    let most =
        curves.iter().flat_map(|(points, _)| points).map(|point| point.1).fold(0.0, f64::max);
    let y = up_to(unit, most);
    frame.draw(drawing, title, x, &y);
    for (points, style) in curves.iter().rev() {
        frame.curve(drawing, (x, &y), points, *style);
    }
}

/// Returns an axis from zero to a round number above `most`.
fn up_to(label: &str, most: f64) -> Axis {
    let power = 10_f64.powf((most.max(1e-9) / 4.0).log10().floor());
    let steps = [1.0, 2.0, 2.5, 5.0, 10.0].map(|step| step * power);
    let step = steps.into_iter().find(|step| step * 4.0 >= most).unwrap_or(most);
    let count = (most / step).ceil().max(1.0);
    let digits = (-step.log10().floor()).max(0.0) as usize + usize::from(step / power == 2.5);
    let ticks = (0..=count as u32).map(|at| f64::from(at) * step);
    let ticks = ticks.map(|value| (value, format!("{value:.digits$}"))).collect();
    Axis { label: label.into(), low: 0.0, high: count * step, logarithmic: false, ticks }
}

fn style(name: &str) -> Style {
    let (colour, width) = match name {
        "koel, growing" => ("#d62f0e", 3.2),
        "fastbloom, 2 rotated" => ("#4c78a8", 1.7),
        "fastbloom, 3 rotated" => ("#3f9c7a", 1.7),
        _ => ("#c9a227", 1.7),
    };
    Style { colour, mark: Mark::None, width, dashed: false }
}
