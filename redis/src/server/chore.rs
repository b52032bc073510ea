//! What goes on between commands, in parts: the ticks of large sets.
//!
//! A timer of the server comes back to the key until its set has nothing left to do. If the key has gone, or got
//! another name, nobody goes on, until a command on the set [asks for that](Context::go_on) again.

use crate::server::context::{Argument, Context, Mode};
use crate::server::failure::or_if_it_panics;
use crate::server::key::{Key, Value};
use redis_module::raw;
use std::collections::BTreeSet;
use std::ffi::{c_int, c_void};
use std::sync::{Mutex, PoisonError};

/// The milliseconds between two parts, of which each takes less than one.
const PERIOD: i64 = 2;

/// A key of one of the server's databases.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Chore {
    database: c_int,
    name: Vec<u8>,
}

/// The chores that have a timer.
static CHORES: Mutex<BTreeSet<Chore>> = Mutex::new(BTreeSet::new());

fn chores<T>(act: impl FnOnce(&mut BTreeSet<Chore>) -> T) -> T {
    act(&mut CHORES.lock().unwrap_or_else(PoisonError::into_inner))
}

impl Context<'_> {
    /// Comes back soon, again and again, to let [time pass](crate::set::Set::pass_part) in the set of this key.
    pub fn go_on(self, name: Argument<'_>) {
        // SAFETY: the call lives.
        let database = unsafe { raw::RedisModule_GetSelectedDb.unwrap()(self.raw()) };
        let chore = Chore { database, name: name.bytes().to_vec() };
        if chores(|chores| chores.insert(chore.clone())) {
            // SAFETY: as above.
            unsafe { set_timer(self.raw(), chore) };
        }
    }
}

/// # Safety
///
/// The context is that of a call in which the chore's database is selected.
unsafe fn set_timer(context: *mut raw::RedisModuleCtx, chore: Chore) {
    let chore = Box::into_raw(Box::new(chore));
    // SAFETY: the chore is the timer's, which calls this once.
    unsafe {
        raw::RedisModule_CreateTimer.unwrap()(context, PERIOD, Some(come_back), chore.cast());
    }
}

/// What the server calls, with the database selected in which the timer was set.
unsafe extern "C" fn come_back(context: *mut raw::RedisModuleCtx, chore: *mut c_void) {
    // SAFETY: it is the chore of this timer.
    let chore = *unsafe { Box::<Chore>::from_raw(chore.cast()) };
    // SAFETY: the context is that of this call.
    let part = || unsafe { pass_part(context, &chore.name) };
    if or_if_it_panics(true, "a tick", part) {
        chores(|chores| chores.remove(&chore));
    } else {
        // SAFETY: as above.
        unsafe { set_timer(context, chore) };
    }
}

/// Returns whether there is nothing left to do.
unsafe fn pass_part(context: *mut raw::RedisModuleCtx, name: &[u8]) -> bool {
    let mode = (raw::REDISMODULE_READ | raw::REDISMODULE_OPEN_KEY_NOTOUCH) as c_int;
    // SAFETY: the context is that of a call. The string is freed after the key is closed.
    unsafe {
        let (start, length) = (name.as_ptr().cast(), name.len());
        let name = raw::RedisModule_CreateString.unwrap()(context, start, length);
        let key = Key::new(raw::RedisModule_OpenKey.unwrap()(context, name, mode), Mode::Read);
        let done = !matches!(key.value(), Value::Set(set) if !set.pass_part());
        drop(key);
        raw::RedisModule_FreeString.unwrap()(context, name);
        done
    }
}
