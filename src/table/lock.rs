//! The lock of a stripe: one compare-and-swap to take, one store to release.
//!
//! A mutex that wakes its waiters has to check at every release whether there are any. That takes a second
//! read-modify-write, which costs a quarter of an insert in a table that fits the cache. Here the release is
//! a plain store, and waiters poll: they spin a little, then yield, and then queue up in a [`Mutex`], whose
//! holder alone keeps polling. So when the system has descheduled the holder of a lock and a hundred threads
//! wait for it, one of them naps and polls, and ninety-nine sleep.
//!
//! The lock guarantees mutual exclusion, and that some waiter acquires it. It guarantees no order: many
//! threads may overtake a waiter. It never panics, and its queue allocates only what `parking_lot` keeps for
//! waiting threads.

use crate::sync::{AtomicBool, Backoff, InQueue, Mutex, Ordering, nap, queue_first};

pub struct Lock {
    held: AtomicBool,
    /// The queue of threads that found `held` true several times. The first holds this mutex while
    /// it polls.
    queue: Mutex<()>,
}

/// Exclusive access. Dropping it releases the lock.
pub struct LockGuard<'a> {
    lock: &'a Lock,
    _queue: InQueue<'a>,
}

impl Lock {
    pub fn new() -> Self {
        Lock { held: AtomicBool::new(false), queue: Mutex::new(()) }
    }

    #[inline]
    pub fn lock(&self) -> LockGuard<'_> {
        let _queue = queue_first(&self.queue);
        if !self.try_take() {
            self.wait();
        }
        LockGuard { lock: self, _queue }
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
    pub fn lock(&self) -> &'a Lock {
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

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    #[test]
    fn a_hundred_threads_take_turns() {
        let lock = Lock::new();
        let turns = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..100 {
                scope.spawn(|| {
                    for _ in 0..1_000 {
                        let _held = lock.lock();
                        // Not an atomic addition, so two holders at once would lose turns.
                        turns.store(turns.load(Relaxed) + 1, Relaxed);
                    }
                });
            }
        });
        assert_eq!(turns.load(Relaxed), 100_000);
    }

    #[test]
    fn threads_behind_a_sleeping_holder_get_in_when_it_wakes() {
        let lock = Lock::new();
        let entered = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            let held = lock.lock();
            for _ in 0..20 {
                scope.spawn(|| {
                    let _held = lock.lock();
                    entered.fetch_add(1, Relaxed);
                });
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
            assert_eq!(entered.load(Relaxed), 0);
            drop(held);
        });
        assert_eq!(entered.load(Relaxed), 20);
    }
}
