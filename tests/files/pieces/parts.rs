//! The parts of a piece, and of the end of a file, are where the specification says.

use super::{bytes_of, growing, pieces_of};
use crate::file::{END_WORDS, seal};
use crate::piece::{FRONT_WORDS, PieceFile, front};
use koel::SnapshotErrorKind::{Damaged, Incomplete, NotASnapshot, UnsupportedVersion};
use koel::{GrowingCuckooFilter, Piece, SnapshotErrorKind, SnapshotInfo, StableHash};
use std::io::{self, Read};

/// Of several pieces.
fn split() -> GrowingCuckooFilter<StableHash> {
    let filter = growing(1, 0.005);
    (0..100_000u64).for_each(|item| filter.insert(&item).expect("memory"));
    filter
}

fn bytes(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

#[test]
fn the_header_and_the_blocks_are_those_of_the_specification() {
    for piece in pieces_of(&split(), 100_000) {
        let cut = PieceFile::cut(piece.as_bytes());
        assert!(piece.as_bytes().starts_with(&Piece::MAGIC));
        assert!(piece.header() == bytes(cut.header()));
        assert!(piece.blocks() == bytes(&cut.blocks.concat()));
    }
}

#[test]
fn pieces_that_follow_one_another_are_read_one_by_one() {
    let pieces = pieces_of(&split(), 100_000);
    assert!(pieces.len() > 2);
    let all: Vec<u8> = pieces.iter().flat_map(|piece| piece.as_bytes()).copied().collect();
    let mut stream = &all[..];
    for piece in &pieces {
        assert!(Piece::read_bytes(&mut stream).expect("bytes") == piece.as_bytes());
    }
    assert!(Piece::read_bytes(&mut stream).expect("the end").is_empty());
}

/// Returns how many bytes are read of this piece, with something after it, and how it is refused.
fn refused(piece: &[u8]) -> (usize, Option<SnapshotErrorKind>) {
    refused_before(piece, 7)
}

/// [`refused`], with many of these bytes after the piece.
fn refused_before(piece: &[u8], byte: u8) -> (usize, Option<SnapshotErrorKind>) {
    let read = Piece::read_bytes(&mut piece.chain(io::repeat(byte).take(1 << 20))).expect("bytes");
    let error = GrowingCuckooFilter::<StableHash>::loader().push(&read).err();
    (read.len(), error.map(|error| error.kind()))
}

/// A stream that never ends is not read until it does, whatever a piece claims.
#[test]
fn no_more_is_read_of_what_is_no_piece_than_its_front() {
    let right = pieces_of(&split(), 100_000).remove(0).as_bytes().to_vec();
    let front = 8 * FRONT_WORDS;
    assert_eq!(refused(&right), (right.len(), None));
    let not_the_last = !right[front - 1];
    assert_eq!(refused_before(&right[..front - 1], not_the_last), (front, Some(Damaged)));
    assert_eq!(refused(b"lines of text\n"), (front, Some(NotASnapshot)));
    assert_eq!(refused(&bytes_of(&split())), (front, Some(NotASnapshot)));
    let mut longer = PieceFile::cut(&right);
    longer.front[front::BYTES] = u64::MAX;
    assert_eq!(refused(&longer.bytes()), (front, Some(Damaged)));
    let mut other = PieceFile::cut(&right);
    other.front[1] = 2;
    assert_eq!(refused(&other.sealed().bytes()), (front, Some(UnsupportedVersion)));
    // Who seals a false length gets no memory for more than there is.
    seal(&mut longer.front);
    assert_eq!(refused(&longer.bytes()), (right.len() + (1 << 20), Some(Incomplete)));
    longer.front[front::BYTES] = 0;
    seal(&mut longer.front);
    assert_eq!(refused(&longer.bytes()), (front, Some(Incomplete)));
}

#[test]
fn the_end_of_a_file_tells_its_length() {
    let file = bytes_of(&split());
    assert!(file.starts_with(&SnapshotInfo::MAGIC) && SnapshotInfo::MAGIC != Piece::MAGIC);
    assert_eq!(SnapshotInfo::END_BYTES, 8 * END_WORDS);
    let end = file.len() - SnapshotInfo::END_BYTES;
    for start in [0, 100, end] {
        assert_eq!(SnapshotInfo::length_in_end(&file[start..]), Some(file.len() as u64));
    }
    assert_eq!(SnapshotInfo::length_in_end(&file[end + 1..]), None);
    assert_eq!(SnapshotInfo::length_in_end(&file[..file.len() - 1]), None);
    assert_eq!(SnapshotInfo::length_in_end(b""), None);
}
