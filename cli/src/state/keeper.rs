//! The file of a state: claims, loads and saves it, or looks lines up there; and what is said of a file that cannot be
//! used as a state.

use crate::arguments::common::{Making, Waiting};
use crate::failure::{Failure, without_numbers};
use crate::paths::is_folder;
use crate::state::comparison::LineHash;
use crate::state::seen::{Seen, check_window};
use koel::disk::{Claim, DiskError, Replacement};
use koel::{
    Piece, Prehashed, SnapshotError, SnapshotErrorKind, SnapshotFile, SnapshotInfo, Stats,
    UnreadChanges,
};
use std::fs::{self, File};
use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The file of a state that this process has claimed, so that no other process replaces it.
pub struct Keeper {
    pub path: PathBuf,
    claim: Claim,
    /// Whether this process has created the file.
    pub is_new: bool,
}

impl Keeper {
    pub fn claim(path: &Path, waiting: &Waiting) -> Result<Keeper, Failure> {
        check_path(path)?;
        let claim = Claim::lay(path, Duration::from_secs_f64(waiting.wait))
            .map_err(|error| Failure::new(without_numbers(error)))?;
        if path.metadata().is_ok_and(|file| file.is_file() && file.permissions().readonly()) {
            return Err(Failure::about(path, "it is read-only; make it writable, or use a copy"));
        }
        Ok(Keeper { path: path.to_path_buf(), claim, is_new: false })
    }

    /// The path without links, beside which the note of the output and the journals of other programs are.
    pub fn real_path(&self) -> PathBuf {
        self.claim.claimed()
    }

    /// Loads the state, or creates it if it does not exist.
    pub fn load_or_make(
        &mut self,
        making: &Making,
        notes: &mut Vec<String>,
    ) -> Result<Seen, Failure> {
        if let Some(seen) = find(&self.path, |path| Seen::load(path))? {
            return making.accept(seen, &self.path, notes);
        }
        let seen = making.build(0)?;
        // A state that cannot be saved is reported before any line is written.
        self.save(&seen)?;
        self.is_new = true;
        Ok(seen)
    }

    /// Removes the state again if this process has created it, because the run cannot begin.
    pub fn discard_new(&self) {
        if self.is_new {
            let _ = fs::remove_file(&self.path);
        }
    }

    /// Saves the state. Returns `false` if the new state is in place, and a power failure may bring the old one back.
    pub fn save(&self, seen: &Seen) -> Result<bool, Failure> {
        match seen.save(&self.path) {
            Ok(_) => Ok(true),
            Err(error) if error.is_in_place() => Ok(false),
            Err(error) => Err(cannot_use(&self.path, &error)),
        }
    }

    /// Saves the state while lines go on, unless `goes_on` or `last` gives up. `goes_on` is called all the time, and
    /// `last` once, when the filter is copied and before the state is replaced. Returns the number of items in the
    /// state, and what [`Self::save`] does.
    pub fn save_beside(
        &self,
        seen: &Seen,
        goes_on: impl Fn() -> bool,
        last: impl FnOnce() -> bool,
    ) -> Result<Option<(usize, bool)>, Failure> {
        let failed = |error| cannot_use(&self.path, &error);
        let mut file = Replacement::begin(&self.path).map_err(|error| failed(error.into()))?;
        let items = match seen.write_to(Interruptible { file: &mut file, goes_on: &goes_on }) {
            Err(_) if !goes_on() => return Ok(None),
            copied => copied.map_err(failed)?.items,
        };
        if !last() {
            return Ok(None);
        }
        // As a save does: another program may have opened the state without regard to the claim.
        if UnreadChanges::beside(&self.path).map_err(failed)?.bytes > 0 {
            return Err(Failure::about(&self.path, BEGUN));
        }
        match file.finish() {
            Err(error) if !error.is_in_place() => Err(failed(error.into())),
            finished => Ok(Some((items, finished.is_ok()))),
        }
    }
}

/// A file that is written as long as a run goes on.
struct Interruptible<'a, F> {
    file: &'a mut Replacement,
    goes_on: F,
}

impl<F: Fn() -> bool> Write for Interruptible<'_, F> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !(self.goes_on)() {
            return Err(io::Error::other("the run is to end"));
        }
        self.file.write_all(bytes).map_err(DiskError::into_io_error)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Loads a state, if it is there and this command can change it.
fn find(
    path: &Path,
    load: impl FnOnce(&Path) -> Result<Seen, SnapshotError>,
) -> Result<Option<Seen>, Failure> {
    check_path(path)?;
    check_grows(path)?;
    let seen = match load(path) {
        Err(error) if error.kind() == SnapshotErrorKind::NotFound => return Ok(None),
        loaded => loaded.map_err(|error| cannot_use(path, &error))?,
    };
    check_window(&seen, path)?;
    Ok(Some(seen))
}

/// Loads a state that has to be there, or the chunks of one.
pub fn load(path: &Path) -> Result<Seen, Failure> {
    check_path(path)?;
    if begins_with_piece(path) {
        let seen = assembled(path)?;
        check_window(&seen, path)?;
        return Ok(seen);
    }
    let no_state = || Failure::about(path, NO_STATE);
    find(path, |path| Seen::load(path))?.ok_or_else(no_state)
}

fn begins_with_piece(path: &Path) -> bool {
    let mut begin = [0; Piece::MAGIC.len()];
    File::open(path).is_ok_and(|mut file| file.read_exact(&mut begin).is_ok())
        && begin == Piece::MAGIC
}

/// Reads the pieces that a server dumped, until the filter is complete. What follows is the server's own.
fn assembled(path: &Path) -> Result<Seen, Failure> {
    let refused = |error: SnapshotError| {
        Failure::new(match error.kind() {
            SnapshotErrorKind::Io => format!("{}: {error}", path.display()),
            _ => format!(
                "{}: {error}; a dump has the chunks that CF.SCANDUMP returned, all of them in their order",
                path.display()
            ),
        })
    };
    let file = File::open(path).map_err(|error| Failure::about(path, &error))?;
    let (mut input, mut loader) = (BufReader::new(file), Seen::loader());
    while loader.next().is_some() {
        let is_there = loader.read_from(&mut input).map_err(refused)?;
        let why = if loader.grows() == Some(false) {
            "this filter has a fixed size (EXPANSION 0); only one that grows can be a state"
        } else if !is_there {
            "it ends before the filter is complete; dump it again, until the cursor is 0"
        } else {
            continue;
        };
        return Err(Failure::about(path, why));
    }
    loader.finish().map_err(refused)
}

/// Loads a state that is only read, without claiming it, and without newer changes that are beside it. If it does not
/// exist, builds an empty filter.
pub fn load_to_read(
    path: &Path,
    making: &Making,
    notes: &mut Vec<String>,
) -> Result<Seen, Failure> {
    if let Some(seen) = find(path, |path| SnapshotFile::open_hashed_by(path)?.load())? {
        return making.accept(seen, path, notes);
    }
    notes.push(format!("{}: {NO_STATE} (this run does without)", path.display()));
    making.build(0)
}

/// A state of no more shards, about a megabyte, is checked at once.
const FEW_SHARDS: usize = 16;

/// Opens the file of a state that is only asked. A small one is known to be whole then.
pub fn open(path: &Path) -> Result<SnapshotFile<LineHash>, Failure> {
    check_path(path)?;
    let cannot_use = |error| cannot_use(path, &error);
    let file = SnapshotFile::<LineHash>::open_hashed_by(path).map_err(cannot_use)?;
    if file.info().stats.shards <= FEW_SHARDS {
        file.check().map_err(cannot_use)?;
    }
    Ok(file)
}

/// The filter of a run.
#[allow(clippy::large_enum_variant, reason = "there is one")]
pub enum Filter {
    /// A state that is only asked. Any number of lines is looked up in the file: the first one in a shard reads and checks it, as a load does, so a
    /// load saves little, and its memory would be this process's alone.
    InFile(SnapshotFile<LineHash>, PathBuf),
    Loaded(Seen),
}

impl Filter {
    /// Opens a state that is only asked. One that forgets is loaded, because what is in its file may be forgotten by now.
    pub fn open(path: &Path) -> Result<Self, Failure> {
        let file = open(path)?;
        if file.info().remembers.is_none() {
            return Ok(Filter::InFile(file, path.to_path_buf()));
        }
        let seen = file.load().map_err(|error| cannot_use(path, &error))?;
        seen.keep_up();
        Ok(Filter::Loaded(seen))
    }

    pub fn hasher(&self) -> &LineHash {
        match self {
            Filter::InFile(file, _) => file.hasher(),
            Filter::Loaded(seen) => seen.hasher(),
        }
    }

    /// Looks up the lines with these hashes.
    pub fn find(&self, hashes: &[Prehashed]) -> Result<Vec<bool>, Failure> {
        match self {
            Filter::InFile(file, path) => {
                file.contains_many(hashes).map_err(|error| cannot_use(path, &error))
            }
            Filter::Loaded(seen) => Ok(seen.contains_many(hashes)),
        }
    }

    /// The figures of the state. Its size is what it takes here, and its rate is an estimate if it is not loaded.
    pub fn stats(&self) -> Stats {
        match self {
            Filter::Loaded(seen) => seen.stats(),
            Filter::InFile(file, _) => {
                let mut stats = file.info().stats.clone();
                stats.size_in_bytes = file.size_in_bytes();
                stats
            }
        }
    }
}

/// What is said of a state that another program has opened after this one has taken in all changes.
const BEGUN: &str = "newer changes are in a journal that another program has begun; try again";

/// What to do about a state that is not there.
pub const NO_STATE: &str = "no such state; koel add or koel dedup --state creates one";

/// Checks that a path may be that of a state, which need not be there. Opening a pipe would wait for
/// another process.
pub fn check_path(path: &Path) -> Result<(), Failure> {
    if path.as_os_str() == "-" {
        return Err(Failure::new("a state must be a file, not standard input"));
    }
    let what = match path.metadata() {
        _ if is_folder(path) => "a folder",
        Ok(file) if !file.is_file() => "not a regular file",
        _ => return Ok(()),
    };
    Err(Failure::about(path, format_args!("it is {what}, and a state must be a regular file")))
}

/// Checks that a file does not hold a filter of fixed size, which another program may have saved, by what it says of
/// itself. Any other fault of the file is for the load to find.
pub fn check_grows(path: &Path) -> Result<(), Failure> {
    if SnapshotInfo::read(path).map_or(true, |info| info.stats.grows) {
        return Ok(());
    }
    Err(Failure::about(
        path,
        "it holds a filter of fixed size, which koel query and koel info can read; to change it, \
         use a state saved by dedup or add",
    ))
}

/// Returns an error of loading or saving a state, with advice. The texts of the library address programs.
pub fn cannot_use(path: &Path, error: &SnapshotError) -> Failure {
    let is_empty = path.metadata().is_ok_and(|file| file.len() == 0);
    let path = path.display();
    let text = match error.path() {
        Some(_) => without_numbers(error),
        None => format!("{path}: {}", without_numbers(error)),
    };
    Failure::new(match error.kind() {
        SnapshotErrorKind::NotFound => format!("{path}: {NO_STATE}"),
        SnapshotErrorKind::NotAFile => {
            format!("{path}: it is not a regular file, and a state must be one")
        }
        SnapshotErrorKind::WrongHasher => format!(
            "{path}: it was not saved by this command, and its items were hashed in another way than \
             lines are; use a state saved by dedup or add"
        ),
        SnapshotErrorKind::HasJournal => format!("{path}: {BEGUN}"),
        SnapshotErrorKind::NotASnapshot if is_empty => {
            format!("{path}: it is empty, and a state never is; remove it")
        }
        SnapshotErrorKind::NotASnapshot => format!("{text}; use a state saved by dedup or add"),
        SnapshotErrorKind::Incomplete | SnapshotErrorKind::Damaged => {
            format!("{text}, or move it away and make a new one from the lines with koel add")
        }
        _ => text,
    })
}
