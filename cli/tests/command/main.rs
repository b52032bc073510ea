//! The tests of the `koel` command, on Linux: they run the command and look at what it writes.
//!
//! They are one program, so that they are compiled and linked once and run in parallel. Long tests
//! run fewer rounds unless the environment variable `KOEL_LONG_TESTS` is set.

#![cfg(target_os = "linux")]

mod common;
mod help;
mod terminals;

/// What `koel dedup` writes.
mod dedup {
    mod compressed;
    mod equal;
    pub mod folders;
    mod lines;
    mod lossless;
    mod options;
    mod outputs;
    mod records;
}

/// What is remembered between runs.
mod state {
    mod claims;
    mod compacting;
    mod forgetting;
    mod limits;
    mod merging;
    mod refused_states;
    mod states;
}

/// Runs that end early: signals, kills, and calls that the system refuses.
mod ends {
    pub mod kills;
    mod signals;
    mod system_calls;
    mod unsaved;
}

/// Pipes, shared files and terminals.
mod streams {
    mod pipes;
    mod standard_streams;
    mod terminal;
}
