//! Exclusive use of a filter's file by one process at a time.
//!
//! A claim is a locked file next to the filter's, `.NAME.koel-claim`, which contains the process id. The system
//! releases the lock when the process ends, however it ends, so the next process takes over the claim file that a
//! killed process left. It takes back the memory of a killed process first, so the next process may have to wait. It
//! waits for any process that has the lock: the number in the file may be that of a process in another container, so it
//! does not show whether the owner is ending.
//!
//! Other users may write to the folder. Whatever else has the name of the claim, such as a link, is neither followed
//! nor changed.
//!
//! A child that a process forks shares the lock, and the claim stays its parent's: the child does not remove the file.

use crate::disk::error::{DiskError, DiskErrorKind};
use crate::disk::replace::{beside, folder_of, follow, id_of, is_at};
use crate::disk::space::check_limit;
use rustix::fs::OFlags;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process;
use std::thread;
use std::time::{Duration, Instant};

/// Flags with which a link is not followed, and a pipe not waited for, in a folder that others may write to.
pub(crate) fn flags_in_shared_folder() -> i32 {
    (OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY).bits() as i32
}

/// The interval at which a waiting process checks whether the file is free.
const PERIOD: Duration = Duration::from_millis(50);

/// The longest wait: the clock has no time that is much later.
const MOST_WAIT: Duration = Duration::from_secs(1 << 30);

/// An upper bound of the number of bytes in a claim.
const MOST: u64 = 32;

/// Exclusive use of a filter's file, until it is dropped.
#[derive(Debug)]
pub struct Claim {
    /// The claimed file, without links.
    state: PathBuf,
    path: PathBuf,
    file: File,
    process: u32,
}

impl Claim {
    /// Claims the file at a path, which need not exist yet. Waits for another process for at most this time.
    ///
    /// # Errors
    ///
    /// Returns an error if another process uses the file all that time ([`Busy`](DiskErrorKind::Busy)), or if the
    /// claim cannot be laid.
    pub fn lay(name: &Path, wait: Duration) -> Result<Claim, DiskError> {
        Self::beside(name, wait).map_err(|error| error.of_file(name))
    }

    fn beside(name: &Path, wait: Duration) -> Result<Claim, DiskError> {
        let until = Instant::now() + wait.min(MOST_WAIT);
        let state = real_path_of(name)?;
        let path = beside(&state, ".koel-claim").ok_or_else(no_file_name)?;
        let cannot = |error| {
            let doing = format!("cannot create its lock file {}: {error}", path.display());
            DiskError::of_system(doing, error)
        };
        let in_the_way = || {
            let what =
                "is in the way, where its lock file has to be, and is no lock file; remove it";
            DiskError::new(DiskErrorKind::Io, format!("{} {what}", path.display()))
        };
        // The previous owner may remove the file between two steps, so try again.
        let mut tries = 0;
        while tries < 100 {
            tries += 1;
            let mut file = match open(&path) {
                Ok(file) => file,
                // Something that is not a file cannot be opened like one.
                Err(_) if fs::symlink_metadata(&path).is_ok_and(|there| !there.is_file()) => {
                    return Err(in_the_way());
                }
                Err(error) => return Err(cannot(error)),
            };
            let about = file.metadata().map_err(cannot)?;
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
                Err(TryLockError::WouldBlock) => return Err(taken_by(owner(&file))),
                Err(TryLockError::Error(error)) => return Err(cannot(error)),
            }
            if is_at(&file, &path).is_ok_and(|it_is| it_is) {
                if !is_claim(&file) {
                    return Err(in_the_way());
                }
                // The process id is only for messages. If the disk is full, or no file may be so long, saving the
                // filter reports it.
                let emptied = file.set_len(0).and_then(|()| check_limit(MOST));
                let _ = emptied.and_then(|()| writeln!(file, "{}", process::id()));
                return Ok(Claim { state, path, file, process: process::id() });
            }
        }
        let what = "other processes keep claiming it; try again later";
        Err(DiskError::new(DiskErrorKind::Busy, what))
    }

    /// Returns the path of the claimed file, without links.
    #[must_use]
    pub fn claimed(&self) -> PathBuf {
        self.state.clone()
    }

    /// Returns what tells whether the claim is still there.
    pub(crate) fn mark(&self) -> io::Result<Mark> {
        Ok(Mark { path: self.path.clone(), id: id_of(&self.file.metadata()?) })
    }

    /// Returns `true` if this process made the claim, and is not a child of the one that did.
    #[must_use]
    pub fn is_own(&self) -> bool {
        self.process == process::id()
    }
}

/// The identity of a claim's file.
pub(crate) struct Mark {
    path: PathBuf,
    id: (u64, u64),
}

impl Mark {
    /// Fails if the file is gone, or another one has its name: then another process may have claimed the state.
    pub(crate) fn check(&self) -> Result<(), DiskError> {
        if fs::symlink_metadata(&self.path).is_ok_and(|about| id_of(&about) == self.id) {
            return Ok(());
        }
        let gone = format!(
            "its lock file {} is gone, or another file has its name: another process may use the state now, so \
             nothing was written",
            self.path.display()
        );
        Err(DiskError::new(DiskErrorKind::Io, gone))
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

fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(flags_in_shared_folder());
    // A file left by another user may be read-only, but can be locked.
    let writable = options.clone().write(true).create(true).truncate(false).open(path);
    writable.or_else(|error| options.open(path).or(Err(error)))
}

/// Returns `true` if a file has the contents of a claim: a process id, or nothing, because its owner was killed or the
/// disk was full, or zeros, which some file systems leave after a power failure. Leaves the file at its beginning.
fn is_claim(mut file: &File) -> bool {
    let mut text = Vec::new();
    let read = file.take(MOST + 1).read_to_end(&mut text);
    let is_number = text.iter().all(|byte| byte.is_ascii_digit() || *byte == b'\n');
    let is_blank = text.iter().all(|byte| *byte == 0);
    let is_claim = read.is_ok() && text.len() as u64 <= MOST && (is_number || is_blank);
    is_claim && file.rewind().is_ok()
}

fn owner(claim: &File) -> Option<u32> {
    let mut process = String::new();
    let _ = Read::take(claim, MOST).read_to_string(&mut process);
    process.trim().parse().ok()
}

/// The error of a file that is in use, by this process if its number is known.
fn taken_by(owner: Option<u32>) -> DiskError {
    let other = match owner {
        Some(number) if number == process::id() => "this process is using it already".into(),
        Some(number) => format!("process {number} {TAKEN}"),
        None => format!("another process {TAKEN}"),
    };
    DiskError::new(DiskErrorKind::Busy, other)
}

const TAKEN: &str = "is using it; wait for it to end, or use another file";

fn no_file_name() -> DiskError {
    DiskError::new(DiskErrorKind::NotAFile, "this is not the name of a file")
}

/// Returns the path of a state without links, which is the same for all names of it. It need not be there.
fn real_path_of(name: &Path) -> Result<PathBuf, DiskError> {
    if let Ok(real) = fs::canonicalize(name) {
        return Ok(real);
    }
    let state = follow(name)?;
    let folder = folder_of(&state);
    let real = fs::canonicalize(folder).map_err(|error| {
        let what = format!("cannot use its folder {}: {error}", folder.display());
        DiskError::of_system(what, error)
    })?;
    Ok(real.join(state.file_name().ok_or_else(no_file_name)?))
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
