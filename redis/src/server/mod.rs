//! The server, as the module sees it. All `unsafe` of the module is in this folder: its faces are safe.
//!
//! * [`load`] is what the server calls first.
//! * [`command`] has what it must know of a command, and calls it.
//! * [`context`] is one call: arguments, reply, replication.
//! * [`key`] is a key that a command opened.
//! * [`datatype`] saves, loads, copies and frees a set.
//! * [`chore`] is what goes on between calls.
//! * [`config`] has the settings.
//! * [`failure`] is for those that no client waits for.
//! * [`alloc`] is the server's allocator.
//! * [`raw`] is the module API itself.

#![allow(unsafe_code)]

// (The tests of the crate run without a server.)
#[cfg(not(test))]
mod alloc;
mod chore;
pub mod command;
pub mod config;
pub mod context;
mod datatype;
mod failure;
pub mod key;
pub mod load;
mod raw;
