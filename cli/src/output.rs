//! Where lines go to: standard output, a file, or nowhere.

use crate::failure::Failure;
use crate::input::{self, Source};
use crate::monitor::Trouble;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Seek, SeekFrom, Write};
use std::path::Path;

pub struct Sink {
    to: Option<File>,
    name: String,
    /// How long the file is, if it was named.
    length: Option<u64>,
    is_readable: bool,
}

/// What a named file is opened for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Before {
    Replaced,
    Kept,
}

impl Sink {
    pub fn nowhere() -> Sink {
        Sink { to: None, name: String::new(), length: None, is_readable: false }
    }

    /// A file, or standard output, unless it is one of the inputs.
    pub fn open(path: Option<&Path>, before: Before, sources: &[Source]) -> Result<Sink, Failure> {
        match path {
            Some(path) => Sink::file(path, before, sources),
            None => Sink::standard(sources),
        }
    }

    fn standard(sources: &[Source]) -> Result<Sink, Failure> {
        let name = String::from("standard output");
        let file = standard_output().map_err(|error| Failure::of(&name, &error))?;
        if let Ok(about) = file.metadata() {
            input::none_is(sources, &about, &name)?;
        }
        Ok(Sink { to: Some(file), name, length: None, is_readable: false })
    }

    fn file(path: &Path, before: Before, sources: &[Source]) -> Result<Sink, Failure> {
        let name = path.display().to_string();
        let cannot = |error| Failure::about(path, &error);
        if let Ok(about) = path.metadata() {
            input::none_is(sources, &about, &name)?;
        }
        let mut options = OpenOptions::new();
        options.create(true).read(true).write(true).truncate(before == Before::Replaced);
        let mut is_readable = true;
        let opened = match options.open(path) {
            Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                is_readable = false;
                options.read(false).open(path)
            }
            opened => opened,
        };
        let mut file = opened.map_err(cannot)?;
        let length = match file.metadata().map_err(cannot)?.is_file() {
            true => Some(file.seek(SeekFrom::End(0)).map_err(cannot)?),
            false => None,
        };
        Ok(Sink { to: Some(file), name, length, is_readable })
    }

    /// Writes whole lines. Of a file that was named, what could not be written as a whole is taken back.
    pub fn write(&mut self, lines: &[u8]) -> Result<(), Trouble> {
        let Some(file) = &mut self.to else { return Ok(()) };
        let written = file.write_all(lines);
        if let Some(length) = &mut self.length {
            match &written {
                Ok(()) => *length += lines.len() as u64,
                Err(_) => {
                    let _ = file.set_len(*length);
                }
            }
        }
        written.map_err(|error| match error.kind() {
            ErrorKind::BrokenPipe => Trouble::BrokenPipe,
            _ => Trouble::Failed(Failure::of(&self.name, &error)),
        })
    }

    /// Writes a text, unless nobody wants it.
    pub fn print(&mut self, text: &str) -> Result<(), Failure> {
        match self.write(text.as_bytes()) {
            Ok(()) | Err(Trouble::BrokenPipe) => Ok(()),
            Err(Trouble::Failed(failure)) => Err(failure),
        }
    }

    pub fn is_somewhere(&self) -> bool {
        self.to.is_some()
    }

    pub fn metadata(&self) -> Option<Metadata> {
        self.to.as_ref()?.metadata().ok()
    }

    /// What makes sure that all that was written stays.
    pub fn syncer(&self) -> Result<Syncer, Failure> {
        let file = self.to.as_ref().map(File::try_clone).transpose();
        let file = file.map_err(|error| Failure::of(&self.name, &error))?;
        let is_file = |file: &File| file.metadata().is_ok_and(|about| about.is_file());
        Ok(Syncer { file: file.filter(is_file), name: self.name.clone() })
    }

    /// Whether what was written can be read again.
    pub fn can_be_read_again(&self) -> bool {
        self.length.is_some() && self.is_readable
    }

    /// What was written. When it has been read to its end, more can be written.
    pub fn read_again(&self) -> Result<Option<File>, Failure> {
        let Some(file) = self.to.as_ref().filter(|_| self.can_be_read_again()) else {
            return Ok(None);
        };
        let again = file.try_clone().and_then(|mut file| file.rewind().map(|()| Some(file)));
        again.map_err(|error| Failure::of(&self.name, &error))
    }
}

pub struct Syncer {
    file: Option<File>,
    name: String,
}

impl Syncer {
    pub fn sync(&self) -> Result<(), Failure> {
        let synced = self.file.as_ref().map_or(Ok(()), File::sync_data);
        synced.map_err(|error| Failure::of(format!("{}: cannot sync it", self.name), &error))
    }
}

/// Without the buffer that the standard library puts before it.
fn standard_output() -> io::Result<File> {
    #[cfg(unix)]
    use std::os::fd::AsFd as Handle;
    #[cfg(windows)]
    use std::os::windows::io::AsHandle as Handle;
    #[cfg(unix)]
    let own = Handle::as_fd(&io::stdout()).try_clone_to_owned()?;
    #[cfg(windows)]
    let own = Handle::as_handle(&io::stdout()).try_clone_to_owned()?;
    Ok(File::from(own))
}
