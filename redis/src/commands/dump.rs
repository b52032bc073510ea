//! `CF.SCANDUMP` and `CF.LOADCHUNK`: a set, chunk by chunk, out of a server and into one.
//!
//! Replicas and files do not see the chunks of half a set, only that there is one. When the last chunk has come, they
//! get the chunks of the whole set, in one transaction.

use crate::request::options::number;
use crate::request::{limits, target};
use crate::server::command::{Access, Command, CommandInfo, Outcome, Refusal};
use crate::server::context::{Argument, Context};
use crate::server::key::{Mode, Value};
use crate::set::Set;
use crate::set::assembly::ChunkError;
use crate::set::chunk::{self, Chunk};

const INVALID_POSITION: Refusal = Refusal::Message(c"ERR Invalid position");
const TAKEN: Refusal = Refusal::Message(c"ERR item exists");

pub struct ScanDump;

impl Command for ScanDump {
    const INFO: CommandInfo = CommandInfo::slow(c"cf.scandump", 3, Access::Read).told(
        c"O(n), where n is the size of the chunk",
        c"Returns a chunk of a filter, and the cursor of the next one: 0 at first, and at the end",
    );

    fn run(call: Context<'_>, arguments: &[Argument<'_>]) -> Outcome {
        let [_, name, cursor] = arguments else { return Err(Refusal::Arity) };
        let key = call.open(*name, Mode::Read);
        let set = target::needed(call, *name, key.value())?;
        let cursor = number(*cursor).ok_or(INVALID_POSITION)?;
        if cursor == 0 && set.is_empty() {
            // As RedisBloom: a dump that ends with this instead of an empty chunk had nothing in it.
            call.reply_array(2);
            call.reply_integer(0);
            call.reply_null();
            return Ok(());
        }
        let part = set.part_at(cursor).map_err(|why| match why {
            ChunkError::NoSuchCursor => INVALID_POSITION,
            why => Refusal::Text(format!("ERR {why}")),
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
    const INFO: CommandInfo = CommandInfo::slow(c"cf.loadchunk", 4, Access::Insert).told(
        c"O(n), where n is the size of the chunk, or of the whole filter with the last one",
        c"Takes the next chunk of CF.SCANDUMP or of a file of koel; the first creates the key",
    );

    fn run(call: Context<'_>, arguments: &[Argument<'_>]) -> Outcome {
        let [_, name, cursor, data] = arguments else { return Err(Refusal::Arity) };
        let mut key = call.open(*name, Mode::Write);
        if matches!(key.value(), Value::Other) {
            return Err(Refusal::WrongType);
        }
        let cursor: i64 = number(*cursor).filter(|cursor| *cursor > 0).ok_or(INVALID_POSITION)?;
        let (bytes, invalid) =
            (data.bytes(), |why: ChunkError| Refusal::Text(format!("ERR Invalid chunk: {why}")));
        let half = chunk::half();
        let begun: [&[u8]; 3] = [name.bytes(), b"1", &half];
        let mut pushed = false;
        match (key.value_mut(), Chunk::parse(bytes)) {
            (Value::Nothing, None) => {
                return Err(match cursor {
                    1 => Refusal::Message(c"ERR Invalid header"),
                    _ => Refusal::Missing,
                });
            }
            (Value::Nothing, Some(_)) => {
                let mut set = Set::half();
                limits::check_more(call, &set, bytes.len())?;
                set.push(cursor, bytes).map_err(invalid)?;
                pushed = true;
                key.put(set);
                call.changed_as(*name, c"cuckoo.load", c"CF.LOADCHUNK", &begun);
            }
            (Value::Set(set), Some(Chunk::Half)) if set.is_half() => {
                *set = Set::half();
                call.changed(*name, c"cuckoo.load");
            }
            (Value::Set(set), _) if set.is_half() => {
                limits::check_more(call, set, bytes.len())?;
                set.push(cursor, bytes).map_err(invalid)?;
                pushed = true;
            }
            // What follows the last piece, with which the set was complete.
            (Value::Set(set), Some(Chunk::Spec(spec))) => {
                if !set.describe(spec) {
                    return Err(TAKEN);
                }
                call.changed(*name, c"cuckoo.load");
            }
            _ => return Err(TAKEN),
        }
        if let Value::Set(set) = key.value_mut()
            && pushed
            && !set.is_half()
        {
            if let Err(refusal) = limits::check_more(call, set, 0) {
                // The chunks took less than what they are of.
                *set = Set::half();
                return Err(refusal);
            }
            let mut next = 0;
            let sent = set.each_chunk(|chunk| {
                next += 1;
                let arguments = [name.bytes(), &next.to_string().into_bytes(), chunk];
                call.replicate(c"CF.LOADCHUNK", &arguments);
            });
            call.touched(*name, c"cuckoo.load");
            if let Err(error) = sent {
                *set = Set::half();
                call.changed_as(*name, c"cuckoo.load", c"CF.LOADCHUNK", &begun);
                return Err(invalid(error.into()));
            }
        }
        call.reply_ok();
        Ok(())
    }
}
