//! Outputs: standard output, a file, or nowhere.

use crate::failure::{Failure, Trouble};
use crate::lines::input::{self, Source};
use crate::lines::pipe::Pipe;
use crate::lines::replacement::Replacement;
use crate::lines::rules::Rules;
use crate::lines::streams::{is_standard_output, standard_output};
use crate::state::comparison::LineHash;
use koel::files::folder_of;
use koel_state::files::{is_folder, is_same};
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

/// By default, nowhere.
#[derive(Default)]
pub struct Sink {
    to: Option<File>,
    name: String,
    /// Whether it is a regular file, which can be truncated.
    is_file: bool,
    /// Whether it is a file that had a name when it was opened, so that its lines are lost if it is removed.
    is_named: bool,
    /// Where it is, without links, if it is a file that was opened by its name to be appended to.
    path: Option<PathBuf>,
    /// The folder of a named file, to be synced with it.
    folder: Option<File>,
}

/// A sink, and what has to be done once it has everything, if it is to replace a file.
pub type Opened = (Sink, Option<Replacement>);

impl Sink {
    /// Opens a file, or standard output. An existing file is replaced in the end, as a whole, and may be an input. Or
    /// lines are appended, and this byte ends those that are `kept`. Refuses a file that is the state, or an input that
    /// lines would be appended to.
    pub fn open(
        path: Option<&Path>,
        kept: Option<u8>,
        sources: &[Source],
        state: Option<&Path>,
    ) -> Result<Opened, Failure> {
        match path.filter(|_| !is_standard_output(path)) {
            Some(path) => Sink::file(path, kept, sources, state),
            None => Ok((Sink::stream(sources, state)?, None)),
        }
    }

    /// Opens standard output, for a command without inputs.
    pub fn standard() -> Result<Sink, Failure> {
        Sink::stream(&[], None)
    }

    fn stream(sources: &[Source], state: Option<&Path>) -> Result<Sink, Failure> {
        let name = String::from("standard output");
        let file = standard_output().map_err(|error| Failure::of(&name, &error))?;
        let about = file.metadata().map_err(|error| Failure::of(&name, &error))?;
        is_free(&about, &name, sources, state)?;
        let is_file = about.is_file();
        let is_named = is_file && about.nlink() > 0;
        Ok(Sink { to: Some(file), name, is_file, is_named, ..Sink::default() })
    }

    fn file(
        path: &Path,
        kept: Option<u8>,
        sources: &[Source],
        state: Option<&Path>,
    ) -> Result<Opened, Failure> {
        let name = path.display().to_string();
        let cannot = |error| Failure::about(path, &error);
        if is_folder(path) {
            return Err(Failure::new(format!("{name}: this is a folder; name a file in it")));
        }
        if input::is_packed(path) {
            return Err(Failure::new(format!(
                "{name}: the output is not compressed, but this name is that of a compressed file; \
                 choose another name, or compress standard output"
            )));
        }
        // A named pipe is not opened for reading: the command would be a reader of its own output,
        // and would not notice that the other reader has gone.
        let is_file = path.metadata().map_or(true, |about| about.is_file());
        if is_file && kept.is_none() {
            let replacement = Replacement::begin(path)?;
            if let Some(old) = replacement.old() {
                is_free(old, &name, &[], state)?;
            }
            let to = Some(replacement.file().map_err(cannot)?);
            let folder = open_folder(path);
            let sink = Sink { to, name, is_file, folder, ..Sink::default() };
            return Ok((sink, Some(replacement)));
        }
        let mut options = OpenOptions::new();
        options.create(is_file).read(is_file).write(true).truncate(false);
        // In append mode, other processes can append to the file or truncate it at the same time.
        options.append(is_file);
        let file = options.open(path).map_err(cannot)?;
        // The check comes before any change to the file, and after its creation: a file that did
        // not exist may also be named as an input.
        is_free(&file.metadata().map_err(cannot)?, &name, sources, state)?;
        let (to, is_named) = (Some(file), is_file);
        let mut sink = Sink { to, name, is_file, is_named, ..Sink::default() };
        if let (Some(terminator), Some(file), true) = (kept, &mut sink.to, is_file) {
            sink.path = path.canonicalize().ok();
            end_last_line(file, terminator).map_err(cannot)?;
            sink.folder = open_folder(path);
        }
        Ok((sink, None))
    }

    /// Writes whole lines. If that fails halfway, a file is truncated to where it ended before.
    pub fn write(&mut self, lines: &[u8]) -> Result<(), Trouble> {
        let Some(file) = &mut self.to else { return Ok(()) };
        let mut written = 0;
        while written < lines.len() {
            let error = match file.write(&lines[written..]) {
                Ok(0) => ErrorKind::WriteZero.into(),
                Ok(more) => {
                    written += more;
                    continue;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => error,
            };
            let written = written as u64;
            if self.is_file && written > 0 {
                // If this fails, an incomplete line stays. The error is reported either way.
                let _ = take_back(file, written);
            }
            return Err(match error.kind() {
                ErrorKind::BrokenPipe => Trouble::BrokenPipe { written },
                _ => Trouble::Failed(Failure::of(&self.name, &error)),
            });
        }
        Ok(())
    }

    /// Returns the end of the lines written last.
    pub fn end(&mut self) -> Result<u64, Failure> {
        let end = self.to.as_mut().map_or(Ok(0), Seek::stream_position);
        end.map_err(|error| Failure::of(&self.name, &error))
    }

    /// Returns the file to which lines are appended, and its path without links, if it was opened by its name.
    pub fn kept(&self) -> Option<(&Path, &File)> {
        self.path.as_deref().zip(self.to.as_ref())
    }

    /// Writes a text. It is no error if the reader has gone.
    pub fn print(&mut self, text: &str) -> Result<(), Failure> {
        match self.write(text.as_bytes()) {
            Err(Trouble::Failed(failure)) => Err(failure),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Returns the output as a pipe, if it is one that tells what its reader has taken.
    pub fn pipe(&self, rules: Rules, hash: LineHash) -> Option<Pipe> {
        self.to.as_ref().and_then(|file| Pipe::of(file, rules, hash))
    }

    pub fn is_somewhere(&self) -> bool {
        self.to.is_some()
    }

    /// Returns a handle that syncs what was written to the disk.
    pub fn syncer(&self) -> Result<Syncer, Failure> {
        let copy = |file: &Option<File>| match file {
            Some(file) if self.is_file => file.try_clone().map(Some),
            _ => Ok(None),
        };
        let cannot = |error| Failure::of(&self.name, &error);
        let (file, folder) = (copy(&self.to).map_err(cannot)?, copy(&self.folder).map_err(cannot)?);
        let (name, is_named) = (self.name.clone(), self.is_named);
        Ok(Syncer { file, folder, name, is_named, failed: None })
    }

    /// Fails if the file was removed after it had been opened: what was written to it is lost.
    pub fn check_there(&self) -> Result<(), Failure> {
        match self.to.as_ref().filter(|_| self.is_named) {
            Some(file) if is_removed(file) => Err(removed(&self.name)),
            _ => Ok(()),
        }
    }
}

/// Goes to the end of a file. If there is an incomplete line, ends that line.
fn end_last_line(file: &mut File, terminator: u8) -> io::Result<()> {
    let length = file.seek(SeekFrom::End(0))?;
    let mut last = [terminator];
    if length > 0 {
        file.read_exact_at(&mut last, length - 1)?;
    }
    if last == [terminator] { Ok(()) } else { file.write_all(&[terminator]) }
}

/// Returns `true` if no name leads to a file any more. One that was only moved still has a name.
fn is_removed(file: &File) -> bool {
    file.metadata().is_ok_and(|about| about.nlink() == 0)
}

fn removed(name: &str) -> Failure {
    Failure::new(format!("{name}: it was removed during the run, and the lines in it are lost"))
}

/// Checks that an output is neither an input nor the state.
fn is_free(
    file: &Metadata,
    name: &str,
    sources: &[Source],
    state: Option<&Path>,
) -> Result<(), Failure> {
    if let Some(input) = input::that_is(sources, file) {
        return Err(Failure::new(format!(
            "{input} is both input and output (as {name}); write to another file, or to replace this one, without a \
             state, use: -o {input}"
        )));
    }
    match state {
        Some(path) if path.metadata().is_ok_and(|state| is_same(&state, file)) => {
            Err(Failure::new(format!(
                "{}: this is the state; write the lines to another file",
                path.display()
            )))
        }
        _ => Ok(()),
    }
}

/// Truncates a file by the bytes written last, if they are at its end. Another process that appends
/// to the file continues from there.
fn take_back(file: &mut File, written: u64) -> io::Result<()> {
    let end = file.stream_position()?;
    let start = end.checked_sub(written).ok_or(ErrorKind::InvalidInput)?;
    if file.metadata()?.len() == end {
        file.set_len(start)?;
        file.seek(SeekFrom::Start(start))?;
    }
    Ok(())
}

/// Opens the folder of a file. It has to be synced as well, or a new file may be lost in a power
/// failure. Returns `None` on systems that cannot open folders.
fn open_folder(path: &Path) -> Option<File> {
    File::open(folder_of(path)).ok()
}

/// Syncs an output to the disk.
pub struct Syncer {
    file: Option<File>,
    folder: Option<File>,
    name: String,
    is_named: bool,
    failed: Option<Failure>,
}

impl Syncer {
    /// Whether the file was removed after it had been opened.
    pub fn has_lost_file(&self) -> bool {
        self.is_named && self.file.as_ref().is_some_and(is_removed)
    }

    /// Syncs the file. After a failure, every later call fails as well: the data is lost, but the
    /// system reports that only once.
    pub fn sync(&mut self) -> Result<(), Failure> {
        if self.failed.is_none()
            && let Some(file) = &self.file
            && let Err(error) = file.sync_data()
        {
            self.failed = Some(Failure::of(format!("{}: cannot sync", self.name), &error));
        }
        if let Some(failure) = &self.failed {
            return Err(failure.clone());
        }
        if self.has_lost_file() {
            return Err(removed(&self.name));
        }
        // Once is enough, because the name of the file does not change. Errors are ignored, because
        // some systems cannot sync folders.
        if let Some(folder) = self.folder.take() {
            let _ = folder.sync_all();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn after_what_was_taken_back_there_is_no_hole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lines");
        for appends in [false, true] {
            fs::write(&path, "").unwrap();
            let mut file = OpenOptions::new().write(!appends).append(appends).open(&path).unwrap();
            file.write_all(b"whole\nha").unwrap();
            take_back(&mut file, 2).unwrap();
            file.write_all(b"after\n").unwrap();
            assert_eq!(fs::read(&path).unwrap(), b"whole\nafter\n");
        }
    }

    #[test]
    fn what_could_not_be_synced_once_is_not_said_to_be_later() {
        // A pipe cannot be synced.
        let (_reader, pipe) = io::pipe().unwrap();
        let mut syncer = Syncer {
            file: Some(File::from(std::os::fd::OwnedFd::from(pipe))),
            folder: None,
            name: String::from("lines"),
            is_named: false,
            failed: None,
        };
        let first = syncer.sync().unwrap_err().to_string();
        syncer.file = Some(tempfile::tempfile().unwrap());
        assert_eq!(syncer.sync().unwrap_err().to_string(), first);
    }
}
