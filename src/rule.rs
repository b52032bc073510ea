//! Rules, each beside the mistake that a model has to detect.
//!
//! `rule!("name", right, mistake)` evaluates to `right`. Only under loom can it evaluate to `mistake`: if the
//! environment variable `KOEL_BROKEN_RULE` names the rule, the process makes the mistake wherever the rule stands, and
//! a model has to fail. So one compilation contains all mistakes, and a rule that moves takes its proof along.
//! `loom-tests` lists which model detects which mistake, and the message with which the model fails. A rule that is not
//! listed, and a listed rule that does not exist, are errors there.
//!
//! The name of a rule says what is wrong when the rule is broken. A mistake of more than a line is a function in a
//! module `mistakes` of its folder, which exists under loom only.

/// The environment variable with the name of the rule that is broken in this process.
#[cfg(loom)]
pub const BROKEN: &str = "KOEL_BROKEN_RULE";

#[cfg(not(loom))]
macro_rules! rule {
    // If the mistake is an extra action, the right thing is to do nothing.
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
