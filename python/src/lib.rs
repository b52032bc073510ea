//! The native part of `pykoel`: koel's filters for Python.
//!
//! * [`filter`] is the class `Filter`.
//! * [`bulk`] asks it about many items.
//! * [`open`] checks the arguments of a filter, and loads or builds it. [`plan`] is what a new one is built from.
//! * [`items`] turns what Python passes into hashes.
//! * [`kept`] is a filter with or without its journal, and knows the time if it forgets.
//! * [`place`] is where a filter is: in memory, with a file or without, or in a file that is only read.
//! * [`fork`] keeps operations and forks apart, and [`hooks`] tells it and the filters of forks, and closes
//!   filters when the interpreter ends.
//! * [`errors`] has koel's errors as Python's own, in terms of the arguments of `Filter`.
//!
//! # The global interpreter lock
//!
//! An operation on one item keeps the lock, since letting it go takes longer than the operation. Whatever may
//! take longer than a millisecond lets it go, and does so only by [`fork::detached`]. Nobody waits while holding
//! it for somebody who may need it, so there is no order of locks to keep: a change of a filter in a file waits for a
//! shard that a checkpoint copies, and for space in the journal. (What operations and forks wait for is in [`fork`].)

mod bulk;
mod errors;
mod filter;
mod fork;
mod hooks;
mod items;
mod kept;
mod open;
mod place;
mod plan;

use pyo3::prelude::*;

#[pymodule(gil_used = false)]
fn _pykoel(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<filter::Filter>()?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_function(wrap_pyfunction!(filter::_restored, module)?)?;
    module.add_function(wrap_pyfunction!(filter::_reopened, module)?)?;
    hooks::register(module)
}
