//! The set of a key: found, or made.

use crate::request::options::Wanted;
use crate::request::{limits, time};
use crate::server::command::Refusal;
use crate::server::context::{Argument, Context};
use crate::server::key::{Key, Value};
use crate::set::Set;
use crate::set::spec::FilterSpec;
use koel::Prehashed;
use std::borrow::Borrow;
use std::ffi::CStr;

/// The set of a key that a command needs, or changes.
pub fn needed<S: Borrow<Set>>(
    call: Context<'_>,
    name: Argument<'_>,
    value: Value<S>,
) -> Result<S, Refusal> {
    match value {
        Value::Nothing => Err(Refusal::Missing),
        Value::Other => Err(Refusal::WrongType),
        Value::Set(set) if set.borrow().is_half() => Err(Refusal::Half),
        Value::Set(set) => {
            time::pass(call, name, set.borrow());
            Ok(set)
        }
    }
}

/// The set that a command asks. Any other key has no items.
pub fn asked<'k>(
    call: Context<'_>,
    name: Argument<'_>,
    key: &'k Key<'_>,
) -> Result<Option<&'k Set>, Refusal> {
    match needed(call, name, key.value()) {
        Ok(set) => Ok(Some(set)),
        Err(Refusal::Half) => Err(Refusal::Half),
        Err(_) => Ok(None),
    }
}

/// The set that a command adds to. If the key has nothing, a set with these options is made.
pub fn added_to<'k>(
    call: Context<'_>,
    name: Argument<'_>,
    key: &'k mut Key<'_>,
    wanted: Wanted,
) -> Result<&'k mut Set, Refusal> {
    if matches!(key.value(), Value::Nothing) {
        make(call, name, key, wanted.spec(), c"cuckoo.create")?;
    }
    needed(call, name, key.value_mut())
}

/// The items that are done at once, with their hashes and answers on the stack.
pub const BATCH: usize = 128;

/// The hashes of the items, up to a maximum number.
pub fn hashes(set: &Set, items: &[Argument<'_>]) -> [Prehashed; BATCH] {
    let mut hashes = [Prehashed(0); BATCH];
    for (hash, item) in hashes.iter_mut().zip(items) {
        *hash = set.hash(item.bytes());
    }
    hashes
}

/// Makes the set of a key that has nothing. Replicas make the same one.
pub fn make(
    call: Context<'_>,
    name: Argument<'_>,
    key: &mut Key<'_>,
    spec: FilterSpec,
    event: &CStr,
) -> Result<(), Refusal> {
    limits::check_new(call, &spec)?;
    // Before anything is replicated.
    let set = Set::new(spec).map_err(|error| limits::not_made(error, &spec))?;
    let set = &*key.put(set);
    let text = |value: &dyn ToString| value.to_string().into_bytes();
    let FilterSpec { capacity, rate, bucket_size, max_iterations, expansion, .. } = spec;
    let values: [(&[u8], Vec<u8>); 6] = [
        (b"BUCKETSIZE", text(&bucket_size)),
        (b"MAXITERATIONS", text(&max_iterations)),
        (b"EXPANSION", text(&expansion)),
        (b"ERROR_RATE", text(&rate)),
        (b"SEED", text(&spec.seed())),
        (b"FORGETAFTER", text(&spec.forget_after)),
    ];
    let capacity = text(&capacity);
    let mut arguments = vec![name.bytes(), &capacity];
    let given = values.len() - usize::from(spec.forget_after == 0);
    values[..given].iter().for_each(|(option, value)| arguments.extend([*option, value]));
    call.changed_as(name, event, c"CF.RESERVE", &arguments);
    time::give_number(call, name, set);
    Ok(())
}
