//! `CF.MERGE`: one set takes over what others have.

use crate::request::limits;
use crate::request::target;
use crate::server::command::{About, Access, Command, Outcome, Refusal};
use crate::server::context::{Argument, Context};
use crate::server::key::{Mode, Value};
use crate::set::Set;
use crate::set::errors::Apart;

pub struct Merge;

impl Command for Merge {
    const ABOUT: About = About::slow(c"cf.merge", -3, Access::Merge).told(
        c"O(n), where n is the size of all these filters",
        c"Adds to a filter what others have, which were reserved alike, with one seed",
    );

    fn run(call: Context<'_>, arguments: &[Argument<'_>]) -> Outcome {
        let [_, name, first, rest @ ..] = arguments else { return Err(Refusal::Arity) };
        let sources = [*first].into_iter().chain(rest.iter().copied());
        // What a filter takes over from itself changes nothing, and a key is open once.
        let sources: Vec<_> = sources.filter(|source| source.bytes() != name.bytes()).collect();
        let keys: Vec<_> = sources.iter().map(|source| call.open(*source, Mode::Read)).collect();
        let sets = sources.iter().zip(&keys).map(|(name, key)| target::needed(call, *name, key));
        let sets: Vec<&Set> = sets.collect::<Result<_, _>>()?;
        let mut key = call.open(*name, Mode::Write);
        if matches!(key.value(), Value::Nothing) {
            let (first, others) = sets.split_first().ok_or(Refusal::Missing)?;
            sets.iter().try_for_each(|other| first.check_alike(other)).map_err(refusal)?;
            limits::check_more(call, first, 0)?;
            limits::check_memory(call, first.bytes())?;
            let mut set = first.try_clone().ok_or(limits::NO_MEMORY_FOR_A_COPY)?;
            set.merge(others).map_err(refusal)?;
            key.put(set);
            call.changed(*name, c"cuckoo.merge");
            call.reply_ok();
            return Ok(());
        }
        let set = target::changed(call, *name, &mut key)?;
        sets.iter().try_for_each(|other| set.check_alike(other)).map_err(refusal)?;
        limits::check(call, set)?;
        let grows = set.about().grows();
        if !grows {
            limits::check_memory(call, set.bytes())?;
        }
        let merged = set.merge(&sets);
        if merged.is_err() && !grows {
            return merged.map_err(refusal);
        }
        // Also if there was no memory for all: some are there now, here and on replicas.
        call.changed(*name, c"cuckoo.merge");
        match merged {
            // A primary that has told its client does not hear it again from each replica.
            Err(apart) if !call.flags().replayed() => Err(refusal(apart)),
            _ => {
                call.reply_ok();
                Ok(())
            }
        }
    }
}

fn refusal(apart: Apart) -> Refusal {
    Refusal::Text(apart.to_string())
}
