//! What goes on between commands, in parts: the ticks of large sets, and what gives their memory back.
//!
//! A timer of the server comes back to one key after another, until their sets have nothing left to do. If a key has
//! gone, or got another name, nobody goes on, until a command on the set [asks for that](Context::go_on) again.

use crate::server::context::{Argument, Context, string};
use crate::server::key::{Mode, Value};
use crate::server::log::or_if_it_panics;
use crate::server::raw;
use crate::set::{Set, Shrunk};
use std::collections::BTreeMap;
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
    /// With the cursor where the next part of shrinking begins, if the set is to shrink.
    waiting: BTreeMap<Chore, Option<u64>>,
    /// The one whose turn it was last.
    last: Option<Chore>,
}

impl Chores {
    /// The one whose turn it is.
    fn next(&mut self) -> Option<(Chore, Option<u64>)> {
        let later = |last: &Chore| self.waiting.range((Excluded(last), Unbounded)).next();
        let next = self.last.as_ref().and_then(later).or(self.waiting.first_key_value());
        let next = next.map(|(chore, cursor)| (chore.clone(), *cursor));
        self.last = next.as_ref().map(|(chore, _)| chore.clone());
        next
    }
}

/// While any is waiting, there is one timer.
static CHORES: Mutex<Chores> = Mutex::new(Chores { waiting: BTreeMap::new(), last: None });

fn chores<T>(act: impl FnOnce(&mut Chores) -> T) -> T {
    act(&mut CHORES.lock().unwrap_or_else(PoisonError::into_inner))
}

impl Context<'_> {
    /// Comes back soon, again and again, to let [time pass](crate::set::Set::pass_part) in the set of this key, and
    /// then to [shrink](crate::set::Set::shrink_part) it, from this cursor on if there is one. This server decides
    /// when.
    pub fn go_on(self, name: Argument<'_>, cursor: Option<u64>) {
        // SAFETY: the call lives.
        let database = unsafe { raw::RedisModule_GetSelectedDb.unwrap()(self.raw()) };
        let chore = Chore { database, name: name.bytes().to_vec() };
        let is_first = chores(|chores| {
            let was_idle = chores.waiting.is_empty();
            let own = chores.waiting.entry(chore).or_insert(cursor);
            *own = cursor.or(*own);
            was_idle
        });
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
    let Some((chore, cursor)) = chores(Chores::next) else { return };
    // SAFETY: the context is that of this call.
    let part = || unsafe { pass_part(context, &chore, cursor) };
    let left = or_if_it_panics(None, "a part of a tick", part);
    let is_left = chores(|chores| {
        match left {
            None => _ = chores.waiting.remove(&chore),
            Some(cursor) => _ = chores.waiting.insert(chore, cursor),
        }
        !chores.waiting.is_empty()
    });
    if is_left {
        // SAFETY: as above.
        unsafe { set_timer(context) };
    }
}

/// What is left to do: nothing, or something, with the cursor where shrinking goes on, if it does.
type Left = Option<Option<u64>>;

/// # Safety
///
/// The context is that of a call.
unsafe fn pass_part(context: *mut raw::RedisModuleCtx, chore: &Chore, cursor: Option<u64>) -> Left {
    // SAFETY: the context is that of a call. The string is freed after the key is closed.
    unsafe {
        if raw::RedisModule_SelectDb.unwrap()(context, chore.database) != raw::REDISMODULE_OK {
            return None;
        }
        let name = string(context, &chore.name);
        let left = part(Context::new(context), chore, Argument::new(name), cursor);
        raw::RedisModule_FreeString.unwrap()(context, name);
        left
    }
}

fn part(call: Context<'_>, chore: &Chore, name: Argument<'_>, cursor: Option<u64>) -> Left {
    let key = call.open(name, Mode::Unnoticed);
    let Value::Set(set) = key.value() else { return None };
    if !set.pass_part() {
        return Some(cursor);
    }
    let before = set.bytes();
    let left = shrink(call, chore, set, cursor);
    if set.bytes() < before {
        call.notify(name, c"cuckoo.compact");
    }
    left
}

/// Gives a part of a set's memory back, and tells the replicas, whose sets are equal.
fn shrink(call: Context<'_>, chore: &Chore, set: &Set, cursor: Option<u64>) -> Left {
    let cursor = cursor.filter(|_| call.flags().primary())?;
    if call.must_not_replicate() {
        return Some(Some(cursor));
    }
    let Shrunk { has_changed, next } = set.shrink_part(cursor);
    if has_changed {
        call.replicate(c"CF.COMPACT", &[&chore.name, cursor.to_string().as_bytes()]);
    }
    next.map(Some)
}
