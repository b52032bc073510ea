//! `CF.DEL`: takes an item out, once.

use crate::request::target;
use crate::server::command::{About, Access, Command, Outcome, Refusal};
use crate::server::context::{Argument, Context};
use crate::server::key::Mode;

pub struct Delete;

impl Command for Delete {
    const ABOUT: About = About::fast(c"cf.del", 3, Access::Delete)
        .told(c"O(1)", c"Deletes an item from a filter, once. Delete only what was added");

    fn run(call: Context<'_>, arguments: &[Argument<'_>]) -> Outcome {
        let [_, name, item] = arguments else { return Err(Refusal::Arity) };
        let mut key = call.open(*name, Mode::Write);
        let set = target::changed(call, *name, &mut key).map_err(|refusal| match refusal {
            Refusal::Half => Refusal::Half,
            _ => Refusal::Message(c"ERR Not found"),
        })?;
        let removed = set.remove(set.hash(item.bytes()));
        if removed {
            call.changed(*name, c"cuckoo.del");
        }
        call.reply_bool(removed);
        Ok(())
    }
}
