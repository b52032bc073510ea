//! `CF.TICK`, which primaries send.

use crate::request::options::number;
use crate::request::time;
use crate::server::command::{About, Access, Command, Outcome, Refusal};
use crate::server::context::{Argument, Context};
use crate::server::key::{Mode, Value};

/// What a primary tells.
pub struct Tick;

impl Command for Tick {
    const ABOUT: About = About::slow(c"cf.tick", 3, Access::Update).told(
        c"O(n), where n is the size of the filter",
        c"Begins a tick in a filter that forgets. Only primaries send this, to their replicas",
    );

    fn run(call: Context<'_>, arguments: &[Argument<'_>]) -> Outcome {
        let [_, name, to] = arguments else { return Err(Refusal::Arity) };
        if !call.flags().replayed() {
            return Err(Refusal::Message(
                c"ERR only a primary sends CF.TICK, to its replicas; time passes by itself",
            ));
        }
        let key = call.open(*name, Mode::Write);
        if let (Value::Set(set), Some(to)) = (key.value(), number(*to)) {
            time::begin(call, *name, set, to);
            call.changed(*name, c"cuckoo.tick");
        }
        call.reply_ok();
        Ok(())
    }
}
