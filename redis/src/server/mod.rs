//! The server, as the module sees it. All `unsafe` of the module is in this folder: its faces are safe.
//!
//! * [`load`] is what the server calls first.
//! * [`command`] has what it must know of a command, and calls it.
//! * [`context`] is one call: arguments, reply, replication.
//! * [`key`] is a key that a command opened.
//! * [`datatype`] saves, loads, copies and frees a set.
//! * [`config`] has the settings.
//! * [`alloc`] is the server's allocator.

#![allow(unsafe_code)]

// (The tests of the crate run without a server.)
#[cfg(not(test))]
mod alloc;
pub mod command;
pub mod config;
pub mod context;
mod datatype;
pub mod key;
pub mod load;
