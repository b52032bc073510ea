//! The file of the plot. It is written completely or not at all: to a new file, which then replaces it.

use crate::failure::Failure;
use koel::files::NewFile;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

pub struct Picture<'a> {
    /// The path on the command line.
    path: &'a Path,
    /// The file that is written. A symbolic link is followed and stays a link.
    target: PathBuf,
}

impl<'a> Picture<'a> {
    /// Checks, as far as possible, that the file can be written later.
    pub fn at(path: &'a Path) -> Result<Self, Failure> {
        let target = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let picture = Picture { path, target };
        let checked = match picture.is_replaced() {
            true => picture.beside().map(drop),
            false if picture.target.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
            false => Ok(()),
        };
        checked.map_err(|error| picture.cannot(&error))?;
        Ok(picture)
    }

    pub fn write(&self, svg: &str) -> Result<(), Failure> {
        let written = match self.is_replaced() {
            true => self.replace(svg),
            false => fs::write(&self.target, svg),
        };
        written.map_err(|error| self.cannot(&error))
    }

    /// Returns `false` for pipes, terminals and the like, which are written to directly.
    fn is_replaced(&self) -> bool {
        self.target.metadata().map_or(true, |about| about.is_file())
    }

    fn replace(&self, svg: &str) -> io::Result<()> {
        let mut new = self.beside()?;
        new.file.write_all(svg.as_bytes())?;
        new.keep_permissions()?;
        Ok(new.take_place()?)
    }

    /// Creates a new file next to the target.
    fn beside(&self) -> io::Result<NewFile> {
        Ok(NewFile::create(&self.target, ".koel-writing", self.target.exists())?)
    }

    fn cannot(&self, error: &io::Error) -> Failure {
        let what = format!("{}: cannot write the plot; choose another file", self.path.display());
        Failure::of(what, error)
    }
}
