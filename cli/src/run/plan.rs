//! The plan of a run: what the command line asks for.

use crate::arguments::common::{Files, Input, Making, Output, Reporting};
use crate::arguments::values::JsonPath;
use crate::failure::Failure;
use crate::lines::folder::Folder;
use crate::lines::input::{self, Source};
use crate::lines::output::Sink;
use crate::lines::rules::{Field, Rules};
use crate::run::screen::Screen;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// The commands that read lines. Each has a question to the filter about each line, and the answer is yes or no.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// Adds the line. The answer is yes if it was not there.
    Dedup,
    /// The same, but no line is written.
    Add,
    /// Looks the line up. The answer is yes if it is there.
    Query,
    /// Removes the line. The answer is yes if it was there.
    Forget,
}

impl Verb {
    /// Says what happened to a line whose answer is yes.
    pub fn done(self) -> &'static str {
        match self {
            Verb::Dedup => "new",
            Verb::Add => "added",
            Verb::Query => "seen",
            Verb::Forget => "forgotten",
        }
    }
}

/// What a command does to lines. The output is opened when everything else is in order.
pub struct Plan {
    pub began: Instant,
    pub verb: Verb,
    pub sources: Vec<Source>,
    pub rules: Rules,
    /// The number of threads that ask the filter. `None` is one for each core.
    pub threads: Option<usize>,
    pub state: Option<PathBuf>,
    /// How a new filter is made, if lines are added.
    pub making: Option<Making>,
    /// The answer that selects a line to be written.
    pub select: bool,
    /// Whether the lines that are not selected are set aside.
    pub is_lossless: bool,
    /// The number of selected lines after which the run ends.
    pub limit: Option<u64>,
    /// The interval between saves of the state.
    pub checkpoint: Option<Duration>,
    pub output: Option<Output>,
    /// Where the lines of each input have a file of their own.
    pub folder: Option<Folder>,
    /// The field that tells in each record whether it is repeated. All records are written then.
    pub annotate: Option<JsonPath>,
    /// Where selected lines are written during the run.
    pub sink: Sink,
    pub screen: Screen,
    /// What the user should know beforehand.
    pub notes: Vec<String>,
}

impl Plan {
    /// Returns the plan of a command that writes nothing.
    pub fn new(
        verb: Verb,
        files: &Files,
        input: &Input,
        state: Option<&Path>,
        reporting: &Reporting,
    ) -> Result<Self, Failure> {
        Ok(Plan {
            began: Instant::now(),
            verb,
            sources: input::sources(&files.files),
            rules: input.rules()?,
            threads: input.threads,
            state: state.map(Path::to_path_buf),
            making: None,
            select: true,
            is_lossless: false,
            limit: None,
            checkpoint: None,
            output: None,
            folder: None,
            annotate: None,
            sink: Sink::default(),
            screen: Screen::new(reporting.quiet, reporting.json),
            notes: Vec::new(),
        })
    }

    /// The number of threads that ask the filter.
    pub fn workers(&self) -> usize {
        let cores = || thread::available_parallelism().map_or(1, usize::from);
        self.threads.unwrap_or_else(cores)
    }

    /// Whether a line that is seen again is remembered from then on.
    pub fn refreshes(&self) -> bool {
        self.making.as_ref().is_some_and(|making| making.forgetting.refresh)
    }

    /// Whether only the number of lines is written.
    pub fn counts(&self) -> bool {
        self.output.as_ref().is_some_and(|output| output.count)
    }

    /// Whether selected lines, or those set aside, are kept at all.
    pub fn writes(&self) -> bool {
        self.sink.is_somewhere() || self.is_lossless || self.folder.is_some()
    }
}

impl Input {
    /// Returns the rules for lines.
    fn rules(&self) -> Result<Rules, Failure> {
        let terminator = if self.zero { 0 } else { b'\n' };
        let delimiter = self.delimiter;
        if self.field.is_some() && delimiter == terminator {
            let what = "--delimiter is what ends the lines; fields need another byte between them";
            return Err(Failure::new(what));
        }
        Ok(Rules {
            terminator,
            folds_cr: !self.zero && !self.keep_cr,
            field: match self.json_field {
                Some(path) => Some(Field::Json(path)),
                None => self.field.map(|number| Field::Numbered { number, delimiter }),
            },
        })
    }
}
