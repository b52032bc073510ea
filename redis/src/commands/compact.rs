//! `CF.COMPACT`: a filter forgets the number of deleted items, and gives back what it grew to and does not need any
//! more: an empty one at once, any other in parts, between commands. A primary tells its replicas of each part, by the
//! cursor where it began.

use crate::request::options::number;
use crate::request::{target, time};
use crate::server::command::{About, Access, Command, Outcome, Refusal};
use crate::server::context::{Argument, Context};
use crate::server::key::Mode;

pub struct Compact;

impl Command for Compact {
    const ABOUT: About = About::slow(c"cf.compact", -2, Access::Update).told(
        c"O(n), where n is the size of the filter; all but a part of it later, between commands",
        c"Resets the number of deleted items, and frees memory that is not needed any more",
    );

    fn run(call: Context<'_>, arguments: &[Argument<'_>]) -> Outcome {
        let (name, cursor) = match arguments {
            [_, name] => (name, None),
            [_, name, cursor] if call.flags().replayed() => (name, number(*cursor)),
            _ => return Err(Refusal::Arity),
        };
        let mut key = call.open(*name, Mode::Write);
        let set = target::changed(call, *name, &mut key).map_err(|refusal| match refusal {
            Refusal::Half => Refusal::Half,
            _ => Refusal::Message(c"ERR Cuckoo filter was not found"),
        })?;
        let next = match cursor {
            Some(cursor) => set.shrink_part(cursor).next,
            None => set.compact().map_err(|error| target::not_made(error, set.about()))?,
        };
        if let Some(next) = next.filter(|_| time::decides(call)) {
            call.go_on_shrinking(*name, next);
        }
        call.changed(*name, c"cuckoo.compact");
        call.reply_ok();
        Ok(())
    }
}
