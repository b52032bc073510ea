//! How often the server has forked: to save, to rewrite its append-only file, for a replica.

use crate::server::command::done;
use redis_module::raw;
use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering};

// Relaxed: the server's main thread forks, and asks.
static FORKS: AtomicU64 = AtomicU64::new(1);

/// One more than the number of forks so far.
pub fn count() -> u64 {
    FORKS.load(Ordering::Relaxed)
}

/// Begins to count.
///
/// # Safety
///
/// The context is that of the call that loads the module.
pub(super) unsafe fn register(context: *mut raw::RedisModuleCtx) -> Result<(), ()> {
    let event = raw::RedisModuleEvent { id: raw::REDISMODULE_EVENT_FORK_CHILD, dataver: 1 };
    // SAFETY: the callback takes what this event passes.
    done(unsafe { raw::RedisModule_SubscribeToServerEvent.unwrap()(context, event, Some(forked)) })
}

unsafe extern "C" fn forked(
    _context: *mut raw::RedisModuleCtx,
    _event: raw::RedisModuleEvent,
    which: u64,
    _data: *mut c_void,
) {
    if which == raw::REDISMODULE_SUBEVENT_FORK_CHILD_BORN {
        FORKS.fetch_add(1, Ordering::Relaxed);
    }
}
