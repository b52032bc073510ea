//! The log of the server, and what becomes of a failure where no client waits for an error.

use crate::server::raw;
use std::ffi::{CStr, CString};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null_mut;

/// Tells those who run the server.
pub(super) fn log(context: *mut raw::RedisModuleCtx, message: &str) {
    log_at(c"warning", context, message);
}

/// The same, of what only those want to know who ask for it.
pub(super) fn note(context: *mut raw::RedisModuleCtx, message: &str) {
    log_at(c"verbose", context, message);
}

fn log_at(level: &CStr, context: *mut raw::RedisModuleCtx, message: &str) {
    let message = CString::new(message.replace('\0', " ")).unwrap_or_default();
    // SAFETY: the message is passed as what a format takes, not as the format.
    unsafe {
        let log = raw::RedisModule_Log.unwrap();
        log(context, level.as_ptr(), c"%s".as_ptr(), message.as_ptr());
    }
}

/// Does this, and returns the other value after a panic: unwinding must not reach the server.
pub(super) fn catch_panic<T>(otherwise: T, what: &str, act: impl FnOnce() -> T) -> T {
    // A panic leaves a set as it was.
    catch_unwind(AssertUnwindSafe(act)).unwrap_or_else(|_| {
        log(null_mut(), &format!("koel: {what} panicked; please report this"));
        otherwise
    })
}

/// Tells why a set was not saved, and keeps the file that there is. There is no way to tell the server, which writes
/// a file beside that one.
///
/// * A child, which does nothing else, is ended.
/// * A `SAVE` or a shutdown of the server itself fails when the new file is to get its name, since it is gone then.
/// * What `DUMP` returns lacks its end, and is refused when it is restored.
pub(super) fn cannot_save(error: &str) {
    log(null_mut(), &format!("koel: cannot save a filter, so the previous file stays: {error}"));
    // SAFETY: there is no call that this belongs to.
    let flags = unsafe { raw::RedisModule_GetContextFlags.unwrap()(null_mut()) };
    if flags & raw::REDISMODULE_CTX_FLAGS_IS_CHILD != 0 {
        std::process::abort();
    }
    // Its name in every server, in the folder that the server works in. During a `DUMP` there is none.
    let _ = std::fs::remove_file(format!("temp-{}.rdb", std::process::id()));
}
