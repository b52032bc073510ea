//! For how long a state remembers lines, and what time it is there.
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
//! For one state, these numbers grow with time.

use crate::failure::Failure;
use indicatif::HumanCount;
use koel::{AnyCuckooFilter, ConcurrentCuckooFilter, Room};
use std::fmt;
use std::path::Path;
use std::time::SystemTime;

/// A window is divided into so many ticks, if it has as many seconds. With more than that, a stamp takes
/// more than four bits of each line.
const TICKS: u64 = 14;

/// Where the length of a tick begins in a number. A tick of a century is shorter than `1 << 28` seconds.
const SHIFT: u32 = 36;

/// For how long lines are remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The number of ticks that a line stays at least.
    ticks: u32,
    /// The length of a tick in seconds.
    tick: u64,
}

impl Window {
    /// The window in which a line is remembered for so many seconds at least.
    pub fn of_seconds(seconds: u64) -> Self {
        let tick = seconds.div_ceil(TICKS);
        Window { ticks: seconds.div_ceil(tick) as u32, tick }
    }

    /// For how long a filter remembers lines, or `None` if for ever. If its ticks are not made here, the
    /// number of ticks is an error.
    pub fn of<S, R: Room>(filter: &ConcurrentCuckooFilter<S, R>) -> Result<Option<Self>, u32> {
        let Some(ticks) = filter.remembers() else { return Ok(None) };
        Self::of_ticks(ticks, filter.present_tick()).ok_or(ticks).map(Some)
    }

    /// The window of a filter that remembers lines for so many ticks, of which the present one has this
    /// number. `None` if these ticks are not made here.
    fn of_ticks(ticks: u32, number: Option<u64>) -> Option<Self> {
        match number? >> SHIFT {
            0 => None,
            tick => Some(Window { ticks, tick }),
        }
    }

    pub fn ticks(self) -> u32 {
        self.ticks
    }

    /// The length of a tick in seconds.
    pub fn tick_seconds(self) -> u64 {
        self.tick
    }

    /// The seconds for which a line is remembered at least.
    pub fn seconds(self) -> u64 {
        self.tick * u64::from(self.ticks)
    }

    /// The number of the tick at this time, in seconds since 1970.
    pub fn number_at(self, time: u64) -> u64 {
        self.tick << SHIFT | (time / self.tick).min((1 << SHIFT) - 1)
    }

    /// The number of the present tick.
    pub fn number_now(self) -> u64 {
        self.number_at(now())
    }

    /// The time at which the tick with this number began.
    pub fn began(self, number: u64) -> u64 {
        (number & ((1 << SHIFT) - 1)) * self.tick
    }
}

/// The seconds since 1970, by the system's clock.
pub fn now() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |time| time.as_secs())
}

/// Lets the ticks pass that are due, if they are made here.
pub fn keep_up<S, R: Room>(filter: &ConcurrentCuckooFilter<S, R>) -> Option<Window> {
    let window = Window::of(filter).ok()??;
    filter.tick_to(window.number_now());
    Some(window)
}

/// The same in a filter of either kind.
pub fn catch_up<S>(filter: &AnyCuckooFilter<S>) -> Option<Window> {
    match filter {
        AnyCuckooFilter::Fixed(filter) => keep_up(filter),
        AnyCuckooFilter::Growing(filter) => keep_up(filter),
    }
}

/// Says by how much the time of a filter is ahead of the system's clock, if it is.
pub fn ahead<S, R: Room>(filter: &ConcurrentCuckooFilter<S, R>) -> Option<String> {
    let window = Window::of(filter).ok()??;
    let (began, now) = (window.began(filter.present_tick()?), now());
    let ahead = began.checked_sub(now).filter(|ahead| *ahead > 0)?;
    Some(format!(
        "its time is {} ahead of this machine's clock; until then, it forgets nothing",
        Seconds(ahead)
    ))
}

/// Says why a state cannot be changed whose ticks are not made here.
pub fn foreign(path: &Path, ticks: u32) -> Failure {
    Failure::new(format!(
        "{}: it remembers items for {ticks} ticks, which another program counts, so this command does not \
         know when to forget a line; koel query and koel info can read it",
        path.display()
    ))
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

/// Seconds, in words, to two units: `2 d 3 h`.
pub struct Seconds(pub u64);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [(86_400, "d"), (3_600, "h"), (60, "min"), (1, "s")];
        let at = units.iter().position(|(unit, _)| self.0 >= *unit).unwrap_or(3);
        let (unit, name) = units[at];
        write!(f, "{} {name}", HumanCount(self.0 / unit))?;
        match units.get(at + 1) {
            Some((smaller, name)) if self.0 % unit >= *smaller => {
                write!(f, " {} {name}", self.0 % unit / smaller)
            }
            _ => Ok(()),
        }
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
        for seconds in [1, 45, 5_400, 43_200, 2_592_000, 36_500 * 86_400] {
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
        for (seconds, text) in [
            (0, "0 s"),
            (59, "59 s"),
            (60, "1 min"),
            (3_725, "1 h 2 min"),
            (185_143, "2 d 3 h"),
            (864_000_000, "10,000 d"),
        ] {
            assert_eq!(Seconds(seconds).to_string(), text);
        }
    }
}
