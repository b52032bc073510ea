//! The header of a journal, and of which state it is.

use crate::journal::file::record::PAGE_BYTES;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use xxhash_rust::xxh3::xxh3_64;

const MAGIC: [u8; 8] = *b"\x89koelj\r\n";
const VERSION: u64 = 1;
const WORDS: usize = 8;

/// What identifies a state: the checksum of its checksums, and its length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StateId {
    /// The checksum of its checksums.
    pub sums: u64,
    /// Its length.
    pub bytes: u64,
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
    pub const BYTES: usize = 8 * WORDS;

    /// Its bytes.
    pub fn bytes(self) -> [u8; Self::BYTES] {
        let Header { key, previous, state, number } = self;
        let mut words =
            [u64::from_le_bytes(MAGIC), VERSION, key, previous, state.sums, state.bytes, number, 0];
        words.iter_mut().for_each(|word| *word = word.to_le());
        let sum = xxh3_64(bytemuck::cast_slice(&words[..WORDS - 1]));
        words[WORDS - 1] = sum.to_le();
        bytemuck::cast(words)
    }

    /// Reads the header of a journal. `None` if it has none yet: then nothing has been recorded in it.
    pub fn read(file: &File) -> io::Result<Option<Header>> {
        let mut words = [0u64; WORDS];
        match file.read_exact_at(bytemuck::cast_slice_mut(&mut words), 0) {
            Err(_) if file.metadata()?.len() == 0 => return Ok(None),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    "its header is cut off; remove it, and the changes with it",
                ));
            }
            result => result?,
        }
        let sum = xxh3_64(bytemuck::cast_slice(&words[..WORDS - 1]));
        let [magic, version, key, previous, sums, bytes, number, own] = words.map(u64::from_le);
        let invalid = |what: &'static str| Err(io::Error::new(io::ErrorKind::InvalidData, what));
        if words == [0; WORDS] && !has_anything(file)? {
            return Ok(None);
        }
        if magic.to_le_bytes() != MAGIC {
            return invalid(
                "it is no journal of koel, or its header is damaged; move it elsewhere, or remove it, and the changes with it",
            );
        }
        if version != VERSION {
            return invalid("it has a version of the format that this koel does not know");
        }
        if own != sum {
            return invalid("its header is damaged; remove it, and the changes with it");
        }
        let state = StateId { sums, bytes };
        Ok(Some(Header { key, previous, state, number }))
    }
}

/// Whether there is anything in a file but zeros.
fn has_anything(file: &File) -> io::Result<bool> {
    let (mut bytes, mut at) = (vec![0; 16 * PAGE_BYTES as usize], 0);
    loop {
        match file.read_at(&mut bytes, at)? {
            0 => return Ok(false),
            read if bytes[..read].iter().any(|byte| *byte != 0) => return Ok(true),
            read => at += read as u64,
        }
    }
}
