//! Rules, each beside the mistake that its models have to notice.
//!
//! `rule!("name", right, mistake)` is `right`. Only under loom can it be anything else: a process with
//! the name of a rule in `KOEL_BROKEN_RULE` makes the mistake, wherever it stands, and a model has to fail then. So
//! one compilation has all mistakes, and a rule that moves takes its proof along. `loom-tests` lists which model
//! notices which mistake, and with which message; a rule that is not listed, and a listed one that there
//! is not, are errors there.
//!
//! The name says what is wrong where the rule is broken. A mistake that is more than a line is a function
//! among the `mistakes` of its room, which exist under loom only.

/// The environment variable with the name of the rule that is broken in this process.
#[cfg(loom)]
pub const BROKEN: &str = "KOEL_BROKEN_RULE";

#[cfg(not(loom))]
macro_rules! rule {
    // Where a mistake is to do something, what is right is nothing at all.
    ($name:literal, (), $mistake:expr $(,)?) => {};
    ($name:literal, $right:expr, $mistake:expr $(,)?) => {
        $right
    };
}

#[cfg(loom)]
macro_rules! rule {
    ($name:literal, $right:expr, $mistake:expr $(,)?) => {
        if crate::rule::is_broken($name) { $mistake } else { $right }
    };
}

pub(crate) use rule;

/// Whether this process breaks the rule of that name.
#[cfg(loom)]
pub fn is_broken(name: &str) -> bool {
    static BROKEN_HERE: std::sync::OnceLock<Option<String>> = std::sync::OnceLock::new();
    BROKEN_HERE.get_or_init(|| std::env::var(BROKEN).ok()).as_deref() == Some(name)
}
