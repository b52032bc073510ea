//! A disk that has only what was synced.

use libc::{c_char, c_int};
use reliability::common::SplitMix;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Bytes that a disk writes as a whole.
const SECTORS: [usize; 2] = [512, 4_096];

/// Names and the numbers of their files.
type Names = BTreeMap<String, u64>;

static DISK: Mutex<Option<Disk>> = Mutex::new(None);

fn disk() -> MutexGuard<'static, Option<Disk>> {
    DISK.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A folder, and what of it would survive a power failure.
pub struct Disk {
    folder: PathBuf,
    /// Number of the folder.
    number: u64,
    /// The names at the last sync of the folder, and then after each change.
    names: Vec<Names>,
    /// All files that have or had names since.
    files: BTreeMap<u64, File>,
    /// Their bytes at their last sync.
    synced: BTreeMap<u64, Vec<u8>>,
    /// The bytes of a journal that was removed.
    gone: Vec<u8>,
}

/// What a power failure has left.
pub struct Image {
    files: BTreeMap<String, Vec<u8>>,
    pub about: String,
}

impl Image {
    pub fn write(&self, folder: &Path) {
        for (name, bytes) in &self.files {
            fs::write(folder.join(name), bytes).expect("a file");
        }
    }
}

/// The images of a disk that are made before each of its syncs and changes of names, as long as they are wanted.
static WANTED: Mutex<Option<(SplitMix, Vec<Image>)>> = Mutex::new(None);

/// The number of images before a call.
const OF_A_CALL: usize = 4;

fn read(file: &File) -> Vec<u8> {
    let length = file.metadata().expect("a file").len() as usize;
    let mut bytes = vec![0; length];
    let mut done = 0;
    while done < length {
        match file.read_at(&mut bytes[done..], done as u64).expect("bytes") {
            0 => break,
            more => done += more,
        }
    }
    bytes.truncate(done);
    bytes
}

impl Disk {
    /// Has this folder from now on. All that is there is synced.
    pub fn insert(folder: &Path) {
        let number = folder.metadata().expect("a folder").ino();
        let (files, synced, gone) = Default::default();
        let mut new =
            Disk { folder: folder.into(), number, names: Vec::new(), files, synced, gone };
        new.list();
        new.synced = new.files.iter().map(|(number, file)| (*number, read(file))).collect();
        *disk() = Some(new);
    }

    pub fn remove() {
        *disk() = None;
    }

    /// Fails now. `answered` is called before anything else can be synced.
    pub fn fail<A>(random: &mut SplitMix, answered: impl FnOnce() -> A) -> (Image, A) {
        let mut disk = disk();
        let disk = disk.as_mut().expect("a disk");
        let answered = answered();
        disk.list();
        (disk.image(random), answered)
    }

    /// Looks which names there are now.
    fn list(&mut self) {
        let mut names = Names::new();
        for entry in fs::read_dir(&self.folder).expect("a folder") {
            let name = entry.expect("an entry").file_name().into_string().expect("text");
            // It may be gone by now, and the lock file has nothing to lose.
            let Ok(file) = File::open(self.folder.join(&name)) else { continue };
            if !name.ends_with("claim") {
                let number = file.metadata().expect("a file").ino();
                names.insert(name, number);
                self.files.entry(number).or_insert(file);
            }
        }
        if self.names.last() != Some(&names) {
            self.names.push(names);
        }
    }

    fn sync_names(&mut self) {
        self.list();
        self.names.drain(..self.names.len() - 1);
        let kept: Vec<u64> = self.names[0].values().copied().collect();
        if let Some((_, gone)) = self.files.iter().find(|(number, _)| !kept.contains(number)) {
            self.gone = read(gone);
        }
        self.files.retain(|number, _| kept.contains(number));
        self.synced.retain(|number, _| kept.contains(number));
    }

    /// Returns images of a power failure before each call of `act`, and after the last one.
    pub fn images_of(seed: u64, act: impl FnOnce()) -> Vec<Image> {
        let wanted = || WANTED.lock().unwrap_or_else(PoisonError::into_inner);
        *wanted() = Some((SplitMix(seed), Vec::new()));
        act();
        if let Some(disk) = &mut *disk() {
            disk.note();
        }
        wanted().take().map_or(Vec::new(), |(_, images)| images)
    }

    fn note(&mut self) {
        let mut wanted = WANTED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((random, images)) = &mut *wanted {
            self.list();
            images.extend((0..OF_A_CALL).map(|_| self.image(random)));
        }
    }

    /// Syncs an open file or folder.
    fn sync(&mut self, file: &File) {
        let number = file.metadata().expect("a file").ino();
        if number == self.number {
            self.sync_names();
            return;
        }
        if !self.files.contains_key(&number) {
            self.list();
        }
        if self.files.contains_key(&number) {
            self.synced.insert(number, read(file));
        }
    }

    fn image(&self, random: &mut SplitMix) -> Image {
        // Of the changes of names, some in their order, or each name for itself.
        let in_order = random.less_than(2) == 0;
        let some = random.less_than(self.names.len() as u64) as usize;
        let mut names = self.names[some].clone();
        if !in_order {
            let all = self.names.iter().flat_map(Names::keys);
            let all: std::collections::BTreeSet<String> = all.cloned().collect();
            names = Names::new();
            for name in all {
                let of_name = &self.names[random.less_than(self.names.len() as u64) as usize];
                if let Some(number) = of_name.get(&name) {
                    names.insert(name, *number);
                }
            }
        }
        let odds = [0, 1, 5, 9, 10][random.less_than(5) as usize];
        let sector = SECTORS[random.less_than(2) as usize];
        let has_stale = random.less_than(4) == 0;
        let mut left = BTreeMap::new();
        for (name, number) in names {
            let old = self.synced.get(&number).map_or(&[][..], Vec::as_slice);
            let new = read(&self.files[&number]);
            let shorter = old.len().min(new.len());
            let length = match random.less_than(3) {
                0 => old.len(),
                1 => new.len(),
                _ => {
                    let more = (old.len().max(new.len()) - shorter).div_ceil(sector);
                    shorter + sector * random.less_than(1 + more as u64) as usize
                }
            };
            let mut bytes = vec![0; length.min(old.len().max(new.len()))];
            // Where a journal has grown, there may be what the disk had there before. It grows when its header is
            // synced.
            if has_stale && !old.is_empty() && name.contains("journal") {
                let stale = old.len()..bytes.len().min(self.gone.len());
                if !stale.is_empty() {
                    bytes[stale.clone()].copy_from_slice(&self.gone[stale]);
                }
            }
            for (at, left) in bytes.chunks_mut(sector).enumerate() {
                let from = if random.less_than(10) < odds { &new[..] } else { old };
                let from = from.get(at * sector..).unwrap_or_default();
                let count = from.len().min(left.len());
                left[..count].copy_from_slice(&from[..count]);
            }
            left.insert(name, bytes);
        }
        let about = format!(
            "names {some} of {}{}, {odds} of 10 sectors of {sector} bytes, files {:?}",
            self.names.len(),
            if in_order { "" } else { " each for itself" },
            left.iter().map(|(name, bytes)| (name, bytes.len())).collect::<Vec<_>>()
        );
        Image { files: left, about }
    }
}

fn synced(descriptor: c_int) -> c_int {
    // SAFETY: the caller has it open, also while this lasts.
    let borrowed = unsafe { BorrowedFd::borrow_raw(descriptor) };
    let own: OwnedFd = borrowed.try_clone_to_owned().expect("a descriptor");
    if let Some(disk) = &mut *disk() {
        disk.note();
        disk.sync(&own.into());
    }
    0
}

/// Does something to names. No power failure is in the middle of it.
fn renaming(act: impl FnOnce() -> libc::c_long) -> c_int {
    let mut disk = disk();
    if let Some(disk) = &mut *disk {
        disk.note();
        disk.list();
    }
    let result = act();
    if let Some(disk) = &mut *disk {
        disk.list();
    }
    result as c_int
}

// SAFETY (of all): the names are those of the C library, whose place these take in this program, and so are the types.
#[unsafe(no_mangle)]
extern "C" fn fsync(descriptor: c_int) -> c_int {
    synced(descriptor)
}

#[unsafe(no_mangle)]
extern "C" fn fdatasync(descriptor: c_int) -> c_int {
    synced(descriptor)
}

#[unsafe(no_mangle)]
extern "C" fn rename(from: *const c_char, to: *const c_char) -> c_int {
    // SAFETY: the caller passes the paths that this system call takes.
    renaming(|| unsafe {
        libc::syscall(libc::SYS_renameat, libc::AT_FDCWD, from, libc::AT_FDCWD, to)
    })
}

#[unsafe(no_mangle)]
extern "C" fn unlink(path: *const c_char) -> c_int {
    // SAFETY: the caller passes the path that this system call takes.
    renaming(|| unsafe { libc::syscall(libc::SYS_unlinkat, libc::AT_FDCWD, path, 0) })
}
