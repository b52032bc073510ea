//! A window between requesting memory and using it, so that many requests are in flight at once.

use arrayvec::ArrayVec;

/// The number of items whose memory is in flight at once. With half as many, the memory is partly
/// idle. Twice as many gain nothing more, and small batches get slower.
const AHEAD: usize = 32;

/// Visits the items in order, each after the iterator has produced the 32 that follow it.
///
/// If the iterator prefetches the memory of each item it produces, that memory has arrived by the
/// time the item is visited.
#[inline]
pub fn for_each_ahead<T>(mut items: impl Iterator<Item = T>, mut visit: impl FnMut(T)) {
    let mut window: ArrayVec<T, AHEAD> = items.by_ref().take(AHEAD).collect();
    let mut oldest = 0;
    for item in items {
        visit(std::mem::replace(&mut window[oldest], item));
        oldest = (oldest + 1) % AHEAD;
    }
    window.rotate_left(oldest);
    window.into_iter().for_each(visit);
}
