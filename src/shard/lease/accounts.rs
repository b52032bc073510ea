//! Records about lanes that do not count as one item each.
//!
//! Only a growing filter has such lanes, the [void](crate::backend::growing::void) ones.

use crate::layout::stamps::Moment;

/// The effect of a removal on the lane that matches its item best.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removing {
    /// The lane goes, and its stripe counts one item less.
    Lane,
    /// The lane stays, since other items may need it.
    OneOfMany,
    /// The lane stands for no item, and stays.
    Nothing,
}

pub trait Accounts: Copy {
    /// Records the removal of an item whose lane has lost `lost` bits. The caller holds the lock of the lane's stripe.
    #[inline]
    fn removing(self, _lost: u32) -> Removing {
        Removing::Lane
    }

    /// Records that the expired lanes of these buckets are being erased. Returns the number of them that
    /// their stripe does not count. The caller holds the lock of the stripe.
    #[inline]
    fn expiring(self, _words: &[u64], _now: Moment) -> i32 {
        0
    }
}
