//! Time passes in a filter that forgets: whenever a primary is asked something of it. Replicas, and the append-only file, are told by `CF.TICK`, and have no clock.

use crate::commands::options::number;
use crate::server::command::{About, Access, Command, Kind, Outcome, Parameter, Refusal};
use crate::server::context::{Argument, Context, Mode};
use crate::server::key::Value;
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

/// What a primary tells.
pub struct Tick;

impl Command for Tick {
    const ABOUT: About = About {
        name: c"cf.tick",
        summary: c"Lets time pass in a filter. Only primaries send this, to their replicas",
        complexity: c"O(n), where n is the size of the filter",
        arity: 3,
        access: Access::Update,
        fast: false,
        parameters: &[Parameter::KEY, Parameter::new(c"number", Kind::Integer)],
    };

    fn run(call: Context<'_>, arguments: &[Argument<'_>]) -> Outcome {
        let [_, name, to] = arguments else { return Err(Refusal::Arity) };
        if !call.flags().replayed() {
            return Err(Refusal::Message(
                c"ERR only a primary sends CF.TICK, to its replicas; time passes by itself",
            ));
        }
        let key = call.open(*name, Mode::Write);
        if let (Value::Set(set), Some(to)) = (key.value(), number(*to)) {
            set.pass_time(to);
            call.changed(*name);
        }
        call.reply_ok();
        Ok(())
    }
}
