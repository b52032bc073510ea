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
//! A primary lets time pass, in parts, and tells its replicas each part: an item may go where another one
//! expired, so all tables have to forget at the same moment. Only one thing goes by itself: a set that is
//! loaded has forgotten all that expired, also if half of it was still there when it was saved. So after a
//! fork, which may be for a replica, a primary first finishes a tick that is passing, before anything else
//! happens to the set; and so do its replicas. (In a set that was just loaded there is nothing to finish, but
//! maybe in replicas that were there before.)

use crate::set::{Body, Set, filter};
use koel::AnyCuckooFilter;
use std::cell::Cell;
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
        let tick = number? >> SHIFT;
        (tick > 0).then_some(Window { ticks, tick })
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

/// The number of forks of the process that a set knows of. At first it knows of none.
#[derive(Default)]
pub struct Forks(Cell<u64>);

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

    /// Whether a tick is passing.
    pub fn is_forgetting(&self) -> bool {
        let Body::Filter(filter) = &self.body else { return false };
        !filter!(&**filter, filter => filter.tick_in_parts(0))
    }

    /// Begins a tick toward this one unless one is passing, and goes on through so many segments of a
    /// microsecond each. Returns whether none is passing any more.
    pub fn pass_time(&self, number: u64, segments: usize) -> bool {
        let Body::Filter(filter) = &self.body else { return true };
        filter!(&**filter, filter => {
            filter.begin_tick_to(number);
            filter.tick_in_parts(segments)
        })
    }

    /// Notes how many forks there were. Returns whether there may be another table now in which the tick
    /// that is passing has passed.
    pub fn note_forks(&self, forks: u64) -> bool {
        let before = self.forks.0.replace(forks);
        before == 0 || before != forks && self.is_forgetting()
    }
}
