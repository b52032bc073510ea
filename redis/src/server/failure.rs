//! What becomes of a failure where no client waits for an error.

use crate::server::log::log;
use crate::server::raw;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null_mut;

/// Does this, and returns the other value after a panic: unwinding must not reach the server.
pub(super) fn or_if_it_panics<T>(otherwise: T, what: &str, act: impl FnOnce() -> T) -> T {
    // A panic leaves a set as it was.
    catch_unwind(AssertUnwindSafe(act)).unwrap_or_else(|_| {
        log(null_mut(), &format!("koel: {what} panicked; please report this"));
        otherwise
    })
}

/// Tells why a set was not saved. There is no way to tell the server; but in a child, which writes a file beside
/// the one that there is, this ends it, so that one stays. (In the server itself, what is saved lacks its end, and
/// is refused when it is loaded.)
pub(super) fn cannot_save(error: &str) {
    log(null_mut(), &format!("koel: cannot save a filter: {error}"));
    // SAFETY: there is no call that this belongs to.
    let flags = unsafe { raw::RedisModule_GetContextFlags.unwrap()(null_mut()) };
    if flags & raw::REDISMODULE_CTX_FLAGS_IS_CHILD != 0 {
        std::process::abort();
    }
}
