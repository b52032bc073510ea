//! The log of the server.

use crate::server::raw;
use std::ffi::{CStr, CString};

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
