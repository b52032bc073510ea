//! The clock of a filter that forgets.

use crate::layout::stamps::Moment;
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
        // Acquire: pairs with `set`.
        Moment::of_word(self.now.load(Ordering::Acquire))
    }

    /// Returns the time, for a caller that alone may set it, or that keeps other threads from setting it.
    pub fn own_time(&self) -> Moment {
        Moment::of_word(read_owned(&self.now))
    }

    /// Sets the time. One caller at a time.
    pub fn set(&self, now: Moment) {
        // Release: pairs with `now`. A thread that sweeps by this time has seen all inserts from before the tick, and
        // passes that on: a lookup that finds an expired copy gone finds the copy that was inserted before the tick.
        self.now.store(now.word(), Ordering::Release);
    }

    /// Whether a tick is passing, so that expired lanes may be left.
    #[inline]
    pub fn is_passing(&self) -> bool {
        // Acquire: pairs with `end`. A thread that reads that the tick is over sees that the expired items are gone.
        self.passing.load(Ordering::Acquire)
    }

    /// Begins a tick. One caller at a time. A thread that reads the new time also sees that its tick is passing, and so
    /// does a thread that acquires a lock after it: it must not move an expired item into a segment that has been
    /// swept.
    pub fn begin(&self, now: Moment) {
        self.set_passing(true);
        self.set(now);
    }

    /// Ends the tick.
    pub fn end(&self) {
        self.set_passing(false);
    }

    fn set_passing(&self, is_passing: bool) {
        // Release: pairs with `is_passing`.
        self.passing.store(is_passing, Ordering::Release);
    }
}
