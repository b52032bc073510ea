//! The functions of the server, as pointers.
//!
//! # Safety
//!
//! Only [`init`](super::init) writes them, before the server calls anything else of the module. What was needed and not
//! found has kept the module from being loaded, so to unwrap such a pointer is to read it.

use crate::server::raw::types::*;
use std::ffi::{CStr, c_char, c_int, c_long, c_longlong, c_uint, c_ulonglong, c_void};

type Ctx = *mut RedisModuleCtx;
type Str = *mut RedisModuleString;
type Text = *const c_char;

/// Whether the module can do without a function.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Need {
    Always,
    IfThere,
}

/// A function that the server is asked for.
pub(super) struct Function {
    pub name: &'static CStr,
    pub pointer: *mut *mut c_void,
    pub need: Need,
}

macro_rules! functions {
    ($($need:ident { $($(#[$about:meta])* fn $name:ident $parameters:tt $(-> $returned:ty)?;)* })*) => {
        $($(
            $(#[$about])*
            pub static mut $name: Option<unsafe extern "C" fn $parameters $(-> $returned)?> = None;
        )*)*

        const COUNT: usize = [$($(stringify!($name)),*),*].len();

        /// All of them. (An optional pointer to a function is a pointer that may be null.)
        pub(super) fn all() -> [Function; COUNT] {
            [$($(Function {
                name: const { c_string(concat!(stringify!($name), "\0")) },
                pointer: (&raw mut $name).cast(),
                need: Need::$need,
            }),*),*]
        }
    };
}

const fn c_string(text: &str) -> &CStr {
    match CStr::from_bytes_with_nul(text.as_bytes()) {
        Ok(text) => text,
        Err(_) => panic!("it ends with its only zero"),
    }
}

functions! {
    Always {
        // Memory.
        fn RedisModule_Alloc(bytes: usize) -> *mut c_void;
        fn RedisModule_Calloc(count: usize, bytes: usize) -> *mut c_void;
        fn RedisModule_Realloc(block: *mut c_void, bytes: usize) -> *mut c_void;
        fn RedisModule_Free(block: *mut c_void);

        // The module, its commands and settings.
        fn RedisModule_SetModuleAttribs(context: Ctx, name: Text, version: c_int, api_version: c_int);
        fn RedisModule_SetModuleOptions(context: Ctx, options: c_int);
        fn RedisModule_CreateCommand(context: Ctx, name: Text, run: RedisModuleCmdFunc, flags: Text,
            first_key: c_int, last_key: c_int, key_step: c_int) -> c_int;
        fn RedisModule_GetCommand(context: Ctx, name: Text) -> *mut RedisModuleCommand;
        fn RedisModule_SetCommandInfo(command: *mut RedisModuleCommand, info: *const RedisModuleCommandInfo) -> c_int;
        fn RedisModule_RegisterNumericConfig(context: Ctx, name: Text, default: c_longlong, flags: c_uint,
            least: c_longlong, most: c_longlong, get: RedisModuleConfigGetNumericFunc,
            set: RedisModuleConfigSetNumericFunc, apply: Unused, data: *mut c_void) -> c_int;
        fn RedisModule_RegisterStringConfig(context: Ctx, name: Text, default: Text, flags: c_uint,
            get: RedisModuleConfigGetStringFunc, set: RedisModuleConfigSetStringFunc, apply: Unused,
            data: *mut c_void) -> c_int;
        fn RedisModule_LoadConfigs(context: Ctx) -> c_int;

        // What goes on around a call.
        fn RedisModule_GetContextFlags(context: Ctx) -> c_int;
        fn RedisModule_GetSelectedDb(context: Ctx) -> c_int;
        fn RedisModule_SelectDb(context: Ctx, database: c_int) -> c_int;
        fn RedisModule_AvoidReplicaTraffic() -> c_int;
        fn RedisModule_GetServerInfo(context: Ctx, section: Text) -> *mut RedisModuleServerInfoData;
        fn RedisModule_ServerInfoGetFieldUnsigned(info: *mut RedisModuleServerInfoData, field: Text,
            error: *mut c_int) -> c_ulonglong;
        fn RedisModule_FreeServerInfo(context: Ctx, info: *mut RedisModuleServerInfoData);
        fn RedisModule_RegisterInfoFunc(context: Ctx, tell: RedisModuleInfoFunc) -> c_int;
        fn RedisModule_InfoAddSection(info: *mut RedisModuleInfoCtx, name: Text) -> c_int;
        fn RedisModule_InfoAddFieldULongLong(info: *mut RedisModuleInfoCtx, field: Text, value: c_ulonglong) -> c_int;
        fn RedisModule_CreateTimer(context: Ctx, milliseconds: c_longlong, run: RedisModuleTimerProc,
            data: *mut c_void) -> RedisModuleTimerID;
        fn RedisModule_Log(context: Ctx, level: Text, format: Text, ...);

        // Strings.
        fn RedisModule_CreateString(context: Ctx, start: Text, length: usize) -> Str;
        fn RedisModule_StringPtrLen(string: *const RedisModuleString, length: *mut usize) -> Text;
        fn RedisModule_FreeString(context: Ctx, string: Str);

        // Keys.
        fn RedisModule_OpenKey(context: Ctx, name: Str, mode: c_int) -> *mut RedisModuleKey;
        fn RedisModule_CloseKey(key: *mut RedisModuleKey);
        fn RedisModule_KeyType(key: *mut RedisModuleKey) -> c_int;
        fn RedisModule_ModuleTypeGetType(key: *mut RedisModuleKey) -> *mut RedisModuleType;
        fn RedisModule_ModuleTypeGetValue(key: *mut RedisModuleKey) -> *mut c_void;
        fn RedisModule_ModuleTypeSetValue(key: *mut RedisModuleKey, kind: *mut RedisModuleType,
            value: *mut c_void) -> c_int;
        fn RedisModule_NotifyKeyspaceEvent(context: Ctx, kind: c_int, event: Text, name: Str) -> c_int;
        fn RedisModule_SignalModifiedKey(context: Ctx, name: Str) -> c_int;

        // Replication. A format says what the arguments are.
        fn RedisModule_Replicate(context: Ctx, command: Text, format: Text, ...) -> c_int;
        fn RedisModule_ReplicateVerbatim(context: Ctx) -> c_int;

        // Replies.
        fn RedisModule_ReplyWithArray(context: Ctx, length: c_long) -> c_int;
        fn RedisModule_ReplyWithBool(context: Ctx, value: c_int) -> c_int;
        fn RedisModule_ReplyWithError(context: Ctx, message: Text) -> c_int;
        fn RedisModule_ReplyWithLongLong(context: Ctx, value: c_longlong) -> c_int;
        fn RedisModule_ReplyWithMap(context: Ctx, pairs: c_long) -> c_int;
        fn RedisModule_ReplyWithNull(context: Ctx) -> c_int;
        fn RedisModule_ReplyWithSimpleString(context: Ctx, text: Text) -> c_int;
        fn RedisModule_ReplyWithStringBuffer(context: Ctx, start: Text, length: usize) -> c_int;
        fn RedisModule_WrongArity(context: Ctx) -> c_int;

        // The data type.
        fn RedisModule_CreateDataType(context: Ctx, name: Text, version: c_int,
            methods: *mut RedisModuleTypeMethods) -> *mut RedisModuleType;
        fn RedisModule_SaveStringBuffer(file: *mut RedisModuleIO, start: Text, length: usize);
        fn RedisModule_LoadStringBuffer(file: *mut RedisModuleIO, length: *mut usize) -> *mut c_char;
        fn RedisModule_IsIOError(file: *mut RedisModuleIO) -> c_int;
        fn RedisModule_EmitAOF(file: *mut RedisModuleIO, command: Text, format: Text, ...);
        fn RedisModule_DigestAddStringBuffer(digest: *mut RedisModuleDigest, start: Text, length: usize);
        fn RedisModule_DigestEndSequence(digest: *mut RedisModuleDigest);
        fn RedisModule_DefragAlloc(context: *mut RedisModuleDefragCtx, block: *mut c_void) -> *mut c_void;
    }

    IfThere {
        /// Null if there is no memory, where `RedisModule_Alloc` ends the server.
        fn RedisModule_TryAlloc(bytes: usize) -> *mut c_void;
        /// Since Redis 7.4.
        fn RedisModule_TryCalloc(count: usize, bytes: usize) -> *mut c_void;
        /// Since Redis 7.4.
        fn RedisModule_AddACLCategory(context: Ctx, name: Text) -> c_int;
        /// Since Redis 7.2.
        fn RedisModule_SetCommandACLCategories(command: *mut RedisModuleCommand, categories: Text) -> c_int;
    }
}
