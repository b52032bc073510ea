//! The file of the plot. It is written completely or not at all: to a temporary file, which then
//! replaces it.

use crate::failure::Failure;
use koel_state::files::folder_of;
use std::fs::{self, Permissions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

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
        let mut file = self.beside()?;
        file.write_all(svg.as_bytes())?;
        if let Ok(about) = self.target.metadata() {
            file.as_file().set_permissions(about.permissions())?;
        }
        file.persist(&self.target)?;
        Ok(())
    }

    /// Creates a temporary file next to the target.
    fn beside(&self) -> io::Result<NamedTempFile> {
        if self.target.file_name().is_none() {
            return Err(io::ErrorKind::InvalidFilename.into());
        }
        let mut builder = tempfile::Builder::new();
        builder.prefix(".koel-bench-").suffix(".svg");
        if let Some(permissions) = usual_permissions() {
            builder.permissions(permissions);
        }
        builder.tempfile_in(folder_of(&self.target))
    }

    fn cannot(&self, error: &io::Error) -> Failure {
        let what = format!("{}: cannot write the plot; choose another file", self.path.display());
        Failure::of(what, error)
    }
}

/// Returns the permissions of an ordinary new file, before the umask. Temporary files have fewer.
#[cfg(unix)]
fn usual_permissions() -> Option<Permissions> {
    use std::os::unix::fs::PermissionsExt;
    Some(Permissions::from_mode(0o666))
}

#[cfg(not(unix))]
fn usual_permissions() -> Option<Permissions> {
    None
}
