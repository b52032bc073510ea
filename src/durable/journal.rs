//! A journal: the changes since the last checkpoint, in a file that is mapped into memory.
//!
//! A store into the mapping survives the death of the process without a system call. Space is allocated ahead, so that a
//! full disk is an error of [`Writer::reserve`], and never a fault of a store.
//!
//! # The file
//!
//! All numbers are little-endian. The file is made of chunks of 64 KiB, each of 4,096 records of two words. The first
//! record of the first chunk is not a record but the beginning of the header, which has eight words:
//!
//! | word | what it is |
//! |---|---|
//! | 0 | the bytes `89 6B 6F 65 6C 6A 0D 0A` |
//! | 1 | the version of the format, 1; and in the upper half 0, or 1 in the journal of another [kind](Kind) |
//! | 2 | a random number, the *key* of the journal |
//! | 3 | the key of the journal before it, or 0 |
//! | 4 and 5 | the state on which the changes are to be replayed: the checksum of its checksums, and its length in bytes. Both are 0 as long as there is none |
//! | 6 | the number of the journal, which its name has, too |
//! | 7 | the XXH3 of the words before |
//!
//! Every other chunk belongs to one of 256 *streams*. Its first record says so: word 0 has the number of the stream in
//! its lowest byte, and above that how many chunks of the stream are before it in this journal. The records that follow
//! are changes. Word 0 of a record is the hash of an item, as it is after mixing.
//! The lowest three bits of word 1 are what happened: 1 added, 2 removed, 3 refreshed; 4 a tick, 6 a tick toward the number
//! in word 0, 7 all items removed, each of which is in all streams; 5 the beginning of a chunk; 0 that what follows comes after
//! as many records of the same stream in the journal before as word 0 says. The others are those of a check of word 0, of what happened, of the place of the record in the
//! file, and of the key.
//!
//! # Where does a stream end?
//!
//! At the first record whose check fails, and after the last chunk of the stream. A process that is killed leaves at most
//! one record of a stream incomplete, the last one. A power failure may take any of what was not synced. What is valid
//! behind a gap counts for nothing: it might be a removal of an item whose insert is lost.

use crate::durable::mapping::Mapping;
use crate::durable::space::allocate;
use crate::durable::streams::{Change, Sink};
use crate::layout::geometry::Mixed;
use crate::sync::{Mutex, Ordering};
use crate::table::memory::prefetch;
use rustix::fs::OFlags;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use xxhash_rust::xxh3::xxh3_64;

const MAGIC: [u8; 8] = *b"\x89koelj\r\n";
const VERSION: u64 = 1;
pub const CHUNK_BYTES: u64 = 64 << 10;
const CHUNK_RECORDS: usize = CHUNK_BYTES as usize / 16;
/// So many records are read at a time: where a stream goes on after a tick, little is read again.
const PAGE_RECORDS: usize = 256;
const HEADER_WORDS: usize = 8;
/// The file is made longer by at least and at most so many chunks at a time: 1 and 64 MiB.
const STEPS: [u64; 2] = [16, 1024];
const CHUNK: u64 = 5;

/// What identifies a state: the checksum of its checksums, and its length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StateId {
    /// The checksum of its checksums.
    pub sums: u64,
    /// Its length.
    pub bytes: u64,
}

/// What follows the header of a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The changes of a [`DurableFilter`](crate::DurableFilter), as this file describes them.
    Changes,
    /// The batches of lines of a `koel dedup`, which this crate does not read.
    Batches,
}

/// What a journal says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// A random number that is not 0.
    pub key: u64,
    /// The key of the journal that this one follows, or 0.
    pub previous: u64,
    /// The state on which it is to be replayed, or the default as long as there is none.
    pub state: StateId,
    /// The number in its name.
    pub number: u64,
}

impl Header {
    /// The number of its bytes in a file.
    pub const BYTES: usize = 8 * HEADER_WORDS;

    fn bytes(self) -> [u8; Self::BYTES] {
        self.bytes_of(Kind::Changes)
    }

    /// Its bytes in a journal of a kind.
    pub fn bytes_of(self, kind: Kind) -> [u8; Self::BYTES] {
        let Header { key, previous, state, number } = self;
        let version = VERSION | (kind as u64) << 32;
        let mut words =
            [u64::from_le_bytes(MAGIC), version, key, previous, state.sums, state.bytes, number, 0];
        words.iter_mut().for_each(|word| *word = word.to_le());
        let sum = xxh3_64(bytemuck::cast_slice(&words[..HEADER_WORDS - 1]));
        words[HEADER_WORDS - 1] = sum.to_le();
        bytemuck::cast(words)
    }

    /// Reads the header of a journal of changes. `None` if it has none yet: then nothing has been recorded in it.
    pub fn read(file: &File) -> io::Result<Option<Header>> {
        match Self::read_any(file)? {
            Some((Kind::Batches, _)) => Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "it was left by a `koel dedup` that was killed; run it again first",
            )),
            found => Ok(found.map(|(_, header)| header)),
        }
    }

    /// Reads the header of a journal of any kind.
    pub fn read_any(file: &File) -> io::Result<Option<(Kind, Header)>> {
        let mut words = [0u64; HEADER_WORDS];
        match file.read_exact_at(bytemuck::cast_slice_mut(&mut words), 0) {
            Err(_) if file.metadata()?.len() == 0 => return Ok(None),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "its header is cut off"));
            }
            result => result?,
        }
        let sum = xxh3_64(bytemuck::cast_slice(&words[..HEADER_WORDS - 1]));
        let [magic, version, key, previous, sums, bytes, number, own] = words.map(u64::from_le);
        let invalid = |what: &'static str| Err(io::Error::new(io::ErrorKind::InvalidData, what));
        if words == [0; HEADER_WORDS] && !has_anything(file)? {
            return Ok(None);
        }
        if magic.to_le_bytes() != MAGIC {
            return invalid("it is no journal of koel, or its header is damaged");
        }
        let kind = match (version & u64::from(u32::MAX), version >> 32) {
            (VERSION, 0) => Kind::Changes,
            (VERSION, 1) => Kind::Batches,
            _ => return invalid("it has a version of the format that this koel does not know"),
        };
        if own != sum {
            return invalid("its header is damaged");
        }
        let state = StateId { sums, bytes };
        Ok(Some((kind, Header { key, previous, state, number })))
    }
}

/// Whether there is anything in a file but zeros.
fn has_anything(file: &File) -> io::Result<bool> {
    let (mut bytes, mut at) = (vec![0; CHUNK_BYTES as usize], 0);
    loop {
        match file.read_at(&mut bytes, at)? {
            0 => return Ok(false),
            read if bytes[..read].iter().any(|byte| *byte != 0) => return Ok(true),
            read => at += read as u64,
        }
    }
}

/// The check of a record, with what happened in its lowest bits.
#[inline]
fn sealed(key: u64, place: u64, word: u64, what: u64) -> u64 {
    let a = (word ^ key) | 1;
    let product = u128::from(a.wrapping_add(place << 3 | what))
        * u128::from((word.rotate_left(32) ^ 0x9E37_79B9_7F4A_7C15).wrapping_add(place));
    let folded = (product >> 64) as u64 ^ product as u64;
    let mixed = (folded ^ key.rotate_left(17)).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    (mixed ^ mixed >> 32) & !7 | what
}

fn number_of(change: Change) -> u64 {
    match change {
        Change::Added => 1,
        Change::Removed => 2,
        Change::Refreshed => 3,
        Change::Ticked => 4,
        Change::TickedTo => 6,
        Change::Cleared => 7,
        Change::Follows => 0,
    }
}

fn change_of(number: u64) -> Option<Change> {
    Some(match number {
        1 => Change::Added,
        2 => Change::Removed,
        3 => Change::Refreshed,
        4 => Change::Ticked,
        6 => Change::TickedTo,
        7 => Change::Cleared,
        0 => Change::Follows,
        _ => return None,
    })
}

/// A journal that is being written.
pub struct Journal {
    file: File,
    path: PathBuf,
    key: u64,
    header: Mutex<Header>,
    space: Mutex<Space>,
    /// Whether a sync has failed: the pages may be lost, and no later sync would tell.
    failed: AtomicBool,
}

/// The part of the file that is allocated and not yet given out.
struct Space {
    next: u64,
    end: u64,
    /// The chunks from `first` to `end`.
    first: u64,
    mapping: Arc<Mapping>,
    /// All mappings, that one included.
    all: Vec<Arc<Mapping>>,
}

impl Journal {
    /// Creates a journal, which must not exist yet.
    pub fn create(path: &Path, header: Header) -> io::Result<Journal> {
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(path)?;
        let made = || -> io::Result<Space> {
            file.write_all_at(&header.bytes(), 0)?;
            let mapping = Arc::new(allocated(&file, 0, STEPS[0])?);
            file.sync_all()?;
            let all = vec![Arc::clone(&mapping)];
            Ok(Space { next: 1, end: STEPS[0], first: 0, mapping, all })
        };
        let space = made().inspect_err(|_| drop(std::fs::remove_file(path)))?;
        let (path, key) = (path.to_path_buf(), header.key);
        let (header, space) = (Mutex::new(header), Mutex::new(space));
        Ok(Journal { file, path, key, header, space, failed: AtomicBool::new(false) })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn header(&self) -> Header {
        *self.header.lock()
    }

    /// The bytes that are given out.
    pub fn bytes(&self) -> u64 {
        self.space.lock().next * CHUNK_BYTES
    }

    /// Lets the journal be replayed on another state, and syncs that.
    pub fn set_state(&self, state: StateId) -> io::Result<()> {
        let mut header = self.header.lock();
        header.state = state;
        self.file.write_all_at(&header.bytes(), 0)?;
        self.sync()
    }

    /// Makes what was written before survive a power failure.
    pub fn sync(&self) -> io::Result<()> {
        if self.failed.load(Ordering::Relaxed) {
            return Err(io::Error::other("an earlier sync of the journal failed"));
        }
        self.flush()
            .and_then(|()| self.file.sync_data())
            .inspect_err(|_| self.failed.store(true, Ordering::Relaxed))
    }

    /// Linux syncs with a file what was stored into its mappings. Other systems need not.
    fn flush(&self) -> io::Result<()> {
        let all = match cfg!(target_os = "linux") {
            true => Vec::new(),
            false => self.space.lock().all.clone(),
        };
        all.iter().try_for_each(|mapping| mapping.flush())
    }

    fn chunk(&self) -> io::Result<Chunk> {
        let mut space = self.space.lock();
        if space.next == space.end {
            // By a half each time, so that little is allocated in vain.
            let step = (space.end / 2).clamp(STEPS[0], STEPS[1]);
            space.mapping = Arc::new(allocated(&self.file, space.end, step)?);
            let mapping = Arc::clone(&space.mapping);
            space.all.push(mapping);
            (space.first, space.end) = (space.end, space.end + step);
        }
        let (number, first) = (space.next, space.first);
        space.next += 1;
        let words = (number - first) as usize * 2 * CHUNK_RECORDS;
        let mapping = Arc::clone(&space.mapping);
        drop(space);
        mapping.populate(8 * words, CHUNK_BYTES as usize);
        Ok(Chunk { number, mapping, words })
    }
}

/// Allocates and maps some chunks at the end of a file.
fn allocated(file: &File, first: u64, count: u64) -> io::Result<Mapping> {
    let (at, length) = (first * CHUNK_BYTES, count * CHUNK_BYTES);
    if !allocate(file, at, length)? {
        // What was written is allocated, too.
        let zeros = vec![0; CHUNK_BYTES as usize];
        let header = if first == 0 { 8 * HEADER_WORDS } else { 0 };
        file.write_all_at(&zeros[header..], at + header as u64)?;
        (first + 1..first + count)
            .try_for_each(|it| file.write_all_at(&zeros, it * CHUNK_BYTES))?;
        // Some systems find out only then that there is no space.
        file.sync_all()?;
    }
    Mapping::of(file, at, length as usize)
}

struct Chunk {
    number: u64,
    mapping: Arc<Mapping>,
    /// Where it begins in the mapping.
    words: usize,
}

/// Where a stream continues in a journal.
pub struct Writer {
    journal: Arc<Journal>,
    stream: u8,
    /// How many chunks it has had.
    chunks: u64,
    chunk: Option<Chunk>,
    /// The next record of the chunk.
    next: usize,
    /// The chunk that follows, if it is reserved.
    spare: Option<Box<Chunk>>,
    /// The number of records.
    count: u64,
    /// What is to be recorded before the next record: see [`Change::Follows`].
    follows: Option<u64>,
}

impl Writer {
    pub fn new(journal: &Arc<Journal>, stream: usize) -> Self {
        let journal = Arc::clone(journal);
        Writer {
            journal,
            stream: stream as u8,
            chunks: 0,
            chunk: None,
            next: CHUNK_RECORDS,
            spare: None,
            count: 0,
            follows: None,
        }
    }

    /// Goes on in the chunk that was reserved.
    #[cold]
    fn go_on(&mut self) {
        debug_assert!(self.spare.is_some(), "a record that was not reserved");
        (self.chunk, self.next) = (self.spare.take().map(|chunk| *chunk), 0);
        self.put(u64::from(self.stream) | self.chunks << 8, CHUNK);
        self.chunks += 1;
    }

    #[inline]
    fn put(&mut self, word: u64, what: u64) {
        let Some(Chunk { number, mapping, words }) = &self.chunk else { return };
        let place = number * CHUNK_RECORDS as u64 + self.next as u64;
        let at = words + 2 * self.next;
        let [first, second] = [at, at + 1].map(|at| &mapping.words()[at]);
        first.store(word.to_le(), Ordering::Relaxed);
        second.store(sealed(self.journal.key, place, word, what).to_le(), Ordering::Release);
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
        // And one that says what they follow.
        if CHUNK_RECORDS - self.next < count + 1 && self.spare.is_none() {
            self.spare = Some(Box::new(self.journal.chunk()?));
        }
        Ok(())
    }

    #[inline]
    fn write(&mut self, hash: Mixed, change: Change) {
        if let Some(count) = self.follows.take() {
            self.write(Mixed(count), Change::Follows);
        }
        if self.next == CHUNK_RECORDS {
            self.go_on();
        }
        self.put(hash.0, number_of(change));
        self.count += 1;
    }

    fn count(&self) -> u64 {
        self.count
    }

    fn follow(&mut self, count: u64) {
        self.follows = Some(count);
    }
}

/// Opens a journal to read it. Anything but a regular file is an error, and opening a pipe waits for nobody.
pub fn open_journal(journal: &Path) -> io::Result<File> {
    let in_the_way =
        || io::Error::new(io::ErrorKind::InvalidInput, "it is in the way: this is no regular file");
    if !journal.symlink_metadata()?.is_file() {
        return Err(in_the_way());
    }
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY).bits() as i32;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(journal)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(in_the_way()) }
}

/// A journal that is being read.
pub struct Reader {
    file: File,
    key: u64,
    /// The chunks of each stream, in their order.
    streams: Vec<Vec<u64>>,
}

impl Reader {
    pub fn open(path: &Path) -> io::Result<Option<(Header, Reader)>> {
        let file = open_journal(path)?;
        let Some(header) = Header::read(&file)? else { return Ok(None) };
        let key = header.key;
        let chunks = file.metadata()?.len() / CHUNK_BYTES;
        let mut found: Vec<Vec<(u64, u64)>> = vec![Vec::new(); super::streams::STREAMS];
        for number in 1..chunks {
            let mut words = [0u64; 2];
            file.read_exact_at(bytemuck::cast_slice_mut(&mut words), number * CHUNK_BYTES)?;
            let [word, seal] = words.map(u64::from_le);
            if seal == sealed(key, number * CHUNK_RECORDS as u64, word, CHUNK) {
                found[word as u8 as usize].push((word >> 8, number));
            }
        }
        let streams = found.into_iter().map(|mut chunks| {
            chunks.sort_unstable();
            let in_order = (0..).zip(chunks).take_while(|(number, (own, _))| number == own);
            in_order.map(|(_, (_, number))| number).collect()
        });
        let streams = streams.collect();
        Ok(Some((header, Reader { file, key, streams })))
    }

    /// Passes on the changes of a stream, some at a time, until it ends or `take` returns `false`. Begins after
    /// so many records, and returns how many have been passed on, those included.
    pub fn changes(
        &self,
        stream: usize,
        start: usize,
        mut take: impl FnMut(Mixed, Change) -> bool,
    ) -> io::Result<usize> {
        let in_a_chunk = CHUNK_RECORDS - 1;
        let mut page = [[0u64; 2]; PAGE_RECORDS];
        let mut done = start;
        for number in self.streams[stream].iter().skip(start / in_a_chunk) {
            let mut next = 1 + done % in_a_chunk;
            while next < CHUNK_RECORDS {
                let place = number * CHUNK_RECORDS as u64 + next as u64;
                let page = &mut page[next % PAGE_RECORDS..];
                self.file.read_exact_at(bytemuck::cast_slice_mut(page), place * 16)?;
                for (place, record) in (place..).zip(&*page) {
                    let [word, seal] = record.map(u64::from_le);
                    let Some(change) = change_of(seal & 7) else { return Ok(done) };
                    if seal != sealed(self.key, place, word, seal & 7) {
                        return Ok(done);
                    }
                    done += 1;
                    if !take(Mixed(word), change) {
                        return Ok(done);
                    }
                }
                next += page.len();
            }
        }
        Ok(done)
    }

    /// Makes what is there survive a power failure.
    pub fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    /// Whether any change is recorded.
    pub fn is_empty(&self) -> bool {
        self.streams.iter().all(Vec::is_empty)
    }
}
