//! Forks: a child has the memory of its parent, and none of its threads.
//!
//! An operation that another thread was in the middle of, at the moment of a fork, is never finished in the
//! child: what it had locked stays locked. So a fork waits for the operations that run without the interpreter's
//! lock, and those that come meanwhile wait for the fork. Operations that hold the lock cannot be in the
//! middle of anything, because the thread that forks holds it. (If there is no such lock, they do as the others.)
//!
//! The thread that forks passes the gate, because hooks of other modules may use a filter before the fork, and because
//! the child destroys what other threads had before it calls any hook.
//!
//! A hook of another module may also wait, before the fork, for a lock whose holder waits here for the fork: a
//! deadlock. So after a second an operation goes on, but under the interpreter's import lock. Python takes that lock
//! after all hooks that come before the fork, and holds it until the fork is over. Whichever takes it first, the other
//! one waits, however long: no operation is in the middle of anything at the moment of the fork.
//!
//! A filter in a file has threads of its own. Those that sync hold nothing that a child uses. The one that makes
//! checkpoints is asked to make none until the fork is over, and a fork waits for one that is being made. Checkpoints
//! that are asked for are operations like others.
//!
//! Nobody sleeps in a queue here. In the child, the queue and its lock would be as they were: so those who wait
//! look again after some microseconds.
//!
//! # Orderings
//!
//! `closed` and the counters are `SeqCst`: an operation counts itself (`count`) and then looks whether the gate is
//! closed (`try_enter`), a fork closes it and then looks at the counters (`close`), and one of them must see the
//! other. The end of an operation (`Inside::drop`) is seen by the fork that reads its counter, with all that it has
//! written. `open_in_child` has no partner: there is one thread. `NEXT` only spreads threads, so it is `Relaxed`.
//!
//! loom does not keep two threads that each write and then read what the other wrote from both reading what was
//! there before, also with `SeqCst`, so it has no model of this. What fails without `close` is the test of many
//! forks.

use crossbeam_utils::CachePadded;
use pyo3::prelude::*;
use std::cell::Cell;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::thread;
use std::time::{Duration, Instant};

/// How often those who wait look again.
const PERIOD: Duration = Duration::from_micros(20);

/// How long an operation waits here for a fork.
const PATIENCE: Duration = Duration::from_secs(1);

/// Threads share counters if they are more than that.
const COUNTERS: usize = 16;

/// What operations pass, and forks close.
struct Gate {
    /// The forks that are about to happen.
    closed: AtomicUsize,
    /// The operations that run.
    inside: [CachePadded<AtomicUsize>; COUNTERS],
}

static GATE: Gate = Gate {
    closed: AtomicUsize::new(0),
    inside: [const { CachePadded::new(AtomicUsize::new(0)) }; COUNTERS],
};

impl Gate {
    /// Waits until no fork is about to happen. `None` if that takes longer.
    fn enter_within(&self, patience: Duration) -> Option<Inside<'_>> {
        let mut since = None;
        loop {
            if let Some(inside) = self.try_enter() {
                return Some(inside);
            }
            if since.get_or_insert_with(Instant::now).elapsed() > patience {
                return None;
            }
            thread::sleep(PERIOD);
        }
    }

    fn try_enter(&self) -> Option<Inside<'_>> {
        let inside = self.count();
        (self.closed.load(SeqCst) == 0 || FORKS.get() > 0).then_some(inside)
    }

    fn count(&self) -> Inside<'_> {
        let counter = &self.inside[number_of_thread() % COUNTERS];
        counter.fetch_add(1, SeqCst);
        Inside { counter }
    }

    /// Waits until no operation runs, and lets none begin.
    fn close(&self) {
        self.closed.fetch_add(1, SeqCst);
        while self.inside.iter().any(|counter| counter.load(SeqCst) > 0) {
            thread::sleep(PERIOD);
        }
    }

    /// A server that forks by itself may tell of the end of a fork, and not of its beginning.
    fn open(&self) {
        let _ = self.closed.fetch_update(SeqCst, SeqCst, |forks| forks.checked_sub(1));
    }

    /// Forgets the threads of before.
    fn open_in_child(&self) {
        for counter in &self.inside {
            counter.store(0, SeqCst);
        }
        self.closed.store(0, SeqCst);
    }
}

/// An operation that forks wait for, until it is dropped.
struct Inside<'a> {
    counter: &'a AtomicUsize,
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.counter.fetch_sub(1, SeqCst);
    }
}

thread_local! {
    /// The forks that this thread is about to make: one, or none.
    static FORKS: Cell<usize> = const { Cell::new(0) };
}

/// A number for each thread, so that threads count in different cache lines.
fn number_of_thread() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static NUMBER: Cell<usize> = Cell::new(NEXT.fetch_add(1, Relaxed));
    }
    NUMBER.with(Cell::get)
}

/// The interpreter's lock of imports, until it is dropped. A thread may take it several times.
struct Imports<'py> {
    module: Bound<'py, PyModule>,
}

impl<'py> Imports<'py> {
    /// Waits until nobody has it, and lets others run meanwhile.
    fn lock(py: Python<'py>) -> PyResult<Self> {
        let module = py.import("_imp")?;
        module.call_method0("acquire_lock")?;
        Ok(Imports { module })
    }
}

impl Drop for Imports<'_> {
    fn drop(&mut self) {
        let _ = self.module.call_method0("release_lock");
    }
}

/// Does something without the interpreter's lock, and not while the process forks.
pub fn detached<T: Send>(py: Python<'_>, operation: impl FnOnce() -> T + Send) -> T {
    let unless_done = py.detach(|| match GATE.enter_within(PATIENCE) {
        Some(_inside) => Ok(operation()),
        None => Err(operation),
    });
    unless_done.unwrap_or_else(|operation| match Imports::lock(py) {
        Ok(_imports) => py.detach(operation),
        // An interpreter without such a lock.
        Err(_) => py.detach(|| {
            let _inside = GATE.enter_within(Duration::MAX);
            operation()
        }),
    })
}

/// Does something short, that no fork comes in between: with the interpreter's lock, if there is one.
#[cfg(not(Py_GIL_DISABLED))]
#[inline(always)]
pub fn attached<T: Send>(_py: Python<'_>, operation: impl FnOnce() -> T + Send) -> T {
    operation()
}

#[cfg(Py_GIL_DISABLED)]
pub fn attached<T: Send>(py: Python<'_>, operation: impl FnOnce() -> T + Send) -> T {
    match GATE.try_enter() {
        Some(_inside) => operation(),
        None => detached(py, operation),
    }
}

/// Lets no operation begin, waits until none runs, and then for other forks. `first` runs under the interpreter's
/// import lock.
pub fn close<T>(py: Python<'_>, first: impl FnOnce() -> T) -> T {
    py.detach(|| GATE.close());
    let _imports = Imports::lock(py);
    first()
}

/// This thread is about to fork: it passes the gate.
pub fn begin() {
    FORKS.set(FORKS.get() + 1);
}

/// Returns `true` if this thread makes no other fork.
pub fn end_in_parent() -> bool {
    FORKS.set(FORKS.get().saturating_sub(1));
    FORKS.get() == 0
}

pub fn open() {
    GATE.open();
}

pub fn open_in_child() {
    FORKS.set(0);
    GATE.open_in_child();
}
