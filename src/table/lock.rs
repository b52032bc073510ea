//! The lock of a stripe: one compare-and-swap to take, one store to release.
//!
//! A mutex that wakes its waiters has to find out, at every release, whether there are any: a
//! second read-modify-write, which in a table that fits the cache is a quarter of an insert. Here
//! the release is a plain store, and the waiters look after themselves: they spin a little, then
//! yield, and then line up in a [`Mutex`] of which only the first in line goes on looking. So a
//! hundred threads behind a holder that the system has put aside cost one that naps and looks, and
//! ninety-nine that sleep.
//!
//! It promises mutual exclusion and that some waiter gets in; it does not promise in which order.
//! It never panics, and the queue allocates only
//! what `parking_lot` keeps for waiting threads. A waiter can be overtaken, by many, before its turn.
//!
//! # Orderings
//!
//! | access | ordering | partner |
//! |---|---|---|
//! | `held` false → true | `Acquire` | the `Release` store of the last holder: what it wrote is seen |
//! | `held` := false | `Release` | the `Acquire` of the next holder |
//!
//! Without either, a holder reads words of before the last holder's changes: loom's twins
//! `the_lock_is_taken_relaxed` and `the_lock_is_released_relaxed`.

use crate::sync::{AtomicBool, Backoff, Mutex, Ordering, nap};

pub struct Lock {
    held: AtomicBool,
    /// Those who found `held` true several times; the first of them holds this while it waits.
    queue: Mutex<()>,
}

/// The right to be alone; dropping it gives it back.
pub struct Held<'a> {
    lock: &'a Lock,
    #[cfg(loom)]
    _queue: Option<crate::sync::MutexGuard<'a, ()>>,
}

impl Lock {
    pub fn new() -> Self {
        Lock { held: AtomicBool::new(false), queue: Mutex::new(()) }
    }

    #[inline]
    pub fn lock(&self) -> Held<'_> {
        #[cfg(loom)]
        let _queue = crate::sync::queue_first().then(|| self.queue.lock());
        if !self.try_take() {
            self.wait();
        }
        Held {
            lock: self,
            #[cfg(loom)]
            _queue,
        }
    }

    /// A swap on a guess, without a look first: a look would fetch the line once to read it and
    /// once more to own it.
    #[inline]
    fn try_take(&self) -> bool {
        self.held.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    #[cold]
    fn wait(&self) {
        if self.try_for_a_while() {
            return;
        }
        // A thread in this line may hold stripes before this one, and whoever holds this one waits
        // for stripes after it at most: the line adds no circle to the order of the locks.
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

impl<'a> Held<'a> {
    /// Which lock it is.
    pub fn lock(&self) -> &'a Lock {
        self.lock
    }
}

impl Drop for Held<'_> {
    #[inline]
    fn drop(&mut self) {
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
                        // Not an atomic addition: two holders at once would lose turns.
                        turns.store(turns.load(Relaxed) + 1, Relaxed);
                    }
                });
            }
        });
        assert_eq!(turns.load(Relaxed), 100_000);
    }

    #[test]
    fn those_behind_a_sleeping_holder_get_in_when_it_wakes() {
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
