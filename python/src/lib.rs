//! The native part of `pykoel`: koel's filters for Python.
//!
//! * [`filter`] is the class `Filter`: a filter of its own, or a file that is only read.
//! * [`bulk`] asks it about many items.
//! * [`partitions`] divides the hashes of many items, for filters in several processes.
//! * [`open`] checks the arguments of a filter, and loads one. [`asked`] has them, and builds a new one.
//! * [`process`] counts forks, and closes the filters that a program has left open.
//! * [`own`] is a filter that can be changed, in memory or with its file. [`reader`] is one that is asked in its file.
//! * [`items`] turns what Python passes into hashes.
//! * [`set`] has the operations of a filter, with or without a journal.
//! * [`errors`] has koel's errors as Python's own, in terms of the arguments of `Filter`.
//!
//! # The global interpreter lock
//!
//! An operation on one item keeps the lock, since letting it go takes longer than the operation. Whatever may
//! take longer than a millisecond lets it go. Nobody waits while holding it for somebody who may need it, so there is
//! no order of locks to keep: a change of a filter in a file waits for a shard that a checkpoint copies, and for space
//! in the journal.
//!
//! # Forks
//!
//! A child that is forked has the memory of its parent, and none of its threads: what they had locked stays locked. So
//! it uses nothing of a filter that its parent could change ([`own`]), and may use a file that is only read
//! ([`reader`]), which has no locks.

mod asked;
mod bulk;
mod errors;
mod filter;
mod items;
mod open;
mod own;
mod partitions;
mod process;
mod reader;
mod set;

use pyo3::prelude::*;

#[pymodule(gil_used = false)]
fn _pykoel(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<filter::Filter>()?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_function(wrap_pyfunction!(filter::_restored, module)?)?;
    module.add_function(wrap_pyfunction!(filter::_reopened, module)?)?;
    module.add_function(wrap_pyfunction!(partitions::_split, module)?)?;
    module.add_function(wrap_pyfunction!(partitions::_join, module)?)?;
    process::register(module)
}
