//! The arguments of the commands that read no lines: `compact`, `info`, `sample` and `generate`.

use crate::arguments::common::Waiting;
use crate::arguments::values::number;
use clap::{Args, Subcommand, ValueHint};
use clap_complete::Shell;
use std::path::PathBuf;

/// Give back the memory that a state does not need any more
///
/// This makes a state from which most lines were removed about as small as one that has never had more lines (but not
/// smaller than it began), in memory and as a file. In a state that forgets, lines that are due go first; all others
/// stay.
///
/// A state that cannot be made smaller is left as it is. This is for lines that have gone for good: a state that gets
/// as many again has to grow again. If one of several states cannot be used, that is reported, and the others are
/// compacted. A signal ends this at once, and leaves the state as it was.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  koel forget seen.koel gone.txt
  koel compact seen.koel
      Forget many lines for good, and give back the memory that they took.")]
pub struct Compact {
    /// The states
    #[arg(id = "state", value_name = "STATE", required = true, value_hint = ValueHint::FilePath)]
    pub states: Vec<PathBuf>,

    #[command(flatten)]
    pub waiting: Waiting,

    /// Print no summary
    #[arg(short, long)]
    pub quiet: bool,

    /// Print the summaries as JSON
    ///
    /// The summary of each state is one object on one line of standard error. Its fields are known, rate,
    /// memory_bytes, memory_bytes_before, state, unchanged and seconds.
    #[arg(long)]
    pub json: bool,
}

/// Show what a state contains
#[derive(Args)]
pub struct Info {
    /// A state, or another file saved by the koel crate
    #[arg(value_hint = ValueHint::FilePath)]
    pub state: PathBuf,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Write a synthetic crawl to try the other commands on
///
/// The lines are URLs of about 70 bytes, half of them repeated. The same number of lines always gives
/// the same crawl.
#[derive(Args)]
pub struct Sample {
    /// Number of lines to write
    #[arg(value_parser = number)]
    pub lines: u64,
}

/// Generate manual pages and shell completions
#[derive(Args)]
pub struct Generate {
    #[command(subcommand)]
    pub what: Generated,
}

#[derive(Subcommand)]
pub enum Generated {
    /// Write a manual page for each command into FOLDER
    Man {
        #[arg(value_hint = ValueHint::DirPath)]
        folder: PathBuf,
    },
    /// Write the completions for a shell to standard output
    Completions { shell: Shell },
}
