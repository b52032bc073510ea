//! What the command says of windows.

use crate::failure::Failure;
use indicatif::HumanCount;
use koel::ConcurrentCuckooFilter;
use koel_state::window::{Window, now};
use std::fmt;
use std::path::Path;

/// Says by how much the time of a filter is ahead of the system's clock, if it is.
pub fn ahead<S>(filter: &ConcurrentCuckooFilter<S>) -> Option<String> {
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
    fn seconds_are_displayed_to_two_units() {
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
