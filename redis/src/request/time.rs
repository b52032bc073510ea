//! Time passes in a filter that forgets: whenever a primary is asked something of it. Replicas, and the
//! append-only file, are told by `CF.TICK`, and have no clock.

use crate::server::chore::Work;
use crate::server::context::{Argument, Context};
use crate::set::Set;
use koel::Window;

/// Lets the time pass that is due, if this server decides that.
pub fn pass(call: Context<'_>, name: Argument<'_>, set: &Set) {
    let Some(window) = set.window() else { return };
    let number = window.number_at(Window::now());
    let is_due = set.present_tick().is_some_and(|present| present < number);
    if is_due && decides(call) {
        call.replicate(c"CF.TICK", &[name.bytes(), number.to_string().as_bytes()]);
        begin(call, name, set, number);
        call.notify(name, c"cuckoo.tick");
        // What has expired may have left much empty.
        call.schedule(name, Work::Shrink(0));
    } else if set.is_ticking() {
        // Whoever was to go on with it may have lost it, since keys are renamed.
        call.schedule(name, Work::Tick);
    }
}

/// Whether this server decides what happens now.
pub fn decides(call: Context<'_>) -> bool {
    let flags = call.flags();
    !flags.replayed() && flags.primary() && !call.must_not_replicate()
}

/// Begins a tick. A small filter has done with it then; a large one goes on between commands.
pub fn begin(call: Context<'_>, name: Argument<'_>, set: &Set, number: u64) {
    set.begin_tick(number);
    if !set.pass_first_part() {
        call.schedule(name, Work::Tick);
    }
}

/// Gives the present tick of a new filter its number.
pub fn give_number(call: Context<'_>, name: Argument<'_>, set: &Set) {
    if let Some(window) = set.spec().window()
        && !call.flags().replayed()
    {
        let number = window.number_at(Window::now());
        set.begin_tick(number);
        call.replicate(c"CF.TICK", &[name.bytes(), number.to_string().as_bytes()]);
    }
}
