//! `CF.EXISTS`, `CF.MEXISTS` and `CF.COUNT`: the questions. A key that has no filter has no items.

use crate::request::target;
use crate::server::command::{About, Access, Command, Outcome, Refusal};
use crate::server::context::{Argument, Context};
use crate::server::key::Mode;
use koel::Prehashed;

pub struct Exists;

impl Command for Exists {
    const ABOUT: About = About::fast(c"cf.exists", 3, Access::Read)
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

/// The items that are looked up at once, with their hashes and answers on the stack.
const BATCH: usize = 128;

impl Command for ManyExist {
    const ABOUT: About = About::slow(c"cf.mexists", -3, Access::Read).told(
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
                let mut hashes = [Prehashed(0); BATCH];
                for (hash, item) in hashes.iter_mut().zip(batch) {
                    *hash = set.hash(item.bytes());
                }
                set.contains_many(&hashes[..batch.len()], &mut found[..batch.len()]);
            }
            found[..batch.len()].iter().for_each(|found| call.reply_bool(*found));
        }
        Ok(())
    }
}

pub struct Count;

impl Command for Count {
    const ABOUT: About = About::fast(c"cf.count", 3, Access::Read)
        .told(c"O(1)", c"Tells how often an item may be in a filter");

    fn run(call: Context<'_>, arguments: &[Argument<'_>]) -> Outcome {
        let [_, name, item] = arguments else { return Err(Refusal::Arity) };
        let key = call.open(*name, Mode::Read);
        let set = target::asked(call, *name, &key)?;
        call.reply_integer(set.map_or(0, |set| set.count(set.hash(item.bytes()))) as i64);
        Ok(())
    }
}
