//! Exclusive use of a state by one process at a time.
//!
//! A claim is a locked file next to the state, `.NAME.koel-claim`, which contains the process id.
//! The system releases the lock when the process ends, however it ends. A claim file left by a
//! killed process is therefore unlocked, and the next process takes it over.
//!
//! Other users may write to the folder. Whatever else has the name of the claim, such as a link, is
//! therefore in the way: it is neither followed nor changed.

use crate::failure::Failure;
use crate::files::{folder_of, follow, is_same};
use koel::StableHash;
use rustix::fs::OFlags;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read, Seek, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// How often a process that waits looks whether the state is free.
const PERIOD: Duration = Duration::from_millis(50);

/// More bytes than a claim has.
const MOST: u64 = 32;

/// Exclusive use of a state, until it is dropped.
pub struct Claim {
    path: PathBuf,
    file: File,
}

impl Claim {
    /// Claims the state at a path, which need not exist yet. Waits so long for another process.
    pub fn lay(state: &Path, wait: Duration) -> Result<Claim, Failure> {
        let until = Instant::now() + wait;
        let path = beside(state)?;
        let cannot = |error| {
            let (state, claim) = (state.display(), path.display());
            Failure::of(format!("{state}: cannot create its lock file {claim}"), &error)
        };
        // The previous owner may remove the file between two steps, so try again.
        let mut tries = 0;
        while tries < 100 {
            tries += 1;
            let mut file = match open(&path) {
                Ok(file) => file,
                // What cannot be opened as a file, because it is none.
                Err(_) if fs::symlink_metadata(&path).is_ok_and(|there| !there.is_file()) => {
                    return Err(in_the_way(state, &path));
                }
                Err(error) => return Err(cannot(error)),
            };
            let about = file.metadata().map_err(cannot)?;
            if !about.is_file() || about.nlink() > 1 {
                return Err(in_the_way(state, &path));
            }
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) if Instant::now() < until => {
                    thread::sleep(PERIOD.min(until.saturating_duration_since(Instant::now())));
                    tries = 0;
                    continue;
                }
                Err(TryLockError::WouldBlock) => return Err(is_taken(state, file)),
                Err(TryLockError::Error(error)) => return Err(cannot(error)),
            }
            if is_at(&file, &path) {
                if !is_claim(&file) {
                    return Err(in_the_way(state, &path));
                }
                // The process id is only for messages. If the disk is full, saving the state
                // reports it.
                let _ = file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id()));
                return Ok(Claim { path, file });
            }
        }
        Err(Failure::new(format!(
            "{}: other processes keep claiming it; try again later",
            state.display()
        )))
    }
}

impl Drop for Claim {
    /// Removes the file before the lock is released. After that, it may belong to another process.
    fn drop(&mut self) {
        if is_at(&self.file, &self.path) {
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
/// killed or the disk was full. Leaves the file at its beginning.
fn is_claim(mut file: &File) -> bool {
    let mut text = Vec::new();
    let read = file.take(MOST + 1).read_to_end(&mut text);
    let of_number = |byte: &u8| byte.is_ascii_digit() || *byte == b'\n';
    read.is_ok() && text.len() as u64 <= MOST && text.iter().all(of_number) && file.rewind().is_ok()
}

fn in_the_way(state: &Path, claim: &Path) -> Failure {
    Failure::new(format!(
        "{}: {} is in the way, where its lock file has to be, and is no lock file; remove it",
        state.display(),
        claim.display()
    ))
}

fn is_taken(state: &Path, claim: File) -> Failure {
    let mut process = String::new();
    let _ = Read::take(&claim, MOST).read_to_string(&mut process);
    let owner = match process.trim().parse::<u32>() {
        Ok(number) => format!("process {number}"),
        Err(_) => String::from("another process"),
    };
    Failure::new(format!(
        "{}: {owner} is using it; wait for it to end, or use another state",
        state.display()
    ))
}

/// Returns the path of the claim file, which is the same for all names of one state.
fn beside(state: &Path) -> Result<PathBuf, Failure> {
    let state = match fs::canonicalize(state) {
        Ok(real) => real,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let state = follow(state);
            let folder = folder_of(&state);
            let real = fs::canonicalize(folder).map_err(|error| {
                Failure::of(
                    format!("{}: cannot use its folder {}", state.display(), folder.display()),
                    &error,
                )
            })?;
            let name = state.file_name().ok_or_else(|| {
                Failure::new(format!(
                    "{}: this is not a file name; a state must be a file",
                    state.display()
                ))
            })?;
            real.join(name)
        }
        Err(error) => return Err(Failure::about(state, &error)),
    };
    let name = state.file_name().unwrap_or_default();
    let mut claim = OsString::from(".");
    // File names have at most 255 bytes, or 143 in encrypted folders.
    if name.len() <= 130 {
        claim.push(name);
    } else {
        let hash = StableHash::with_seed(0).hash_bytes(name.as_encoded_bytes());
        claim.push(format!("{hash:016x}"));
    }
    claim.push(".koel-claim");
    Ok(state.with_file_name(claim))
}

/// Returns `true` if a file is still the one at a path, and the path is no link.
fn is_at(file: &File, path: &Path) -> bool {
    let (Ok(one), Ok(other)) = (file.metadata(), fs::symlink_metadata(path)) else { return false };
    is_same(&one, &other)
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
        let claim = folder.canonicalize().unwrap().join("below/.state.koel-claim");
        for is_there in [false, true] {
            if is_there {
                fs::write(folder.join("below/state"), "").unwrap();
            }
            for name in ["link", "below/link-to-link", "below/state", "below/../below/state"] {
                assert_eq!(beside(&folder.join(name)).unwrap(), claim, "{name}, {is_there}");
            }
        }
    }

    #[test]
    fn a_state_is_claimed_once_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path().join("state");
        let claim = Claim::lay(&state, Duration::ZERO).unwrap();
        let said = Claim::lay(&state, Duration::ZERO).err().unwrap().to_string();
        assert!(said.contains(&format!("process {} is using it", std::process::id())), "{said}");
        drop(claim);
        Claim::lay(&state, Duration::ZERO).unwrap();
    }
}
