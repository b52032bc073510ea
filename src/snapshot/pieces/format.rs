//! A piece of a filter, byte by byte.
//!
//! (This page is for reading; nothing in it can be called.
//! [`piece_at`](crate::ConcurrentCuckooFilter::piece_at) makes pieces, and a
//! [`PieceLoader`](crate::PieceLoader) reads them.)
//!
//! A piece is a sequence of 64-bit words in little-endian order: a front, and after it the
//! [blocks](mod@crate::format#blocks-4-words-and-the-words-of-each-bucket) of some shards that follow one
//! another, or a block with a [list](mod@crate::format#a-list). The blocks are those of a
//! [file](mod@crate::format), and so is the header in the front. A checksum is calculated as in a file,
//! too.
//!
//! # Front: 33 words
//!
//! | word | at byte | contents |
//! |---|---|---|
//! | 0 | 0 | the bytes `89 6B 6F 65 6C 70 0D 0A`: `koelp`, between bytes that programs change when they take the piece for text |
//! | 1 | 8 | the version of this format: 1 |
//! | 2 | 16 | the length of the piece in bytes |
//! | 3 | 24 | a random number that all pieces of a filter have, and those of no other filter. It is chosen when the first piece is made, and not saved: a loaded filter has another one |
//! | 4 | 32 | `turn`, a number that rises with each piece of the filter that is begun |
//! | 5 | 40 | `start`, the place where the first block begins |
//! | 6 | 48 | `end`, the place where the last block ends |
//! | 7 | 56 | the number of blocks, at least 1 |
//! | 8 | 64 | the checksum of the blocks' checksums, in order |
//! | 9 to 31 | 72 | the header that a file of the filter would have, with its checksum |
//! | 32 | 256 | the checksum of words 0 to 31 |
//!
//! # Blocks
//!
//! They are numbered in each piece, from 0 on. Everything else in a block is as in a file: `depth`,
//! the number of items, the buckets, the ages of a filter that forgets, and the checksum. A list is in one
//! piece as a whole. The filter goes on from the time of the last block of the last piece.
//!
//! # Places
//!
//! A place is a number: `root × 2^31`, and the part of that root that lies before it, in units of 2^(-31) of
//! the root. (In a fixed filter, each shard is a root.) A block of depth `d` takes 2^(31 - d) units, and begins at a
//! multiple of that. The first piece starts at 0, each other one where the one before it ends, and the last one
//! ends at `roots × 2^31`. A list takes all of its only root.
//!
//! The place where a piece starts is also the cursor that it is asked for with. It is less than 2^53
//! in any filter that began with less than 4 million shards, and less than 2^63 in all.
//!
//! # All pieces together
//!
//! They make up the filter if
//!
//! * each starts where the one before it ends,
//! * all have the same number in word 3, and the same header. Only the limit of the filter's size (word 8 of the
//!   header) may change, and the last one counts,
//! * the turns rise from piece to piece. An item that was in before the first piece was begun, and stayed in, is in the
//!   pieces then, also if some of them are from a later dump of the filter. A piece from
//!   an earlier dump may lack items,
//! * the depths of their blocks are as in a file. (A shard may be split many times while a dump goes on.)
//!
//! With the blocks of all pieces, numbered anew, and the header of the last one, they are a file, but
//! for its end.

use crate::snapshot::error::Reason;
use crate::snapshot::format::{HEADER_WORDS, Words, bytes_of, seal, unseal};
use crate::snapshot::pieces::origin::Stamp;
use std::ops::Range;

pub(crate) const FRONT_WORDS: usize = HEADER + HEADER_WORDS + 1;
pub(crate) const FRONT_BYTES: usize = 8 * FRONT_WORDS;

pub(crate) const MAGIC: [u8; 8] = *b"\x89koelp\r\n";
const VERSION: u64 = 1;

/// The words before the header.
const HEADER: usize = 9;
/// The bytes of the header.
pub(crate) const HEADER_BYTES: Range<usize> = 8 * HEADER..8 * (HEADER + HEADER_WORDS);

/// The front of a piece, without what follows from its blocks.
#[derive(Clone, Debug)]
pub(crate) struct Front {
    /// The length of the whole piece.
    pub bytes: u64,
    pub stamp: Stamp,
    pub start: u64,
    pub end: u64,
    pub blocks: u64,
    /// The checksum of the blocks' checksums.
    pub sums: u64,
    /// In the byte order of a file.
    pub header: Words<HEADER_WORDS>,
}

impl Front {
    /// Returns the words as they are in a piece.
    pub fn words(&self) -> Words<FRONT_WORDS> {
        let Front { bytes, stamp: Stamp { filter, turn }, start, end, blocks, sums, header } = self;
        let mut words = [0; FRONT_WORDS];
        let own = [
            u64::from_le_bytes(MAGIC),
            VERSION,
            *bytes,
            *filter,
            *turn,
            *start,
            *end,
            *blocks,
            *sums,
        ];
        words[..HEADER].copy_from_slice(&own);
        words[HEADER..FRONT_WORDS - 1].copy_from_slice(&header.map(u64::from_le));
        seal(&mut words);
        words
    }

    /// Parses and validates the front of a piece, whose length has to be the one it says. The header in
    /// it is not validated, and neither are the places.
    pub fn read(piece: &[u8]) -> Result<Self, Reason> {
        let front = Self::begin(piece)?;
        let (length, wanted) = (piece.len() as u64, front.bytes);
        if length == wanted {
            Ok(front)
        } else {
            Err(Reason::WrongLength { bytes: length, wanted })
        }
    }

    /// The same for a piece of which there may be only the front.
    pub fn begin(piece: &[u8]) -> Result<Self, Reason> {
        let magic = piece.get(..MAGIC.len()).unwrap_or(piece);
        if magic != MAGIC {
            let is_file = magic == crate::snapshot::format::MAGIC;
            return Err(Reason::NotAPiece { is_file });
        }
        let front = piece.get(..FRONT_BYTES).ok_or(Reason::CutOff { at: piece.len() as u64 })?;
        let mut words = [0; FRONT_WORDS];
        bytes_of(&mut words).copy_from_slice(front);
        let version = u64::from_le(words[1]);
        if version != VERSION {
            return Err(Reason::UnsupportedVersion { version });
        }
        let mut header = [0; HEADER_WORDS];
        header.copy_from_slice(&words[HEADER..FRONT_WORDS - 1]);
        unseal(&mut words)
            .ok_or(Reason::damaged(0, "the checksum of the piece's front is wrong"))?;
        let [_, _, bytes, filter, turn, start, end, blocks, sums] =
            std::array::from_fn(|at| words[at]);
        Ok(Front { bytes, stamp: Stamp { filter, turn }, start, end, blocks, sums, header })
    }
}
