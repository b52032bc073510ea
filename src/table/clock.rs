//! The clock of a filter that forgets.
//!
//! # Orderings
//!
//! | access | ordering | partner, and what breaks without it |
//! |---|---|---|
//! | the time, set | `Release` | whoever sweeps by it has seen what came before the tick, and hands that on: a lookup that finds an older copy gone finds the one that came before the tick. Twin `the_time_is_set_relaxed` |
//! | the time, read | `Acquire` | the same. Twin `the_time_is_read_relaxed` |
//! | that a tick is passing, set before the time | `Release` | who reads the time sees it, and whoever has a lock after that: he must not bring what has expired to where it has been erased. Twin `a_tick_passes_after_its_time` |
//! | that it is over, set | `Release` | who reads that it is over sees that what expired is gone. Twin `the_end_of_a_tick_is_set_relaxed` |
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

    /// The time, for a caller that alone may set it, or that keeps others from it.
    pub fn own_time(&self) -> Moment {
        Moment::of_word(read_owned(&self.now))
    }

    /// Sets the time. One caller at a time.
    pub fn set(&self, now: Moment) {
        let order = rule!("the_time_is_set_relaxed", Ordering::Release, Ordering::Relaxed);
        self.now.store(now.word(), order);
    }

    /// Whether a tick is passing, so that what has expired may be left.
    #[inline]
    pub fn is_passing(&self) -> bool {
        let order =
            rule!("the_end_of_a_tick_is_read_relaxed", Ordering::Acquire, Ordering::Relaxed);
        self.passing.load(order)
    }

    /// Begins a tick. One caller at a time. Who knows its time also knows that it is passing.
    pub fn begin(&self, now: Moment) {
        rule!("a_tick_passes_after_its_time", self.set_passing(true), ());
        self.set(now);
        rule!("a_tick_passes_after_its_time", (), self.set_passing(true));
    }

    /// The tick has passed.
    pub fn end(&self) {
        self.set_passing(false);
    }

    fn set_passing(&self, is_passing: bool) {
        let order = rule!("the_end_of_a_tick_is_set_relaxed", Ordering::Release, Ordering::Relaxed);
        self.passing.store(is_passing, order);
    }
}
