//! What happens around a fork, and when the interpreter ends.

use crate::fork;
use crate::place::{self, Quiesced};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::cell::RefCell;

thread_local! {
    /// The filters that make no checkpoints by themselves until the forks of this thread are over.
    static QUIESCED: RefCell<Vec<Quiesced>> = const { RefCell::new(Vec::new()) };
}

/// Has Python call what is to happen.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let hooks = PyDict::new(module.py());
    hooks.set_item("before", wrap_pyfunction!(before_fork, module)?)?;
    hooks.set_item("after_in_parent", wrap_pyfunction!(after_fork_in_parent, module)?)?;
    hooks.set_item("after_in_child", wrap_pyfunction!(after_fork_in_child, module)?)?;
    module.py().import("os")?.call_method("register_at_fork", (), Some(&hooks))?;
    let at_exit = wrap_pyfunction!(at_exit, module)?;
    module.py().import("atexit")?.call_method1("register", (at_exit,))?;
    Ok(())
}

/// Runs after the program has ended and its threads were waited for, but for daemon threads. A process that is killed,
/// or ends by `os._exit`, does not come here. A forked child has left the filters of its parent.
#[pyfunction]
fn at_exit(py: Python<'_>) {
    place::close_all(py);
}

#[pyfunction]
fn before_fork(py: Python<'_>) {
    // Another thread may fork before this one does.
    let opened = fork::close(py, place::opened);
    let quiesced = py.detach(|| place::quiesce(&opened));
    QUIESCED.with_borrow_mut(|all| all.extend(quiesced));
    fork::begin();
}

#[pyfunction]
fn after_fork_in_parent() {
    if fork::end_in_parent() {
        QUIESCED.take();
    }
    fork::open();
}

#[pyfunction]
fn after_fork_in_child() {
    // A thread that this process does not have may have locked what they would lock.
    QUIESCED.take().into_iter().for_each(std::mem::forget);
    place::leave_to_parent();
    fork::open_in_child();
}
