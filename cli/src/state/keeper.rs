//! The file of a state: it is loaded, claimed and saved here.

use crate::arguments::common::Making;
use crate::failure::Failure;
use crate::state::claim::Claim;
use crate::state::seen::Seen;
use koel::{SnapshotError, SnapshotErrorKind};
use std::path::{Path, PathBuf};

/// The file of a state that this process may replace, and nobody else as long as it has it.
pub struct Keeper {
    path: PathBuf,
    _claim: Claim,
}

impl Keeper {
    pub fn claim(path: &Path) -> Result<Keeper, Failure> {
        if path.as_os_str() == "-" {
            return Err(Failure::new("a state is a file, and cannot come from standard input"));
        }
        let _claim = Claim::lay(path)?;
        if path.metadata().is_ok_and(|file| file.is_file() && file.permissions().readonly()) {
            return Err(Failure::new(format!(
                "{}: it is read-only; allow that it is written to, or work on a copy",
                path.display()
            )));
        }
        Ok(Keeper { path: path.to_path_buf(), _claim })
    }

    /// What was seen in earlier runs, if there were any.
    pub fn load_or_make(&self, making: &Making) -> Result<Seen, Failure> {
        let seen = load_if_there(&self.path, making)?;
        if !self.path.exists() {
            // Better to know now that it cannot be saved.
            self.save(&seen)?;
        }
        Ok(seen)
    }

    pub fn load(&self) -> Result<Seen, Failure> {
        load(&self.path)
    }

    pub fn save(&self, seen: &Seen) -> Result<(), Failure> {
        match seen.save(&self.path) {
            Ok(_) => Ok(()),
            Err(error) if error.is_in_place() => Ok(()),
            Err(error) => Err(Failure::new(error)),
        }
    }
}

/// A state that will only be read, or what it would be if it were there.
pub fn load_if_there(path: &Path, making: &Making) -> Result<Seen, Failure> {
    match Seen::load(path) {
        Ok(seen) => making.accept(seen, path),
        Err(error) if error.kind() == SnapshotErrorKind::NotFound => making.build(),
        Err(error) => Err(cannot_use(&error)),
    }
}

/// A state that will only be read.
pub fn load(path: &Path) -> Result<Seen, Failure> {
    Seen::load(path).map_err(|error| cannot_use(&error))
}

/// An error of loading, in the words of a command.
fn cannot_use(error: &SnapshotError) -> Failure {
    let advice = match error.kind() {
        SnapshotErrorKind::WrongKind
        | SnapshotErrorKind::WrongHasher
        | SnapshotErrorKind::NotASnapshot => "; a state is what dedup or add has saved",
        SnapshotErrorKind::Incomplete | SnapshotErrorKind::Damaged => {
            ", or make it again with koel add from the lines that you have"
        }
        _ => "",
    };
    Failure::new(format!("{error}{advice}"))
}
