//! Standard input and output: as files, as what a path leads to, and whether they are open.
//!
//! The standard library opens `/dev/null` in the place of a standard stream that is closed, so that no
//! other file gets its descriptor. Without a check, lines written to a closed standard output would be
//! taken for written. What the library opens can be read and written, unlike what a shell opens for
//! `> /dev/null` or `< /dev/null`. (Some programs open it for both, too, for what they start. The
//! messages therefore say how to discard lines, and how to read none.)

use crate::failure::Failure;
use koel_state::files::is_same;
use rustix::fs::{OFlags, fcntl_getfl};
use std::fs::{self, File, Metadata};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

/// Returns whether an output is standard output: without a path, or if it is `-` or `/dev/stdout`, or a path that leads
/// to the same regular file. Such a file must not be replaced, because the stream would still lead to the old one.
pub fn is_standard_output(path: Option<&Path>) -> bool {
    let Some(path) = path else { return true };
    let is_same = || {
        let file = standard_output().and_then(|file| file.metadata());
        file.is_ok_and(|file| path.metadata().is_ok_and(|there| is_same(&file, &there)))
    };
    path.as_os_str() == "-" || path.as_os_str() == "/dev/stdout" || is_same()
}

/// Returns standard output without the standard library's buffer.
pub fn standard_output() -> io::Result<File> {
    copy(io::stdout().as_fd())
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
