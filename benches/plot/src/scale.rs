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
        let ticks: Vec<_> =
            axis.ticks.iter().filter(|tick| has_place(log, tick.0)).cloned().collect();
        let named = ticks.iter().map(|tick| tick.0);
        let all = values.chain(named);
        let all = all.filter(|&value| has_place(log, value));
        let (low, high) = all.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
            (low.min(value), high.max(value))
        });
        let (low, high) = match (low <= high, log) {
            (true, _) => (low, high),
            (false, true) => (1.0, 10.0),
            (false, false) => (0.0, 1.0),
        };
        match log {
            _ if !ticks.is_empty() => Scale { log, low, high, ticks },
            true => Scale::of_decades(low, high),
            false => Scale::of_steps(low.min(0.0), high.max(0.0)),
        }
    }

    /// Creates a logarithmic scale with up to four ticks in each power of ten.
    fn of_decades(low: f64, high: f64) -> Scale {
        let decades = high.log10() - low.log10();
        let steps: &[u32] = match decades {
            ..1.5 => &[1, 2, 3, 5],
            ..4.0 => &[1, 2, 5],
            _ => &[1],
        };
        let stride = (decades / 8.0).ceil().max(1.0) as i32;
        let first = (low.log10().floor() as i32).div_euclid(stride) * stride;
        let last = high.log10().floor() as i32 + stride;
        let powers = (first..=last).step_by(stride as usize);
        let rungs = powers.flat_map(|power| {
            steps.iter().map(move |&step| (f64::from(step) * 10_f64.powi(power), step, power))
        });
        let rungs: Vec<(f64, u32, i32)> = rungs.collect();
        let first = rungs.iter().rposition(|rung| rung.0 <= low).unwrap_or(0);
        let last = rungs.iter().position(|rung| rung.0 >= high && rung.0 > rungs[first].0);
        let rungs = &rungs[first..=last.unwrap_or(rungs.len() - 1)];
        let name = |&(value, step, power): &(f64, u32, i32)| match power {
            -6..=6 => (value, format!("{value:.*}", (-power).max(0) as usize)),
            _ => (value, format!("{step}e{power}")),
        };
        let (low, high) = (rungs[0].0, rungs[rungs.len() - 1].0);
        Scale { log: true, low, high, ticks: rungs.iter().map(name).collect() }
    }

    /// Creates a linear scale with ticks at round numbers.
    fn of_steps(low: f64, high: f64) -> Scale {
        let high = if high > low { high } else { low + 1.0 };
        let span = high - low;
        let power = 10_f64.powf((span / STEPS).log10().floor());
        let steps = [1.0, 2.0, 2.5, 5.0, 10.0].map(|step| step * power);
        let step = steps.into_iter().find(|step| step * STEPS >= span).unwrap_or(span);
        let first = (low / step).floor();
        let count = ((high / step).ceil() - first).max(1.0);
        let whole = |digits: &usize| {
            let scaled = step * 10_f64.powi(*digits as i32);
            (scaled - scaled.round()).abs() < 1e-6
        };
        let digits = (0..=6).find(whole).filter(|_| step >= 1e-6 && span < 1e9);
        let name = |value: f64| match digits {
            Some(digits) => format!("{value:.digits$}"),
            None if value == 0.0 => "0".into(),
            None => format!("{value:.1e}"),
        };
        let ticks = (0..=count as u32).map(|at| (first + f64::from(at)) * step);
        let ticks: Vec<_> = ticks.map(|value| (value, name(value))).collect();
        Scale { log: false, low: first * step, high: (first + count) * step, ticks }
    }

    /// Returns the position of a value between the ends, from 0 to 1.
    pub fn place(&self, value: f64) -> f64 {
        let scale = |value: f64| if self.log { value.ln() } else { value };
        let span = scale(self.high) - scale(self.low);
        let place = (scale(value) - scale(self.low)) / span;
        if span > 0.0 && place.is_finite() { place.clamp(0.0, 1.0) } else { 0.5 }
    }
}

/// Whether a value can be drawn on an axis.
pub fn has_place(log: bool, value: f64) -> bool {
    // Larger and smaller numbers are errors, whose ends could not be computed.
    value.is_finite() && value.abs() <= 1e100 && (!log || value >= 1e-100)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(log: bool, values: &[f64]) -> String {
        let axis = Axis { log, ..Axis::default() };
        let scale = Scale::of(&axis, values.iter().copied());
        let names: Vec<String> = scale.ticks.into_iter().map(|tick| tick.1).collect();
        names.join(" ")
    }

    #[test]
    fn linear_ticks_are_round_and_begin_at_zero() {
        for (most, names) in [
            (162.0, "0 50 100 150 200"),
            (0.7, "0.0 0.2 0.4 0.6 0.8"),
            (11.0, "0.0 2.5 5.0 7.5 10.0 12.5"),
            (101.0, "0 25 50 75 100 125"),
            (1e-12, "0 2.0e-13 4.0e-13 6.0e-13 8.0e-13 1.0e-12"),
            (0.0, "0.0 0.2 0.4 0.6 0.8 1.0"),
        ] {
            assert_eq!(named(false, &[most]), names);
        }
        assert_eq!(named(false, &[-3.0, 5.0]), "-4 -2 0 2 4 6");
    }

    #[test]
    fn logarithmic_ticks_are_fewer_on_long_axes() {
        assert_eq!(named(true, &[0.012, 0.11]), "0.01 0.02 0.03 0.05 0.1 0.2");
        assert_eq!(named(true, &[0.4, 67.0]), "0.2 0.5 1 2 5 10 20 50 100");
        assert_eq!(named(true, &[1e-7, 1.0]), "1e-7 0.000001 0.00001 0.0001 0.001 0.01 0.1 1");
        assert_eq!(named(true, &[1e-90, 1e90]).split(' ').count(), 9);
        assert_eq!(named(true, &[5.0]), "5 10");
    }

    #[test]
    fn what_has_no_place_is_left_out() {
        let bad = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX];
        assert_eq!(named(false, &bad), named(false, &[1.0]));
        assert_eq!(named(true, &[f64::NAN, 0.0, -1.0, 1e-300]), named(true, &[1.0, 10.0]));
        assert_eq!(named(true, &[0.0, 30.0]), named(true, &[30.0]));
    }

    #[test]
    fn given_ticks_are_the_ends_if_no_value_is_beyond_them() {
        let ticks = vec![(8.0, "8".into()), (256.0, "256".into()), (f64::NAN, "no".into())];
        let axis = Axis { log: true, ticks, ..Axis::default() };
        let scale = Scale::of(&axis, [16.0].into_iter());
        assert_eq!((scale.low, scale.high, scale.ticks.len()), (8.0, 256.0, 2));
        assert!((scale.place(128.0) - 0.8).abs() < 1e-9);
        assert_eq!((scale.place(0.0), scale.place(1e9)), (0.5, 1.0));
    }
}
