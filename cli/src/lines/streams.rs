//! Standard input, output and error: as files, as what a path leads to, and whether they are open.
//!
//! The standard library opens `/dev/null` in the place of a standard stream that is closed, so that no
//! other file gets its descriptor. Without a check, lines written to a closed standard output would be
//! taken for written. What the library opens can be read and written, unlike what a shell opens for
//! `> /dev/null` or `< /dev/null`. (Some programs open it for both, too, for what they start. The
//! messages therefore say how to discard lines, and how to read none.)

use crate::failure::Failure;
use koel::files::folder_of;
use koel_state::files::is_same;
use rustix::fs::{OFlags, fcntl_getfl};
use std::fs::{self, File, Metadata};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// A stream that lines can be written to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    Output,
    Error,
}

impl Stream {
    pub fn name(self) -> &'static str {
        match self {
            Stream::Output => "standard output",
            Stream::Error => "standard error",
        }
    }

    /// Returns the stream without the standard library's buffer.
    pub fn file(self) -> io::Result<File> {
        match self {
            Stream::Output => copy(io::stdout().as_fd()),
            Stream::Error => copy(io::stderr().as_fd()),
        }
    }

    /// Returns the stream that an output is: standard output without a path, or if it is `-`, or else
    /// the one that the path leads to.
    pub fn of(path: Option<&Path>) -> Result<Option<Stream>, Failure> {
        match path {
            Some(path) if path.as_os_str() != "-" => Stream::at(path),
            _ => Ok(Some(Stream::Output)),
        }
    }

    /// Returns the stream that a path leads to: a name such as `/dev/stdout`, or that of the regular file
    /// behind the stream. Such a file must not be replaced, because the stream would still lead to the
    /// old one.
    fn at(path: &Path) -> Result<Option<Stream>, Failure> {
        match descriptor_at(path) {
            Some(1) => return Ok(Some(Stream::Output)),
            Some(2) => return Ok(Some(Stream::Error)),
            Some(number) if path.metadata().is_ok_and(|file| file.is_file()) => {
                return Err(Failure::new(format!(
                    "{}: to write to an open file, name it as standard output: >&{number}",
                    path.display()
                )));
            }
            // A pipe can be opened by this name, as that of a process substitution.
            Some(_) => return Ok(None),
            None => {}
        }
        let Ok(there) = path.metadata() else { return Ok(None) };
        let is_there = |stream: &Stream| {
            let file = stream.file().and_then(|file| file.metadata());
            file.is_ok_and(|file| is_same(&file, &there))
        };
        Ok([Stream::Output, Stream::Error].into_iter().find(is_there))
    }
}

/// Returns standard input without the standard library's buffer.
pub fn standard_input() -> io::Result<File> {
    copy(io::stdin().as_fd())
}

fn copy(stream: BorrowedFd<'_>) -> io::Result<File> {
    Ok(File::from(stream.try_clone_to_owned()?))
}

/// Checks that standard input was open when the process started.
pub fn check_input() -> Result<(), Failure> {
    check(io::stdin().as_fd(), "standard input", "name a FILE; /dev/null has no lines")
}

/// The same for standard output.
pub fn check_output() -> Result<(), Failure> {
    let advice = "name a file with --output; --output /dev/null discards the lines";
    check(io::stdout().as_fd(), "standard output", advice)
}

fn check(stream: BorrowedFd<'_>, name: &str, advice: &str) -> Result<(), Failure> {
    let is_null = |file: &Metadata| {
        let null = fs::metadata("/dev/null");
        file.file_type().is_char_device() && null.is_ok_and(|null| null.rdev() == file.rdev())
    };
    let is_both = || fcntl_getfl(stream).is_ok_and(|flags| flags & OFlags::RWMODE == OFlags::RDWR);
    match copy(stream).and_then(|file| file.metadata()) {
        Ok(file) if !(is_null(&file) && is_both()) => Ok(()),
        Err(error) => Err(Failure::of(name, &error)),
        Ok(_) => Err(Failure::new(format!(
            "{name} is closed, or it is /dev/null opened for reading and writing; {advice}"
        ))),
    }
}

/// Returns the number of the open file that a path names, such as `/dev/fd/3`, perhaps through links.
fn descriptor_at(path: &Path) -> Option<u32> {
    let of_this_process: Vec<PathBuf> = ["/proc/self/fd", "/proc/thread-self/fd", "/dev/fd"]
        .iter()
        .filter_map(|folder| fs::canonicalize(folder).ok())
        .collect();
    let mut path = path.to_path_buf();
    for _ in 0..40 {
        let folder = fs::canonicalize(folder_of(&path)).ok()?;
        if of_this_process.contains(&folder) {
            return path.file_name()?.to_str()?.parse().ok();
        }
        path = folder.join(fs::read_link(&path).ok()?);
    }
    None
}
