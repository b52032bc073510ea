//! What went wrong, in words for whoever typed the command.

use std::fmt::Display;
use std::io;
use std::path::Path;

/// Why the command could not do what it was asked: exit code 2.
#[derive(Clone, Debug)]
pub struct Failure(String);

impl Failure {
    pub fn new(message: impl Display) -> Self {
        Failure(message.to_string())
    }

    /// An error of the system, with what it concerns.
    pub fn of(what: impl Display, error: &io::Error) -> Self {
        Failure(format!("{what}: {}", plain(error)))
    }

    pub fn about(path: &Path, error: &io::Error) -> Self {
        Failure::of(path.display(), error)
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// What ends a run early.
#[derive(Debug)]
pub enum Trouble {
    /// Nobody reads the output any more.
    BrokenPipe,
    Failed(Failure),
}

impl From<Failure> for Trouble {
    fn from(failure: Failure) -> Self {
        Trouble::Failed(failure)
    }
}

/// The error without its number, which says nothing to most.
fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    match text.find(" (os error ") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}
