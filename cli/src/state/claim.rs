//! One process at a time for each state.
//!
//! The claim is a locked file beside the state, `.NAME.koel-claim`, with the number of the process in it. When the
//! process ends, however it ends, the system gives the lock back; so a claim that was left by a kill is nobody's.

use crate::failure::Failure;
use crate::files::{folder_of, is_same};
use koel::StableHash;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

/// While this is there, nobody else has the state.
pub struct Claim {
    path: PathBuf,
    _file: File,
}

impl Claim {
    /// Claims the state at this path, which need not be there yet.
    pub fn lay(state: &Path) -> Result<Claim, Failure> {
        let path = beside(state)?;
        let cannot = |error| {
            let (state, claim) = (state.display(), path.display());
            Failure::of(
                format!("{state}: cannot be locked by {claim}, which has to be made beside it"),
                &error,
            )
        };
        // Whoever had it may remove the file between two steps of this one.
        for _ in 0..100 {
            let open =
                OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
            // One that another user has left can be locked, if not written to.
            let mut file =
                open.or_else(|error| File::open(&path).or(Err(error))).map_err(cannot)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Err(is_taken(state, file)),
                Err(TryLockError::Error(error)) => return Err(cannot(error)),
            }
            if is_at(&file, &path) {
                // So that others can be told; a full disk will be told by the state itself.
                let _ = file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id()));
                return Ok(Claim { path, _file: file });
            }
        }
        Err(Failure::new(format!("{}: other processes claim it again and again", state.display())))
    }
}

impl Drop for Claim {
    /// Before the lock is given back, or the file may be another's.
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

fn is_taken(state: &Path, claim: File) -> Failure {
    let mut process = String::new();
    let _ = Read::take(&claim, 32).read_to_string(&mut process);
    let who = match process.trim().parse::<u32>() {
        Ok(number) => format!("process {number}"),
        Err(_) => String::from("another process"),
    };
    Failure::new(format!(
        "{}: {who} is using it; wait for it to end, or use another state",
        state.display()
    ))
}

/// Where a path leads if it is a link to something that is not there yet, which is where a state will be made.
fn follow(path: &Path) -> PathBuf {
    let mut path = path.to_path_buf();
    // As many as the system follows.
    for _ in 0..40 {
        let Ok(to) = fs::read_link(&path) else { break };
        path = folder_of(&path).join(to);
    }
    path
}

/// The same for all names of one state.
fn beside(state: &Path) -> Result<PathBuf, Failure> {
    let state = match fs::canonicalize(state) {
        Ok(real) => real,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let state = follow(state);
            let folder = folder_of(&state);
            let real = fs::canonicalize(folder).map_err(|error| {
                Failure::of(
                    format!("{}: its folder, {}", state.display(), folder.display()),
                    &error,
                )
            })?;
            let name = state.file_name().ok_or_else(|| {
                Failure::new(format!(
                    "{}: a state is a file, and this cannot be one",
                    state.display()
                ))
            })?;
            real.join(name)
        }
        Err(error) => return Err(Failure::about(state, &error)),
    };
    let name = state.file_name().unwrap_or_default();
    let mut claim = OsString::from(".");
    // Names have 255 bytes at most, or 143 in encrypted folders.
    if name.len() <= 130 {
        claim.push(name);
    } else {
        let hash = StableHash::with_seed(0).hash_bytes(name.as_encoded_bytes());
        claim.push(format!("{hash:016x}"));
    }
    claim.push(".koel-claim");
    Ok(state.with_file_name(claim))
}

fn is_at(file: &File, path: &Path) -> bool {
    let (Ok(one), Ok(other)) = (file.metadata(), fs::metadata(path)) else { return false };
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
        let claim = Claim::lay(&state).unwrap();
        let said = Claim::lay(&state).err().unwrap().to_string();
        assert!(said.contains(&format!("process {} is using it", std::process::id())), "{said}");
        drop(claim);
        Claim::lay(&state).unwrap();
    }
}
