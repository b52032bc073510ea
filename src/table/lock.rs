//! The lock of a stripe, and of a stream.

use crate::sync::{AtomicBool, Backoff, Mutex, Ordering, nap};

/// A lock: one compare-and-swap to take, one store to release.
///
/// A mutex that wakes its waiters has to check at every release whether there are any, which takes a second
/// read-modify-write. Here the release is a plain store, and waiters poll: they spin a little, then yield, and then
/// queue up in a [`Mutex`], whose holder alone keeps polling. So when the system has descheduled the holder of a lock,
/// one of its waiters naps and polls, and all others sleep.
///
/// Some waiter acquires the lock, in no order: many threads may overtake a waiter. The lock never panics, and its queue
/// allocates only what `parking_lot` keeps for waiting threads.
pub(crate) struct Lock {
    held: AtomicBool,
    /// The queue of threads that found `held` true several times. The first holds this mutex while it polls.
    queue: Mutex<()>,
}

/// Exclusive access. Dropping it releases the lock.
pub(crate) struct LockGuard<'a> {
    lock: &'a Lock,
}

impl Lock {
    pub(crate) fn new() -> Self {
        Lock { held: AtomicBool::new(false), queue: Mutex::new(()) }
    }

    #[inline]
    pub(crate) fn lock(&self) -> LockGuard<'_> {
        if !self.try_take() {
            self.wait();
        }
        LockGuard { lock: self }
    }

    /// Acquires the lock if it is free. No load precedes the compare-and-swap: it would fetch the cache line for
    /// reading, and the swap would fetch it again for writing.
    #[inline]
    fn try_take(&self) -> bool {
        // Acquire: pairs with the release of the last holder. Without it, this one may read words from before the last
        // one's changes.
        self.held.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    #[cold]
    fn wait(&self) {
        if self.try_for_a_while() {
            return;
        }
        // A thread in this queue may hold locks of lower stripes, while the holder of this lock waits for locks of
        // higher stripes at most. So the queue adds no cycle to the lock order.
        let _first_in_line = self.queue.lock();
        while !self.try_for_a_while() {
            nap();
        }
    }

    fn try_for_a_while(&self) -> bool {
        let backoff = Backoff::new();
        loop {
            if self.try_take() {
                return true;
            }
            if backoff.is_completed() {
                return false;
            }
            backoff.snooze();
        }
    }
}

impl Lock {
    /// Returns whether a thread holds the lock. If none does, all that earlier holders did is visible.
    #[cfg(any(loom, all(unix, feature = "durable")))]
    #[inline]
    pub(crate) fn is_held(&self) -> bool {
        // Acquire: pairs with the release of the last holder.
        self.held.load(Ordering::Acquire)
    }
}

impl<'a> LockGuard<'a> {
    pub(crate) fn lock(&self) -> &'a Lock {
        self.lock
    }
}

impl Drop for LockGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        // Release: pairs with the acquire of the next holder.
        self.lock.held.store(false, Ordering::Release);
    }
}
