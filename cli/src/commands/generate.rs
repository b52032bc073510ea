//! `koel generate`: writes manual pages and completions, generated from the arguments.

use crate::arguments::Arguments;
use crate::arguments::tools::Generated;
use crate::commands::report::{DONE, Ending};
use crate::failure::Failure;
use crate::lines::output::Sink;
use clap::CommandFactory;
use std::fs;
use std::io::ErrorKind;

pub fn generate(what: &Generated) -> Result<Ending, Failure> {
    let mut command = Arguments::command();
    match what {
        Generated::Man { folder } => fs::create_dir_all(folder)
            .and_then(|()| clap_mangen::generate_to(command, folder))
            .map_err(|error| match error.kind() {
                ErrorKind::AlreadyExists => Failure::about(folder, "it is not a folder"),
                _ => Failure::about(folder, &error),
            })?,
        Generated::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut command, "koel", &mut script);
            Sink::standard(&[], None)?.print(&script)?;
        }
    }
    Ok(DONE)
}
