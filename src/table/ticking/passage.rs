//! What a filter has for ticks to pass through it.

use crate::layout::bucket::Lanes;
use crate::layout::geometry::Mixed;
use crate::layout::stamps::Moment;
use std::ops::Range;

/// What ticks pass through.
pub trait Passage: Sync {
    fn lanes(&self) -> Lanes;

    /// Begins a tick: calls `set` while no segments are being added. It sets the clock and returns the time,
    /// unless no tick begins. Segments that are added later learn of it by that.
    fn begin(&self, set: impl FnOnce() -> Option<Moment>);

    /// The number of segments now. There may be more later, but never fewer.
    fn segments(&self) -> usize;

    /// Tells the writers of these segments what time it is, and sends away the lookups that have begun.
    fn announce(&self, segments: Range<usize>);

    /// Erases what has expired in these segments.
    fn expire(&self, segments: Range<usize>, now: Moment);

    /// Ends the tick. Nothing that has expired is left.
    fn close(&self, now: Moment);

    /// What tells the shard of this item from all others, as long as it is not split.
    fn shard_of(&self, hash: Mixed) -> usize;

    /// Does all that the passes do in the shard of this item, and returns what tells that shard from others.
    fn advance(&self, hash: Mixed, now: Moment) -> usize;
}
