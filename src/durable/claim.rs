//! Exclusive use of a filter's file by one process at a time.
//!
//! A claim is a locked file next to the filter's, `.NAME.koel-claim`, which contains the process id.
//! The system releases the lock when the process ends, however it ends. A claim file left by a
//! killed process is therefore unlocked, and the next process takes it over.
//!
//! Other users may write to the folder. Whatever else has the name of the claim, such as a link, is
//! therefore in the way: it is neither followed nor changed.
//!
//! A child that a process forks shares the lock until it closes the file, and the claim stays its parent's:
//! when the child drops it, the file is not removed.

use crate::snapshot::replace::{beside, folder_of, follow, is_at};
use rustix::fs::OFlags;
use std::error::Error;
use std::fmt;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read, Seek, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process;
use std::thread;
use std::time::{Duration, Instant};

/// How often a process that waits looks whether the file is free.
const PERIOD: Duration = Duration::from_millis(50);

/// More bytes than a claim has.
const MOST: u64 = 32;

/// Exclusive use of a filter's file, until it is dropped.
#[derive(Debug)]
pub struct Claim {
    /// The claimed file, without links.
    state: PathBuf,
    path: PathBuf,
    file: File,
    /// The process that laid it.
    process: u32,
}

impl Claim {
    /// Claims the file at a path, which need not exist yet. Waits so long for another process.
    ///
    /// # Errors
    ///
    /// Returns an error if another process uses the file all that time, or if the claim cannot be laid.
    pub fn lay(state: &Path, wait: Duration) -> Result<Claim, ClaimError> {
        let until = Instant::now() + wait;
        let name = state;
        let state = real_path_of(name)?;
        let path = beside(&state, ".koel-claim").ok_or_else(|| no_file_name(name))?;
        let doing = format!("cannot create its lock file {}: ", path.display());
        let cannot = ClaimError::io(name, doing);
        let in_the_way = || {
            let what =
                "is in the way, where its lock file has to be, and is no lock file; remove it";
            ClaimError::new(name, format_args!("{} {what}", path.display()))
        };
        // The previous owner may remove the file between two steps, so try again.
        let mut tries = 0;
        while tries < 100 {
            tries += 1;
            let mut file = match open(&path) {
                Ok(file) => file,
                // What cannot be opened as a file, because it is none.
                Err(_) if fs::symlink_metadata(&path).is_ok_and(|there| !there.is_file()) => {
                    return Err(in_the_way());
                }
                Err(error) => return Err(cannot(error)),
            };
            let about = file.metadata().map_err(&cannot)?;
            if !about.is_file() || about.nlink() > 1 {
                return Err(in_the_way());
            }
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) if Instant::now() < until => {
                    thread::sleep(PERIOD.min(until.saturating_duration_since(Instant::now())));
                    tries = 0;
                    continue;
                }
                Err(TryLockError::WouldBlock) => return Err(taken(name, owner(&file))),
                Err(TryLockError::Error(error)) => return Err(cannot(error)),
            }
            if is_at(&file, &path).is_ok_and(|it_is| it_is) {
                if !is_claim(&file) {
                    return Err(in_the_way());
                }
                // The process id is only for messages. If the disk is full, saving the filter
                // reports it.
                let _ = file.set_len(0).and_then(|()| writeln!(file, "{}", process::id()));
                return Ok(Claim { state, path, file, process: process::id() });
            }
        }
        Err(ClaimError::taken(name, "other processes keep claiming it; try again later"))
    }

    /// Returns the path of the claimed file, without links.
    #[must_use]
    pub fn claimed(&self) -> PathBuf {
        self.state.clone()
    }

    /// Returns `true` if this process laid it, and not one that has forked since.
    #[must_use]
    pub fn is_own(&self) -> bool {
        self.process == process::id()
    }
}

/// Why a file could not be claimed. Its text names the file and says what to do.
#[derive(Debug)]
pub struct ClaimError {
    text: String,
    /// Whether another process uses the file.
    is_taken: bool,
    cause: Option<io::Error>,
}

impl ClaimError {
    fn new(state: &Path, what: impl fmt::Display) -> Self {
        let text = format!("{}: {what}", state.display());
        ClaimError { text, is_taken: false, cause: None }
    }

    fn taken(state: &Path, what: impl fmt::Display) -> Self {
        ClaimError { is_taken: true, ..ClaimError::new(state, what) }
    }

    /// The error of the system. `doing` says what failed.
    fn io(state: &Path, doing: impl fmt::Display) -> impl Fn(io::Error) -> Self {
        let doing = format!("{doing}");
        move |error| {
            let error_of = ClaimError::new(state, format_args!("{doing}{error}"));
            ClaimError { cause: Some(error), ..error_of }
        }
    }

    /// Returns `true` if another process uses the file.
    #[must_use]
    pub fn is_taken(&self) -> bool {
        self.is_taken
    }

    /// Returns the error of the system, if the system reported one.
    #[must_use]
    pub fn io_error(&self) -> Option<&io::Error> {
        self.cause.as_ref()
    }
}

impl fmt::Display for ClaimError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Error for ClaimError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.io_error().map(|error| error as _)
    }
}

impl Drop for Claim {
    /// Removes the file before the lock is released. After that, it may belong to another process.
    fn drop(&mut self) {
        if self.is_own() && is_at(&self.file, &self.path).is_ok_and(|it_is| it_is) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Opens or creates a claim, without following a link and without waiting for the other end of a pipe.
fn open(path: &Path) -> io::Result<File> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY).bits() as i32;
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(flags);
    // A file left by another user may be read-only, but can be locked.
    let writable = options.clone().write(true).create(true).truncate(false).open(path);
    writable.or_else(|error| options.open(path).or(Err(error)))
}

/// Returns `true` if a file holds what a claim holds: a process id, or nothing, because its owner was
/// killed or the disk was full, or zeros, which some file systems leave after a power failure. Leaves the file at its
/// beginning.
fn is_claim(mut file: &File) -> bool {
    let mut text = Vec::new();
    let read = file.take(MOST + 1).read_to_end(&mut text);
    let is_number = text.iter().all(|byte| byte.is_ascii_digit() || *byte == b'\n');
    let is_blank = text.iter().all(|byte| *byte == 0);
    let is_claim = read.is_ok() && text.len() as u64 <= MOST && (is_number || is_blank);
    is_claim && file.rewind().is_ok()
}

/// Returns the process whose claim this is, if it says so.
fn owner(claim: &File) -> Option<u32> {
    let mut process = String::new();
    let _ = Read::take(claim, MOST).read_to_string(&mut process);
    process.trim().parse().ok()
}

/// The error of a file that is in use, by this process if its number is known.
fn taken(state: &Path, by: Option<u32>) -> ClaimError {
    let other = match by {
        Some(number) if number == process::id() => {
            return ClaimError::taken(state, "this process is using it already");
        }
        Some(number) => format!("process {number}"),
        None => "another process".into(),
    };
    let what = format_args!("{other} is using it; wait for it to end, or use another file");
    ClaimError::taken(state, what)
}

fn no_file_name(state: &Path) -> ClaimError {
    ClaimError::new(state, "this is not the name of a file")
}

/// Returns the path of a state without links, which is the same for all names of it. It need not be there.
fn real_path_of(name: &Path) -> Result<PathBuf, ClaimError> {
    match fs::canonicalize(name) {
        Ok(real) => Ok(real),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let state =
                follow(name).map_err(|error| ClaimError::io(name, "")(error.into_io_error()))?;
            let folder = folder_of(&state);
            let real = fs::canonicalize(folder).map_err(ClaimError::io(
                name,
                format_args!("cannot use its folder {}: ", folder.display()),
            ))?;
            Ok(real.join(state.file_name().ok_or_else(|| no_file_name(name))?))
        }
        Err(error) => Err(ClaimError::io(name, "")(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn all_names_of_a_state_have_one_claim_also_before_it_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        fs::create_dir(folder.join("below")).unwrap();
        symlink("below/state", folder.join("link")).unwrap();
        symlink("../link", folder.join("below/link-to-link")).unwrap();
        let real = folder.canonicalize().unwrap().join("below/state");
        for is_there in [false, true] {
            if is_there {
                fs::write(folder.join("below/state"), "").unwrap();
            }
            for name in ["link", "below/link-to-link", "below/state", "below/../below/state"] {
                assert_eq!(real_path_of(&folder.join(name)).unwrap(), real, "{name}, {is_there}");
            }
        }
    }

    #[test]
    fn a_state_is_claimed_once_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path().join("state");
        let claim = Claim::lay(&state, Duration::ZERO).unwrap();
        let said = Claim::lay(&state, Duration::ZERO).err().unwrap().to_string();
        assert!(said.ends_with("this process is using it already"), "{said}");
        drop(claim);
        Claim::lay(&state, Duration::ZERO).unwrap();
    }
}
