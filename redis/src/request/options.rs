//! Arguments: numbers, and options with values.

use crate::server::command::Refusal;
use crate::server::context::Argument;
use crate::set::about::About;
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
    let range = 2 * u64::from(bucket_size)..=About::MAX_CAPACITY;
    if range.contains(&capacity) { Ok(capacity) } else { Err(Refusal::Message(out_of_range)) }
}

/// Parses the value of an option, which has to be in a range.
pub fn in_range<T: FromStr + PartialOrd>(
    argument: Argument<'_>,
    range: RangeInclusive<T>,
    (not_a_number, out_of_range): (&'static CStr, &'static CStr),
) -> Result<T, Refusal> {
    let value = number(argument).ok_or(Refusal::Message(not_a_number))?;
    if range.contains(&value) { Ok(value) } else { Err(Refusal::Message(out_of_range)) }
}
