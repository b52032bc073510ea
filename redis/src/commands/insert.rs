//! `CF.INSERT` and `CF.INSERTNX`: many items.

use crate::request::limits;
use crate::request::options::{Wanted, capacity, check_capacity, is};
use crate::request::target::{self, BATCH, hashes};
use crate::server::command::{Access, Command, CommandInfo, Outcome, Refusal};
use crate::server::context::{Argument, Context};
use crate::server::key::{Mode, Value};
use crate::set::items::Answer;
use crate::set::spec::FilterSpec;
use koel::FullKind;

/// Adds all of its items, or the new ones: those that are not there.
pub struct Insert<const NEW: bool>;

impl<const NEW: bool> Command for Insert<NEW> {
    const INFO: CommandInfo =
        CommandInfo::slow(if NEW { c"cf.insertnx" } else { c"cf.insert" }, -4, Access::Insert)
            .told(
                c"O(n), where n is the number of items",
                match NEW {
                    false => c"Adds items to a filter, once more if they are there",
                    true => c"Adds items to a filter, those that are not there",
                },
            );

    fn run(call: Context<'_>, arguments: &[Argument<'_>]) -> Outcome {
        let Arguments { name, wanted, create, items } = parse(arguments)?;
        let mut key = call.open(name, Mode::Write);
        if !create && matches!(key.value(), Value::Nothing) {
            return Err(Refusal::Missing);
        }
        let set = target::added_to(call, name, &mut key, wanted)?;
        let most = limits::most_bytes(call);
        call.reply_array(items.len());
        let (mut added, mut lacked_memory) = (Vec::new(), false);
        for batch in items.chunks(BATCH) {
            let hashes = &hashes(set, batch)[..batch.len()];
            let answers = &mut [Ok(false); BATCH][..batch.len()];
            match NEW {
                false => set.add_many(hashes, most, answers),
                true => set.add_many_if_absent(hashes, most, answers),
            }
            for (item, answer) in batch.iter().zip(answers) {
                reply::<NEW>(call, *answer);
                if *answer == Ok(true) {
                    added.push(item.bytes());
                }
                lacked_memory |= matches!(answer, Err(FullKind::LimitReached | FullKind::NoMemory));
            }
        }
        if added.is_empty() {
            return Ok(());
        }
        if !lacked_memory {
            call.changed(name, c"cuckoo.insert");
            return Ok(());
        }
        // A replica may have the memory that is lacking here, and has no limit. A batch does what a loop would, so it
        // may leave out the items that were refused.
        let mut arguments = vec![name.bytes(), b"NOCREATE", b"ITEMS"];
        arguments.append(&mut added);
        call.changed_as(name, c"cuckoo.insert", Self::INFO.name, &arguments);
        Ok(())
    }
}

/// The arguments of either command.
struct Arguments<'a> {
    name: Argument<'a>,
    wanted: Wanted,
    create: bool,
    items: &'a [Argument<'a>],
}

fn parse<'a>(arguments: &'a [Argument<'a>]) -> Result<Arguments<'a>, Refusal> {
    let [_, name, rest @ ..] = arguments else { return Err(Refusal::Arity) };
    let (mut rest, mut wanted, mut create) = (rest, Wanted::default(), true);
    loop {
        rest = match rest {
            [token, items @ ..] if is(*token, "ITEMS") => {
                if items.is_empty() {
                    return Err(Refusal::Arity);
                }
                return Ok(Arguments { name: *name, wanted, create, items });
            }
            [token, rest @ ..] if is(*token, "NOCREATE") => {
                create = false;
                rest
            }
            [token, value, rest @ ..] if is(*token, "CAPACITY") => {
                let error = c"ERR Capacity must be in the range [cf-bucket-size * 2, 1073741824]";
                let capacity = capacity(*value)?;
                wanted.capacity = Some(check_capacity(capacity, FilterSpec::BUCKET_SIZE, error)?);
                rest
            }
            [token] if is(*token, "CAPACITY") => return Err(Refusal::Arity),
            options => wanted.take(options)?,
        };
    }
}

/// `CF.INSERTNX` answers by a number in both versions of the protocol, `CF.INSERT` only if an older client could
/// not tell two answers apart.
fn reply<const NEW: bool>(call: Context<'_>, answer: Answer) {
    if !NEW && (answer == Ok(true) || call.flags().resp3()) {
        call.reply_bool(answer == Ok(true));
    } else {
        call.reply_integer(answer.map_or(-1, i64::from));
    }
}
