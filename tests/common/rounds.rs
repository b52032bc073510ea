//! The choice between short and long test runs.

#![allow(dead_code)]

/// Returns `long` if `KOEL_LONG_TESTS` is in the environment, and `short` otherwise.
///
/// A short run checks the same things, with few layouts and items. A long run checks every layout,
/// and finds rare errors.
pub fn rounds<T>(short: T, long: T) -> T {
    if std::env::var_os("KOEL_LONG_TESTS").is_some() { long } else { short }
}

/// Returns the number of rounds in `KOEL_ROUNDS`, or else `rounds`.
pub fn chosen_rounds(rounds: u64) -> u64 {
    number("KOEL_ROUNDS").unwrap_or(rounds)
}

/// Returns a number from the environment.
pub fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|number| number.parse().expect("a number"))
}
