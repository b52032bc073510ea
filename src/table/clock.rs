//! The clock of a filter that forgets.
//!
//! # Orderings
//!
//! | access | ordering | partner, and what breaks without it |
//! |---|---|---|
//! | the time, set | `Release` | a thread that sweeps by this time has seen all inserts from before the tick, and passes that on: a lookup that finds an expired copy gone finds the copy that was inserted before the tick. Twin `the_time_is_set_relaxed` |
//! | the time, read | `Acquire` | the same. Twin `the_time_is_read_relaxed` |
//! | that a tick is passing, set before the time | `Release` | a thread that reads the time sees that its tick is passing, and so does a thread that acquires a lock after it: it must not move an expired item into a segment that has been swept. Twin `a_tick_passes_after_its_time` |
//! | that it is over, set | `Release` | a thread that reads that the tick is over sees that the expired items are gone. Twin `the_end_of_a_tick_is_set_relaxed` |
//! | whether a tick is passing, read | `Acquire` | the same. Twin `the_end_of_a_tick_is_read_relaxed` |

use crate::layout::stamps::Moment;
use crate::rule::rule;
use crate::sync::{AtomicBool, AtomicU64, Ordering, read_owned};

pub struct Clock {
    now: AtomicU64,
    passing: AtomicBool,
}

impl Clock {
    pub fn new() -> Self {
        Clock { now: AtomicU64::new(Moment::FIRST.word()), passing: AtomicBool::new(false) }
    }

    #[inline]
    pub fn now(&self) -> Moment {
        Moment::of_word(self.now.load(rule!(
            "the_time_is_read_relaxed",
            Ordering::Acquire,
            Ordering::Relaxed
        )))
    }

    /// Returns the time, for a caller that alone may set it, or that keeps other threads from setting it.
    pub fn own_time(&self) -> Moment {
        Moment::of_word(read_owned(&self.now))
    }

    /// Sets the time. One caller at a time.
    pub fn set(&self, now: Moment) {
        let order = rule!("the_time_is_set_relaxed", Ordering::Release, Ordering::Relaxed);
        self.now.store(now.word(), order);
    }

    /// Whether a tick is passing, so that expired lanes may be left.
    #[inline]
    pub fn is_passing(&self) -> bool {
        let order =
            rule!("the_end_of_a_tick_is_read_relaxed", Ordering::Acquire, Ordering::Relaxed);
        self.passing.load(order)
    }

    /// Begins a tick. One caller at a time. A thread that reads the new time also sees that its tick is
    /// passing.
    pub fn begin(&self, now: Moment) {
        rule!("a_tick_passes_after_its_time", self.set_passing(true), ());
        self.set(now);
        rule!("a_tick_passes_after_its_time", (), self.set_passing(true));
    }

    /// Ends the tick.
    pub fn end(&self) {
        self.set_passing(false);
    }

    fn set_passing(&self, is_passing: bool) {
        let order = rule!("the_end_of_a_tick_is_set_relaxed", Ordering::Release, Ordering::Relaxed);
        self.passing.store(is_passing, order);
    }
}
