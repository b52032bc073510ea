//! A window between asking for memory and using it.

use arrayvec::ArrayVec;

/// The items that are on their way at once. Half as many leave the memory idle in part; twice as
/// many gain nothing more, and small batches lose.
const AHEAD: usize = 32;

/// Visits the items in their order, each after the iterator has made the 32 that come after it. An
/// iterator that asks for the memory of what it makes has it there by then.
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
