//! Single items, and questions: `CF.ADD`, `CF.ADDNX`, `CF.DEL`, `CF.EXISTS`, `CF.MEXISTS` and `CF.COUNT`. To the
//! questions, a key that has no filter has no items.

use crate::request::limits;
use crate::request::options::Wanted;
use crate::request::target::{self, BATCH};
use crate::server::command::{Access, Command, CommandInfo, Outcome, Refusal};
use crate::server::context::{Argument, Context};
use crate::server::key::Mode;

pub struct Add;

impl Command for Add {
    const INFO: CommandInfo = CommandInfo::fast(c"cf.add", 3, Access::Insert)
        .told(c"O(1)", c"Adds an item to a filter, once more if it is there");

    fn run(call: Context<'_>, arguments: &[Argument<'_>]) -> Outcome {
        let [_, name, item] = arguments else { return Err(Refusal::Arity) };
        let mut key = call.open(*name, Mode::Write);
        let set = target::added_to(call, *name, &mut key, Wanted::default())?;
        let added = set.add(set.hash(item.bytes()), limits::most_bytes(call));
        added.map_err(|kind| limits::full(set, kind))?;
        call.changed(*name, c"cuckoo.add");
        call.reply_bool(true);
        Ok(())
    }
}

pub struct AddNew;

impl Command for AddNew {
    const INFO: CommandInfo = CommandInfo::fast(c"cf.addnx", 3, Access::Insert)
        .told(c"O(1)", c"Adds an item to a filter, if it is not there");

    fn run(call: Context<'_>, arguments: &[Argument<'_>]) -> Outcome {
        let [_, name, item] = arguments else { return Err(Refusal::Arity) };
        let mut key = call.open(*name, Mode::Write);
        let set = target::added_to(call, *name, &mut key, Wanted::default())?;
        let added = set.add_if_absent(set.hash(item.bytes()), limits::most_bytes(call));
        let new = added.map_err(|kind| limits::full(set, kind))?;
        if new {
            call.changed(*name, c"cuckoo.add");
        }
        call.reply_bool(new);
        Ok(())
    }
}

pub struct Delete;

impl Command for Delete {
    const INFO: CommandInfo = CommandInfo::fast(c"cf.del", 3, Access::Delete)
        .told(c"O(1)", c"Deletes an item from a filter, once. Delete only what was added");

    fn run(call: Context<'_>, arguments: &[Argument<'_>]) -> Outcome {
        let [_, name, item] = arguments else { return Err(Refusal::Arity) };
        let mut key = call.open(*name, Mode::Write);
        let set = target::needed(call, *name, key.value_mut())
            .map_err(|refusal| refusal.or(c"ERR Not found"))?;
        let removed = set.remove(set.hash(item.bytes()));
        if removed {
            call.changed(*name, c"cuckoo.del");
        }
        call.reply_bool(removed);
        Ok(())
    }
}

pub struct Exists;

impl Command for Exists {
    const INFO: CommandInfo = CommandInfo::fast(c"cf.exists", 3, Access::Read)
        .told(c"O(1)", c"Tells whether an item may be in a filter");

    fn run(call: Context<'_>, arguments: &[Argument<'_>]) -> Outcome {
        let [_, name, item] = arguments else { return Err(Refusal::Arity) };
        let key = call.open(*name, Mode::Read);
        let set = target::asked(call, *name, &key)?;
        call.reply_bool(set.is_some_and(|set| set.contains(set.hash(item.bytes()))));
        Ok(())
    }
}

pub struct ManyExist;

impl Command for ManyExist {
    const INFO: CommandInfo = CommandInfo::slow(c"cf.mexists", -3, Access::Read).told(
        c"O(n), where n is the number of items",
        c"Tells for each item whether it may be in a filter",
    );

    fn run(call: Context<'_>, arguments: &[Argument<'_>]) -> Outcome {
        let [_, name, items @ ..] = arguments else { return Err(Refusal::Arity) };
        if items.is_empty() {
            return Err(Refusal::Arity);
        }
        let key = call.open(*name, Mode::Read);
        let set = target::asked(call, *name, &key)?;
        call.reply_array(items.len());
        for batch in items.chunks(BATCH) {
            let mut found = [false; BATCH];
            if let Some(set) = set {
                let hashes = target::hashes(set, batch);
                set.contains_many(&hashes[..batch.len()], &mut found[..batch.len()]);
            }
            found[..batch.len()].iter().for_each(|found| call.reply_bool(*found));
        }
        Ok(())
    }
}

pub struct Count;

impl Command for Count {
    const INFO: CommandInfo = CommandInfo::fast(c"cf.count", 3, Access::Read)
        .told(c"O(1)", c"Tells how often an item may be in a filter");

    fn run(call: Context<'_>, arguments: &[Argument<'_>]) -> Outcome {
        let [_, name, item] = arguments else { return Err(Refusal::Arity) };
        let key = call.open(*name, Mode::Read);
        let set = target::asked(call, *name, &key)?;
        call.reply_integer(set.map_or(0, |set| set.count(set.hash(item.bytes()))) as i64);
        Ok(())
    }
}
