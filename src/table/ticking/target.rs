//! What a filter has for ticks to pass through it.

use crate::layout::bucket::Lanes;
use crate::layout::stamps::Moment;
use std::ops::Range;

/// What ticks pass through.
pub trait SweepTarget: Sync {
    fn lanes(&self) -> Lanes;

    /// Begins a tick: calls `set`, which sets the clock and returns the time, unless no tick begins.
    fn begin(&self, set: impl FnOnce() -> Option<Moment>);

    /// The number of segments now. There may be more later, but never fewer.
    fn segments(&self) -> usize;

    /// Erases what has expired in these segments, where no writer has done so.
    fn sweep(&self, segments: Range<usize>, now: Moment);

    /// Ends the tick. Nothing that has expired is left.
    fn finish_tick(&self, now: Moment);
}
