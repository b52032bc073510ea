//! What goes on between commands, in parts: the ticks of large sets.
//!
//! A timer of the server comes back to one key after another, until their sets have nothing left to do. If a key has
//! gone, or got another name, nobody goes on, until a command on the set [asks for that](Context::go_on) again.

use crate::server::context::{Argument, Context};
use crate::server::failure::or_if_it_panics;
use crate::server::key::{Key, Mode, Value};
use crate::server::raw;
use std::collections::BTreeSet;
use std::ffi::{c_int, c_void};
use std::ops::Bound::{Excluded, Unbounded};
use std::ptr::null_mut;
use std::sync::{Mutex, PoisonError};

/// The milliseconds between two parts, of whichever sets. Each takes less than one.
const PERIOD: i64 = 2;

/// A key of one of the server's databases.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Chore {
    database: c_int,
    name: Vec<u8>,
}

/// What there is to do, in turns.
struct Chores {
    waiting: BTreeSet<Chore>,
    /// The one whose turn it was last.
    last: Option<Chore>,
}

impl Chores {
    /// The one whose turn it is.
    fn next(&mut self) -> Option<Chore> {
        let later = |last: &Chore| self.waiting.range((Excluded(last), Unbounded)).next();
        let next = self.last.as_ref().and_then(later).or(self.waiting.first()).cloned();
        self.last.clone_from(&next);
        next
    }
}

/// While any is waiting, there is one timer.
static CHORES: Mutex<Chores> = Mutex::new(Chores { waiting: BTreeSet::new(), last: None });

fn chores<T>(act: impl FnOnce(&mut Chores) -> T) -> T {
    act(&mut CHORES.lock().unwrap_or_else(PoisonError::into_inner))
}

impl Context<'_> {
    /// Comes back soon, again and again, to let [time pass](crate::set::Set::pass_part) in the set of this key.
    pub fn go_on(self, name: Argument<'_>) {
        // SAFETY: the call lives.
        let database = unsafe { raw::RedisModule_GetSelectedDb.unwrap()(self.raw()) };
        let chore = Chore { database, name: name.bytes().to_vec() };
        let is_first = chores(|chores| chores.waiting.insert(chore) && chores.waiting.len() == 1);
        if is_first {
            // SAFETY: as above.
            unsafe { set_timer(self.raw()) };
        }
    }
}

/// # Safety
///
/// The context is that of a call.
unsafe fn set_timer(context: *mut raw::RedisModuleCtx) {
    // SAFETY: the timer has no data.
    unsafe { raw::RedisModule_CreateTimer.unwrap()(context, PERIOD, Some(come_back), null_mut()) };
}

/// What the server calls.
unsafe extern "C" fn come_back(context: *mut raw::RedisModuleCtx, _: *mut c_void) {
    let Some(chore) = chores(Chores::next) else { return };
    // SAFETY: the context is that of this call.
    let part = || unsafe { pass_part(context, &chore) };
    let is_done = or_if_it_panics(true, "a tick", part);
    let is_left = chores(|chores| {
        if is_done {
            chores.waiting.remove(&chore);
        }
        !chores.waiting.is_empty()
    });
    if is_left {
        // SAFETY: as above.
        unsafe { set_timer(context) };
    }
}

/// Returns whether there is nothing left to do.
unsafe fn pass_part(context: *mut raw::RedisModuleCtx, chore: &Chore) -> bool {
    // To open a key for writing is no use of it that the server counts or tells anybody.
    let mode = raw::REDISMODULE_READ | raw::REDISMODULE_WRITE | raw::REDISMODULE_OPEN_KEY_NOTOUCH;
    let (start, length) = (chore.name.as_ptr().cast(), chore.name.len());
    // SAFETY: the context is that of a call. The string is freed after the key is closed.
    unsafe {
        if raw::RedisModule_SelectDb.unwrap()(context, chore.database) != raw::REDISMODULE_OK {
            return true;
        }
        let name = raw::RedisModule_CreateString.unwrap()(context, start, length);
        let key = raw::RedisModule_OpenKey.unwrap()(context, name, mode);
        let key = Key::new(key, Mode::Write);
        let is_done = !matches!(key.value(), Value::Set(set) if !set.pass_part());
        drop(key);
        raw::RedisModule_FreeString.unwrap()(context, name);
        is_done
    }
}
