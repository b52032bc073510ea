//! `CF.COMPACT`: there is nothing to compact in a filter that is one table. It forgets the number of deleted
//! items, and an empty filter gives back what it grew to.

use crate::request::target;
use crate::server::command::{About, Access, Command, Outcome, Parameter, Refusal};
use crate::server::context::{Argument, Context};
use crate::server::key::Mode;

pub struct Compact;

impl Command for Compact {
    const ABOUT: About = About {
        name: c"cf.compact",
        summary: c"Resets the number of deleted items, and frees the memory of an empty filter",
        complexity: c"O(n), where n is the size of the filter",
        arity: 2,
        access: Access::Update,
        fast: false,
        parameters: &[Parameter::KEY],
    };

    fn run(call: Context<'_>, arguments: &[Argument<'_>]) -> Outcome {
        let [_, name] = arguments else { return Err(Refusal::Arity) };
        let mut key = call.open(*name, Mode::Write);
        let set = target::changed(call, *name, &mut key).map_err(|refusal| match refusal {
            Refusal::Half => Refusal::Half,
            _ => Refusal::Message(c"ERR Cuckoo filter was not found"),
        })?;
        set.compact().map_err(|error| Refusal::Text(format!("ERR {error}")))?;
        call.changed(*name);
        call.reply_ok();
        Ok(())
    }
}
