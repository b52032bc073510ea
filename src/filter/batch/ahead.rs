//! A window between requesting memory and using it, so that many requests are in flight at once.

/// The number of items whose memory is in flight at once. With half as many, the memory is partly
/// idle. Twice as many gain nothing more, and small batches get slower.
const AHEAD: usize = 32;

/// Visits the items in order, each after the iterator has produced the 32 that follow it.
///
/// If the iterator prefetches the memory of each item it produces, that memory has arrived by the
/// time the item is visited.
#[inline]
pub fn for_each_ahead<T>(mut items: impl Iterator<Item = T>, mut visit: impl FnMut(T)) {
    let mut window = [const { None }; AHEAD];
    window.iter_mut().zip(items.by_ref()).for_each(|(slot, item)| *slot = Some(item));
    // There is one call of `visit`, so that it is inlined, and an item goes through memory once.
    let mut oldest = 0;
    while let Some(item) = std::mem::replace(&mut window[oldest], items.next()) {
        visit(item);
        oldest = (oldest + 1) % AHEAD;
    }
}
