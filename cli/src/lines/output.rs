//! Outputs: standard output, a file, or nowhere.

use crate::failure::{End, Failure};
use crate::lines::input::{self, Source};
use crate::lines::replacement::Replacement;
use crate::lines::streams::{is_standard_output, standard_output};
use crate::paths::{is_folder, is_same};
use koel::disk::folder_of;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// An output, by default nowhere. All copies are one.
#[derive(Clone, Default)]
pub struct Sink(Option<Arc<Target>>);

struct Target {
    file: File,
    name: String,
    /// Whether it is a regular file, which can be truncated and synced.
    is_file: bool,
    /// Whether it is a file that had a name when it was opened, so that its lines are lost if it is removed.
    is_named: bool,
    /// Where it is, without links, if it is a file that was opened by its name to be appended to.
    path: Option<PathBuf>,
    /// Why it could not be synced.
    failed: OnceLock<Failure>,
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
        let Some(path) = path.filter(|_| !is_standard_output(path)) else {
            return Ok((Sink::standard(sources, state)?, None));
        };
        let name = path.display().to_string();
        let cannot = |error| Failure::about(path, &error);
        if is_folder(path) {
            return Err(Failure::of(name, "this is a folder; name a file in it"));
        }
        if input::form(path).is_some() {
            let what = "the output is not compressed, but this name is that of a compressed file; choose another \
                        name, or compress standard output";
            return Err(Failure::of(name, what));
        }
        // A named pipe is not opened for reading: the command would be a reader of its own output,
        // and would not notice that the other reader has gone.
        let is_file = path.metadata().map_or(true, |about| about.is_file());
        if is_file && kept.is_none() {
            let replacement = Replacement::begin(path)?;
            if let Some(old) = &replacement.old {
                is_free(old, Some(path), &[], state)?;
            }
            let file = replacement.file().map_err(cannot)?;
            return Ok((Sink::of(file, name, is_file, false, None), Some(replacement)));
        }
        let mut options = OpenOptions::new();
        options.create(is_file).read(is_file).write(true).truncate(false);
        // In append mode, other processes can append to the file or truncate it at the same time.
        options.append(is_file);
        let file = options.open(path).map_err(cannot)?;
        // The check comes before any change to the file, and after its creation: a file that did
        // not exist may also be named as an input.
        is_free(&file.metadata().map_err(cannot)?, Some(path), sources, state)?;
        let mut real_path = None;
        if let (Some(terminator), true) = (kept, is_file) {
            real_path = path.canonicalize().ok();
            end_last_line(&file, terminator).map_err(cannot)?;
        }
        Ok((Sink::of(file, name, is_file, is_file, real_path), None))
    }

    /// Opens standard output. Refuses one that is the state, or an input.
    pub fn standard(sources: &[Source], state: Option<&Path>) -> Result<Sink, Failure> {
        let name = String::from("standard output");
        let file = standard_output().map_err(|error| Failure::of(&name, &error))?;
        let about = file.metadata().map_err(|error| Failure::of(&name, &error))?;
        is_free(&about, None, sources, state)?;
        let is_file = about.is_file();
        let is_named = is_file && about.nlink() > 0;
        Ok(Sink::of(file, name, is_file, is_named, None))
    }

    fn of(file: File, name: String, is_file: bool, is_named: bool, path: Option<PathBuf>) -> Sink {
        let failed = OnceLock::new();
        Sink(Some(Arc::new(Target { file, name, is_file, is_named, path, failed })))
    }

    /// Writes whole lines. If that fails halfway, a file is truncated to where it ended before.
    pub fn write(&self, lines: &[u8]) -> Result<(), End> {
        let Some(target) = &self.0 else { return Ok(()) };
        let mut written = 0;
        while written < lines.len() {
            let error = match (&target.file).write(&lines[written..]) {
                Ok(0) => ErrorKind::WriteZero.into(),
                Ok(more) => {
                    written += more;
                    continue;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => error,
            };
            let written = written as u64;
            if target.is_file && written > 0 {
                // If this fails, an incomplete line stays. The error is reported either way.
                let _ = take_back(&target.file, written);
            }
            return Err(match error.kind() {
                ErrorKind::BrokenPipe => End::BrokenPipe,
                _ => End::Failed(Failure::of(&target.name, &error)),
            });
        }
        Ok(())
    }

    /// Returns the end of the lines written last.
    pub fn end(&self) -> Result<u64, Failure> {
        let Some(target) = &self.0 else { return Ok(0) };
        (&target.file).stream_position().map_err(|error| Failure::of(&target.name, &error))
    }

    /// Returns the file to which lines are appended, and its path without links, if it was opened by its name.
    pub fn kept(&self) -> Option<(&Path, &File)> {
        let target = self.0.as_ref()?;
        Some((target.path.as_deref()?, &target.file))
    }

    /// Writes a text. Returns `false` if the reader has gone, which is no error.
    pub fn print(&self, text: &[u8]) -> Result<bool, Failure> {
        match self.write(text) {
            Err(End::Failed(failure)) => Err(failure),
            written => Ok(written.is_ok()),
        }
    }

    pub fn is_somewhere(&self) -> bool {
        self.0.is_some()
    }

    /// Returns `true` if no name leads to the file any more: what was written to it is lost. One that was only moved
    /// still has a name.
    pub fn is_lost(&self) -> bool {
        let is_removed =
            |target: &Arc<Target>| target.file.metadata().is_ok_and(|about| about.nlink() == 0);
        self.0.as_ref().is_some_and(|target| target.is_named && is_removed(target))
    }

    /// Fails if the file is lost.
    pub fn check_there(&self) -> Result<(), Failure> {
        let Some(target) = self.0.as_ref().filter(|_| self.is_lost()) else { return Ok(()) };
        let what = "it was removed during the run, and the lines in it are lost";
        Err(Failure::of(&target.name, what))
    }

    /// Syncs a file to the disk. After a failure, every later call fails as well: the data is lost, but the system
    /// reports that only once.
    pub fn sync(&self) -> Result<(), Failure> {
        let Some(target) = self.0.as_ref().filter(|target| target.is_file) else { return Ok(()) };
        if target.failed.get().is_none()
            && let Err(error) = target.file.sync_data()
        {
            let failure = Failure::of(format!("{}: cannot sync", target.name), &error);
            target.failed.get_or_init(|| failure);
        }
        if let Some(failure) = target.failed.get() {
            return Err(failure.clone());
        }
        self.check_there()?;
        target.path.iter().for_each(|path| sync_folder_of(path));
        Ok(())
    }
}

/// Syncs the folder of a file, or a new file may be lost in a power failure. Some systems cannot sync folders.
pub fn sync_folder_of(path: &Path) {
    let _ = File::open(folder_of(path)).and_then(|folder| folder.sync_all());
}

/// Goes to the end of a file. If there is an incomplete line, ends that line.
fn end_last_line(mut file: &File, terminator: u8) -> io::Result<()> {
    let length = file.seek(SeekFrom::End(0))?;
    let mut last = [terminator];
    if length > 0 {
        file.read_exact_at(&mut last, length - 1)?;
    }
    if last == [terminator] { Ok(()) } else { file.write_all(&[terminator]) }
}

/// Checks that an output is neither an input nor the state.
pub fn is_free(
    file: &Metadata,
    output: Option<&Path>,
    sources: &[Source],
    state: Option<&Path>,
) -> Result<(), Failure> {
    let name = output.map_or("standard output".into(), |path| path.display().to_string());
    if let Some(input) = input::that_is(sources, file) {
        let named = if let Source::File(path) = input { Some(&**path) } else { output };
        let advice = named.map_or(String::new(), |path| {
            format!(", or to replace this one, without a state, use: -o {}", path.display())
        });
        let input = input.name();
        return Err(Failure::new(format!(
            "{input} is both input and output (as {name}); write to another file{advice}"
        )));
    }
    match state {
        Some(path) if path.metadata().is_ok_and(|state| is_same(&state, file)) => {
            Err(Failure::about(path, "this is the state; write the lines to another file"))
        }
        _ => Ok(()),
    }
}

/// Truncates a file by the bytes written last, if they are at its end. Another process that appends
/// to the file continues from there.
fn take_back(mut file: &File, written: u64) -> io::Result<()> {
    let end = file.stream_position()?;
    let start = end.checked_sub(written).ok_or(ErrorKind::InvalidInput)?;
    if file.metadata()?.len() == end {
        file.set_len(start)?;
        file.seek(SeekFrom::Start(start))?;
    }
    Ok(())
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
            take_back(&file, 2).unwrap();
            file.write_all(b"after\n").unwrap();
            assert_eq!(fs::read(&path).unwrap(), b"whole\nafter\n");
        }
    }

    #[test]
    fn what_could_not_be_synced_once_is_not_said_to_be_later() {
        // A pipe cannot be synced.
        let (_reader, pipe) = io::pipe().unwrap();
        let pipe = File::from(std::os::fd::OwnedFd::from(pipe));
        let sink = Sink::of(pipe, String::from("lines"), true, false, None);
        let first = sink.sync().unwrap_err().to_string();
        let mut target = Arc::into_inner(sink.0.unwrap()).unwrap();
        target.file = tempfile::tempfile().unwrap();
        let sink = Sink(Some(Arc::new(target)));
        assert_eq!(sink.sync().unwrap_err().to_string(), first);
    }
}
