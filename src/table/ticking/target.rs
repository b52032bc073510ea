//! The interface of a filter to its ticks.

use crate::layout::bucket::Lanes;
use crate::layout::stamps::Moment;
use std::ops::Range;

/// A filter that ticks pass through.
pub trait SweepTarget: Sync {
    fn lanes(&self) -> Lanes;

    /// Begins a tick: calls `set`, which sets the clock and returns the time, or returns `None` if no tick
    /// begins.
    fn begin(&self, set: impl FnOnce() -> Option<Moment>);

    /// Returns the number of segments now. It may grow later, but never shrinks.
    fn segments(&self) -> usize;

    /// Erases the expired lanes of these segments, except where a writer has done so.
    fn sweep(&self, segments: Range<usize>, now: Moment);

    /// Ends the tick. No expired lane is left.
    fn finish_tick(&self, now: Moment);
}
