//! Arguments that several commands share.

use crate::arguments::urls::URL_HELP;
use crate::arguments::values::{
    JsonPath, delimiter, field, memory, number, period, rate, seconds, seed, threads,
};
use clap::{Args, ValueHint};
use std::path::PathBuf;

/// Where lines come from.
#[derive(Args)]
pub struct Files {
    /// Files to read; - is standard input
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub files: Vec<PathBuf>,
}

/// How lines are read.
#[derive(Args)]
#[command(next_help_heading = "Input")]
pub struct Input {
    /// Lines end in a NUL byte instead of a newline, as from find -print0
    #[arg(short, long)]
    pub zero: bool,

    /// Compare lines with the carriage return before their newline
    ///
    /// Without it, a line that ends in CR LF equals the same line that ends in LF, and the one that
    /// came first is written as it is. A state does not remember this option. With --zero, carriage returns are
    /// always part of a line, so it changes nothing there.
    #[arg(long)]
    pub keep_cr: bool,

    /// Compare lines by their N-th field only; the first is 1
    ///
    /// A line without that field, or without any delimiter, is compared as a whole, and counted. Lines are written
    /// whole. A state does not remember in which field a file has what is compared, so it can be made from
    /// one field and used with another, or with whole lines.
    #[arg(long, value_name = "N", value_parser = field, allow_hyphen_values = true)]
    pub field: Option<usize>,

    /// Byte that separates the fields of a line; \t is a tab, \0 is NUL, \n is a newline
    #[arg(
        long,
        value_name = "C",
        default_value = "\\t",
        value_parser = delimiter,
        requires = "field",
        conflicts_with = "json_field"
    )]
    pub delimiter: u8,

    /// Compare lines of JSON by this field only, such as url, or meta.url for url in the object meta
    ///
    /// A string is compared by its text, so "a" equals "\u0061" and is one with a line that is just a. Any other
    /// value is compared as it is written, spaces included. Of fields with one name, the first counts. In a name, \.
    /// is a dot and \\ a backslash.
    ///
    /// A line without that field, with null there, or that is no JSON up to there, is compared as a whole, and
    /// counted. What follows the field is not read. Lines are written whole. As with --field, a state does not
    /// remember this option.
    #[arg(
        long,
        value_name = "NAME",
        value_parser = JsonPath::parse,
        allow_hyphen_values = true,
        conflicts_with = "field"
    )]
    pub json_field: Option<JsonPath>,

    /// Threads that compare lines, besides a reader and a writer [default: the number of cores]
    #[arg(long, value_parser = threads, allow_hyphen_values = true)]
    pub threads: Option<usize>,
}

/// What happens if another process uses the state.
#[derive(Args)]
#[command(next_help_heading = "State")]
pub struct Waiting {
    /// Wait up to SECONDS for a state that another process uses
    #[arg(
        long,
        value_name = "SECONDS",
        default_value = "0",
        requires = "state",
        value_parser = seconds,
        allow_hyphen_values = true,
    )]
    pub wait: f64,
}

/// How a new state, or a filter without a state, is made.
#[derive(Args, Clone)]
#[command(next_help_heading = "Comparison")]
pub struct Making {
    /// Highest acceptable false-positive rate at the end of the run [default: 1e-6]
    ///
    /// The false-positive rate is the probability that a new line is taken for one that has been seen.
    ///
    /// A higher rate stores fewer bits of each line: 1e-4 takes some 70 % and 0.01 takes half of
    /// the memory that the default takes.
    #[arg(long, value_name = "P", value_parser = rate, allow_hyphen_values = true)]
    pub rate: Option<f64>,

    /// Number of distinct lines to expect, such as 5000000 or 5M; more are accepted
    ///
    /// This saves the time and up to half of the memory that growing takes. The rate is planned for
    /// up to four times as many lines; with still more, it rises above --rate, which is reported.
    ///
    /// By default, dedup starts with room for half of the lines that its files may contain, but
    /// uses at most 60 MB for that, and 128 KiB if it uses a state or if the size of the input is unknown.
    #[arg(long, value_name = "N", value_parser = number, allow_hyphen_values = true)]
    pub capacity: Option<u64>,

    /// Memory limit for the lines seen, at least 256K; it is an error to need more
    #[arg(long, value_name = "SIZE", value_parser = memory, allow_hyphen_values = true)]
    pub max_memory: Option<u64>,

    /// Seed of a new state, for states that koel merge is to unite: the same number for each
    ///
    /// Without it, each state has a random seed, and no two can be merged. Whoever knows the seed can make
    /// lines that are taken for others, so keep it to yourself if others choose the lines.
    #[arg(long, value_name = "N", requires = "state", value_parser = seed, allow_hyphen_values = true)]
    pub seed: Option<u64>,

    /// Compare lines by the lower case of their characters
    ///
    /// In lines that are not UTF-8, only the letters A to Z have a lower case. Lines are written unchanged. A state
    /// remembers how its lines are compared.
    ///
    /// This is not for URLs: --url ignores the case of scheme and host anyway, and paths and queries
    /// that differ in case may be different pages.
    #[arg(short, long, conflicts_with = "url")]
    pub ignore_case: bool,

    /// Compare URLs as a crawler does
    #[arg(short, long, long_help = URL_HELP)]
    pub url: bool,

    /// Ignore the order of query parameters
    #[arg(long, requires = "url")]
    pub sort_query: bool,

    /// Ignore query parameters that only track visitors, such as utm_source and gclid
    #[arg(long, requires = "url")]
    pub ignore_tracking: bool,

    #[command(flatten)]
    pub forgetting: Forgetting,
}

/// For how long lines are remembered.
#[derive(Args, Clone)]
#[command(next_help_heading = "Forgetting")]
pub struct Forgetting {
    /// Forget a line PERIOD after it was first seen, so that it is new again: 30d, 12h, 90m
    ///
    /// A line is remembered for PERIOD, and for at most a fourteenth of it longer. The memory that it takes
    /// is free again after that, so a state stays as large as the lines of one PERIOD.
    ///
    /// A state remembers its period and the time, so later runs need not be told. The time is that of the
    /// system's clock. While a clock that was set back catches up, nothing is forgotten.
    #[arg(long, value_name = "PERIOD", value_parser = period, allow_hyphen_values = true)]
    pub forget_after: Option<u64>,

    /// Forget a line that long after it was last seen instead of first
    ///
    /// A state does not remember this option.
    #[arg(long)]
    pub refresh: bool,
}

/// What is written, and where.
#[derive(Args, Clone)]
#[command(next_help_heading = "Output")]
pub struct Output {
    /// Write to FILE instead of standard output
    ///
    /// An existing FILE is replaced at the end of the run, as a whole: if no input could be opened, or
    /// if the run is interrupted or fails, it stays as it was.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,

    /// Write the number of lines instead of the lines
    #[arg(short, long)]
    pub count: bool,

    #[command(flatten)]
    pub reporting: Reporting,
}

/// What is reported on standard error.
#[derive(Args, Clone)]
#[command(next_help_heading = "Output")]
pub struct Reporting {
    /// Print no summary and no progress bar; with --json, print only the summary
    ///
    /// If standard error is not a terminal, neither is printed anyway: scripts ask for the summary with --json. Errors
    /// and warnings are printed there.
    #[arg(short, long)]
    pub quiet: bool,

    /// Print the summary as JSON, also where standard error is not a terminal
    ///
    /// The summary is one object on one line of standard error, the last line unless an error follows.
    ///
    /// Its fields are lines, bytes, not_urls, without_field, unreadable, too_long, rate, rate_exceeded, known, memory_bytes,
    /// state, unchanged, seconds and end, and how many lines were new and repeated, seen, added or forgotten. The value
    /// of end is complete, limit, SIGINT, SIGTERM, SIGHUP, broken pipe or failed. The field known is the number of lines
    /// in the state, and unchanged says that its file needed no save.
    #[arg(long)]
    pub json: bool,
}
