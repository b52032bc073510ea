//! The arguments of `koel query`, `koel add`, `koel merge` and `koel forget`.

use crate::arguments::common::{Files, Input, Making, Output, Reporting, Waiting};
use crate::arguments::values::memory;
use clap::{Args, ValueHint};
use std::path::PathBuf;

/// Write the lines that are in a state, or those that are not
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

Exit status:
  0  a line was selected
  1  none was
  2  an error";

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

/// Put the lines of several states into one
///
/// OUT gets the lines of each STATE that it does not have. If there is no such file, it begins as a copy of
/// the first STATE. Only OUT is changed, and only when all have been read.
///
/// The states have to be made with one --seed, and alike: for the same --rate, with the same --capacity or
/// all without, with the same --url or --ignore-case, and with one --forget-after or none. What does not fit
/// is refused with the reason. In states that forget, a line stays as long as it would in the one that saw it
/// last.
///
/// The rate of OUT is at most the sum of the rates of all, which may be higher than planned: that is reported.
/// A signal ends this at once, and leaves OUT as it was.
#[derive(Args)]
#[command(after_long_help = MERGE_EXAMPLES)]
pub struct Merge {
    /// The state that gets all lines; it is created if it does not exist
    #[arg(value_name = "OUT", value_hint = ValueHint::FilePath)]
    pub state: PathBuf,

    /// The states to merge into it, or filters that a Redis or Valkey server dumped
    ///
    /// A dump is a file of the chunks that CF.SCANDUMP returned, one after the other, of a filter that grows.
    #[arg(value_name = "STATE", required = true, value_hint = ValueHint::FilePath)]
    pub states: Vec<PathBuf>,

    /// Memory limit for OUT, at least 256K; it is an error to need more
    #[arg(long, value_name = "SIZE", value_parser = memory, allow_hyphen_values = true)]
    pub max_memory: Option<u64>,

    #[command(flatten)]
    pub waiting: Waiting,

    /// Print no summary
    #[arg(short, long)]
    pub quiet: bool,

    /// Print the summary as JSON
    ///
    /// The summary is one object on one line of standard error. Its fields are states, added, known, rate,
    /// rate_exceeded, memory_bytes, state, unchanged and seconds.
    #[arg(long)]
    pub json: bool,
}

const MERGE_EXAMPLES: &str = "\
Examples:
  koel dedup --state monday.koel --seed 7 monday.txt > new-on-monday.txt
  koel dedup --state tuesday.koel --seed 7 tuesday.txt > new-on-tuesday.txt
  koel merge both.koel monday.koel tuesday.koel
      Workers that crawled apart know together what either has seen.";

/// Remove lines from a state, so that they are new again
///
/// This is for lines that should be processed again, such as a URL that could not be fetched.
///
/// Remove only lines that were added. Forgetting a line that was never added may, with a
/// probability equal to the rate of the state, remove another line with the same fingerprint.
///
/// In a state that has grown far beyond its plan, the oldest lines are too old to be forgotten: they stay seen, and the
/// summary says how many (kept in the JSON). So give a state that lines are to be removed from the capacity that it
/// will need.
#[derive(Args)]
#[command(after_long_help = "\
Exit status:
  0  a line was in the state
  1  none was
  2  an error")]
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
