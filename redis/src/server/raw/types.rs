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

/// What the module has the server call. A pointer to each may be null.
macro_rules! callbacks {
    ($($name:ident = fn $parameters:tt $(-> $returned:ty)?;)*) => {
        $(pub type $name = Option<unsafe extern "C" fn $parameters $(-> $returned)?>;)*
    };
}

type Ctx = *mut RedisModuleCtx;
type Str = *mut RedisModuleString;
type Text = *const c_char;
type Data = *mut c_void;

callbacks! {
    RedisModuleCmdFunc = fn(context: Ctx, argv: *mut Str, argc: c_int) -> c_int;
    RedisModuleInfoFunc = fn(info: *mut RedisModuleInfoCtx, for_crash_report: c_int);
    RedisModuleTimerProc = fn(context: Ctx, data: Data);
    RedisModuleConfigGetNumericFunc = fn(name: Text, data: Data) -> c_longlong;
    RedisModuleConfigSetNumericFunc = fn(name: Text, new: c_longlong, data: Data, error: *mut Str) -> c_int;
    RedisModuleConfigGetStringFunc = fn(name: Text, data: Data) -> Str;
    RedisModuleConfigSetStringFunc = fn(name: Text, new: Str, data: Data, error: *mut Str) -> c_int;

    // Of a data type.
    RedisModuleTypeLoadFunc = fn(file: *mut RedisModuleIO, version: c_int) -> Data;
    RedisModuleTypeSaveFunc = fn(file: *mut RedisModuleIO, value: Data);
    RedisModuleTypeRewriteFunc = fn(file: *mut RedisModuleIO, key: Str, value: Data);
    RedisModuleTypeMemUsageFunc = fn(value: *const c_void) -> usize;
    RedisModuleTypeDigestFunc = fn(digest: *mut RedisModuleDigest, value: Data);
    RedisModuleTypeFreeFunc = fn(value: Data);
    RedisModuleTypeFreeEffortFunc = fn(key: Str, value: *const c_void) -> usize;
    RedisModuleTypeCopyFunc = fn(from: Str, to: Str, value: *const c_void) -> Data;
    RedisModuleTypeDefragFunc = fn(context: *mut RedisModuleDefragCtx, key: Str, value: *mut Data) -> c_int;
}

/// The version of [`RedisModuleTypeMethods`] that is declared here. A server reads the fields of the version that it is
/// told and of those before. (Versions 4 and 5, of Redis 7.0 and 7.2, add variants of the callbacks.)
pub const REDISMODULE_TYPE_METHOD_VERSION: u64 = 3;

/// The callbacks of a data type.
#[repr(C)]
pub struct RedisModuleTypeMethods {
    pub version: u64,
    pub rdb_load: RedisModuleTypeLoadFunc,
    pub rdb_save: RedisModuleTypeSaveFunc,
    pub aof_rewrite: RedisModuleTypeRewriteFunc,
    pub mem_usage: RedisModuleTypeMemUsageFunc,
    pub digest: RedisModuleTypeDigestFunc,
    pub free: RedisModuleTypeFreeFunc,
    // Version 2.
    pub aux_load: Unused,
    pub aux_save: Unused,
    pub aux_save_triggers: c_int,
    // Version 3.
    pub free_effort: RedisModuleTypeFreeEffortFunc,
    pub unlink: Unused,
    pub copy: RedisModuleTypeCopyFunc,
    pub defrag: RedisModuleTypeDefragFunc,
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
