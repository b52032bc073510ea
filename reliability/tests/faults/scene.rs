//! A folder with or without an old file, and checks of its state after a save.

use crate::child::saving;
use crate::common::bytes_of;
use crate::kind::{Fixed, Growing, Kind, Saved};
use crate::process::names;
use crate::strace::{Watched, watch};
use std::fs::{self, Permissions};
use std::io::ErrorKind;
use std::ops::Range;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The items of the old file.
pub const OLD: Range<u64> = 0..5_000;
/// The items that the new file has in addition.
pub const NEW: Range<u64> = 5_000..40_000;

/// The capacity of the filters.
pub const CAPACITY: usize = 300_000;

pub const NAME: &str = "seen.koel";
pub const BESIDE: &str = ".seen.koel.koel-saving";

/// Runs a test for both kinds of filters in parallel, because each mostly waits.
pub fn both(test: impl Fn(Kind) + Sync) {
    std::thread::scope(|scope| {
        scope.spawn(|| test(Fixed));
        test(Growing);
    });
}

/// A save, and its system calls.
pub fn saved(kind: Kind, before: Option<&[u8]>) -> (Scene<'_>, Watched) {
    let scene = Scene::new(kind, before);
    let whole = watch(&saving(kind, &scene.path), &[]);
    assert_eq!(whole.outcome.as_deref(), Some("done"));
    (scene, whole)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    Nothing,
    Old,
    New,
}

/// Returns the bytes of a file with the old items.
pub fn old_file(kind: Kind) -> Vec<u8> {
    let filter = kind.filter(CAPACITY);
    OLD.for_each(|item| filter.insert(&item).expect("room"));
    bytes_of(&filter)
}

pub struct Scene<'a> {
    folder: tempfile::TempDir,
    pub path: PathBuf,
    before: Option<&'a [u8]>,
    kind: Kind,
}

impl<'a> Scene<'a> {
    pub fn new(kind: Kind, before: Option<&'a [u8]>) -> Self {
        // In memory if possible: the tests do not need a disk, and take half the time without one.
        let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
        let folder = folder.expect("a folder");
        let path = folder.path().join(NAME);
        if let Some(bytes) = before {
            fs::write(&path, bytes).expect("a file");
            fs::set_permissions(&path, Permissions::from_mode(0o640)).expect("my own file");
        }
        Scene { folder, path, before, kind }
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the state before the save.
    pub fn before(&self) -> Holds {
        self.before.map_or(Holds::Nothing, |_| Holds::Old)
    }

    /// Returns the state now, and checks that the file is complete.
    pub fn holds(&self) -> Holds {
        let bytes = match fs::read(&self.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Holds::Nothing,
            bytes => bytes.expect("a file"),
        };
        if self.before.is_some() {
            let mode = fs::metadata(&self.path).expect("a file").permissions().mode();
            assert_eq!(mode & 0o7777, 0o640, "the permissions have changed");
        }
        if self.before == Some(&bytes) {
            return Holds::Old;
        }
        let filter = Saved::load(&self.path).expect("a whole file");
        let mut must = OLD.start..NEW.end;
        assert!(must.all(|item| filter.contains(&item)), "an item is lost");
        Holds::New
    }

    /// Returns whether there is an unfinished file, and checks that there are no further files.
    pub fn has_unfinished(&self) -> bool {
        let mut names = names(self.folder());
        names.retain(|name| name != NAME);
        assert!(names.is_empty() || names == [BESIDE], "{names:?}");
        !names.is_empty()
    }

    /// Loads the file, if there is one, and saves it again with one more item.
    pub fn go_on(&self) {
        let load = || Saved::load(&self.path).expect("a whole file");
        let was = self.holds();
        let filter = if was == Holds::Nothing { self.kind.filter(CAPACITY) } else { load() };
        filter.insert("one more").expect("room");
        filter.save(&self.path).expect("nothing is in the way");
        assert!(!self.has_unfinished(), "a save has left an unfinished file");
        let again = load();
        assert!(again.contains("one more"));
        let mut must = match was {
            Holds::Nothing => 0..0,
            Holds::Old => OLD,
            Holds::New => OLD.start..NEW.end,
        };
        assert!(must.all(|item| again.contains(&item)), "an item is lost");
    }
}
