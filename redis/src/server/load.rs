//! What the server calls when it loads the module.

use crate::commands;
use crate::server::command::{self, Command};
use crate::server::context::log;
use crate::server::{config, datatype};
use redis_module::raw;
use std::ffi::{CStr, c_int};

const NAME: &CStr = c"koel";

/// The version that `MODULE LIST` shows: 0.1.0.
const VERSION: c_int = 100;

/// # Safety
///
/// Only a server calls this, once, before anything else of the module.
#[unsafe(no_mangle)]
#[allow(non_snake_case, reason = "the server's name for it")]
pub unsafe extern "C" fn RedisModule_OnLoad(
    context: *mut raw::RedisModuleCtx,
    _argv: *mut *mut raw::RedisModuleString,
    argc: c_int,
) -> c_int {
    // SAFETY: the context is that of this call. Nothing is allocated before the server's functions are known.
    let outcome = unsafe {
        let (name, api) = (NAME.as_ptr(), raw::REDISMODULE_APIVER_1 as c_int);
        command::done(raw::Export_RedisModule_Init(context, name, VERSION, api))
            .and_then(|()| load(context, argc))
    };
    match outcome {
        Ok(()) => raw::REDISMODULE_OK as c_int,
        Err(()) => raw::REDISMODULE_ERR as c_int,
    }
}

unsafe fn load(context: *mut raw::RedisModuleCtx, argc: c_int) -> Result<(), ()> {
    // SAFETY: as above.
    unsafe {
        let (describe, configure) = (raw::RedisModule_SetCommandInfo, raw::RedisModule_LoadConfigs);
        if describe.is_none() || configure.is_none() {
            log(context, "koel: this server is too old; the module needs Redis 7.0 or Valkey 8");
            return Err(());
        }
        if argc > 0 {
            log(
                context,
                "koel: the module takes no arguments; its settings are koel.max-bytes and others",
            );
            return Err(());
        }
        let options = raw::REDISMODULE_OPTIONS_HANDLE_IO_ERRORS
            | raw::REDISMODULE_OPTION_NO_IMPLICIT_SIGNAL_MODIFIED
            | raw::REDISMODULE_OPTIONS_HANDLE_REPL_ASYNC_LOAD;
        raw::RedisModule_SetModuleOptions.unwrap()(context, options as c_int);
        datatype::register(context)?;
        commands::each(&mut Registry { context })?;
        config::register(context)
    }
}

/// Registers commands.
pub struct Registry {
    context: *mut raw::RedisModuleCtx,
}

impl Registry {
    pub fn add<C: Command>(&mut self) -> Result<(), ()> {
        // SAFETY: there is a registry only while the module is loaded.
        unsafe { command::register::<C>(self.context) }
    }
}
