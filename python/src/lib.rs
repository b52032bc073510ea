//! The native part of `pykoel`: koel's filters for Python.
//!
//! * [`filter`] is the class `Filter`.
//! * [`bulk`] asks it about many items.
//! * [`open`] checks what a filter is to be like, and loads or builds it.
//! * [`items`] turns what Python passes into hashes.
//! * [`kept`] is a filter in memory, and knows the time if it forgets.
//! * [`place`] is a filter's file.
//! * [`fork`] keeps operations and forks apart.
//! * [`errors`] has koel's errors as Python's own.
//!
//! # The global interpreter lock
//!
//! An operation on one item keeps the lock, since letting it go takes longer than the operation. Whatever may
//! take longer than a millisecond lets it go, and does so only by [`fork::detached`]. Nobody waits for
//! anything else while holding it, so there is no order of locks to keep. (What operations and forks wait for is in
//! [`fork`].)

mod bulk;
mod errors;
mod filter;
mod fork;
mod items;
mod kept;
mod open;
mod place;

use pyo3::prelude::*;

#[pymodule(gil_used = false)]
fn _pykoel(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<filter::Filter>()?;
    module.add_function(wrap_pyfunction!(filter::_restored, module)?)?;
    fork::register(module)
}
