//! For how long a filter remembers items, and what time it is there.
//!
//! A filter counts ticks and knows no clock. The number that it has for its present tick is made here, of
//! the length of a tick and of the ticks that have passed since 1970, so that the filter's file tells
//! both:
//!
//! ```text
//!  63                    36 35                                  0
//! |  seconds of one tick   |  seconds since 1970 / those of one  |
//! ```
//!
//! For one filter, these numbers grow with time.

use koel::ConcurrentCuckooFilter;
use std::fmt;
use std::time::SystemTime;

/// A window is divided into so many ticks, if it has as many seconds. With more than that, a stamp takes
/// more than four bits of each item.
const TICKS: u64 = 14;

/// Where the length of a tick begins in a number. A tick of a century is shorter than `1 << 28` seconds.
const SHIFT: u32 = 36;

/// For how long items are remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The number of ticks that an item stays at least.
    ticks: u32,
    /// The length of a tick in seconds.
    tick: u64,
}

impl Window {
    /// The longest window: a hundred years.
    pub const MAX_SECONDS: u64 = 100 * 366 * 86_400;

    /// The window in which an item is remembered for so many seconds at least.
    #[must_use]
    pub fn of_seconds(seconds: u64) -> Self {
        let tick = seconds.div_ceil(TICKS).max(1);
        Window { ticks: seconds.div_ceil(tick) as u32, tick }
    }

    /// For how long a filter remembers items, or `None` if for ever. If its ticks are not made here, the
    /// number of ticks is an error.
    pub fn of<S>(filter: &ConcurrentCuckooFilter<S>) -> Result<Option<Self>, u32> {
        let Some(ticks) = filter.remembers() else { return Ok(None) };
        Self::of_ticks(ticks, filter.present_tick()).ok_or(ticks).map(Some)
    }

    /// The window of a filter that remembers items for so many ticks, of which the present one has this
    /// number. `None` if these ticks are not made here.
    #[must_use]
    pub fn of_ticks(ticks: u32, number: Option<u64>) -> Option<Self> {
        let window = Window { ticks, tick: number? >> SHIFT };
        // The longest window is longer than what was asked for, too.
        let most = Self::of_seconds(Self::MAX_SECONDS).seconds();
        (1..=most).contains(&window.seconds()).then_some(window)
    }

    #[must_use]
    pub fn ticks(self) -> u32 {
        self.ticks
    }

    /// The length of a tick in seconds.
    #[must_use]
    pub fn tick_seconds(self) -> u64 {
        self.tick
    }

    /// The seconds for which an item is remembered at least.
    #[must_use]
    pub fn seconds(self) -> u64 {
        self.tick * u64::from(self.ticks)
    }

    /// The number of the tick at this time, in seconds since 1970.
    #[must_use]
    pub fn number_at(self, time: u64) -> u64 {
        self.tick << SHIFT | (time / self.tick).min((1 << SHIFT) - 1)
    }

    /// The number of the present tick.
    #[must_use]
    pub fn number_now(self) -> u64 {
        self.number_at(now())
    }

    /// The time at which the tick with this number began.
    #[must_use]
    pub fn began(self, number: u64) -> u64 {
        (number & ((1 << SHIFT) - 1)) * self.tick
    }
}

/// The seconds since 1970, by the system's clock.
#[must_use]
pub fn now() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |time| time.as_secs())
}

/// Lets the ticks pass that are due, if they are made here.
pub fn keep_up<S>(filter: &ConcurrentCuckooFilter<S>) -> Option<Window> {
    let window = Window::of(filter).ok()??;
    filter.tick_to(window.number_now());
    Some(window)
}

/// Displays a window as `--forget-after` takes it.
impl fmt::Display for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A period was rounded up to whole ticks by less than a second each.
        let seconds = self.seconds();
        let of = |unit: u64| seconds >= unit && seconds % unit < u64::from(self.ticks);
        let units = [(86_400, "d"), (3_600, "h"), (60, "m"), (1, "s")];
        let (unit, name) = units.into_iter().find(|(unit, _)| of(*unit)).unwrap_or((1, "s"));
        write!(f, "{}{name}", seconds / unit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_remembered_for_its_period_and_little_longer() {
        for seconds in (1..5_000).chain([43_200, 86_400, 2_592_000, 36_500 * 86_400]) {
            let window = Window::of_seconds(seconds);
            let (ticks, tick) = (u64::from(window.ticks()), window.tick_seconds());
            assert!((1..=TICKS).contains(&ticks), "{seconds}");
            // A line that came in the last second of its tick is there until as many have passed.
            assert!(window.seconds() >= seconds, "{seconds}");
            assert!(window.seconds() < seconds + ticks, "{seconds}");
            assert!(tick <= seconds / TICKS + 1, "{seconds}");
        }
    }

    #[test]
    fn a_number_tells_the_window_and_the_time() {
        for seconds in [1, 45, 5_400, 43_200, 2_592_000, 36_500 * 86_400, Window::MAX_SECONDS] {
            let window = Window::of_seconds(seconds);
            let mut last = 0;
            for time in [0, 1, 1_795_000_000, 1_795_000_000 + window.tick_seconds(), 1 << 35] {
                let number = window.number_at(time);
                assert_eq!(Window::of_ticks(window.ticks(), Some(number)), Some(window));
                assert!(number >= last && window.began(number) <= time);
                assert!(time - window.began(number) < window.tick_seconds());
                last = number;
            }
        }
        assert_eq!(Window::of_ticks(7, None), None);
        assert_eq!(Window::of_ticks(7, Some(29_720_000)), None, "minutes since 1970");
    }

    #[test]
    fn periods_are_displayed_as_they_were_given() {
        for (seconds, text) in [
            (2_592_000, "30d"),
            (86_400, "1d"),
            (43_200, "12h"),
            (5_400, "90m"),
            (45, "48s"),
            (1, "1s"),
            (100, "104s"),
        ] {
            assert_eq!(Window::of_seconds(seconds).to_string(), text);
        }
    }
}
