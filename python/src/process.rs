//! The process: its forks, and its end.
//!
//! A child counts each fork that led to it, and a filter keeps the count of the process that opened it. A filter with
//! another count is the parent's.

use crate::errors;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// The number of forks that led to this process. `Relaxed`: it changes only while a child has one thread.
static FORKS: AtomicU64 = AtomicU64::new(0);

/// The filters with a file that are open: a `weakref.WeakSet`, which the interpreter guards.
static OPEN: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// Returns the number of forks that led to this process.
#[inline]
pub fn forks() -> u64 {
    FORKS.load(Relaxed)
}

/// Has Python count forks, and close filters at the end.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    // Now, so that no fork comes in the middle of it.
    open(py)?;
    let hooks = PyDict::new(py);
    hooks.set_item("after_in_child", wrap_pyfunction!(count_fork, module)?)?;
    py.import("os")?.call_method("register_at_fork", (), Some(&hooks))?;
    py.import("atexit")?.call_method1("register", (wrap_pyfunction!(close_all, module)?,))?;
    Ok(())
}

#[pyfunction]
fn count_fork() {
    FORKS.fetch_add(1, Relaxed);
}

/// Returns the filters that are to be closed at the end.
fn open(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    let make = || py.import("weakref")?.call_method0("WeakSet").map(Bound::unbind);
    OPEN.get_or_try_init(py, make).map(|open| open.bind(py))
}

/// Closes a filter at the end of the program, unless it is gone by then.
pub fn close_at_end(filter: &Bound<'_, PyAny>) -> PyResult<()> {
    open(filter.py())?.call_method1("add", (filter,)).map(|_| ())
}

/// Runs after the program has ended and its threads were waited for, but for daemon threads. A process that is killed,
/// or ends by `os._exit`, does not come here.
#[pyfunction]
fn close_all(py: Python<'_>) -> PyResult<()> {
    let open = open(py)?;
    // It fails if there are no more.
    while let Ok(filter) = open.call_method0("pop") {
        if let Err(error) = filter.call_method0("close") {
            errors::of_end(py, error);
        }
    }
    Ok(())
}
