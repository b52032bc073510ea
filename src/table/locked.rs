//! A value behind a lock.

use crate::sync::{MutPtr, UnsafeCell};
use crate::table::lock::{Lock, LockGuard};
use std::ops::{Deref, DerefMut};

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
        self.lock.is_held()
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
        self.value.with(|value| unsafe { &*value })
    }
}

impl<T> DerefMut for LockedGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above.
        #[allow(unsafe_code)]
        self.value.with(|value| unsafe { &mut *value })
    }
}
