//! Time passes in a filter that forgets: whenever a primary is asked something of it. Replicas, and the
//! append-only file, are told by `CF.TICK`, and have no clock.

use crate::server::context::{Argument, Context};
use crate::set::Set;
use koel_state::window::now;

/// Lets the time pass that is due, if this server decides that.
pub fn pass(call: Context<'_>, name: Argument<'_>, set: &Set) {
    let Some(window) = set.window() else { return };
    let number = window.number_at(now());
    if set.present_tick().is_none_or(|present| present >= number) {
        return;
    }
    let flags = call.flags();
    if flags.replayed() || !flags.primary() || call.must_not_replicate() {
        return;
    }
    set.pass_time(number);
    call.replicate(c"CF.TICK", &[name.bytes(), number.to_string().as_bytes()]);
}

/// Gives the present tick of a new filter its number.
pub fn begin(call: Context<'_>, name: Argument<'_>, set: &Set) {
    if let Some(window) = set.about().window()
        && !call.flags().replayed()
    {
        let number = window.number_at(now());
        set.pass_time(number);
        call.replicate(c"CF.TICK", &[name.bytes(), number.to_string().as_bytes()]);
    }
}
