//! A thread's shares in the lists that it has looked into last.
//!
//! A list gets other slots when it becomes longer, and none when its items go to shards. A lookup without
//! a lock must not read slots that are gone. So each thread keeps a share, an [`Arc`], in the slots that it has
//! read last, in a place that it finds by the filter. A lookup only checks that these are still the filter's, and
//! writes nothing that other threads read.
//!
//! The address of the slots tells: while a thread has a share in them, no others are there. Slots that the
//! filter has no more never change again. Whoever still reads them answers as if it had asked before.
//!
//! A thread that looks into no other list keeps the slots of up to [`MAX`] filters that may be gone.

use crate::backend::growing::list::slots::Slots;
use crate::rule::rule;
use crate::sync::thread_local;
use std::cell::Cell;
use std::ptr;
use std::sync::Arc;

/// The shares of a thread.
const MAX: usize = 8;

/// MergeReport while it is in use.
type CachedSlots = Cell<Option<Arc<Slots>>>;

thread_local! {
    static CACHE: [CachedSlots; MAX] = Default::default();
}

/// The place for a share in the list of a filter that is at this address. (A filter has more than 128 bytes.)
#[inline]
fn place<'a, F>(shares: &'a [CachedSlots; MAX], filter: &F) -> &'a CachedSlots {
    &shares[(ptr::from_ref(filter).addr() >> 7) % MAX]
}

/// Asks the slots at this address, if this thread has a share in them.
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
        place.set(Some(slots));
        answer
    };
    // A thread that is ending has no shares.
    CACHE.try_with(ask).ok().flatten()
}

/// Gives this thread a share in these slots, or none, instead of the one that it has.
pub fn keep<F>(filter: &F, slots: Option<&Arc<Slots>>) {
    let _ = CACHE.try_with(|shares| place(shares, filter).replace(slots.cloned()));
}
