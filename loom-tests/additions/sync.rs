//! What models need of locks beside the sources. All threads of a model run on one OS thread.

use super::*;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::mem::ManuallyDrop;

/// A place in the queue of a lock. It is not left when the OS thread ends, where loom is no more.
type InQueue = ManuallyDrop<loom::sync::MutexGuard<'static, ()>>;

thread_local! {
    static QUEUE_FIRST: Cell<bool> = const { Cell::new(false) };
    static IN_QUEUES: RefCell<HashMap<*const Mutex<()>, InQueue>> = RefCell::default();
    static ALONE: Cell<bool> = const { Cell::new(false) };
}

/// Sets whether threads queue for each lock before they try it, in all models that this OS thread runs from now on.
pub fn set_queue_first(on: bool) {
    QUEUE_FIRST.set(on);
}

/// Waits in the queue of a lock if [`set_queue_first`] is on, so that a waiting thread blocks instead of retrying.
pub fn queue_first(queue: &Mutex<()>) {
    if QUEUE_FIRST.get() {
        let guard = queue.lock();
        // SAFETY: the holder of the lock borrows it, and with it the queue, until `leave_queue`.
        let guard = unsafe {
            std::mem::transmute::<loom::sync::MutexGuard<'_, ()>, loom::sync::MutexGuard<'static, ()>>(guard)
        };
        IN_QUEUES.with_borrow_mut(|queues| queues.insert(queue, ManuallyDrop::new(guard)));
    }
}

/// Leaves the queue of a lock that was released.
pub fn leave_queue(queue: &Mutex<()>) {
    let left = IN_QUEUES.with_borrow_mut(|queues| queues.remove(&std::ptr::from_ref(queue)));
    left.map(ManuallyDrop::into_inner);
}

/// Makes a check that is no event to loom.
pub fn alone<T>(check: impl FnOnce() -> T) -> T {
    ALONE.set(true);
    let checked = check();
    ALONE.set(false);
    checked
}

pub fn is_alone() -> bool {
    ALONE.get()
}
