//! `CF.SCANDUMP` and `CF.LOADCHUNK`: a set, chunk by chunk, out of a server and into one.

use crate::request::options::number;
use crate::request::{limits, target};
use crate::server::command::{About, Access, Command, Kind, Outcome, Parameter, Refusal};
use crate::server::context::{Argument, Context};
use crate::server::key::{Mode, Value, ValueMut};
use crate::set::Set;
use crate::set::chunk::Chunk;
use crate::set::errors;
use crate::set::moves::{NoPart, Pushed};

const INVALID_POSITION: Refusal = Refusal::Message(c"ERR Invalid position");

pub struct ScanDump;

impl Command for ScanDump {
    const ABOUT: About = About {
        name: c"cf.scandump",
        summary: c"Returns a chunk of a filter, and the cursor of the next one. The first cursor is 0, and a cursor of 0 ends the dump",
        complexity: c"O(n), where n is the size of the chunk",
        arity: 3,
        access: Access::Read,
        fast: false,
        parameters: &[Parameter::KEY, Parameter::new(c"cursor", Kind::Integer)],
    };

    fn run(call: Context<'_>, arguments: &[Argument<'_>]) -> Outcome {
        let [_, name, cursor] = arguments else { return Err(Refusal::Arity) };
        let key = call.open(*name, Mode::Read);
        let set = target::needed(call, *name, &key)?;
        let cursor = number(*cursor).ok_or(INVALID_POSITION)?;
        if cursor == 0 && set.is_empty() {
            // As RedisBloom: a dump that ends with this instead of an empty chunk had nothing in it.
            call.reply_array(2);
            call.reply_integer(0);
            call.reply_null();
            return Ok(());
        }
        let part = set.part_at(cursor).map_err(|why| match why {
            NoPart::NoSuchCursor => INVALID_POSITION,
            NoPart::Koel(error) => Refusal::Text(format!("ERR {}", errors::of_snapshot(&error))),
        })?;
        let (next, chunk) = part.unwrap_or_default();
        call.reply_array(2);
        call.reply_integer(next as i64);
        call.reply_bytes(&chunk);
        Ok(())
    }
}

pub struct LoadChunk;

impl Command for LoadChunk {
    const ABOUT: About = About {
        name: c"cf.loadchunk",
        summary: c"Takes the next chunk of a filter, of CF.SCANDUMP or of a file that koel saved. The first one creates the key",
        complexity: c"O(n), where n is the size of the chunk, or of the whole filter with the last one",
        arity: 4,
        access: Access::Insert,
        fast: false,
        parameters: &[
            Parameter::KEY,
            Parameter::new(c"cursor", Kind::Integer),
            Parameter::new(c"data", Kind::Text),
        ],
    };

    fn run(call: Context<'_>, arguments: &[Argument<'_>]) -> Outcome {
        let [_, name, cursor, data] = arguments else { return Err(Refusal::Arity) };
        let mut key = call.open(*name, Mode::Write);
        if matches!(key.value(), Value::Other) {
            return Err(Refusal::WrongType);
        }
        let cursor: i64 = number(*cursor).filter(|cursor| *cursor > 0).ok_or(INVALID_POSITION)?;
        let bytes = data.bytes();
        let pushed = match key.value_mut() {
            ValueMut::Nothing if Chunk::parse(bytes).is_none() => {
                return Err(match cursor {
                    1 => Refusal::Message(c"ERR Invalid header"),
                    _ => Refusal::Missing,
                });
            }
            ValueMut::Nothing => {
                let mut set = Set::half();
                limits::check_more(call, &set, bytes.len())?;
                let pushed = set.push(bytes);
                if matches!(pushed, Pushed::Taken) {
                    key.put(set);
                }
                pushed
            }
            ValueMut::Set(set) if set.is_half() => {
                limits::check_more(call, set, bytes.len())?;
                set.push(bytes)
            }
            ValueMut::Set(set) => match Chunk::parse(bytes) {
                // It follows the last piece, with which the set was complete.
                Some(Chunk::About(about)) if set.describe(about) => Pushed::Taken,
                Some(Chunk::Mark) => Pushed::Taken,
                _ => return Err(Refusal::Message(c"ERR item exists")),
            },
            ValueMut::Other => return Err(Refusal::WrongType),
        };
        match pushed {
            Pushed::Taken => {
                call.changed(*name);
                call.reply_ok();
                Ok(())
            }
            Pushed::Refused(trouble) => Err(Refusal::Text(format!("ERR Invalid chunk: {trouble}"))),
            Pushed::Spoilt(trouble) => {
                call.changed(*name);
                if call.flags().replayed() {
                    // Nobody is there to begin again.
                    call.reply_ok();
                    return Ok(());
                }
                Err(Refusal::Text(format!("ERR the filter is damaged, begin again: {trouble}")))
            }
        }
    }
}
