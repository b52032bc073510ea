//! `koel generate`: writes manual pages and completions, generated from the arguments.

use crate::arguments::Arguments;
use crate::arguments::tools::Generated;
use crate::commands::closing::{DONE, Ending};
use crate::commands::manual;
use crate::failure::Failure;
use crate::lines::output::Sink;
use clap::CommandFactory;
use std::fs;
use std::path::Path;

pub fn generate(what: &Generated) -> Result<Ending, Failure> {
    let mut command = Arguments::command();
    match what {
        Generated::Man { folder } => {
            fs::create_dir_all(folder).map_err(|error| Failure::about(folder, &error))?;
            let mut command = command.disable_help_subcommand(true);
            command.build();
            write_pages(&command, folder)?;
        }
        Generated::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut command, "koel", &mut script);
            Sink::standard()?.print(&String::from_utf8_lossy(&script))?;
        }
    }
    Ok(DONE)
}

/// Writes the manual page of a command, after those of its subcommands.
fn write_pages(command: &clap::Command, folder: &Path) -> Result<(), Failure> {
    for subcommand in command.get_subcommands().filter(|subcommand| !subcommand.is_hide_set()) {
        write_pages(subcommand, folder)?;
    }
    let (name, page) = manual::page(command);
    let path = folder.join(name);
    fs::write(&path, page).map_err(|error| {
        // Half a page is none.
        if fs::symlink_metadata(&path).is_ok_and(|file| file.is_file()) {
            let _ = fs::remove_file(&path);
        }
        Failure::about(&path, &error)
    })
}
