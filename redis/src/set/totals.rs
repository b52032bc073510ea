//! The figures of all sets together, for `INFO`.
//!
//! Small sets are counted as they change. Filters are asked when somebody wants to know: a server has fewer of them,
//! and each tells its figures in some microseconds.

use crate::set::spec::Filter;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError, Weak};

// Relaxed: each is a number of its own, which the server's thread and the one that frees sets change.

/// What small sets have: how many there are, their items and bytes.
pub static SMALL: [AtomicU64; 3] = [const { AtomicU64::new(0) }; 3];

/// The ticks that began, the shards that were given back, and their bytes, since the server started.
pub static TICKS: AtomicU64 = AtomicU64::new(0);
pub static SHARDS_FREED: AtomicU64 = AtomicU64::new(0);
pub static BYTES_FREED: AtomicU64 = AtomicU64::new(0);

static FILTERS: Mutex<Vec<Weak<Filter>>> = Mutex::new(Vec::new());

/// Counts a filter until it is dropped.
pub fn count(filter: Filter) -> Arc<Filter> {
    let filter = Arc::new(filter);
    let mut filters = FILTERS.lock().unwrap_or_else(PoisonError::into_inner);
    if filters.len() == filters.capacity() {
        filters.retain(|filter| filter.strong_count() > 0);
    }
    filters.push(Arc::downgrade(&filter));
    filter
}

/// Adds this to the figures of small sets. (Wrapping numbers can be subtracted, too.)
pub fn add_small(sets: isize, items: isize, bytes: isize) {
    for (total, more) in SMALL.iter().zip([sets, items, bytes]) {
        total.fetch_add(more as u64, Relaxed);
    }
}

/// Visits the names and values of all figures. The capacity is the number of places in tables as large as they are now.
pub fn each(mut visit: impl FnMut(&'static std::ffi::CStr, u64)) {
    let [small, small_items, small_bytes] = &SMALL;
    let [mut filters, mut items, mut bytes, mut capacity, mut shards] = [0; 5];
    let all = FILTERS.lock().unwrap_or_else(PoisonError::into_inner).clone();
    for filter in all.iter().filter_map(Weak::upgrade) {
        filters += 1;
        let stats = filter.stats();
        items += stats.items as u64;
        bytes += filter.size_in_bytes() as u64;
        capacity += stats.slots as u64;
        shards += filter.shards() as u64;
    }
    let small_items = small_items.load(Relaxed);
    visit(c"sets", small.load(Relaxed) + filters);
    visit(c"filters", filters);
    visit(c"items", small_items + items);
    visit(c"bytes", small_bytes.load(Relaxed) + bytes);
    visit(c"capacity", small_items + capacity);
    visit(c"shards", shards);
    visit(c"ticks", TICKS.load(Relaxed));
    visit(c"shards_given_back", SHARDS_FREED.load(Relaxed));
    visit(c"bytes_given_back", BYTES_FREED.load(Relaxed));
}
