//! Time passes in a filter that forgets: whenever a primary is asked something of it, for as much as a command may
//! take. Replicas, and the append-only file, are told by `CF.TICK`, and have no clock.

use crate::commands::options::number;
use crate::server::command::{About, Access, Command, Kind, Outcome, Parameter, Refusal};
use crate::server::context::{Argument, Context, Mode};
use crate::server::forks;
use crate::server::key::Value;
use crate::set::Set;
use crate::set::time::now;

/// The segments of a filter that a tick goes through in one command: a quarter of a millisecond.
const SEGMENTS: usize = 256;

/// The ticks that one command makes up for. After more, a filter is empty.
const MOST_TICKS: usize = 16;

/// Lets the time pass that is due, if this server decides that.
pub fn pass(call: Context<'_>, name: Argument<'_>, set: &Set) {
    let Some(window) = set.window() else { return };
    let flags = call.flags();
    if flags.replayed() || !flags.primary() || call.must_not_replicate() {
        return;
    }
    let act = |number, segments| {
        let done = set.pass_time(number, segments);
        let [number, segments] = [number.to_string(), segments.to_string()];
        call.replicate(c"CF.TICK", &[name.bytes(), number.as_bytes(), segments.as_bytes()]);
        done
    };
    if set.note_forks(forks::count())
        && let Some(present) = set.present_tick()
    {
        act(present, usize::MAX);
    }
    let number = window.number_at(now());
    for _ in 0..MOST_TICKS {
        let due = set.present_tick().is_some_and(|present| present < number);
        if !(due || set.is_forgetting()) || !act(number, SEGMENTS) {
            break;
        }
    }
}

/// Gives the present tick of a new filter its number.
pub fn begin(call: Context<'_>, name: Argument<'_>, set: &Set) {
    if let Some(window) = set.about().window()
        && !call.flags().replayed()
    {
        let number = window.number_at(now());
        set.pass_time(number, 0);
        call.replicate(c"CF.TICK", &[name.bytes(), number.to_string().as_bytes(), b"0"]);
    }
}

/// What a primary tells.
pub struct Tick;

impl Command for Tick {
    const ABOUT: About = About {
        name: c"cf.tick",
        summary: c"Lets time pass in a filter. Only primaries send this, to their replicas",
        complexity: c"O(n), where n is the number of segments",
        arity: 4,
        access: Access::Update,
        fast: false,
        parameters: &[
            Parameter::KEY,
            Parameter::new(c"number", Kind::Integer),
            Parameter::new(c"segments", Kind::Integer),
        ],
    };

    fn run(call: Context<'_>, arguments: &[Argument<'_>]) -> Outcome {
        let [_, name, to, segments] = arguments else { return Err(Refusal::Arity) };
        if !call.flags().replayed() {
            return Err(Refusal::Message(
                c"ERR only a primary sends CF.TICK, to its replicas; time passes by itself",
            ));
        }
        let key = call.open(*name, Mode::Write);
        if let (Value::Set(set), Some(to), Some(segments)) =
            (key.value(), number(*to), number(*segments))
        {
            set.pass_time(to, segments);
            call.changed(*name);
        }
        call.reply_ok();
        Ok(())
    }
}
