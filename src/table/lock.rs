//! The lock of a stripe and of a stream, and a value behind it.

use crate::sync::{AtomicBool, Backoff, MutPtr, Mutex, Ordering, UnsafeCell, nap};
use std::ops::{Deref, DerefMut};

/// A lock: one compare-and-swap to take, one store to release.
///
/// A mutex that wakes its waiters has to check at every release whether there are any. That takes a second
/// read-modify-write, which costs a quarter of an insert in a table that fits the cache. Here the release is
/// a plain store, and waiters poll: they spin a little, then yield, and then queue up in a [`Mutex`], whose
/// holder alone keeps polling. So when the system has descheduled the holder of a lock and a hundred threads
/// wait for it, one of them naps and polls, and ninety-nine sleep.
///
/// The lock guarantees mutual exclusion, and that some waiter acquires it. It guarantees no order: many
/// threads may overtake a waiter. It never panics, and its queue allocates only what `parking_lot` keeps for
/// waiting threads.
pub(crate) struct Lock {
    held: AtomicBool,
    /// The queue of threads that found `held` true several times. The first holds this mutex while
    /// it polls.
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

    /// Acquires the lock if it is free.
    ///
    /// No load precedes the compare-and-swap. A load would fetch the cache line for reading, and the swap
    /// would fetch it again for writing.
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
        // A thread in this queue may hold locks of lower stripes, while the holder of this lock
        // waits for locks of higher stripes at most. So the queue adds no cycle to the lock order.
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

impl<'a> LockGuard<'a> {
    /// Returns the lock that is held.
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

/// A value that only the holder of its lock reaches.
pub(crate) struct Locked<T> {
    lock: Lock,
    value: UnsafeCell<T>,
}

// SAFETY: one thread at a time has the value, which is the holder of the lock.
#[allow(unsafe_code)]
unsafe impl<T: Send> Sync for Locked<T> {}

impl<T> Locked<T> {
    pub(crate) fn new(value: T) -> Self {
        Locked { lock: Lock::new(), value: UnsafeCell::new(value) }
    }

    #[inline]
    pub(crate) fn lock(&self) -> LockedGuard<'_, T> {
        let lock = self.lock.lock();
        LockedGuard { value: self.value.get_mut(), _lock: lock }
    }

    /// Returns whether a thread holds the lock. If none does, all that earlier holders did is visible.
    #[inline]
    pub(crate) fn is_held(&self) -> bool {
        // Acquire: pairs with the release of the last holder.
        self.lock.held.load(Ordering::Acquire)
    }
}

/// Exclusive access to a value. Dropping it releases the lock.
pub(crate) struct LockedGuard<'a, T> {
    /// Dropped before the lock is released.
    value: MutPtr<T>,
    _lock: LockGuard<'a>,
}

impl<T> Deref for LockedGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the guard has the lock, so no other thread reaches the value, and this one borrows it from the guard.
        #[allow(unsafe_code)]
        unsafe {
            self.value.deref()
        }
    }
}

impl<T> DerefMut for LockedGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above.
        #[allow(unsafe_code)]
        unsafe {
            self.value.deref()
        }
    }
}
