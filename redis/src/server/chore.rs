//! What goes on between commands, in parts: the ticks of large sets, and what gives their memory back.
//!
//! A timer of the server comes back to one key after another, until their sets have nothing left to do. If a key has
//! gone, or got another name, nobody goes on, until a command on the set [asks for that](Context::schedule) again.

use crate::server::context::{Argument, Context, string};
use crate::server::key::{Mode, Value};
use crate::server::log::catch_panic;
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

/// What there is to do for a set.
#[derive(Clone, Copy)]
pub enum Work {
    /// To end the tick that is passing.
    Tick,
    /// The same, and then to shrink it from this cursor on.
    Shrink(u64),
}

/// What there is to do, in turns.
struct Chores {
    waiting: BTreeMap<Chore, Work>,
    /// The one whose turn it was last.
    last: Option<Chore>,
}

impl Chores {
    /// The one whose turn it is.
    fn next(&mut self) -> Option<(Chore, Work)> {
        let later = |last: &Chore| self.waiting.range((Excluded(last), Unbounded)).next();
        let next = self.last.as_ref().and_then(later).or(self.waiting.first_key_value());
        let next = next.map(|(chore, work)| (chore.clone(), *work));
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
    /// then to [shrink](crate::set::Set::shrink_part) it if that is asked for. This server decides when.
    pub fn schedule(self, name: Argument<'_>, work: Work) {
        // SAFETY: the call lives.
        let database = unsafe { raw::RedisModule_GetSelectedDb.unwrap()(self.raw()) };
        let chore = Chore { database, name: name.bytes().to_vec() };
        let is_first = chores(|chores| {
            let was_idle = chores.waiting.is_empty();
            let own = chores.waiting.entry(chore).or_insert(work);
            if let Work::Shrink(_) = work {
                *own = work;
            }
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
    let Some((chore, work)) = chores(Chores::next) else { return };
    // SAFETY: the context is that of this call.
    let part = || unsafe { pass_part(context, &chore, work) };
    let left = catch_panic(None, "a part of a tick", part);
    let is_left = chores(|chores| {
        match left {
            None => _ = chores.waiting.remove(&chore),
            Some(work) => _ = chores.waiting.insert(chore, work),
        }
        !chores.waiting.is_empty()
    });
    if is_left {
        // SAFETY: as above.
        unsafe { set_timer(context) };
    }
}

/// Does a part of the work, and returns what is left of it.
///
/// # Safety
///
/// The context is that of a call.
unsafe fn pass_part(context: *mut raw::RedisModuleCtx, chore: &Chore, work: Work) -> Option<Work> {
    // SAFETY: the context is that of a call. The string is freed after the key is closed.
    unsafe {
        if raw::RedisModule_SelectDb.unwrap()(context, chore.database) != raw::REDISMODULE_OK {
            return None;
        }
        let name = string(context, &chore.name);
        let left = part(Context::new(context), chore, Argument::new(name), work);
        raw::RedisModule_FreeString.unwrap()(context, name);
        left
    }
}

fn part(call: Context<'_>, chore: &Chore, name: Argument<'_>, work: Work) -> Option<Work> {
    let key = call.open(name, Mode::Unnoticed);
    let Value::Set(set) = key.value() else { return None };
    if !set.pass_part() {
        return Some(work);
    }
    let Work::Shrink(cursor) = work else { return None };
    let before = set.bytes();
    let left = shrink(call, chore, set, cursor);
    if set.bytes() < before {
        call.notify(name, c"cuckoo.compact");
    }
    left
}

/// Gives a part of a set's memory back, and tells the replicas, whose sets are equal.
fn shrink(call: Context<'_>, chore: &Chore, set: &Set, cursor: u64) -> Option<Work> {
    if !call.flags().primary() {
        return None;
    }
    if call.must_not_replicate() {
        return Some(Work::Shrink(cursor));
    }
    let Shrunk { has_changed, next } = set.shrink_part(cursor);
    if has_changed {
        call.replicate(c"CF.COMPACT", &[&chore.name, cursor.to_string().as_bytes()]);
    }
    next.map(Work::Shrink)
}
