//! A journal: the changes since the last checkpoint, in a file that is mapped into memory. A store into the mapping
//! survives the death of the process without a system call. Space is allocated ahead, so that a full disk is an error
//! of [`Writer::reserve`](crate::journal::writer::Writer), and never a fault of a store.
//!
//! # The file
//!
//! All numbers are little-endian. The file consists of pages of 4 KiB, each with 256 records of two words. The first
//! page has only the header, of eight words:
//!
//! | word | what it is |
//! |---|---|
//! | 0 | the bytes `89 6B 6F 65 6C 6A 0D 0A` |
//! | 1 | the version of the format, 2 |
//! | 2 | a random number, the *key* of the journal |
//! | 3 | the number of the state on which the changes are to be replayed: word 22 of the state's header or, if that is 0, word 6 of its end |
//! | 4 | the number of the state before, whose journal has all changes of this one as long as that state is in place; or 0 |
//! | 5 and 6 | 0 |
//! | 7 | the XXH3 of the words before |
//!
//! Of the other pages, 1, 2, 4, 8 or 16 in a row are a *chunk*, which belongs to one of 256 *streams*. A page that is in no
//! chunk is not used. The chunks of a stream get longer: so a few changes take little space, and many seldom need another
//! chunk. The lowest three bits of word 1 of a record are its code, and the other bits those of a check of word 0, the
//! code, the index of the record in the file, and the key:
//!
//! | code | record | word 0 |
//! |---|---|---|
//! | 1, 2, 3 | an item was added, removed, refreshed | the item's hash, as it is after mixing |
//! | 4 | a tick began; in all streams | 0 |
//! | 5 | the first record of a chunk | from the lowest byte on: the stream, the binary logarithm of the number of pages, the number of earlier chunks of the stream in this journal |
//! | 6 | a tick began toward a number; in all streams | the number |
//! | 7 | all items were removed; in all streams | 0 |
//!
//! # Where does a stream end?
//!
//! At the first record whose check fails, where a chunk is missing, or after the last chunk of the stream. A process that
//! is killed leaves at most one record of a stream incomplete, the last one. A power failure may take any records that
//! were not synced. Valid records behind a gap count for nothing: they might be removals of items whose inserts are lost.

use crate::journal::streams::Change;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use xxhash_rust::xxh3::xxh3_64;

/// The number of bytes in a page of a journal, the unit of its chunks.
pub(crate) const PAGE_BYTES: u64 = 4 << 10;
pub(crate) const PAGE_RECORDS: usize = PAGE_BYTES as usize / 16;

/// The binary logarithm of the number of pages in the longest chunk: 64 KiB.
pub(crate) const MAX_CHUNK: u32 = 4;

/// The code of the first record of a chunk, which is not a change.
pub(crate) const CHUNK: u64 = 5;

const CHANGES: [Change; 6] = [
    Change::Added,
    Change::Removed,
    Change::Refreshed,
    Change::Ticked,
    Change::TickedTo,
    Change::Cleared,
];

pub(crate) fn change_of(code: u64) -> Option<Change> {
    CHANGES.into_iter().find(|change| *change as u64 == code)
}

/// Returns the check of a record, with its code in the lowest bits.
#[inline]
pub(crate) fn sealed(key: u64, place: u64, word: u64, code: u64) -> u64 {
    let a = (word ^ key) | 1;
    let product = u128::from(a.wrapping_add(place << 3 | code))
        * u128::from((word.rotate_left(32) ^ 0x9E37_79B9_7F4A_7C15).wrapping_add(place));
    let folded = (product >> 64) as u64 ^ product as u64;
    let mixed = (folded ^ key.rotate_left(17)).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    (mixed ^ mixed >> 32) & !7 | code
}

const MAGIC: [u8; 8] = *b"\x89koelj\r\n";
const VERSION: u64 = 2;
const WORDS: usize = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// A random number that is not 0.
    pub key: u64,
    /// The number of the state on which the changes are to be replayed.
    pub state: u64,
    /// The number of the state before, or 0.
    pub previous: u64,
}

impl Header {
    pub(crate) const BYTES: usize = 8 * WORDS;

    pub(crate) fn bytes(self) -> [u8; Self::BYTES] {
        let Header { key, state, previous } = self;
        let words = [u64::from_le_bytes(MAGIC), VERSION, key, state, previous, 0, 0, 0];
        let mut words = words.map(u64::to_le);
        words[WORDS - 1] = xxh3_64(bytemuck::cast_slice(&words[..WORDS - 1])).to_le();
        bytemuck::cast(words)
    }

    /// Reads the header of a journal. Returns `None` if none has been written yet: then there are no records either.
    pub(crate) fn read(file: &File) -> io::Result<Option<Header>> {
        let mut words = [0u64; WORDS];
        let is_cut_off = match file.read_exact_at(bytemuck::cast_slice_mut(&mut words), 0) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => true,
            result => result.map(|()| false)?,
        };
        if (is_cut_off && file.metadata()?.len() == 0) || (words == [0; WORDS] && is_blank(file)?) {
            return Ok(None);
        }
        let sum = xxh3_64(bytemuck::cast_slice(&words[..WORDS - 1]));
        let [magic, version, key, state, previous, _, _, own] = words.map(u64::from_le);
        let what = if is_cut_off {
            "its header is cut off; remove it, and the changes with it"
        } else if magic.to_le_bytes() != MAGIC {
            "it is no journal of koel, or its header is damaged; move it elsewhere, or remove it, and \
             the changes with it"
        } else if version != VERSION {
            "it has another version of the format: open the filter with the version of koel that wrote it, and close \
             it, which leaves no journal"
        } else if own != sum {
            "its header is damaged; remove it, and the changes with it"
        } else {
            return Ok(Some(Header { key, state, previous }));
        };
        Err(io::Error::new(io::ErrorKind::InvalidData, what))
    }
}

/// Returns whether a file has nothing but zeros.
fn is_blank(file: &File) -> io::Result<bool> {
    let (mut bytes, mut at) = ([0; PAGE_BYTES as usize], 0);
    loop {
        match file.read_at(&mut bytes, at)? {
            0 => return Ok(true),
            read if bytes[..read].iter().any(|byte| *byte != 0) => return Ok(false),
            read => at += read as u64,
        }
    }
}
