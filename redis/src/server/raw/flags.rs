//! The numbers that the server knows by a name.

use crate::server::raw::types::{
    RedisModuleKeySpecBeginSearchType, RedisModuleKeySpecFindKeysType,
};
use std::ffi::{c_int, c_uint};

/// What functions return that may fail, and the callbacks of a module.
pub const REDISMODULE_OK: c_int = 0;
pub const REDISMODULE_ERR: c_int = 1;

/// The version of the whole interface. There has been no other.
pub const REDISMODULE_APIVER_1: c_int = 1;

// Options of the module.
/// The module asks [`RedisModule_IsIOError`](super::RedisModule_IsIOError) itself; the server goes on where a file ends
/// too soon.
pub const REDISMODULE_OPTIONS_HANDLE_IO_ERRORS: c_int = 1 << 0;
/// A key that was open for writing has not changed, unless the module says so.
pub const REDISMODULE_OPTION_NO_IMPLICIT_SIGNAL_MODIFIED: c_int = 1 << 1;
/// A replica may load a new data set beside the one that it still answers from.
pub const REDISMODULE_OPTIONS_HANDLE_REPL_ASYNC_LOAD: c_int = 1 << 2;

// How a key is opened.
pub const REDISMODULE_READ: c_int = 1 << 0;
pub const REDISMODULE_WRITE: c_int = 1 << 1;
/// Leaves the time of its last use as it is.
pub const REDISMODULE_OPEN_KEY_NOTOUCH: c_int = 1 << 16;

// What a key has.
pub const REDISMODULE_KEYTYPE_EMPTY: c_int = 0;
pub const REDISMODULE_KEYTYPE_MODULE: c_int = 6;

// Where a call comes from, and what state the server is in.
pub const REDISMODULE_CTX_FLAGS_MASTER: c_int = 1 << 2;
pub const REDISMODULE_CTX_FLAGS_REPLICATED: c_int = 1 << 12;
pub const REDISMODULE_CTX_FLAGS_LOADING: c_int = 1 << 13;
pub const REDISMODULE_CTX_FLAGS_IS_CHILD: c_int = 1 << 20;
pub const REDISMODULE_CTX_FLAGS_RESP3: c_int = 1 << 22;

/// The class of keyspace events that `g` stands for, as in `KEg`.
pub const REDISMODULE_NOTIFY_GENERIC: c_int = 1 << 2;

// Kinds of settings.
pub const REDISMODULE_CONFIG_DEFAULT: c_uint = 0;
/// Its value may have a unit, as in `1gb`.
pub const REDISMODULE_CONFIG_MEMORY: c_uint = 1 << 7;

// What a command does with a key: one of these,
pub const REDISMODULE_CMD_KEY_RO: u64 = 1 << 0;
pub const REDISMODULE_CMD_KEY_RW: u64 = 1 << 1;
// and with the data in it: one of these at most.
pub const REDISMODULE_CMD_KEY_ACCESS: u64 = 1 << 4;
pub const REDISMODULE_CMD_KEY_UPDATE: u64 = 1 << 5;
pub const REDISMODULE_CMD_KEY_INSERT: u64 = 1 << 6;
pub const REDISMODULE_CMD_KEY_DELETE: u64 = 1 << 7;

// Where a command's keys are.
pub const REDISMODULE_KSPEC_BS_INDEX: RedisModuleKeySpecBeginSearchType = 2;
pub const REDISMODULE_KSPEC_FK_RANGE: RedisModuleKeySpecFindKeysType = 2;
