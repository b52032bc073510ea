//! Space for a file, ahead of what is written there.

use std::fs::File;
use std::io;

/// Allocates space in a file, and makes the file that long. Returns `false` if this file system cannot.
pub(crate) fn allocate(file: &File, at: u64, length: u64) -> io::Result<bool> {
    check_limit(at.saturating_add(length))?;
    fallocate(file, at, length)
}

/// Fails if a file must not become so long because of the limit of this process. The system would send a signal, which
/// ends the process.
#[cfg(all(unix, feature = "durable"))]
pub(crate) fn check_limit(bytes: u64) -> io::Result<()> {
    let most = rustix::process::getrlimit(rustix::process::Resource::Fsize).current;
    match most.is_some_and(|most| bytes > most) {
        true => Err(rustix::io::Errno::FBIG.into()),
        false => Ok(()),
    }
}

fn fallocate(file: &File, at: u64, length: u64) -> io::Result<bool> {
    #[cfg(all(
        feature = "durable",
        any(
            target_os = "linux",
            target_os = "android",
            target_os = "freebsd",
            target_vendor = "apple"
        )
    ))]
    loop {
        use rustix::fs::{FallocateFlags, fallocate};
        use rustix::io::Errno;
        match fallocate(file, FallocateFlags::empty(), at, length) {
            Ok(()) => return Ok(true),
            Err(Errno::INTR) => {}
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => break,
            Err(error) => return Err(error.into()),
        }
    }
    let _ = (file, at, length);
    Ok(false)
}

#[cfg(not(all(unix, feature = "durable")))]
pub(crate) fn check_limit(_: u64) -> io::Result<()> {
    Ok(())
}
