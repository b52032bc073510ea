//! One call of a command: its arguments, its reply, what of it is replicated.

use crate::server::key::{Key, Mode};
use crate::server::names::spelled;
use crate::server::raw;
use std::ffi::{CStr, c_char, c_int};
use std::marker::PhantomData;

/// A string of a client.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct Argument<'a> {
    raw: *mut raw::RedisModuleString,
    call: PhantomData<&'a ()>,
}

impl<'a> Argument<'a> {
    /// # Safety
    ///
    /// The string lives as long as `'a`, and is not changed meanwhile.
    pub(super) unsafe fn new(raw: *mut raw::RedisModuleString) -> Self {
        Argument { raw, call: PhantomData }
    }

    pub fn bytes(self) -> &'a [u8] {
        let mut length = 0;
        // SAFETY: the string lives as long as the call, and is not changed meanwhile.
        unsafe {
            let start = raw::RedisModule_StringPtrLen.unwrap()(self.raw, &mut length);
            std::slice::from_raw_parts(start.cast(), length)
        }
    }
}

/// Makes the arguments of what the server passes to a command.
///
/// # Safety
///
/// They are those of a call that lives as long as `'a`.
pub(super) unsafe fn arguments<'a>(
    argv: *mut *mut raw::RedisModuleString,
    argc: c_int,
) -> &'a [Argument<'a>] {
    if argc == 0 {
        return &[];
    }
    // SAFETY: an argument is a pointer, with another name.
    unsafe { std::slice::from_raw_parts(argv.cast(), argc as usize) }
}

/// A call of a command.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    raw: *mut raw::RedisModuleCtx,
    call: PhantomData<&'a ()>,
}

/// Where a command comes from, and what its client understands.
#[derive(Clone, Copy)]
pub struct Flags(c_int);

impl Flags {
    /// Whether the client reads the third version of the protocol.
    pub fn resp3(self) -> bool {
        self.0 & raw::REDISMODULE_CTX_FLAGS_RESP3 != 0
    }

    /// Whether the command happened elsewhere or before: it comes from a primary or from a file. Such a
    /// command is never refused.
    pub fn replayed(self) -> bool {
        let replayed = raw::REDISMODULE_CTX_FLAGS_REPLICATED | raw::REDISMODULE_CTX_FLAGS_LOADING;
        self.0 & replayed != 0
    }

    /// Whether this server decides what happens, so that replicas follow it.
    pub fn primary(self) -> bool {
        self.0 & raw::REDISMODULE_CTX_FLAGS_MASTER != 0
    }
}

impl<'a> Context<'a> {
    /// # Safety
    ///
    /// The pointer is that of a call that lives as long as `'a`.
    pub(super) unsafe fn new(raw: *mut raw::RedisModuleCtx) -> Self {
        Context { raw, call: PhantomData }
    }

    pub(super) fn raw(self) -> *mut raw::RedisModuleCtx {
        self.raw
    }

    pub fn flags(self) -> Flags {
        // SAFETY: the call lives.
        Flags(unsafe { raw::RedisModule_GetContextFlags.unwrap()(self.raw) })
    }

    pub fn open(self, name: Argument<'a>, mode: Mode) -> Key<'a> {
        let flags = match mode {
            Mode::Read => raw::REDISMODULE_READ,
            Mode::Write => raw::REDISMODULE_READ | raw::REDISMODULE_WRITE,
            Mode::Unnoticed => {
                raw::REDISMODULE_READ | raw::REDISMODULE_WRITE | raw::REDISMODULE_OPEN_KEY_NOTOUCH
            }
        };
        // SAFETY: the call and the name live.
        unsafe {
            let key = raw::RedisModule_OpenKey.unwrap()(self.raw, name.raw, flags);
            Key::new(key, mode)
        }
    }

    /// Tells who watches the key that it changed, and repeats the command on replicas and in the append-only
    /// file.
    pub fn changed(self, name: Argument<'_>, event: &CStr) {
        // SAFETY: the call lives.
        unsafe { raw::RedisModule_ReplicateVerbatim.unwrap()(self.raw) };
        self.touched(name, event);
    }

    /// The same, where what to replicate was told already.
    pub fn touched(self, name: Argument<'_>, event: &CStr) {
        // SAFETY: the call and the name live.
        unsafe { raw::RedisModule_SignalModifiedKey.unwrap()(self.raw, name.raw) };
        self.notify(name, event);
    }

    /// Publishes a keyspace event, to clients that the server's settings allow it.
    pub fn notify(self, name: Argument<'_>, event: &CStr) {
        let (class, event) = (raw::REDISMODULE_NOTIFY_GENERIC, event.as_ptr());
        // SAFETY: the call and the name live, and the server copies the event.
        unsafe { raw::RedisModule_NotifyKeyspaceEvent.unwrap()(self.raw, class, event, name.raw) };
    }

    /// The same, where another command does there what this one did here.
    pub fn changed_as(self, name: Argument<'_>, event: &CStr, command: &CStr, arguments: &[&[u8]]) {
        self.replicate(command, arguments);
        self.touched(name, event);
    }

    /// Does another command on replicas and in the append-only file, before those that follow.
    pub fn replicate(self, command: &CStr, arguments: &[&[u8]]) {
        let mut strings: Vec<_> = arguments.iter().map(|bytes| string(self.raw, bytes)).collect();
        // SAFETY: `v` stands for an array of strings and its length. They are copied.
        unsafe {
            let (replicate, all) = (raw::RedisModule_Replicate.unwrap(), strings.as_mut_ptr());
            let command = spelled(command);
            replicate(self.raw, command.as_ptr(), c"v".as_ptr(), all, strings.len());
            for string in strings {
                raw::RedisModule_FreeString.unwrap()(self.raw, string);
            }
        }
    }

    /// Whether nothing may be replicated now, since clients are paused for a failover.
    pub fn must_not_replicate(self) -> bool {
        // SAFETY: takes nothing.
        unsafe { raw::RedisModule_AvoidReplicaTraffic.unwrap()() != 0 }
    }

    /// The bytes that are left of what the server may use, or of what the machine has. (This takes some
    /// microseconds.)
    pub fn free_bytes(self) -> u64 {
        // SAFETY: the figures are read before they are freed.
        unsafe {
            let figures = raw::RedisModule_GetServerInfo.unwrap()(self.raw, c"memory".as_ptr());
            let figure = |name: &CStr| {
                let get = raw::RedisModule_ServerInfoGetFieldUnsigned.unwrap();
                get(figures, name.as_ptr(), std::ptr::null_mut())
            };
            let (most, used) = (figure(c"maxmemory"), figure(c"used_memory"));
            let machine = figure(c"total_system_memory");
            raw::RedisModule_FreeServerInfo.unwrap()(self.raw, figures);
            let limit = if most == 0 { machine } else { most.min(machine) };
            limit.saturating_sub(used)
        }
    }
}

/// A string of the server, which has to be freed.
pub(super) fn string(
    context: *mut raw::RedisModuleCtx,
    bytes: &[u8],
) -> *mut raw::RedisModuleString {
    // SAFETY: the bytes are copied.
    unsafe { raw::RedisModule_CreateString.unwrap()(context, bytes.as_ptr().cast(), bytes.len()) }
}

/// # Replies
///
/// A command gives one of them: either the elements of an array, each by one of these, or one value.
impl Context<'_> {
    /// True or false; 1 or 0 in the second version of the protocol.
    pub fn reply_bool(self, value: bool) {
        // SAFETY: the call lives. (This holds for all that follow.)
        unsafe { raw::RedisModule_ReplyWithBool.unwrap()(self.raw, value.into()) };
    }

    pub fn reply_integer(self, value: i64) {
        // SAFETY: as above.
        unsafe { raw::RedisModule_ReplyWithLongLong.unwrap()(self.raw, value) };
    }

    pub fn reply_bytes(self, bytes: &[u8]) {
        let start: *const c_char = bytes.as_ptr().cast();
        // SAFETY: the bytes are copied.
        unsafe { raw::RedisModule_ReplyWithStringBuffer.unwrap()(self.raw, start, bytes.len()) };
    }

    pub fn reply_null(self) {
        // SAFETY: as above.
        unsafe { raw::RedisModule_ReplyWithNull.unwrap()(self.raw) };
    }

    pub fn reply_ok(self) {
        // SAFETY: the string is static.
        unsafe { raw::RedisModule_ReplyWithSimpleString.unwrap()(self.raw, c"OK".as_ptr()) };
    }

    pub fn reply_array(self, length: usize) {
        // SAFETY: as above.
        unsafe { raw::RedisModule_ReplyWithArray.unwrap()(self.raw, length as _) };
    }

    /// A map of so many pairs; an array of twice as many elements in the second version.
    pub fn reply_map(self, pairs: usize) {
        // SAFETY: as above.
        unsafe { raw::RedisModule_ReplyWithMap.unwrap()(self.raw, pairs as _) };
    }

    pub fn reply_error(self, message: &CStr) {
        let message = spelled(message);
        // SAFETY: the message is copied.
        unsafe { raw::RedisModule_ReplyWithError.unwrap()(self.raw, message.as_ptr()) };
    }

    pub fn reply_wrong_arity(self) {
        // SAFETY: as above.
        unsafe { raw::RedisModule_WrongArity.unwrap()(self.raw) };
    }
}
