//! koel, the command: which lines were not seen before?
//!
//! # Reading order
//!
//! `arguments` tells what can be asked for. `dedup` and `others` are the commands that read lines; what they
//! have in common is in `command`. They hand a [`Run`](run::Run) to [`run`], which has the essay; [`crew`] has the threads, [`coordinator`] looks after them.
//! Who waits for whom is told in [`monitor`], and the order in which lines come to the filter in [`turns`].
//! Lines come from `input`, are cut out in `chunk` and compared by `comparison` and `url_key`; they go to
//! `output`, and those that may be repeated to [`aside`]. `state` is the file between runs, `claim` keeps others from
//! it. [`mod@bench`] stands by itself.

#![forbid(unsafe_code)]

#[cfg(not(unix))]
compile_error!("this command is for Unix: it asks for signals and locks as they are there");

mod arguments;
mod bench;
mod commands;
mod failure;
mod files;
mod lines;
mod random;
mod run;
mod state;

use arguments::{Arguments, Command};
use clap::Parser;
use commands::closing::{DONE, Ending};
use std::io::{self, Write};
use std::process::ExitCode;

fn main() -> ExitCode {
    let ending = match &Arguments::parse().command {
        Command::Dedup(options) => commands::dedup::dedup(options),
        Command::Query(options) => commands::membership::query(options),
        Command::Add(options) => commands::membership::add(options),
        Command::Forget(options) => commands::membership::forget(options),
        Command::Info(options) => commands::info::info(options),
        Command::Bench(options) => bench::run(options).map(|()| DONE),
        Command::Sample(options) => commands::sample::write(options.lines).map(|()| DONE),
        Command::Generate(options) => commands::generate::generate(&options.what),
    };
    match ending {
        Ok(Ending::Code(code)) => ExitCode::from(code),
        Ok(Ending::Signal(signal)) => run::signals::die(signal),
        Err(failure) => {
            // That nobody can be told is no reason to panic.
            let _ = writeln!(io::stderr(), "koel: {failure}");
            ExitCode::from(2)
        }
    }
}
