//! Errors, in words for the user of the command.

use signal_hook::consts::{SIGHUP, SIGINT};
use std::fmt::Display;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// An error that makes the command exit with code 2.
#[derive(Clone, Debug)]
pub struct Failure(String);

impl Failure {
    pub fn new(message: impl Display) -> Self {
        Failure(message.to_string())
    }

    /// Creates the failure of an operation on something, from an error or from words.
    pub fn of(what: impl Display, why: impl Display) -> Self {
        Failure(format!("{what}: {}", without_numbers(why)))
    }

    /// Creates the failure of an operation on a file.
    pub fn about(path: &Path, why: impl Display) -> Self {
        Failure::of(path.display(), why)
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// How a run ends.
#[derive(Clone, Debug)]
pub enum End {
    /// The input has ended, and every chunk has been written.
    Reached,
    /// As many lines have been written as were asked for.
    Enough,
    Signal(i32),
    /// The reader of the output has closed it.
    BrokenPipe,
    Failed(Failure),
}

impl End {
    /// Returns the name of this end in summaries.
    pub fn name(&self) -> &'static str {
        match self {
            End::Reached => "complete",
            End::Enough => "limit",
            End::Signal(SIGINT) => "SIGINT",
            End::Signal(SIGHUP) => "SIGHUP",
            End::Signal(_) => "SIGTERM",
            End::BrokenPipe => "broken pipe",
            End::Failed(_) => "failed",
        }
    }

    /// Whether the run came to its end undisturbed.
    pub fn is_whole(&self) -> bool {
        matches!(self, End::Reached | End::Enough)
    }

    /// Whether this is how a run ends that also has the other reason to end.
    pub fn overtakes(&self, other: &End) -> bool {
        let rank = |end: &End| match end {
            End::Reached => 0,
            End::Signal(_) => 1,
            End::Enough => 2,
            End::BrokenPipe | End::Failed(_) => 3,
        };
        rank(self) > rank(other)
    }
}

impl From<Failure> for End {
    fn from(failure: Failure) -> Self {
        End::Failed(failure)
    }
}

/// Returns the text of an error without the numbers of the system's errors, which mean nothing to most
/// users.
pub fn without_numbers(error: impl Display) -> String {
    let mut text = error.to_string();
    while let Some(start) = text.find(" (os error ")
        && let Some(length) = text[start..].find(')')
    {
        text.replace_range(start..=start + length, "");
    }
    text
}

/// Locks a mutex, even if a thread panicked while it held it: the run ends then anyway.
pub fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
