//! The server, as the module sees it. All `unsafe` of the module is in this folder, whose faces are safe, but for the
//! function that the server calls first: that is in the root, since it knows the commands.
//!
//! * [`load`] is what happens first, when the server loads the module.
//! * [`command`] has what it must know of a command, and calls it.
//! * [`names`] spells the names of commands.
//! * [`context`] is one call: arguments, reply, replication.
//! * [`key`] is a key that a command opened.
//! * [`datatype`] saves, loads, copies and frees a set.
//! * [`chore`] is what goes on between calls.
//! * [`config`] has the settings.
//! * [`log`] is where the server tells those who run it, also of failures that no client waits for.
//! * [`alloc`] is the server's allocator.
//! * [`raw`] is the module API itself.

#![allow(unsafe_code)]

// (The tests of the crate run without a server.)
#[cfg(not(test))]
mod alloc;
pub mod chore;
pub mod command;
pub mod config;
pub mod context;
mod datatype;
pub mod key;
pub mod load;
mod log;
mod names;
mod raw;
