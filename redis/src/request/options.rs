//! Arguments: numbers, and options with values.

use crate::server::command::Refusal;
use crate::server::config;
use crate::server::context::Argument;
use crate::set::spec::FilterSpec;
use koel::StableHash;
use koel::Window;
use std::ffi::CStr;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// Whether this is the token, in upper case or in lower.
pub fn is(argument: Argument<'_>, token: &str) -> bool {
    argument.bytes().eq_ignore_ascii_case(token.as_bytes())
}

/// Parses a number as the server does: without spaces or a sign that says nothing.
pub fn number<T: FromStr>(argument: Argument<'_>) -> Option<T> {
    let text = std::str::from_utf8(argument.bytes()).ok()?;
    if text.starts_with('+') { None } else { text.parse().ok() }
}

/// Parses a capacity, which has to be in the range that goes with the size of a bucket.
pub fn capacity(argument: Argument<'_>) -> Result<i64, Refusal> {
    number(argument).ok_or(Refusal::Message(c"ERR Bad capacity"))
}

pub fn check_capacity(
    capacity: i64,
    bucket_size: u8,
    out_of_range: &'static CStr,
) -> Result<u64, Refusal> {
    let capacity = u64::try_from(capacity).map_err(|_| Refusal::Message(out_of_range))?;
    let range = 2 * u64::from(bucket_size)..=FilterSpec::MAX_CAPACITY;
    if range.contains(&capacity) { Ok(capacity) } else { Err(Refusal::Message(out_of_range)) }
}

/// Parses the value of an option.
fn parsed<T: FromStr>(option: &str, value: Argument<'_>) -> Result<T, Refusal> {
    number(value).ok_or_else(|| Refusal::Text(format!("ERR Couldn't parse {option}")))
}

/// Parses the value of an option, which has to be in a range.
pub fn in_range(
    option: &str,
    value: Argument<'_>,
    range: RangeInclusive<i64>,
) -> Result<i64, Refusal> {
    let value = parsed(option, value)?;
    if range.contains(&value) {
        return Ok(value);
    }
    let (least, most) = range.into_inner();
    let text = format!("ERR {option}: value must be in the range [{least}, {most}]");
    Err(Refusal::Text(text))
}

pub const UNKNOWN: Refusal = Refusal::Message(c"ERR Unknown argument received");

/// The options of a filter that a command makes if the key has nothing. Settings replace those that are missing.
#[derive(Clone, Copy, Default)]
pub struct Wanted {
    pub capacity: Option<u64>,
    rate: Option<f64>,
    seed: Option<u64>,
    /// 0 for ever.
    forget_after: u64,
}

impl Wanted {
    /// Takes an option and its value from the beginning of the arguments, and returns the rest.
    pub fn take<'a>(
        &mut self,
        arguments: &'a [Argument<'a>],
    ) -> Result<&'a [Argument<'a>], Refusal> {
        let [name, rest @ ..] = arguments else { return Err(Refusal::Arity) };
        let known = ["ERROR_RATE", "SEED", "FORGETAFTER"];
        let option = known.into_iter().find(|known| is(*name, known)).ok_or(UNKNOWN)?;
        let [value, rest @ ..] = rest else { return Err(Refusal::Arity) };
        if option == "ERROR_RATE" {
            let rate = parsed(option, *value)?;
            if !(rate > 0.0 && rate < 1.0) {
                let error = c"ERR ERROR_RATE: value must be greater than 0 and less than 1";
                return Err(Refusal::Message(error));
            }
            self.rate = Some(rate);
        } else if option == "SEED" {
            self.seed = Some(parsed(option, *value)?);
        } else {
            let most = Window::MAX_SECONDS as i64;
            self.forget_after = in_range(option, *value, 1..=most)? as u64;
        }
        Ok(rest)
    }

    /// The description of the filter, with a seed of its own unless one was given.
    pub fn spec(&self) -> FilterSpec {
        let capacity = self.capacity.unwrap_or_else(config::capacity);
        let mut spec = FilterSpec::new(capacity, self.rate.unwrap_or_else(config::error_rate));
        spec.hasher = self.seed.map_or(spec.hasher, StableHash::with_seed);
        FilterSpec { forget_after: self.forget_after, ..spec }
    }
}
