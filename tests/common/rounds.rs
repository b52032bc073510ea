//! How long a run of the tests takes.

/// How often something is done: `long` where `KOEL_LONG_TESTS` is in the environment, and else `short`.
///
/// A short run looks at the same, in every layout; the long one finds what is rare.
pub fn rounds<T>(short: T, long: T) -> T {
    if std::env::var_os("KOEL_LONG_TESTS").is_some() { long } else { short }
}
