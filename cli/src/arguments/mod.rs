//! What can be asked for, and the help that tells of it.

pub mod values;

use clap::{Args, Parser, Subcommand, ValueHint};
use clap_complete::Shell;
use std::path::PathBuf;
use values::{line_size, number, rate, seconds, size, threads};

#[derive(Parser)]
#[command(
    name = "koel",
    version,
    about = "Finds the lines that were not seen before, in streams of any length",
    long_about = "Finds the lines that were not seen before, in streams of any length.\n\n\
        koel keeps a fingerprint of each line instead of the line, in memory and, if told to, in a file \
        between runs: five to ten bytes a line, however long the lines are. Two lines may have the same \
        fingerprint, and then the second is taken for one that was seen. That happens to at most one new line in a \
        million unless another --rate is asked for, and dedup says how many lines it may have cost.",
    after_long_help = EXIT_CODES,
    max_term_width = 100,
    subcommand_required = true,
    arg_required_else_help = true
)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Command,
}

const EXIT_CODES: &str = "\
Exit codes:
  0    it is done; of query, some lines were selected; of forget, some were there
  1    of query and forget only: there were none
  2    something went wrong, and standard error says what;
       also if only one of several files could not be read
  130  ended by SIGINT, as a shell tells it: a state has been saved,
       unless standard error says otherwise
  143  the same by SIGTERM
  129  the same by SIGHUP

Compressed files are read as what is in them if their names end in .gz or .zst. FILE may be - for standard \
input, and is that if there is none.";

#[derive(Subcommand)]
pub enum Command {
    Dedup(Dedup),
    Query(Query),
    Add(Add),
    Forget(Forget),
    Info(Info),
    Bench(Bench),
    Sample(Sample),
    Generate(Generate),
}

/// Writes each line the first time it is seen
///
/// Writes each line the first time it is seen, in the order of the input, as it came. With --state it remembers
/// the lines for the next run.
#[derive(Args)]
#[command(after_long_help = DEDUP_EXAMPLES)]
pub struct Dedup {
    #[command(flatten)]
    pub files: Files,

    /// Loads what was seen from FILE if it is there, and saves it there
    ///
    /// It is saved at the end, at SIGINT and SIGTERM, and every --checkpoint seconds; what is saved as seen has been
    /// written. After a kill that leaves no time for that, or a power cut, the lines of the last
    /// --checkpoint seconds may be written again. One process at a time can use it. With --count or --repeated it is only
    /// read, since new lines are not written then.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "State")]
    pub state: Option<PathBuf>,

    /// How often the state is saved while lines go on; 0 for only at the end
    ///
    /// Lines wait while it is saved. If that is slow, it is done less often, so that it takes at most a tenth of the time.
    #[arg(
        long,
        value_name = "SECONDS",
        default_value = "60",
        value_parser = seconds,
        requires = "state",
        help_heading = "State"
    )]
    pub checkpoint: f64,

    #[command(flatten)]
    pub made: Made,

    /// Writes the lines that were seen before instead, each time
    ///
    /// It writes just what is left out otherwise. To have each of them once: koel dedup -d FILE | koel dedup
    #[arg(short = 'd', long, help_heading = "Output")]
    pub repeated: bool,

    /// Makes sure that no line is dropped: checks those that seem to be repeated in a second pass
    ///
    /// Lines that seem to be repeated are put aside in a temporary file (in TMPDIR), and compared with those that
    /// were written when the input ends. What had been dropped by mistake is written then, after all others. It takes
    /// disk space for all lines, and about four times as long.
    #[arg(long, conflicts_with = "state", help_heading = "Output")]
    pub lossless: bool,

    #[command(flatten)]
    pub output: Output,

    /// Reads so many lines of a made-up crawl, half of them repeated, instead of files
    #[arg(long, value_name = "LINES", value_parser = number, conflicts_with = "files", help_heading = "Input")]
    pub sample: Option<u64>,

    #[command(flatten)]
    pub input: Input,
}

const DEDUP_EXAMPLES: &str = "\
Examples:
  koel dedup access.log > unique.log
      each line once

  koel dedup --url --state urls.koel day-*.gz > new-urls.txt
      the URLs of today that no earlier run has written

  koel dedup --lossless --output unique.txt big.txt.zst
      each line once, and none dropped by mistake

  koel dedup --count access.log
      how many different lines there are
";

/// Writes the lines that were seen, or with --invert those that were not
#[derive(Args)]
#[command(after_long_help = QUERY_EXAMPLES)]
pub struct Query {
    /// The state, as dedup or add have saved it
    #[arg(value_hint = ValueHint::FilePath)]
    pub state: PathBuf,

    #[command(flatten)]
    pub files: Files,

    /// Writes the lines that were not seen
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
      what of candidates.txt was never seen

  if echo \"$url\" | koel query -q seen.koel > /dev/null; then echo seen; fi

Exit codes: 0 if there are such lines, 1 if there are none, 2 if something went wrong.";

/// Adds lines to a state and writes nothing
///
/// Adds lines to a state and writes nothing. A state that is not there is made.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  koel add seen.koel everything-so-far.txt
      begins with lines that are known already")]
pub struct Add {
    /// The state
    #[arg(value_hint = ValueHint::FilePath)]
    pub state: PathBuf,

    #[command(flatten)]
    pub files: Files,

    #[command(flatten)]
    pub made: Made,

    #[command(flatten)]
    pub telling: Telling,

    #[command(flatten)]
    pub input: Input,
}

/// Takes lines out of a state, so that they will be new again
///
/// Takes lines out of a state, so that they will be new again, as a URL whose fetch has failed. Take out only what is
/// in: a line that never was may, at the rate of the state, take away another that happens to look the same.
#[derive(Args)]
#[command(after_long_help = "\
Exit codes: 0 if any of the lines were there, 1 if none was, 2 if something went wrong.")]
pub struct Forget {
    /// The state
    #[arg(value_hint = ValueHint::FilePath)]
    pub state: PathBuf,

    #[command(flatten)]
    pub files: Files,

    #[command(flatten)]
    pub telling: Telling,

    #[command(flatten)]
    pub input: Input,
}

/// Says what is in a state
#[derive(Args)]
pub struct Info {
    /// The state, or another file of koel's
    #[arg(value_hint = ValueHint::FilePath)]
    pub state: PathBuf,

    /// As JSON
    #[arg(long)]
    pub json: bool,
}

/// Measures what this machine does, by threads and kinds of work
///
/// Measures what this machine does, by threads and kinds of work: million operations a second of filters in memory,
/// without reading or writing lines. Checks all answers on the way. Takes some 20 seconds for 32M and
/// two numbers of threads, longer where others are at work.
#[derive(Args)]
pub struct Bench {
    /// Numbers of threads, with commas between [default: 1, 2, 4 … up to the number of cores]
    #[arg(long, value_delimiter = ',', value_parser = threads)]
    pub threads: Vec<usize>,

    /// How large the table is, from 64K on; a filter that grows takes up to twice as much
    #[arg(long, default_value = "32M", value_parser = size)]
    pub size: u64,

    /// Draws the figures into FILE, as SVG
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub svg: Option<PathBuf>,
}

/// Writes a made-up crawl, to try the others on
///
/// Writes a made-up crawl: URLs of some 70 bytes, half of them repeated. The same number of lines is always the same
/// crawl.
#[derive(Args)]
pub struct Sample {
    /// How many lines
    #[arg(value_parser = number)]
    pub lines: u64,
}

/// Writes manual pages and shell completions
#[derive(Args)]
pub struct Generate {
    #[command(subcommand)]
    pub what: Generated,
}

#[derive(Subcommand)]
pub enum Generated {
    /// Writes a manual page for each command into FOLDER
    Man {
        #[arg(value_hint = ValueHint::DirPath)]
        folder: PathBuf,
    },
    /// Writes the completions of a shell to standard output
    Completions { shell: Shell },
}

/// Where lines come from.
#[derive(Args)]
pub struct Files {
    /// Files to read; - is standard input
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub files: Vec<PathBuf>,
}

/// How they are read.
#[derive(Args)]
#[command(next_help_heading = "Input")]
pub struct Input {
    /// Lines end in a zero byte instead of a newline, as those of find -print0
    #[arg(short, long)]
    pub zero: bool,

    /// The longest line that is taken; one that is longer is an error
    #[arg(long, value_name = "SIZE", default_value = "1M", value_parser = line_size)]
    pub max_line: usize,

    /// Threads that compare lines, beside one that reads and one that writes [default: the number of cores]
    #[arg(long, value_parser = threads)]
    pub threads: Option<usize>,
}

/// How a state is made, if it is not there yet.
#[derive(Args)]
#[command(next_help_heading = "What is kept of a line")]
pub struct Made {
    /// How often a new line may be taken for one that was seen, at most, at the end of the run [default: 1e-6]
    ///
    /// Fewer bits are kept of a line if it may be higher: at 1e-4 two thirds, at 0.01 half of what the default takes.
    #[arg(long, value_name = "P", value_parser = rate)]
    pub rate: Option<f64>,

    /// How many different lines are expected; more are taken as well
    ///
    /// Saves the time, and up to half of the memory, that growing takes. Without it, dedup begins with room for half of
    /// the lines that its files may have, but with 60 MB at most, or with 320 KB if there is a state or no telling.
    #[arg(long, value_name = "N", value_parser = number)]
    pub capacity: Option<u64>,

    /// The most memory that what was seen may take; a line that would take more is an error
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub max_memory: Option<u64>,

    /// Compares URLs as a crawler would
    ///
    /// URLs of http, https, ftp, ws and wss, by the URL standard of the WHATWG: how scheme and host are written, default
    /// ports, dot segments, and escapes that are not needed make no difference, nor do fragments, or a ? that nothing
    /// follows. Lines are written as they came. All else is compared as it is. A state remembers how its lines are
    /// compared.
    #[arg(short, long)]
    pub url: bool,

    /// The order of the parameters of a URL makes no difference
    #[arg(long, requires = "url")]
    pub sort_query: bool,

    /// Parameters that only tell where a visitor comes from make no difference: utm_source, gclid and so on
    #[arg(long, requires = "url")]
    pub ignore_tracking: bool,
}

/// What is written where.
#[derive(Args)]
#[command(next_help_heading = "Output")]
pub struct Output {
    /// Writes to FILE instead of standard output
    ///
    /// What FILE has is replaced, but by dedup with --state: then it is added to. (Better than by >>: a line that a kill
    /// has broken off stays a line of its own.)
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,

    /// Writes how many lines would be written instead of the lines
    #[arg(short, long)]
    pub count: bool,

    #[command(flatten)]
    pub telling: Telling,
}

/// What is said at the end, on standard error.
#[derive(Args)]
#[command(next_help_heading = "Output")]
pub struct Telling {
    /// No closing line and no progress bar
    #[arg(short, long, conflicts_with = "json")]
    pub quiet: bool,

    /// The closing line as JSON, for programs
    ///
    /// An object in one line, the last of standard error unless something went wrong: of dedup, lines, new, repeated,
    /// bytes, expected_drops, recovered, not_urls, unreadable, rate, known, memory_bytes, state, saved, seconds, and end,
    /// which is complete, SIGINT, SIGTERM, broken pipe or failed. Of the others, added, seen or forgotten instead of new
    /// and repeated.
    #[arg(long)]
    pub json: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_arguments_fit_together() {
        Arguments::command().debug_assert();
    }
}
