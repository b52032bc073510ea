//! The choice between short and long test runs.

/// Returns `long` if `KOEL_LONG_TESTS` is in the environment, and `short` otherwise.
///
/// A short run checks the same things, with few layouts and items. A long run checks every layout,
/// and finds rare errors.
pub fn rounds<T>(short: T, long: T) -> T {
    if std::env::var_os("KOEL_LONG_TESTS").is_some() { long } else { short }
}
