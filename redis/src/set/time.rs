//! Time: for how long a set remembers items, and how it forgets them.
//!
//! A filter counts ticks and has no clock. The number of its present tick is made here, as `koel dedup
//! --forget-after` makes it, so states of the command can be loaded and go on:
//!
//! ```text
//!  63                    36 35                                  0
//! |  seconds of one tick   |  seconds since 1970 / those of one  |
//! ```
//!
//! # What replicas do
//!
//! A primary lets time pass, and tells its replicas: an item may go where another one expired, so all tables have
//! to forget at the same moment of their histories. A tick passes as a whole, in one command. If half of it could
//! be saved, a replica that loads the file would have to go on from exactly there.

use crate::set::{Body, Set, filter};
use koel::AnyCuckooFilter;
use std::time::SystemTime;

/// A window is divided into so many ticks, if it has as many seconds: then an age takes four bits.
const TICKS: u64 = 14;

/// Where the length of a tick begins in its number.
const SHIFT: u32 = 36;

/// For how long items are remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    pub ticks: u32,
    /// The length of a tick in seconds.
    tick: u64,
}

impl Window {
    /// The longest window: a hundred years.
    pub const MOST_SECONDS: u64 = 100 * 366 * 86_400;

    pub fn of_seconds(seconds: u64) -> Self {
        let tick = seconds.div_ceil(TICKS).max(1);
        Window { ticks: seconds.div_ceil(tick) as u32, tick }
    }

    /// The window of a filter that remembers items for so many ticks, of which the present one has this
    /// number. `None` if these ticks were not made here.
    pub fn of_ticks(ticks: u32, number: Option<u64>) -> Option<Self> {
        let window = Window { ticks, tick: number? >> SHIFT };
        (1..=Self::MOST_SECONDS).contains(&window.seconds()).then_some(window)
    }

    /// The seconds for which an item is remembered at least.
    pub fn seconds(self) -> u64 {
        self.tick * u64::from(self.ticks)
    }

    /// The number of the tick at this time, in seconds since 1970.
    pub fn number_at(self, time: u64) -> u64 {
        self.tick << SHIFT | (time / self.tick).min((1 << SHIFT) - 1)
    }
}

/// The seconds since 1970, by the clock of the machine.
pub fn now() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |time| time.as_secs())
}

impl Set {
    /// For how long it remembers items, or `None` if for ever, or if another program counts its ticks.
    pub fn window(&self) -> Option<Window> {
        let Body::Filter(filter) = &self.body else { return None };
        filter!(&**filter, filter => Window::of_ticks(filter.remembers()?, filter.present_tick()))
    }

    /// The number of its present tick.
    pub fn present_tick(&self) -> Option<u64> {
        let Body::Filter(filter) = &self.body else { return None };
        filter!(&**filter, filter => filter.present_tick())
    }

    /// Lets ticks pass until the present one has this number.
    pub fn pass_time(&self, number: u64) {
        if let Body::Filter(filter) = &self.body {
            filter!(&**filter, filter => filter.tick_to(number));
        }
    }
}
