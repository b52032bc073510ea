//! Standard input and output: as files, as what a path leads to, and whether they are open.
//!
//! The standard library opens `/dev/null` in the place of a standard stream that is closed, so that no
//! other file gets its descriptor. Without a check, lines written to a closed standard output would be
//! taken for written. What the library opens can be read and written, unlike what a shell opens for
//! `> /dev/null`. (Some programs open it for both, too, for what they start. The message therefore says
//! how to discard lines.)

use crate::failure::Failure;
use crate::paths::is_same;
use rustix::fs::{OFlags, fcntl_getfl};
use std::fs::{self, File, Metadata};
use std::io;
use std::os::fd::AsFd;
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
    Ok(File::from(io::stdout().as_fd().try_clone_to_owned()?))
}

/// Returns standard input without the standard library's buffer.
pub fn standard_input() -> io::Result<File> {
    Ok(File::from(io::stdin().as_fd().try_clone_to_owned()?))
}

/// Returns whether a standard stream was open when the process started.
pub fn was_open(stream: &File) -> io::Result<bool> {
    let is_null = |file: &Metadata| {
        let null = fs::metadata("/dev/null");
        file.file_type().is_char_device() && null.is_ok_and(|null| null.rdev() == file.rdev())
    };
    let is_both = fcntl_getfl(stream).is_ok_and(|flags| flags & OFlags::RWMODE == OFlags::RDWR);
    Ok(!(is_null(&stream.metadata()?) && is_both))
}

/// Checks that standard output was open when the process started.
pub fn check_output() -> Result<(), Failure> {
    match standard_output().and_then(|stream| was_open(&stream)) {
        Ok(true) => Ok(()),
        Err(error) => Err(Failure::of("standard output", &error)),
        Ok(false) => Err(Failure::new(
            "standard output is closed, or it is /dev/null opened for reading and writing; name a file with --output; \
             --output /dev/null discards the lines",
        )),
    }
}
