//! One process at a time for each state.
//!
//! The claim is a locked file beside the state, `.NAME.koel-claim`, with the number of the process in it. When the
//! process ends, however it ends, the system gives the lock back; so a claim that was left by a kill is nobody's.

use crate::failure::Failure;
use crate::input;
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
            Failure::of(format!("{}: cannot claim it: {}", state.display(), path.display()), &error)
        };
        // Whoever had it may remove the file between two steps of this one.
        for _ in 0..100 {
            let open =
                OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
            let mut file = open.map_err(cannot)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Err(is_taken(state, file)),
                Err(TryLockError::Error(error)) => return Err(cannot(error)),
            }
            if is_at(&file, &path) {
                let written =
                    file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id()));
                written.map_err(cannot)?;
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

/// The same for all names of one state.
fn beside(state: &Path) -> Result<PathBuf, Failure> {
    let state = match fs::canonicalize(state) {
        Ok(real) => real,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let folder = state.parent().filter(|folder| *folder != Path::new(""));
            let folder = folder.unwrap_or(Path::new("."));
            let real = fs::canonicalize(folder).map_err(|error| Failure::about(folder, &error))?;
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
    input::is_same(&one, &other)
}
