//! Whether the filter of a state is what a builder asks for.

use crate::filter::builder::Settings;
use crate::layout::sizing::Layout;
use crate::window::Window;
use std::fmt;

/// A setting that a filter does not have, and cannot get any more.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Mismatch {
    /// The filter has a fixed size, and this setting is for one that grows.
    FixedSize { asked: &'static str },
    /// The filter has a fixed size, and a smaller capacity.
    Capacity { has: usize, asked: usize },
    /// The filter was made for a higher false-positive rate.
    Rate { has: f64, asked: f64 },
    /// The filter remembers items for another number of ticks, or for ever.
    Ticks { has: Option<u32>, asked: u32 },
    /// The filter forgets items after another time, or never, or by ticks that do not follow the system's clock.
    Window { has: Option<Window>, asked: Window },
    /// The filter was made for less growth.
    Growth { has: f64, asked: f64 },
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Mismatch::FixedSize { asked } => {
                write!(f, "its filter has a fixed size, and the program asks for {asked}")
            }
            Mismatch::Capacity { has, asked } => write!(
                f,
                "its filter has a fixed size, for {has} items, and the program asks for .capacity({asked})"
            ),
            Mismatch::Rate { has, asked } => write!(
                f,
                "its filter was made for a false-positive rate of {has:.1e}, and the program asks for \
                 .false_positive_rate({asked:e})"
            ),
            Mismatch::Ticks { has: Some(has), asked } => write!(
                f,
                "its filter remembers items for {has} ticks, and the program asks for .remembers({asked})"
            ),
            Mismatch::Ticks { has: None, asked } => write!(
                f,
                "its filter remembers items for ever, and the program asks for .remembers({asked})"
            ),
            Mismatch::Window { has: Some(has), asked } => write!(
                f,
                "its filter forgets items after {has}, and the program asks for .forgets_after() with {asked}"
            ),
            Mismatch::Window { has: None, asked } => write!(
                f,
                "its filter forgets items never, or not by the system's clock, and the program asks for \
                 .forgets_after() with {asked}"
            ),
            Mismatch::Growth { has, asked } => write!(
                f,
                "its filter was made to grow by a factor of {has}, and the program asks for \
                 .expected_growth({asked})"
            ),
        }
    }
}

/// Checks that a filter with this layout and this window of time is what was asked for. Only what was set counts. The
/// filter may be better: it may have a lower rate or, if its size is fixed, a larger capacity. One that grows may have
/// begun with any capacity, and its limit of memory can be replaced.
pub(super) fn check(
    asked: &Settings,
    filter: &Layout,
    time: Option<Window>,
) -> Result<(), Mismatch> {
    let &Settings { capacity, false_positive_rate, remembers, window, grows, .. } = asked;
    let &Settings { expected_growth, max_bytes, .. } = asked;
    if !filter.grows {
        let of_growth = [
            (grows, ".growing()"),
            (expected_growth.is_some(), ".expected_growth()"),
            (max_bytes.is_some(), ".max_bytes()"),
        ];
        if let Some((_, asked)) = of_growth.into_iter().find(|(is_set, _)| *is_set) {
            return Err(Mismatch::FixedSize { asked });
        }
        let has = filter.capacity;
        if let Some(asked) = capacity.filter(|asked| *asked > has) {
            return Err(Mismatch::Capacity { has, asked });
        }
    }
    if let Some(asked) = window.filter(|asked| time != Some(*asked)) {
        return Err(Mismatch::Window { has: time, asked });
    }
    let lanes = filter.lanes();
    let has = lanes.forgets().then(|| lanes.remembers().into());
    if let Some(asked) = remembers.filter(|asked| has != Some(*asked)) {
        return Err(Mismatch::Ticks { has, asked });
    }
    // Neither is true of a number that is none.
    let keeps = |asked: f64| filter.rate <= asked;
    let lasts = |asked: f64| filter.expected_growth >= asked;
    if let Some(asked) = false_positive_rate.filter(|asked| !keeps(*asked)) {
        return Err(Mismatch::Rate { has: filter.rate, asked });
    }
    match expected_growth.filter(|asked| !lasts(*asked)) {
        Some(asked) => Err(Mismatch::Growth { has: filter.expected_growth, asked }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_is_what_its_own_builder_asks_for() {
        let capacities = [0, 1, 100, 10_000_000, 1 << 36, 1u64 << 38];
        for capacity in capacities.into_iter().filter_map(|it| usize::try_from(it).ok()) {
            for rate in [0.5, 0.061, 0.027, 0.01, 0.001, 1e-4, 5.3e-5, 1e-5, 1e-6, 1e-7, 1e-8] {
                for remembers in [None, Some(1), Some(62)] {
                    for growth in [None, Some(1.0), Some(300.0), Some(8_192.0)] {
                        let asked = Settings {
                            capacity: Some(capacity),
                            false_positive_rate: Some(rate),
                            remembers,
                            window: None,
                            grows: growth.is_some(),
                            expected_growth: growth,
                            ..Settings::default()
                        };
                        // Not all combinations are filters.
                        if let Ok(filter) = asked.layout() {
                            assert_eq!(check(&asked, &filter, None), Ok(()), "{asked:?}");
                        }
                    }
                }
            }
        }
    }
}
