//! A filter as a whole: `CF.RESERVE` makes it, `CF.INFO` tells what there is to know of it, `CF.MERGE` adds what others
//! have, `CF.COMPACT` gives memory back, and by `CF.TICK` time passes in the filters of replicas.

use crate::request::options::{Wanted, capacity, check_capacity, in_range, is, number};
use crate::request::{limits, target, time};
use crate::server::chore::Work;
use crate::server::command::{Access, Command, CommandInfo, Outcome, Refusal};
use crate::server::context::{Argument, Context};
use crate::server::key::{Mode, Value};
use crate::set::Set;
use crate::set::errors::MergeError;
use crate::set::spec::FilterSpec;

pub struct Reserve;

impl Command for Reserve {
    const INFO: CommandInfo = CommandInfo::slow(c"cf.reserve", -3, Access::Create)
        .told(c"O(n), where n is the capacity", c"Creates a filter");

    fn run(call: Context<'_>, arguments: &[Argument<'_>]) -> Outcome {
        let [_, name, size, options @ ..] = arguments else { return Err(Refusal::Arity) };
        if !options.len().is_multiple_of(2) {
            return Err(Refusal::Arity);
        }
        let spec = parse(*size, options)?;
        let mut key = call.open(*name, Mode::Write);
        match key.value() {
            Value::Nothing => {}
            Value::Other => return Err(Refusal::WrongType),
            Value::Set(_) => return Err(Refusal::Message(c"ERR item exists")),
        }
        target::make(call, *name, &mut key, spec, c"cuckoo.reserve")?;
        call.reply_ok();
        Ok(())
    }
}

fn parse(size: Argument<'_>, mut options: &[Argument<'_>]) -> Result<FilterSpec, Refusal> {
    let capacity = capacity(size)?;
    let mut wanted = Wanted::default();
    let (mut bucket_size, mut max_iterations, mut expansion) =
        (FilterSpec::BUCKET_SIZE, FilterSpec::MAX_ITERATIONS, FilterSpec::EXPANSION);
    while let [name, value, rest @ ..] = options {
        options = rest;
        if is(*name, "BUCKETSIZE") {
            bucket_size = in_range("BUCKETSIZE", *value, 1..=255)? as u8;
        } else if is(*name, "MAXITERATIONS") {
            max_iterations = in_range("MAXITERATIONS", *value, 1..=65_535)? as u16;
        } else if is(*name, "EXPANSION") {
            let factor = in_range("EXPANSION", *value, 0..=32_768)? as u16;
            // RedisBloom grows by powers of two, and tells them.
            expansion = if factor == 0 { 0 } else { factor.next_power_of_two() };
        } else {
            wanted.take(&[*name, *value])?;
        }
    }
    let error = c"ERR Capacity must be in the range [2 * BUCKETSIZE, 1073741824]";
    wanted.capacity = Some(check_capacity(capacity, bucket_size, error)?);
    Ok(FilterSpec { bucket_size, max_iterations, expansion, ..wanted.spec() })
}

pub struct Info;

impl Command for Info {
    const INFO: CommandInfo = CommandInfo::slow(c"cf.info", 2, Access::Describe).told(
        c"O(n), where n is the number of segments, of some 2,000 items each",
        c"Tells the figures of a filter",
    );

    fn run(call: Context<'_>, arguments: &[Argument<'_>]) -> Outcome {
        let [_, name] = arguments else { return Err(Refusal::Arity) };
        let key = call.open(*name, Mode::Read);
        let set = target::needed(call, *name, key.value())?;
        let spec = set.spec();
        let stats = set.stats();
        let buckets = stats.as_ref().map_or(1, |stats| stats.slots / stats.slots_per_bucket.max(1));
        let items = stats.as_ref().map_or(set.len(), |stats| stats.items);
        let present_rate = stats.map_or(0.0, |stats| stats.false_positive_rate);
        // The first eight are those of RedisBloom.
        let figures: [(&[u8], i64); 10] = [
            (b"Size", set.bytes() as i64),
            (b"Number of buckets", buckets as i64),
            (b"Number of filters", 1),
            (b"Number of items inserted", items as i64),
            (b"Number of items deleted", spec.deleted as i64),
            (b"Bucket size", spec.bucket_size.into()),
            (b"Expansion rate", spec.expansion.into()),
            (b"Max iterations", spec.max_iterations.into()),
            (b"Capacity", spec.capacity as i64),
            (b"Forgets after", spec.forget_after as i64),
        ];
        // As text, since numbers are signed in the protocol, and doubles are not in its second version.
        let texts: [(&[u8], String); 3] = [
            (b"Error rate", spec.rate.to_string()),
            (b"Present error rate", format!("{:.3e}", present_rate)),
            (b"Seed", spec.seed().to_string()),
        ];
        call.reply_map(figures.len() + texts.len());
        for (name, figure) in figures {
            call.reply_bytes(name);
            call.reply_integer(figure);
        }
        for (name, text) in texts {
            call.reply_bytes(name);
            call.reply_bytes(text.as_bytes());
        }
        Ok(())
    }
}

pub struct Merge;

impl Command for Merge {
    const INFO: CommandInfo = CommandInfo::slow(c"cf.merge", -3, Access::Merge).told(
        c"O(n), where n is the size of all these filters",
        c"Adds to a filter what others have, which were reserved alike, with one seed",
    );

    fn run(call: Context<'_>, arguments: &[Argument<'_>]) -> Outcome {
        let [_, name, first, rest @ ..] = arguments else { return Err(Refusal::Arity) };
        let sources = [*first].into_iter().chain(rest.iter().copied());
        // What a filter takes over from itself changes nothing, and a key is open once.
        let sources: Vec<_> = sources.filter(|source| source.bytes() != name.bytes()).collect();
        let keys: Vec<_> = sources.iter().map(|source| call.open(*source, Mode::Read)).collect();
        let sets =
            sources.iter().zip(&keys).map(|(name, key)| target::needed(call, *name, key.value()));
        let sets: Vec<&Set> = sets.collect::<Result<_, _>>()?;
        let mut key = call.open(*name, Mode::Write);
        if matches!(key.value(), Value::Nothing) {
            let (first, others) = sets.split_first().ok_or(Refusal::Missing)?;
            limits::check_more(call, first, 0)?;
            let merged = merged(call, first, others)?;
            key.put(merged);
        } else {
            let set = target::needed(call, *name, key.value_mut())?;
            *set = merged(call, set, &sets)?;
        }
        call.changed(*name, c"cuckoo.merge");
        call.reply_ok();
        Ok(())
    }
}

/// A copy of a set with what others have: the destination takes all of it or nothing.
fn merged(call: Context<'_>, set: &Set, others: &[&Set]) -> Result<Set, Refusal> {
    let refusal = |apart: MergeError| Refusal::Text(apart.to_string());
    others.iter().try_for_each(|other| set.check_alike(other)).map_err(refusal)?;
    limits::check_copy(call, set.bytes())?;
    set.merged(others, limits::most_bytes(call)).map_err(refusal)
}

/// A filter forgets the number of deleted items, and gives back what it grew to and does not need any more: an empty
/// one at once, any other in parts, between commands. A primary tells its replicas of each part, by the cursor where it
/// began.
pub struct Compact;

impl Command for Compact {
    const INFO: CommandInfo = CommandInfo::slow(c"cf.compact", -2, Access::Update).told(
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
        let set = target::needed(call, *name, key.value_mut())
            .map_err(|refusal| refusal.or(c"ERR Cuckoo filter was not found"))?;
        let next = match cursor {
            Some(cursor) => set.shrink_part(cursor).next,
            None => {
                if set.begins_anew() {
                    limits::check_new(call, set.spec())?;
                }
                set.compact().map_err(|error| limits::not_made(error, set.spec()))?
            }
        };
        if let Some(cursor) = next.filter(|_| time::decides(call)) {
            call.schedule(*name, Work::Shrink(cursor));
        }
        call.changed(*name, c"cuckoo.compact");
        call.reply_ok();
        Ok(())
    }
}

/// What a primary tells.
pub struct Tick;

impl Command for Tick {
    const INFO: CommandInfo = CommandInfo::slow(c"cf.tick", 3, Access::Update).told(
        c"O(n), where n is the size of the filter",
        c"Begins a tick in a filter that forgets. Only primaries send this, to their replicas",
    );

    fn run(call: Context<'_>, arguments: &[Argument<'_>]) -> Outcome {
        let [_, name, to] = arguments else { return Err(Refusal::Arity) };
        if !call.flags().replayed() {
            return Err(Refusal::Message(
                c"ERR only a primary sends CF.TICK, to its replicas; time passes by itself",
            ));
        }
        let key = call.open(*name, Mode::Write);
        if let (Value::Set(set), Some(to)) = (key.value(), number(*to)) {
            time::begin(call, *name, set, to);
            call.changed(*name, c"cuckoo.tick");
        }
        call.reply_ok();
        Ok(())
    }
}
