//! Space on disk for what is about to be written.

use std::fs::File;
use std::io;

/// Allocates space in a file, and makes it that long. Returns `false` if this file system cannot.
#[cfg(any(
    target_os = "linux",
    target_os = "android",
    target_os = "freebsd",
    target_vendor = "apple"
))]
pub fn allocate(file: &File, at: u64, length: u64) -> io::Result<bool> {
    use rustix::fs::FallocateFlags;
    use rustix::io::Errno;
    loop {
        match rustix::fs::fallocate(file, FallocateFlags::empty(), at, length) {
            Ok(()) => return Ok(true),
            Err(Errno::INTR) => {}
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(not(any(
    target_os = "linux",
    target_os = "android",
    target_os = "freebsd",
    target_vendor = "apple"
)))]
pub fn allocate(_: &File, _: u64, _: u64) -> io::Result<bool> {
    Ok(false)
}
