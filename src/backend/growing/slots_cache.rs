//! A thread's cache of the list slots that it has read last.
//!
//! A list gets other slots when it becomes longer, and drops them when its items go to shards. A lookup
//! without a lock must not read slots that were freed. So each thread keeps a share, an [`Arc`], in the slots
//! that it has read last, in a place that depends on the filter's address. A lookup only checks that these
//! slots are still the filter's, and writes nothing that other threads read.
//!
//! Comparing addresses is enough: while a thread has a share in some slots, no other slots can have their
//! address. Slots that the filter has replaced never change again. A lookup that still reads them answers as
//! if it had come before.
//!
//! A thread that looks into no other list keeps the slots of up to [`MAX`] filters alive, even if these
//! filters were dropped.

use crate::backend::growing::list::slots::Slots;
use crate::rule::rule;
use crate::sync::thread_local;
use std::cell::Cell;
use std::ptr;
use std::sync::Arc;

/// The number of shares of a thread.
const MAX: usize = 8;

/// A share in some slots. It is out of its cell while it is in use.
type CachedSlots = Cell<Option<Arc<Slots>>>;

thread_local! {
    static CACHE: [CachedSlots; MAX] = Default::default();
}

/// Returns the place for a share in the list of a filter at this address. (A filter is larger than 128
/// bytes.)
#[inline]
fn place<'a, F>(shares: &'a [CachedSlots; MAX], filter: &F) -> &'a CachedSlots {
    &shares[(ptr::from_ref(filter).addr() >> 7) % MAX]
}

/// Queries the slots at this address, if this thread has a share in them.
#[inline(always)]
pub fn ask<F, A>(
    filter: &F,
    address: *const Slots,
    question: impl FnOnce(&Slots) -> Option<A>,
) -> Option<A> {
    let ask = |shares: &[CachedSlots; MAX]| {
        let place = place(shares, filter);
        let slots = place.take()?;
        let is_this = rule!("any_slots_are_asked", ptr::eq(&*slots, address), true);
        let answer = if is_this { question(&slots) } else { None };
        // It was taken, so nothing has to be dropped.
        std::mem::forget(place.replace(Some(slots)));
        answer
    };
    // A thread that is exiting has no shares.
    CACHE.try_with(ask).ok().flatten()
}

/// Replaces this thread's share for the filter by one in these slots, or by none.
pub fn keep<F>(filter: &F, slots: Option<&Arc<Slots>>) {
    let _ = CACHE.try_with(|shares| place(shares, filter).replace(slots.cloned()));
}
