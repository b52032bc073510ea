//! What happens when the server loads the module.

use crate::server::command::{self, Command};
use crate::server::context::{Argument, arguments};
use crate::server::log::{catch_panic, log, note};
use crate::server::{config, datatype, names, raw};
use crate::set::totals;
use std::ffi::{CStr, CString, c_int};

/// What the server passes.
pub use crate::server::raw::{RedisModuleCtx, RedisModuleString};

const NAME: &CStr = c"koel";

/// The version that `MODULE LIST` shows: 0.1.0.
const VERSION: c_int = 100;

const TOO_OLD: &CStr =
    c"koel: this server is too old, it has no %s; the module needs Redis 7.0 or Valkey 8";

const LOADED_ALREADY: &CStr =
    c"koel: this server has a module %s already, which goes on; load the module once";

/// Loads the module, with its commands, and returns what the server is to know.
///
/// # Safety
///
/// This is called once, before anything else of the module, with what the server passed to `RedisModule_OnLoad`, in
/// that call.
pub unsafe fn on_load(
    context: *mut RedisModuleCtx,
    argv: *mut *mut RedisModuleString,
    argc: c_int,
    commands: Commands,
) -> c_int {
    // SAFETY: the context is that of this call. Nothing is allocated before the server's functions are known.
    let outcome = unsafe {
        raw::init(context, NAME, VERSION)
            .map_err(|error| refuse(context, error))
            .and_then(|()| load(context, arguments(argv, argc), commands))
    };
    match outcome {
        Ok(()) => raw::REDISMODULE_OK,
        Err(()) => raw::REDISMODULE_ERR,
    }
}

/// Tells why the module cannot be loaded. Nothing is allocated: memory may be what is lacking.
unsafe fn refuse(context: *mut RedisModuleCtx, error: raw::InitError) {
    let (text, name) = match error {
        raw::InitError::Lacks(function) => (TOO_OLD, function),
        raw::InitError::NameTaken => (LOADED_ALREADY, NAME),
    };
    // SAFETY: the context is that of the call that loads the module; and `%s` stands for a string.
    if let Some(log) = unsafe { raw::RedisModule_Log } {
        unsafe { log(context, c"warning".as_ptr(), text.as_ptr(), name.as_ptr()) };
    }
}

unsafe fn load(
    context: *mut RedisModuleCtx,
    arguments: &[Argument<'_>],
    commands: Commands,
) -> Result<(), ()> {
    // SAFETY: as above.
    unsafe {
        for name in raw::lacking(raw::Need::IfThere) {
            note(context, &format!("koel: this server has no {}", name.to_string_lossy()));
        }
        choose_names(arguments).map_err(|error| log(context, &format!("koel: {error}")))?;
        let options = raw::REDISMODULE_OPTIONS_HANDLE_IO_ERRORS
            | raw::REDISMODULE_OPTION_NO_IMPLICIT_SIGNAL_MODIFIED
            | raw::REDISMODULE_OPTIONS_HANDLE_REPL_ASYNC_LOAD;
        raw::RedisModule_SetModuleOptions.unwrap()(context, options);
        datatype::register(context)?;
        let own_category = command::own_category(context);
        commands(&mut Registry { context, own_category })?;
        command::done(raw::RedisModule_RegisterInfoFunc.unwrap()(context, Some(tell)))?;
        config::register(context)
    }
}

/// Takes the arguments that the operator gave the module.
fn choose_names(arguments: &[Argument<'_>]) -> Result<(), String> {
    match arguments {
        [] => names::choose(None),
        [name, prefix] if name.bytes().eq_ignore_ascii_case(b"prefix") => {
            names::choose(Some(prefix.bytes()))
        }
        _ => Err("the only argument of the module is `prefix` and a word that its commands have instead of CF; its \
                  settings are koel.error-rate, koel.capacity and koel.max-bytes, in the server's file"
            .into()),
    }
}

/// Answers `INFO koel`: what all sets have together. (Not in the report of a crash, which may have left a lock held.)
unsafe extern "C" fn tell(info: *mut raw::RedisModuleInfoCtx, for_crash_report: c_int) {
    if for_crash_report != 0 {
        return;
    }
    // SAFETY: the server calls this to be told these. It copies the names.
    catch_panic((), "INFO", || unsafe {
        raw::RedisModule_InfoAddSection.unwrap()(info, c"".as_ptr());
        totals::each(|name, value| {
            raw::RedisModule_InfoAddFieldULongLong.unwrap()(info, name.as_ptr(), value);
        });
    });
}

/// Registers commands.
pub struct Registry {
    context: *mut RedisModuleCtx,
    own_category: Option<CString>,
}

/// Adds all commands of the module to a registry.
type Commands = fn(&mut Registry) -> Result<(), ()>;

impl Registry {
    pub fn add<C: Command>(&mut self) -> Result<(), ()> {
        // SAFETY: there is a registry only while the module is loaded.
        unsafe { command::register::<C>(self.context, self.own_category.as_deref()) }
    }
}
