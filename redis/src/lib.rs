//! koel's filters in Redis and Valkey: a data type, and the `CF.*` commands.
//!
//! ```text
//! commands/   what clients ask for, and what is replicated of it
//! request/    what commands have in common: the set of a key, limits, arguments, time
//! server/     the module API, behind safe faces; all `unsafe` is there
//! set/        what a key has, whatever the server: a filter, what it was made of, and how it is saved
//! ```
//!
//! Each imports only from those below it, except that `server/load` has the list of commands.
//!
//! # Equal tables
//!
//! A replica has the same table as its primary, bit for bit, and so has a server that loaded a file. A filter is
//! deterministic: it has no threads here, its hashes depend on its seed alone, and equal operations in
//! equal order give equal tables. So it is enough that replicas get the seed, and every command that changed
//! something, and no clock of theirs has a say.

mod commands;
mod request;
mod server;
mod set;
