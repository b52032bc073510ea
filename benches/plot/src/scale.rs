//! How far an axis goes, where its ticks are, and where a value is on it.

use crate::plot::Axis;

pub struct Scale {
    pub log: bool,
    pub low: f64,
    pub high: f64,
    pub ticks: Vec<(f64, String)>,
}

/// About as many steps as a linear axis has.
const STEPS: f64 = 5.0;

impl Scale {
    /// Returns a scale for these values: to the outermost ticks if they are given, else to round numbers.
    pub fn of(axis: &Axis, values: impl Iterator<Item = f64>) -> Scale {
        let log = axis.log;
        let all = values.chain(axis.ticks.iter().map(|tick| tick.0));
        let (low, high) = ends(log, all);
        match log {
            _ if !axis.ticks.is_empty() => Scale { log, low, high, ticks: axis.ticks.clone() },
            true => Scale::of_decades(low, high),
            false => Scale::of_steps(high),
        }
    }

    /// Creates a logarithmic scale with up to four ticks in each power of ten.
    fn of_decades(low: f64, high: f64) -> Scale {
        let steps: &[u32] = match high.log10() - low.log10() {
            ..1.5 => &[1, 2, 3, 5],
            ..4.0 => &[1, 2, 5],
            _ => &[1],
        };
        let powers = low.log10().floor() as i32..=high.log10().floor() as i32 + 1;
        let rungs = powers.flat_map(|power| {
            let rung = move |step: &u32| (f64::from(*step) * 10_f64.powi(power), power);
            steps.iter().map(rung)
        });
        let rungs: Vec<(f64, i32)> = rungs.collect();
        let first = rungs.iter().rposition(|rung| rung.0 <= low).unwrap_or(0);
        let last = rungs.iter().position(|rung| rung.0 >= high && rung.0 > rungs[first].0);
        let rungs = &rungs[first..=last.unwrap_or(rungs.len() - 1)];
        let name = |&(value, power): &(f64, i32)| named(value, (-power).max(0) as usize);
        let (low, high) = (rungs[0].0, rungs[rungs.len() - 1].0);
        Scale { log: true, low, high, ticks: rungs.iter().map(name).collect() }
    }

    /// Creates a linear scale with ticks at round numbers, from zero on.
    fn of_steps(high: f64) -> Scale {
        let high = if high > 0.0 { high } else { 1.0 };
        let power = 10_f64.powf((high / STEPS).log10().floor());
        let steps = [1.0, 2.0, 2.5, 5.0, 10.0].map(|step| step * power);
        let step = steps.into_iter().find(|step| step * STEPS >= high).unwrap_or(high);
        let count = (high / step).ceil();
        let is_enough = |digits: &i32| {
            let scaled = step * 10_f64.powi(*digits);
            (scaled - scaled.round()).abs() < 1e-6
        };
        let digits = (0..6).find(is_enough).unwrap_or(6) as usize;
        let ticks = (0..=count as u32).map(|at| named(f64::from(at) * step, digits));
        Scale { log: false, low: 0.0, high: count * step, ticks: ticks.collect() }
    }

    /// Returns the position of a value between the ends, from 0 to 1.
    pub fn place(&self, value: f64) -> f64 {
        let scale = |value: f64| if self.log { value.ln() } else { value };
        let place = (scale(value) - scale(self.low)) / (scale(self.high) - scale(self.low));
        if place.is_nan() { 0.5 } else { place.clamp(0.0, 1.0) }
    }
}

fn named(value: f64, digits: usize) -> (f64, String) {
    (value, format!("{value:.digits$}"))
}

/// Whether a value can be drawn.
pub fn has_place(log: bool, value: f64) -> bool {
    value.is_finite() && (!log || value > 0.0)
}

/// Returns the least and the greatest of the values that can be drawn.
pub fn ends(log: bool, values: impl Iterator<Item = f64>) -> (f64, f64) {
    let drawn = values.filter(|value| has_place(log, *value));
    let ends = drawn.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
        (low.min(value), high.max(value))
    });
    if ends.0 <= ends.1 { ends } else { (1.0, 10.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_few() {
        for (log, values, names) in [
            (false, &[162.0][..], "0 50 100 150 200"),
            (false, &[0.7], "0.0 0.2 0.4 0.6 0.8"),
            (false, &[11.0], "0.0 2.5 5.0 7.5 10.0 12.5"),
            (false, &[0.0, f64::NAN, f64::INFINITY], "0.0 0.2 0.4 0.6 0.8 1.0"),
            (true, &[0.012, 0.11], "0.01 0.02 0.03 0.05 0.1 0.2"),
            (true, &[0.4, 67.0], "0.2 0.5 1 2 5 10 20 50 100"),
            (true, &[1e-3, 99.0, 0.0, -1.0], "0.001 0.01 0.1 1 10 100"),
            (true, &[5.0], "5 10"),
            (true, &[], "1 2 3 5 10"),
        ] {
            let axis = Axis { log, ..Axis::default() };
            let ticks = Scale::of(&axis, values.iter().copied()).ticks;
            let found: Vec<String> = ticks.into_iter().map(|tick| tick.1).collect();
            assert_eq!(found.join(" "), names);
        }
    }
}
