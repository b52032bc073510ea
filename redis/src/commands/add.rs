//! `CF.ADD` and `CF.ADDNX`: one item.

use crate::request::options::Wanted;
use crate::request::{limits, target};
use crate::server::command::{About, Access, Command, Outcome, Refusal};
use crate::server::context::{Argument, Context};
use crate::server::key::Mode;
use crate::set::Set;

pub struct Add;

impl Command for Add {
    const ABOUT: About = About::fast(c"cf.add", 3, Access::Insert)
        .told(c"O(1)", c"Adds an item to a filter, once more if it is there");

    fn run(call: Context<'_>, arguments: &[Argument<'_>]) -> Outcome {
        let [_, name, item] = arguments else { return Err(Refusal::Arity) };
        let mut key = call.open(*name, Mode::Write);
        let set = target::added_to(call, *name, &mut key, Wanted::default())?;
        limits::check(call, set)?;
        if !set.add(set.hash(item.bytes())) {
            return Err(full(set));
        }
        call.changed(*name, c"cuckoo.add");
        call.reply_bool(true);
        Ok(())
    }
}

pub struct AddNew;

impl Command for AddNew {
    const ABOUT: About = About::fast(c"cf.addnx", 3, Access::Insert)
        .told(c"O(1)", c"Adds an item to a filter, if it is not there");

    fn run(call: Context<'_>, arguments: &[Argument<'_>]) -> Outcome {
        let [_, name, item] = arguments else { return Err(Refusal::Arity) };
        let mut key = call.open(*name, Mode::Write);
        let set = target::added_to(call, *name, &mut key, Wanted::default())?;
        let hash = set.hash(item.bytes());
        if !limits::has_room(call, set) {
            // Who counts knows what has expired.
            if set.count(hash) == 0 {
                limits::check(call, set)?;
            }
        }
        let new = set.add_if_absent(hash).ok_or_else(|| full(set))?;
        if new {
            call.changed(*name, c"cuckoo.add");
        }
        call.reply_bool(new);
        Ok(())
    }
}

/// The error of an item that there is no room for.
fn full(set: &Set) -> Refusal {
    match set.about().grows() {
        // A filter that grows refuses copies of one item, when it has a few.
        true => Refusal::Message(c"ERR Maximum expansions reached"),
        false => Refusal::Message(c"ERR Filter is full"),
    }
}
