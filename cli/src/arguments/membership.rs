//! The arguments of `koel query`, `koel add` and `koel forget`.

use crate::arguments::common::{Files, Input, Making, Output, Reporting, Waiting};
use clap::{Args, ValueHint};
use std::path::PathBuf;

/// Write the lines that are in a state, or with --invert those that are not
#[derive(Args)]
#[command(after_long_help = QUERY_EXAMPLES)]
pub struct Query {
    /// A state saved by dedup or add
    #[arg(value_hint = ValueHint::FilePath)]
    pub state: PathBuf,

    #[command(flatten)]
    pub files: Files,

    /// Write the lines that are not in the state
    #[arg(short = 'v', long, help_heading = "Output")]
    pub invert: bool,

    #[command(flatten)]
    pub output: Output,

    #[command(flatten)]
    pub input: Input,
}

const QUERY_EXAMPLES: &str = "\
Examples:
  koel query seen.koel --invert candidates.txt
      Write the lines of candidates.txt that have never been seen.

  if echo \"$url\" | koel query -q seen.koel > /dev/null; then echo seen; fi
      Test a single line.

Exit codes: 0 if a line was selected, 1 if none was, 2 after an error.";

/// Add lines to a state without writing them
///
/// The state is created if it does not exist.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  koel add seen.koel everything-so-far.txt
      Start with lines that are already known.")]
pub struct Add {
    /// The state
    #[arg(value_hint = ValueHint::FilePath)]
    pub state: PathBuf,

    #[command(flatten)]
    pub files: Files,

    #[command(flatten)]
    pub making: Making,

    #[command(flatten)]
    pub waiting: Waiting,

    #[command(flatten)]
    pub reporting: Reporting,

    #[command(flatten)]
    pub input: Input,
}

/// Remove lines from a state, so that they are new again
///
/// This is for lines that should be processed again, such as a URL that could not be fetched.
///
/// Remove only lines that were added. Forgetting a line that was never added may, with a
/// probability equal to the rate of the state, remove another line with the same fingerprint.
#[derive(Args)]
#[command(after_long_help = "\
Exit codes: 0 if a line was in the state, 1 if none was, 2 after an error.")]
pub struct Forget {
    /// The state
    #[arg(value_hint = ValueHint::FilePath)]
    pub state: PathBuf,

    #[command(flatten)]
    pub files: Files,

    #[command(flatten)]
    pub waiting: Waiting,

    #[command(flatten)]
    pub reporting: Reporting,

    #[command(flatten)]
    pub input: Input,
}
