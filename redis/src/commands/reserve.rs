//! `CF.RESERVE`: makes a set.

use crate::request::options::{Wanted, capacity, check_capacity, in_range, is};
use crate::request::target;
use crate::server::command::{About, Access, Command, Outcome, Refusal};
use crate::server::context::{Argument, Context};
use crate::server::key::{Mode, Value};
use crate::set::about;

pub struct Reserve;

impl Command for Reserve {
    const ABOUT: About = About::slow(c"cf.reserve", -3, Access::Create)
        .told(c"O(n), where n is the capacity", c"Creates a filter");

    fn run(call: Context<'_>, arguments: &[Argument<'_>]) -> Outcome {
        let [_, name, size, options @ ..] = arguments else { return Err(Refusal::Arity) };
        if !options.len().is_multiple_of(2) {
            return Err(Refusal::Arity);
        }
        let about = parse(*size, options)?;
        let mut key = call.open(*name, Mode::Write);
        match key.value() {
            Value::Nothing => {}
            Value::Other => return Err(Refusal::WrongType),
            Value::Set(_) => return Err(Refusal::Message(c"ERR item exists")),
        }
        target::make(call, *name, &mut key, about, c"cuckoo.reserve")?;
        call.reply_ok();
        Ok(())
    }
}

fn parse(size: Argument<'_>, mut options: &[Argument<'_>]) -> Result<about::About, Refusal> {
    let capacity = capacity(size)?;
    let mut wanted = Wanted::default();
    let (mut bucket_size, mut max_iterations, mut expansion) =
        (about::About::BUCKET_SIZE, about::About::MAX_ITERATIONS, about::About::EXPANSION);
    while let [name, value, rest @ ..] = options {
        options = rest;
        if is(*name, "BUCKETSIZE") {
            let errors = (
                c"ERR Couldn't parse BUCKETSIZE",
                c"ERR BUCKETSIZE: value must be in the range [1, 255]",
            );
            bucket_size = in_range(*value, 1..=255, errors).map(|size: i64| size as u8)?;
        } else if is(*name, "MAXITERATIONS") {
            let errors = (
                c"ERR Couldn't parse MAXITERATIONS",
                c"ERR MAXITERATIONS: value must be in the range [1, 65535]",
            );
            max_iterations = in_range(*value, 1..=65_535, errors).map(|most: i64| most as u16)?;
        } else if is(*name, "EXPANSION") {
            let errors = (
                c"ERR Couldn't parse EXPANSION",
                c"ERR EXPANSION: value must be in the range [0, 32768]",
            );
            let factor = in_range(*value, 0..=32_768, errors).map(|factor: i64| factor as u16)?;
            // RedisBloom grows by powers of two, and tells them.
            expansion = if factor == 0 { 0 } else { factor.next_power_of_two() };
        } else {
            wanted.take(&[*name, *value])?;
        }
    }
    let error = c"ERR Capacity must be in the range [2 * BUCKETSIZE, 1073741824]";
    wanted.capacity = Some(check_capacity(capacity, bucket_size, error)?);
    Ok(about::About { bucket_size, max_iterations, expansion, ..wanted.about() })
}
