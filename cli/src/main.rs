//! koel, the command: finds the lines of a stream that have not been seen before.
//!
//! # Rooms
//!
//! Each folder is a room. A file imports from its own room and from rooms below it, and no two
//! files import each other, directly or indirectly.
//!
//! ```text
//! main
//!   commands     the subcommands, and the summary at their end
//!   run          the threads of a run, and how they wait for each other
//!   unsaved      what a state does not have yet: what a killed run has written
//!   lines        input, chunks of lines, output, and what --lossless sets aside
//!   state        the filter, its file, and how lines are compared
//!   arguments    the command line and its help
//!   paths, failure
//! ```
//!
//! # Reading order
//!
//! [`commands::dedup`] has the main subcommand. It passes a [`Plan`](run::plan::Plan) to [`run::run()`], whose module
//! explains the threads. [`run::monitor`] is where they wait for each other, and
//! [`run::turns`] keeps the lines in order. [`unsaved`] explains what a kill takes. [`state::comparison`] defines when
//! two lines are equal, and [`state::keys::url_key`] when two URLs are.

#![forbid(unsafe_code)]

#[cfg(not(unix))]
compile_error!("the koel command needs Unix: it uses Unix signals and file locks");

mod arguments;
mod commands;
mod failure;
mod lines;
mod paths;
mod run;
mod state;
mod unsaved;

use arguments::{Arguments, Command};
use clap::Parser;
use commands::report::{DONE, Ending};
use std::io::{self, Write};
use std::process::ExitCode;

fn main() -> ExitCode {
    let ending = match &Arguments::parse().command {
        Command::Dedup(options) => match options.estimate {
            Some(lines) => commands::estimate::estimate(lines, options),
            None => commands::dedup::dedup(options),
        },
        Command::Query(options) => commands::dedup::query(options),
        Command::Add(options) => commands::dedup::add(options),
        Command::Merge(options) => commands::merge::merge(options),
        Command::Forget(options) => commands::dedup::forget(options),
        Command::Compact(options) => commands::compact::compact(options),
        Command::Info(options) => commands::info::info(options),
        Command::Sample(options) => commands::sample::write(options.lines).map(|()| DONE),
        Command::Generate(options) => commands::generate::generate(&options.what),
    };
    match ending {
        Ok(Ending::Code(code)) => ExitCode::from(code),
        Ok(Ending::Signal(signal)) => run::signals::die(signal),
        Err(failure) => {
            // If standard error is closed, the exit code still reports the failure.
            let _ = writeln!(io::stderr(), "koel: {failure}");
            ExitCode::from(2)
        }
    }
}
