//! Void lanes, which have no bits left, and the number of items that they stand for.
//!
//! A split sends a lane to one half by the next bit of its hash. A [void](crate::layout::shrinking) lane has no such
//! bit, so it goes to both halves. From then on there may be more void lanes than items of theirs, and nothing tells
//! which lane is an item's own. A filter is planned so that no lane becomes void before it has grown as far as
//! expected ([`sizing`](crate::layout::sizing)). Beyond that, these rules hold:
//!
//! * One number counts the items of all void lanes. Stripes do not count them. A split that takes the last bit of a
//!   lane moves its item from the count of the stripe to this number; a later split that copies the lane changes
//!   nothing.
//! * A removal that finds only void lanes of its item takes one from the number, and leaves the lanes, since other
//!   items may need them. At zero it fails. So removals never exceed inserts, but an item that was removed is still
//!   found.
//! * Shards with void lanes are not [joined](mod@crate::backend::growing::join), because the copies of a lane would
//!   stay for good, and double with each split and join.
//! * A clear erases void lanes with all others, and then sets the number to zero. A tick erases those that expire. As
//!   it begins, the number becomes at most that of the void lanes that stay.

use crate::sync::{AtomicU64, Ordering, RwLock};

pub(crate) struct VoidItems {
    number: AtomicU64,
    /// Held for reading by splits, joins and unions, in which lanes may become void or move to another shard; and for
    /// writing while a tick begins, and by a clear, which set the number. Locked before any lock of a shard. (Nobody
    /// waits to lock `copying` for writing, so it may be locked before or after.)
    pub splits: RwLock<()>,
}

impl VoidItems {
    pub(crate) fn new(number: u64) -> Self {
        VoidItems { number: AtomicU64::new(number), splits: RwLock::new(()) }
    }

    pub(crate) fn number(&self) -> u64 {
        // Relaxed: a figure of one moment.
        self.number.load(Ordering::Relaxed)
    }

    /// Adds the items of lanes that have just become void. The caller holds `splits` for reading, and the locks of
    /// these lanes.
    pub(crate) fn add(&self, items: u64) {
        if items > 0 {
            // Relaxed: a removal holds the lock of a void lane, which the split that made the lane void held here.
            self.number.fetch_add(items, Ordering::Relaxed);
        }
    }

    /// Takes off one item. Returns whether there was one. The caller holds the lock of a void lane of the item.
    pub(crate) fn take_one(&self) -> bool {
        let one_less = |number: u64| number.checked_sub(1);
        // Relaxed: see `add`.
        self.number.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less).is_ok()
    }

    /// Lowers the number to `most`. The caller holds `splits` for writing.
    pub(crate) fn limit(&self, most: u64) {
        let lower = |number| Some(most).filter(|most| *most < number);
        // Relaxed: the lock of `splits` orders it with `add`.
        let _ = self.number.fetch_update(Ordering::Relaxed, Ordering::Relaxed, lower);
    }
}
