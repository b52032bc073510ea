//! Records about lanes that do not count as one item each.
//!
//! Only a growing filter has such lanes; its [ledger](crate::backend::growing::ledger) records them.

use crate::layout::bucket::{Lane, Words};
use crate::layout::stamps::Moment;

pub trait Accounts: Copy {
    /// Records that a lane is being removed that has lost `lost` bits. Returns the number of items that its
    /// stripe counts for it, or `None` if the lane stands for no item and has to stay. The caller holds the
    /// lock of its stripe.
    #[inline]
    fn removing(self, _words: Words, _lane: Lane, _lost: u32, _now: Moment) -> Option<i32> {
        Some(1)
    }

    /// Records that the expired lanes of these buckets are being erased. Returns the number of them that
    /// their stripe does not count. The caller holds the lock of the stripe.
    #[inline]
    fn expiring(self, _words: &[u64], _now: Moment) -> i32 {
        0
    }

    /// Records that a lane is getting another stamp. The caller holds the lock of its stripe.
    #[inline]
    fn restamping(self, _words: Words, _lane: Lane, _to: usize) {}

    /// Whether the removal just made may have removed the last item of a filter that still has lanes without
    /// an item.
    #[inline]
    fn may_be_last(self) -> bool {
        false
    }
}
