//! The arguments of `koel dedup`.

use crate::arguments::common::{Files, Input, Making, Output, Waiting};
use crate::arguments::values::{JsonPath, name, positive, seconds};
use clap::{Args, ValueHint};
use std::path::PathBuf;

/// Write each line the first time it is seen
///
/// Lines are written unchanged and in input order. With --state, koel remembers them for the next
/// run.
#[derive(Args)]
#[command(after_long_help = EXAMPLES, mut_arg("output", |output| output.long_help(OUTPUT_HELP)))]
pub struct Dedup {
    #[command(flatten)]
    pub files: Files,

    /// Remember the lines between runs in FILE
    ///
    /// Load the lines seen by earlier runs from FILE, if it exists, and save the lines of this run
    /// to it. With --output, the new lines are appended; without a state, the output is replaced.
    ///
    /// The state is saved at the end of the run, and on SIGINT, SIGTERM and SIGHUP. After a SIGKILL, repeat
    /// the command. With --output, it goes on where the killed one was, and in the end the file is that of a run that
    /// nobody disturbed: .FILE.koel-output notes, during a run, how much of the output the state has. Without
    /// --output, the lines since the last save are written again; see --checkpoint. A power failure takes no line.
    ///
    /// If the reader of the output leaves early, as head does, lines that it has not read may be remembered. To get
    /// only the next N lines, use --limit N.
    ///
    /// One process at a time can use a state. With --count or --repeated, new lines are not
    /// written, so FILE is only read.
    #[arg(
        short,
        long,
        value_name = "FILE",
        value_hint = ValueHint::FilePath,
        help_heading = "State"
    )]
    pub state: Option<PathBuf>,

    /// Save the state every SECONDS during the run, too; 0 saves it only at the end
    ///
    /// With --output, a kill takes no lines without this, either. It is for pipes, for those who read or copy the state
    /// during the run, and it makes the start after a kill faster. Lines go on during a save. Saves take at most a
    /// tenth of the time.
    #[arg(
        long,
        value_name = "SECONDS",
        default_value = "0",
        value_parser = seconds,
        allow_hyphen_values = true,
        requires = "state",
        help_heading = "State"
    )]
    pub checkpoint: f64,

    #[command(flatten)]
    pub waiting: Waiting,

    #[command(flatten)]
    pub making: Making,

    /// Write the repeated lines instead, each time they occur
    ///
    /// These are exactly the lines that dedup omits otherwise. To get each repeated line once: koel
    /// dedup -d FILE | koel dedup
    #[arg(short = 'd', long, help_heading = "Output")]
    pub repeated: bool,

    /// Stop after N new lines
    ///
    /// Nothing after the last of them is written or remembered, so with --state, the next run goes
    /// on with the next new lines. The run ends by the limit even if nothing follows the last of them.
    ///
    /// koel reads ahead, so another program that shares its standard input goes on further down, and not
    /// after the last of them.
    ///
    /// This is exact, unlike | head, after which more lines are remembered than head prints.
    #[arg(
        long,
        value_name = "N",
        value_parser = positive,
        allow_hyphen_values = true,
        conflicts_with_all = ["repeated", "lossless", "count"],
        help_heading = "Output"
    )]
    pub limit: Option<u64>,

    /// Drop no line by mistake: verify the repeated lines in a second pass
    ///
    /// Lines that seem to be repeated are set aside in a temporary file (in TMPDIR). At the end of
    /// the input, they are compared with the lines that were written, and any line dropped by
    /// mistake is written then, after all others.
    ///
    /// Lines that are equal count as one line, of course: by default those with the same bytes before
    /// the newline, or before a carriage return and a newline. The summary says how lines were
    /// compared.
    ///
    /// This needs disk space for all lines and takes about four times as long.
    #[arg(long, conflicts_with_all = ["state", "forget_after", "refresh"], help_heading = "Output")]
    pub lossless: bool,

    #[command(flatten)]
    pub output: Output,

    /// Write the new lines of each FILE to a file of its name in DIR, compressed as FILE is
    ///
    /// A line that several FILES have stays in the first of them. A file takes its place in DIR as a whole, when all of
    /// its FILE has been read; an older one of that name is replaced. DIR is made if it is not there.
    ///
    /// With a state, the new lines come after those that are in DIR. After a SIGKILL, repeat the command: the files
    /// that are in place stay, and the state gets their lines.
    #[arg(
        long,
        value_name = "DIR",
        value_hint = ValueHint::DirPath,
        conflicts_with_all = ["output", "count", "limit", "lossless", "checkpoint"],
        help_heading = "Output"
    )]
    pub output_dir: Option<PathBuf>,

    /// Write all records of JSON, each with the field NAME: true if it is repeated, or else false
    ///
    /// The field comes after all others. A line that is no JSON object, or has the field already, ends the run with an
    /// error.
    ///
    /// There is no state with it: what a killed run has written would be taken for repeated.
    #[arg(
        long,
        value_name = "NAME",
        value_parser = name,
        allow_hyphen_values = true,
        conflicts_with_all = ["state", "repeated", "count", "limit", "lossless"],
        help_heading = "Output"
    )]
    pub annotate: Option<JsonPath>,

    /// Compare the paragraphs of a text, the field NAME of each record of JSON; use it with --paragraphs
    ///
    /// NAME is as for --json-field. A record without that field, without a string there, or without a paragraph in it
    /// is compared as a whole, and counted.
    #[arg(
        long,
        value_name = "NAME",
        value_parser = JsonPath::parse,
        allow_hyphen_values = true,
        requires = "paragraphs",
        conflicts_with_all = [
            "field", "json_field", "annotate", "repeated", "count", "limit", "lossless",
        ],
        help_heading = "Input"
    )]
    pub text: Option<JsonPath>,

    /// Leave out the paragraphs of --text that were seen, and the records of which none is left
    ///
    /// A paragraph ends at a newline. Blank lines are not compared: they stay or go with the paragraph before them. The
    /// summary counts paragraphs, and how many records were left out.
    #[arg(long, requires = "text", help_heading = "Input")]
    pub paragraphs: bool,

    #[command(flatten)]
    pub input: Input,

    /// Print how much memory and disk LINES distinct lines will take, and exit
    ///
    /// This is for a run with the same --rate, --capacity and --forget-after that uses a state or reads a pipe; one
    /// that reads files starts with up to 60 MB. Lines that are being read take some 20 MB more. With --json, the
    /// estimate is an object on standard output. Its fields are lines, memory_bytes, file_bytes, fingerprint_bits,
    /// rate_expected and planned_lines. Nothing is read.
    #[arg(
        long,
        value_name = "LINES",
        value_parser = positive,
        allow_hyphen_values = true,
        conflicts_with_all = [
            "files", "state", "limit", "lossless", "repeated", "count", "output", "max_memory",
            "output_dir", "annotate", "text",
        ],
        help_heading = "Output"
    )]
    pub estimate: Option<u64>,
}

/// Help of --output, which does more here than in other commands.
const OUTPUT_HELP: &str = "\
Write to FILE instead of standard output

An existing FILE is replaced at the end of the run, as a whole: if no input could be opened, or if the \
run is interrupted or fails, it stays as it was. So, without --count or --limit, it may be the input: \
koel dedup FILE -o FILE.

With --state, the new lines are appended to FILE instead, and a killed run that is repeated ends with the \
output of one that was not disturbed. If there is an incomplete line at the end of FILE, koel ends that \
line first. With --repeated or --count, which only read the state, FILE is replaced.";

const EXAMPLES: &str = "\
Examples:
  koel dedup access.log > unique.log
      Write each line once.

  koel dedup --url --state urls.koel day-*.gz > new-urls.txt
      Write the URLs that no earlier run has written.

  koel dedup --url --state urls.koel --forget-after 30d found.txt > to-fetch.txt
      Write the URLs that have not been written for thirty days.

  koel dedup --json-field url crawl.jsonl.zst > unique.jsonl
      Write the first record of each URL.

  koel dedup --json-field id --output-dir unique/ shard-*.jsonl.zst
      Write the first record of each id among all files, to files of their names.

  koel dedup --text text --paragraphs --output-dir unique/ shard-*.jsonl.zst
      Leave out the paragraphs that were there before.

  koel dedup --lossless --output unique.txt big.txt.zst
      Write each line once, and drop none by mistake.

  koel dedup --count access.log
      Count the distinct lines.

JSON:
  With --json, the summary of dedup has these fields, too: expected_drops,
  recovered, compared and saved, which says whether what was written will be
  known to the next run. With --paragraphs, it has records and emptied.
";
