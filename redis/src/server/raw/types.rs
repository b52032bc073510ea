//! What the functions of the server take and return.

use std::ffi::{c_char, c_int, c_longlong, c_uint, c_void};

/// Types that only the server knows. A module has pointers to them.
macro_rules! opaque {
    ($($(#[$about:meta])* $name:ident;)*) => {
        $(
            $(#[$about])*
            #[repr(C)]
            pub struct $name {
                opaque: [u8; 0],
            }
        )*
    };
}

opaque! {
    /// A call of the module.
    RedisModuleCtx;
    /// A string of the server.
    RedisModuleString;
    /// A key that is open.
    RedisModuleKey;
    /// A data type.
    RedisModuleType;
    /// A command.
    RedisModuleCommand;
    /// A file or a dump that is written or read.
    RedisModuleIO;
    /// What `DEBUG DIGEST` adds up.
    RedisModuleDigest;
    /// A pass of the active defragmentation.
    RedisModuleDefragCtx;
    /// What `INFO` tells.
    RedisModuleServerInfoData;
    /// An `INFO` that is being answered.
    RedisModuleInfoCtx;
}

/// A callback that this module does not have.
pub type Unused = Option<unsafe extern "C" fn()>;

pub type RedisModuleTimerID = u64;

// What the module has the server call. A pointer to each may be null.

pub type RedisModuleCmdFunc = Option<
    unsafe extern "C" fn(
        context: *mut RedisModuleCtx,
        argv: *mut *mut RedisModuleString,
        argc: c_int,
    ) -> c_int,
>;
pub type RedisModuleInfoFunc =
    Option<unsafe extern "C" fn(info: *mut RedisModuleInfoCtx, for_crash_report: c_int)>;
pub type RedisModuleTimerProc =
    Option<unsafe extern "C" fn(context: *mut RedisModuleCtx, data: *mut c_void)>;
pub type RedisModuleConfigGetNumericFunc =
    Option<unsafe extern "C" fn(name: *const c_char, data: *mut c_void) -> c_longlong>;
pub type RedisModuleConfigSetNumericFunc = Option<
    unsafe extern "C" fn(
        name: *const c_char,
        new: c_longlong,
        data: *mut c_void,
        error: *mut *mut RedisModuleString,
    ) -> c_int,
>;
pub type RedisModuleConfigGetStringFunc =
    Option<unsafe extern "C" fn(name: *const c_char, data: *mut c_void) -> *mut RedisModuleString>;
pub type RedisModuleConfigSetStringFunc = Option<
    unsafe extern "C" fn(
        name: *const c_char,
        new: *mut RedisModuleString,
        data: *mut c_void,
        error: *mut *mut RedisModuleString,
    ) -> c_int,
>;

/// The version of [`RedisModuleTypeMethods`] that is declared here. A server reads the fields of the version that it is
/// told and of those before. (Versions 4 and 5, of Redis 7.0 and 7.2, add variants of the callbacks.)
pub const REDISMODULE_TYPE_METHOD_VERSION: u64 = 3;

/// The callbacks of a data type.
#[repr(C)]
pub struct RedisModuleTypeMethods {
    pub version: u64,
    pub rdb_load:
        Option<unsafe extern "C" fn(file: *mut RedisModuleIO, version: c_int) -> *mut c_void>,
    pub rdb_save: Option<unsafe extern "C" fn(file: *mut RedisModuleIO, value: *mut c_void)>,
    pub aof_rewrite: Option<
        unsafe extern "C" fn(
            file: *mut RedisModuleIO,
            key: *mut RedisModuleString,
            value: *mut c_void,
        ),
    >,
    pub mem_usage: Option<unsafe extern "C" fn(value: *const c_void) -> usize>,
    pub digest: Option<unsafe extern "C" fn(digest: *mut RedisModuleDigest, value: *mut c_void)>,
    pub free: Option<unsafe extern "C" fn(value: *mut c_void)>,
    // Version 2.
    pub aux_load: Unused,
    pub aux_save: Unused,
    pub aux_save_triggers: c_int,
    // Version 3.
    pub free_effort:
        Option<unsafe extern "C" fn(key: *mut RedisModuleString, value: *const c_void) -> usize>,
    pub unlink: Unused,
    pub copy: Option<
        unsafe extern "C" fn(
            from: *mut RedisModuleString,
            to: *mut RedisModuleString,
            value: *const c_void,
        ) -> *mut c_void,
    >,
    pub defrag: Option<
        unsafe extern "C" fn(
            context: *mut RedisModuleDefragCtx,
            key: *mut RedisModuleString,
            value: *mut *mut c_void,
        ) -> c_int,
    >,
}

/// Which version of [`RedisModuleCommandInfo`] this is, and what steps the server takes in its tables.
#[repr(C)]
pub struct RedisModuleCommandInfoVersion {
    pub version: c_int,
    /// Of the tables of a command's history and arguments, which this module does not fill.
    pub sizeof_historyentry: usize,
    pub sizeof_keyspec: usize,
    pub sizeof_arg: usize,
}

/// What a command is. A row of zeros ends its table of keys.
#[repr(C)]
pub struct RedisModuleCommandInfo {
    pub version: *const RedisModuleCommandInfoVersion,
    pub summary: *const c_char,
    pub complexity: *const c_char,
    pub since: *const c_char,
    pub history: *mut c_void,
    pub tips: *const c_char,
    pub arity: c_int,
    pub key_specs: *mut RedisModuleCommandKeySpec,
    pub args: *mut c_void,
}

pub type RedisModuleKeySpecBeginSearchType = c_uint;
pub type RedisModuleKeySpecFindKeysType = c_uint;

/// Keys of a command: where the first one is, where the others are, and what the command does with them.
#[repr(C)]
pub struct RedisModuleCommandKeySpec {
    pub notes: *const c_char,
    pub flags: u64,
    pub begin_search_type: RedisModuleKeySpecBeginSearchType,
    pub bs: RedisModuleKeySpecBeginSearch,
    pub find_keys_type: RedisModuleKeySpecFindKeysType,
    pub fk: RedisModuleKeySpecRange,
}

/// Where the first key is. (The server's names end at the fields; those of the types are ours.)
#[repr(C)]
#[derive(Clone, Copy)]
pub union RedisModuleKeySpecBeginSearch {
    pub index: RedisModuleKeySpecIndex,
    /// (As large as the other ways to tell, which no command here needs.)
    pub other: [*const c_void; 2],
}

/// At a place.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct RedisModuleKeySpecIndex {
    pub pos: c_int,
}

/// Where the others are: from the first one to another. (The server has a union, whose parts are equally large.)
#[repr(C)]
#[derive(Clone, Copy)]
pub struct RedisModuleKeySpecRange {
    /// Counted from the first one; or from the last argument, if it is negative.
    pub lastkey: c_int,
    pub keystep: c_int,
    pub limit: c_int,
}
