//! The clock of a filter that forgets.
//!
//! # Orderings
//!
//! | access | ordering | partner, and what breaks without it |
//! |---|---|---|
//! | the time, set | `Relaxed` | whoever sets it, or helps, locks every stripe after that, one after the other, and so hands it to all who lock one later |
//! | the time, read under a lock of a stripe | `Relaxed` | the same: no earlier holder of the lock has read a later time. Twin `a_kick_takes_the_time_of_before_the_tick` |

use crate::layout::stamps::Moment;
use crate::sync::{AtomicU64, Ordering, read_owned};

pub struct Clock(AtomicU64);

impl Clock {
    pub fn new() -> Self {
        Clock(AtomicU64::new(Moment::FIRST.word()))
    }

    #[inline]
    pub fn now(&self) -> Moment {
        Moment::of_word(self.0.load(Ordering::Relaxed))
    }

    /// The time, for a caller that alone may set it, or that keeps others from it.
    pub fn own_time(&self) -> Moment {
        Moment::of_word(read_owned(&self.0))
    }

    /// Sets the time. One caller at a time.
    pub fn set(&self, now: Moment) {
        self.0.store(now.word(), Ordering::Relaxed);
    }
}
