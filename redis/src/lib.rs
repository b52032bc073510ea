//! koel's filters in Redis and Valkey: a data type, and the `CF.*` commands.
//!
//! ```text
//! commands/   what clients ask for, and what is replicated of it
//! request/    what commands have in common: the set of a key, limits, arguments, time
//! server/     the module API, behind safe faces
//! set/        what a key has, whatever the server: a filter, what it was made of, and how it is saved
//! ```
//!
//! Each imports only from those below it. All `unsafe` is in `server/`, but for the function here that a server
//! calls first.
//!
//! # Equal tables
//!
//! A replica has the same table as its primary, bit for bit, and so has a server that loaded a file. A filter is
//! deterministic: it has no threads here, its hashes depend on its seed alone, and equal operations in
//! equal order give equal tables. So it is enough that replicas get the seed, and every command that changed
//! something, and no clock of theirs has a say.

#![deny(unsafe_code)]

mod commands;
mod request;
mod server;
mod set;

use crate::server::load::{RedisModuleCtx, RedisModuleString, on_load};
use std::ffi::c_int;

/// # Safety
///
/// Only a server calls this, once, before anything else of the module.
#[unsafe(no_mangle)]
#[allow(unsafe_code, non_snake_case, reason = "the server's name for it")]
pub unsafe extern "C" fn RedisModule_OnLoad(
    context: *mut RedisModuleCtx,
    argv: *mut *mut RedisModuleString,
    argc: c_int,
) -> c_int {
    // SAFETY: this is that call.
    unsafe { on_load(context, argv, argc, commands::each) }
}
