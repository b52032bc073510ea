//! Writes a journal: the file, space in it, and the place where each of its streams continues.
//!
//! Word 0 of a record is stored `Relaxed`, and word 1 `Release`. No thread reads either. The ordering keeps the
//! compiler from storing the check before what it checks, and records of a stream in another order: so if the process
//! ends between the two stores, or a power failure takes one of them, the check fails.

use crate::disk::mapping::Mapping;
use crate::disk::space::{allocate, check_limit};
use crate::journal::format::{CHUNK, Header, MAX_CHUNK, PAGE_BYTES, PAGE_RECORDS, sealed};
use crate::journal::streams::{Change, Sink};
use crate::layout::geometry::Mixed;
use crate::sync::{Mutex, Ordering};
use crate::table::memory::prefetch;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The minimum and the maximum number of pages by which the file grows at a time: 256 KiB and 64 MiB.
const STEPS: [u64; 2] = [64, 16 << 10];

/// The file grows by a multiple of this number of pages: 64 KiB, the largest page of any system that koel runs on,
/// because a mapping must begin at such a page.
const STEP_UNIT: u64 = 16;

pub(crate) struct Journal {
    file: File,
    path: PathBuf,
    header: Header,
    space: Mutex<Space>,
    /// Whether a sync has failed. The pages may be lost then, and no later sync would report it.
    failed: Mutex<bool>,
}

/// The part of the file that is allocated and not yet given out, in pages.
struct Space {
    next: u64,
    end: u64,
    /// All mappings of the file, in their order.
    mappings: Vec<Arc<Mapping>>,
    /// The number of the first page of the last mapping.
    first: u64,
}

impl Journal {
    /// Creates a journal, which must not exist yet. Only its owner can read it until it gets other permissions.
    pub(crate) fn create(path: &Path, header: Header) -> io::Result<Journal> {
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create_new(true).mode(0o600).open(path)?;
        let made = || -> io::Result<Space> {
            check_limit(STEPS[0] * PAGE_BYTES)?;
            file.write_all_at(&header.bytes(), 0)?;
            let mappings = vec![Arc::new(allocated(&file, 0, STEPS[0])?)];
            file.sync_all()?;
            Ok(Space { next: 1, end: STEPS[0], mappings, first: 0 })
        };
        let space = made().inspect_err(|_| drop(std::fs::remove_file(path)))?;
        let (path, space, failed) = (path.to_path_buf(), Mutex::new(space), Mutex::new(false));
        Ok(Journal { file, path, header, space, failed })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    pub(crate) fn header(&self) -> Header {
        self.header
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.space.lock().next * PAGE_BYTES
    }

    /// Makes all records so far survive a power failure.
    pub(crate) fn sync(&self) -> io::Result<()> {
        // One at a time, because the system reports lost pages to only one of two.
        let mut failed = self.failed.lock();
        if *failed {
            return Err(io::Error::other("an earlier sync of the journal failed"));
        }
        // On Linux, a sync of the file includes its mappings.
        let mappings = match cfg!(target_os = "linux") {
            true => Vec::new(),
            false => self.space.lock().mappings.clone(),
        };
        let flushed = mappings.iter().try_for_each(|mapping| mapping.flush());
        let synced = flushed.and_then(|()| self.file.sync_data());
        *failed = synced.is_err();
        synced
    }

    /// Takes a chunk of `2^size` pages into use.
    fn chunk(&self, size: u32) -> io::Result<Chunk> {
        let pages = 1 << size;
        let mut lock = self.space.lock();
        let Space { next, end, mappings, first } = &mut *lock;
        // A chunk is in one mapping. The few pages that are left over stay unused.
        if *end - *next < pages {
            // By half each time, so that little is allocated in vain.
            let step = (*end / 2).next_multiple_of(STEP_UNIT).clamp(STEPS[0], STEPS[1]);
            mappings.push(Arc::new(allocated(&self.file, *end, step)?));
            (*first, *next, *end) = (*end, *end, *end + step);
        }
        let page = *next;
        *next += pages;
        let at = (page - *first) * PAGE_BYTES;
        let mapping = Arc::clone(&mappings[mappings.len() - 1]);
        drop(lock);
        mapping.populate(at as usize, (pages * PAGE_BYTES) as usize);
        let place = page * PAGE_RECORDS as u64;
        // A mapping has at most 64 MiB.
        Ok(Chunk { place, mapping, words: (at / 8) as u32, records: (PAGE_RECORDS as u32) << size })
    }
}

/// Allocates and maps some pages at the end of a file.
fn allocated(file: &File, first: u64, count: u64) -> io::Result<Mapping> {
    let (at, length) = (first * PAGE_BYTES, count * PAGE_BYTES);
    if !allocate(file, at, length)? {
        // Written zeros are allocated, too.
        static ZEROS: [u8; (STEP_UNIT * PAGE_BYTES) as usize] =
            [0; (STEP_UNIT * PAGE_BYTES) as usize];
        let header = if first == 0 { Header::BYTES } else { 0 };
        file.write_all_at(&ZEROS[header..], at + header as u64)?;
        (1..count / STEP_UNIT)
            .try_for_each(|it| file.write_all_at(&ZEROS, at + it * ZEROS.len() as u64))?;
        // Some systems find out only then that there is no space.
        file.sync_all()?;
    }
    Mapping::writable(file, at, length as usize)
}

struct Chunk {
    /// Place of its first record in the file.
    place: u64,
    mapping: Arc<Mapping>,
    /// Where it begins in the mapping.
    words: u32,
    records: u32,
}

/// Where a stream continues in a journal.
pub(crate) struct Writer {
    journal: Arc<Journal>,
    stream: u8,
    /// The number of its chunks so far.
    chunks: u64,
    chunk: Option<Chunk>,
    /// The next record of the chunk, and the number of its records.
    next: u32,
    end: u32,
    /// The chunk that follows, if it is reserved.
    spare: Option<Box<Chunk>>,
}

impl Writer {
    pub(crate) fn new(journal: &Arc<Journal>, stream: usize) -> Self {
        let journal = Arc::clone(journal);
        Writer {
            journal,
            stream: stream as u8,
            chunks: 0,
            chunk: None,
            next: 0,
            end: 0,
            spare: None,
        }
    }

    /// Reserves a chunk for the records that do not fit into this one.
    #[cold]
    fn reserve_chunk(&mut self, count: usize) -> io::Result<()> {
        let missing = count - (self.end - self.next) as usize;
        // One is for the beginning of the chunk.
        if self.spare.as_ref().is_none_or(|spare| (spare.records as usize) < missing + 1) {
            let pages = (missing + 1).div_ceil(PAGE_RECORDS).next_power_of_two();
            let size = (self.chunks.min(MAX_CHUNK.into()) as u32).max(pages.ilog2());
            self.spare = Some(Box::new(self.journal.chunk(size)?));
        }
        Ok(())
    }

    /// Continues in the chunk that was reserved.
    #[cold]
    fn go_on(&mut self) {
        debug_assert!(self.spare.is_some(), "a record that was not reserved");
        let Some(chunk) = self.spare.take() else { return };
        let size = (chunk.records / PAGE_RECORDS as u32).ilog2();
        let about = u64::from(self.stream) | u64::from(size) << 8 | self.chunks << 16;
        (self.next, self.end, self.chunk) = (0, chunk.records, Some(*chunk));
        self.put(about, CHUNK);
        self.chunks += 1;
    }

    #[inline]
    fn put(&mut self, word: u64, what: u64) {
        let Some(Chunk { place, mapping, words, .. }) = &self.chunk else { return };
        let place = place + self.next as u64;
        let at = (words + 2 * self.next) as usize;
        let [first, second] = [at, at + 1].map(|at| &mapping.words()[at]);
        // The second word is stored `Release`: if the process is killed, it is in the file only with the first one.
        first.store(word.to_le(), Ordering::Relaxed);
        second.store(sealed(self.journal.header.key, place, word, what).to_le(), Ordering::Release);
        self.next += 1;
        // The next records of this stream come much later, to a line that no cache has.
        if let Some(line) = mapping.words().get(at + 2) {
            prefetch(line);
        }
    }
}

impl Sink for Writer {
    type Error = io::Error;

    #[inline]
    fn reserve(&mut self, count: usize) -> io::Result<()> {
        let has_room = (self.end - self.next) as usize >= count;
        if has_room { Ok(()) } else { self.reserve_chunk(count) }
    }

    #[inline]
    fn write(&mut self, hash: Mixed, change: Change) {
        if self.next == self.end {
            self.go_on();
        }
        self.put(hash.0, change as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_new_journal_is_for_its_owner_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("seen.koel.journal.1");
        let header = Header { key: 1, state: 2, previous: 0 };
        let journal = Journal::create(&path, header).unwrap();
        assert_eq!(journal.file().metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }
}
