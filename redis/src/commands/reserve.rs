//! `CF.RESERVE`: makes a set.

use crate::request::options::{capacity, check_capacity, in_range, is, number};
use crate::request::target;
use crate::server::command::{About, Access, Command, Kind, Outcome, Parameter, Refusal};
use crate::server::config;
use crate::server::context::{Argument, Context};
use crate::server::key::{Mode, Value};
use crate::set::about;
use koel::StableHash;
use koel_state::window::Window;

pub struct Reserve;

impl Command for Reserve {
    const ABOUT: About = About {
        name: c"cf.reserve",
        summary: c"Creates a filter",
        complexity: c"O(n), where n is the capacity",
        arity: -3,
        access: Access::Create,
        fast: false,
        parameters: &[
            Parameter::KEY,
            Parameter::new(c"capacity", Kind::Integer),
            Parameter::option(c"bucketsize", c"BUCKETSIZE", Kind::Integer),
            Parameter::option(c"maxiterations", c"MAXITERATIONS", Kind::Integer),
            Parameter::option(c"expansion", c"EXPANSION", Kind::Integer),
            Parameter::option(c"rate", c"ERROR_RATE", Kind::Double),
            Parameter::option(c"seed", c"SEED", Kind::Integer),
            Parameter::option(c"seconds", c"FORGETAFTER", Kind::Integer),
        ],
    };

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
        target::make(call, *name, &mut key, about)?;
        call.reply_ok();
        Ok(())
    }
}

/// Options that are not known have no effect, as in RedisBloom.
fn parse(size: Argument<'_>, options: &[Argument<'_>]) -> Result<about::About, Refusal> {
    let capacity = capacity(size)?;
    let mut about = about::About::new(0, config::error_rate());
    for option in options.chunks_exact(2) {
        let [name, value] = [option[0], option[1]];
        if is(name, "BUCKETSIZE") {
            let errors = (
                c"ERR Couldn't parse BUCKETSIZE",
                c"ERR BUCKETSIZE: value must be in the range [1, 255]",
            );
            about.bucket_size = in_range(value, 1..=255, errors).map(|size: i64| size as u8)?;
        } else if is(name, "MAXITERATIONS") {
            let errors = (
                c"ERR Couldn't parse MAXITERATIONS",
                c"ERR MAXITERATIONS: value must be in the range [1, 65535]",
            );
            about.max_iterations =
                in_range(value, 1..=65_535, errors).map(|most: i64| most as u16)?;
        } else if is(name, "EXPANSION") {
            let errors = (
                c"ERR Couldn't parse EXPANSION",
                c"ERR EXPANSION: value must be in the range [0, 32768]",
            );
            let factor = in_range(value, 0..=32_768, errors).map(|factor: i64| factor as u16)?;
            // RedisBloom grows by powers of two, and tells them.
            about.expansion = if factor == 0 { 0 } else { factor.next_power_of_two() };
        } else if is(name, "ERROR_RATE") {
            let rate = number(value).ok_or(Refusal::Message(c"ERR Couldn't parse ERROR_RATE"))?;
            if !(rate > 0.0 && rate < 1.0) {
                let error = c"ERR ERROR_RATE: value must be greater than 0 and less than 1";
                return Err(Refusal::Message(error));
            }
            about.rate = rate;
        } else if is(name, "SEED") {
            let seed = number(value).ok_or(Refusal::Message(c"ERR Couldn't parse SEED"))?;
            about.hasher = StableHash::with_seed(seed);
        } else if is(name, "FORGETAFTER") {
            let errors = (
                c"ERR Couldn't parse FORGETAFTER",
                c"ERR FORGETAFTER: value must be in the range [1, 3162240000]",
            );
            about.forget_after = in_range(value, 1..=Window::MAX_SECONDS, errors)?;
        }
    }
    let error = c"ERR Capacity must be in the range [2 * BUCKETSIZE, 1073741824]";
    about.capacity = check_capacity(capacity, about.bucket_size, error)?;
    Ok(about)
}
