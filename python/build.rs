//! Passes on what the interpreter is like: `Py_GIL_DISABLED` if it has no global lock.

fn main() {
    pyo3_build_config::use_pyo3_cfgs();
}
