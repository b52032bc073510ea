//! The command line: what clap parses, and the help it prints.
//!
//! Doc comments in this folder are the text of `--help` and of the manual pages. They address the
//! user of the command.

pub mod common;
pub mod dedup;
pub mod membership;
pub mod tools;
pub mod urls;
pub mod values;

use crate::arguments::dedup::Dedup;
use crate::arguments::membership::{Add, Forget, Merge, Query};
use crate::arguments::tools::{Compact, Generate, Info, Sample};
use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(
    name = "koel",
    version,
    about = "Find the lines of a stream that have not been seen before",
    long_about = "Find the lines of a stream that have not been seen before.\n\n\
        koel stores a fingerprint of each line instead of the line itself, in memory and, with a \
        state, in a file between runs. A fingerprint takes five to ten bytes, however long the line \
        is.\n\n\
        Two different lines may share a fingerprint. The second line is then taken for one that has \
        been seen. By default, that happens to at most one new line in a million; use --rate to \
        choose another rate. At the end of a run, 'koel dedup' reports how many lines it may have \
        dropped by mistake.",
    after_long_help = AFTER_HELP,
    max_term_width = 80,
    subcommand_required = true,
    arg_required_else_help = true
)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Command,
}

/// Text after the options.
const AFTER_HELP: &str = "\
Exit status:
  0    success; for query, at least one line was selected; for forget, at least
       one line was in the state
  1    query and forget only: no line was selected, or none was in the state
  2    an error, which is reported on standard error, even if it concerns only
       one of several files
  129  ended by SIGHUP, as a shell reports it
  130  ended by SIGINT
  143  ended by SIGTERM

  After a signal, the state has been saved unless standard error says
  otherwise.

Input:
  Files whose names end in .gz or .zst are decompressed, and so is standard
  input, or any other file, that begins like a gzip or zstd file. If FILE is -,
  or if no FILE is given, koel reads standard input.

Files:
  STATE               the lines that were seen, which --state and many commands
                      name
  .STATE.koel-claim   is locked by the process that may change STATE
  .STATE.koel-output  notes, during a run of dedup with --output or --output-dir,
                      how much of the output STATE has

Environment:
  TMPDIR  the folder of the temporary files of --lossless";

#[derive(Subcommand)]
pub enum Command {
    Dedup(Dedup),
    Query(Query),
    Add(Add),
    Merge(Merge),
    Forget(Forget),
    Compact(Compact),
    Info(Info),
    Sample(Sample),
    Generate(Generate),
}
