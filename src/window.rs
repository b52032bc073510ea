//! Windows of time: for how long a filter remembers items, by the system's clock.
//!
//! A filter counts ticks and knows no clock. The number of its present tick is made here, of the length of a tick and
//! of the ticks that have passed since 1970, so the filter's file tells both. For one filter, these numbers grow with
//! time.
//!
//! ```text
//!  63                    36 35                                  0
//! |  seconds of one tick   |  seconds since 1970 / those of one  |
//! ```

use std::fmt;
use std::time::{Duration, SystemTime};

/// The most ticks of a window. With more than 14, a stamp takes more than four bits of each item.
const TICKS: u64 = 14;

/// Where the length of a tick begins in a number. A tick of a century is shorter than `1 << 28` seconds.
const SHIFT: u32 = 36;

/// The time for which a filter remembers items, by the system's clock.
///
/// [`Builder::forgets_after`](crate::Builder::forgets_after) makes a filter with a window, and
/// [`keep_up`](crate::ConcurrentCuckooFilter::keep_up) lets its time pass. The window and the time are in the filter's
/// file, so a filter that was loaded goes on by itself. Programs that count ticks of their own use
/// [`remembers`](crate::Builder::remembers) and [`tick_to`](crate::ConcurrentCuckooFilter::tick_to) instead.
///
/// A window has up to 14 ticks of whole seconds. It begins, for an item, with the last `keep_up` before the item's
/// insert or refresh. An item is never forgotten before its window has passed, and is forgotten by the first `keep_up`
/// that is called a tick after that.
///
/// ```
/// use koel::Window;
/// use std::time::Duration;
///
/// let week = Window::new(Duration::from_secs(7 * 86_400));
/// assert_eq!((week.ticks(), week.tick_seconds(), week.to_string()), (14, 43_200, "7d".into()));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The number of ticks for which an item stays at least.
    ticks: u32,
    /// The length of a tick in seconds.
    tick: u64,
}

impl Window {
    /// The longest window in seconds: a hundred years.
    pub const MAX_SECONDS: u64 = 100 * 366 * 86_400;

    /// Returns the window in which an item is remembered for this time at least: from a second to a hundred years.
    #[must_use]
    pub fn new(time: Duration) -> Self {
        Self::of_seconds(time.as_secs().saturating_add(u64::from(time.subsec_nanos() > 0)))
    }

    /// Returns the window in which an item is remembered for this number of seconds at least, as [`new`](Self::new).
    #[must_use]
    pub fn of_seconds(seconds: u64) -> Self {
        let seconds = seconds.clamp(1, Self::MAX_SECONDS);
        let tick = seconds.div_ceil(TICKS);
        Window { ticks: seconds.div_ceil(tick) as u32, tick }
    }

    /// Returns the window of a filter that remembers items for this number of ticks, of which the present one has this
    /// number, or `None` if these ticks do not follow the system's clock.
    #[must_use]
    pub fn of_ticks(ticks: u32, number: Option<u64>) -> Option<Self> {
        let window = Window { ticks, tick: number? >> SHIFT };
        // The longest window is longer than the time that was asked for, too.
        let most = Self::of_seconds(Self::MAX_SECONDS).seconds();
        (1..=most).contains(&window.seconds()).then_some(window)
    }

    /// Returns the number of ticks for which an item is remembered at least.
    #[must_use]
    pub fn ticks(self) -> u32 {
        self.ticks
    }

    /// Returns the length of a tick in seconds.
    #[must_use]
    pub fn tick_seconds(self) -> u64 {
        self.tick
    }

    /// Returns the number of seconds for which an item is remembered at least.
    #[must_use]
    pub fn seconds(self) -> u64 {
        self.tick * u64::from(self.ticks)
    }

    /// Returns the number of the tick at this time, in seconds since 1970.
    #[must_use]
    pub fn number_at(self, time: u64) -> u64 {
        self.tick << SHIFT | (time / self.tick).min((1 << SHIFT) - 1)
    }

    /// Returns the number of the present tick.
    #[must_use]
    pub fn number_now(self) -> u64 {
        self.number_at(Self::now())
    }

    /// Returns the time at which the tick with this number began, in seconds since 1970.
    #[must_use]
    pub fn began(self, number: u64) -> u64 {
        (number & ((1 << SHIFT) - 1)) * self.tick
    }

    /// Returns the seconds since 1970, by the system's clock.
    #[must_use]
    pub fn now() -> u64 {
        SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |time| time.as_secs())
    }
}

/// As a number of days, hours, minutes or seconds: `30d`, `90m`.
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
    fn an_item_is_remembered_for_its_time_and_little_longer() {
        for seconds in (1..5_000).chain([43_200, 86_400, 2_592_000, 36_500 * 86_400]) {
            let window = Window::of_seconds(seconds);
            let (ticks, tick) = (u64::from(window.ticks()), window.tick_seconds());
            assert!((1..=TICKS).contains(&ticks), "{seconds}");
            // An item that came in the last second of its tick is there until as many have passed.
            assert!(window.seconds() >= seconds, "{seconds}");
            assert!(window.seconds() < seconds + ticks, "{seconds}");
            assert!(tick <= seconds / TICKS + 1, "{seconds}");
        }
    }

    #[test]
    fn a_window_of_any_duration_is_not_shorter_and_of_a_century_at_most() {
        let seconds = |time| Window::new(time).seconds();
        assert_eq!(seconds(Duration::ZERO), 1);
        assert_eq!(seconds(Duration::from_millis(10_001)), 11);
        assert_eq!(seconds(Duration::from_secs(10)), 10);
        assert_eq!(Window::new(Duration::MAX), Window::of_seconds(Window::MAX_SECONDS));
        assert_eq!(Window::of_seconds(u64::MAX), Window::of_seconds(Window::MAX_SECONDS));
        assert_eq!(Window::of_seconds(0), Window::of_seconds(1));
    }

    #[test]
    fn a_window_of_any_number_of_seconds_is_one_that_a_number_tells() {
        const MAX: u64 = Window::MAX_SECONDS;
        for (seconds, same) in
            [(0, 1), (MAX + 1, MAX), (1 << 40, MAX), (1 << 60, MAX), (u64::MAX, MAX)]
        {
            let window = Window::of_seconds(seconds);
            assert_eq!(window, Window::of_seconds(same), "{seconds}");
            let number = window.number_at(1_795_000_000);
            assert_eq!(Window::of_ticks(window.ticks(), Some(number)), Some(window), "{seconds}");
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
    fn times_are_displayed_as_they_were_given() {
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
