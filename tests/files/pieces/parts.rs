//! The parts of a piece, and of the end of a file, are where the specification says, and parts can follow one another
//! in a stream.

use super::{Filter, bytes_of, growing, pieces_of};
use crate::common::rounds;
use crate::file::{END_WORDS, FilterFile, HEADER_WORDS, word};
use koel::SnapshotErrorKind::{Damaged, Incomplete, NotASnapshot};
use koel::{Piece, SnapshotErrorKind, SnapshotInfo};
use std::io::{self, Read};

/// Of several pieces.
fn split() -> Filter {
    let filter = growing(1, 0.005);
    (0..100_000u64).for_each(|item| filter.insert(&item).expect("memory"));
    filter
}

#[test]
fn filters_with_the_same_contents_have_the_same_pieces() {
    let (filter, again) = (split(), split());
    for (piece, again) in pieces_of(&filter, 100_000).iter().zip(pieces_of(&again, 100_000)) {
        assert!(piece.as_bytes().starts_with(&Piece::MAGIC));
        assert!(piece.as_bytes() == again.as_bytes());
    }
    assert_ne!(Piece::MAGIC, SnapshotInfo::MAGIC);
}

#[test]
fn pieces_that_follow_one_another_are_read_one_by_one() {
    let filter = split();
    let pieces = pieces_of(&filter, 100_000);
    assert!(pieces.len() > 2);
    let all: Vec<u8> = pieces.iter().flat_map(|piece| piece.as_bytes()).copied().collect();
    let mut stream = &all[..];
    let mut loader = Filter::loader();
    for piece in &pieces {
        assert!(loader.read_from(&mut stream).expect("a piece"));
        assert_eq!(loader.next(), piece.next());
    }
    assert!(!loader.read_from(&mut stream).expect("the end"));
    assert!(bytes_of(&loader.finish().expect("all pieces")) == bytes_of(&filter));
}

/// A stream that fails, or goes on with something else, in the middle of a piece leaves no trace of it.
#[test]
fn a_stream_that_ends_in_a_piece_leaves_the_loader_as_it_was() {
    let filter = split();
    let pieces = pieces_of(&filter, usize::MAX);
    let whole = pieces[0].as_bytes();
    for length in (0..whole.len()).step_by(rounds(40_009, 4_001)).chain([whole.len() - 1]) {
        let mut loader = Filter::loader();
        let cut = loader.read_from(&whole[..length]).map_err(|error| error.kind());
        let expected = match length {
            0 => Ok(false),
            1..8 => Err(NotASnapshot),
            _ => Err(Incomplete),
        };
        assert_eq!((cut, loader.next()), (expected, Some(0)));
        loader.push(whole).expect("the piece");
        assert!(bytes_of(&loader.finish().expect("all of it")) == bytes_of(&filter));
    }
}

/// Returns how much is read of these bytes, with something after them, and how they are refused.
fn refused(bytes: &[u8]) -> (u64, Option<SnapshotErrorKind>) {
    let mut rest = bytes.chain(io::repeat(7).take(1 << 20));
    let error = Filter::loader().read_from(&mut rest).err();
    let left = io::copy(&mut rest, &mut io::sink()).expect("bytes");
    (bytes.len() as u64 + (1 << 20) - left, error.map(|error| error.kind()))
}

/// A stream that never ends is not read until it does, whatever a piece claims.
#[test]
fn no_more_is_read_of_what_is_no_piece_than_is_needed_to_know() {
    let right = FilterFile::cut(pieces_of(&split(), 100_000).remove(0).as_bytes());
    let (header, shard) = (8 * HEADER_WORDS as u64, 8 * right.shard_words() as u64);
    assert_eq!(refused(&right.bytes()), (right.bytes().len() as u64, None));
    assert_eq!(refused(b"lines of text\n"), (header, Some(NotASnapshot)));
    let mut other = right.clone();
    other.header[word::CAPACITY] ^= 1;
    assert_eq!(refused(&other.bytes()), (header, Some(Damaged)));
    // A lane without a 1 in its suffix.
    let mut other = right.clone();
    other.blocks[0][100] = 1 << 63;
    assert_eq!(refused(&other.bytes()), (header + shard, Some(Damaged)));
    // What only the index tells is read with it.
    let mut other = right.clone();
    other.blocks[0][100] = 0;
    assert_eq!(refused(&other.bytes()), (right.bytes().len() as u64, Some(Damaged)));
}

#[test]
fn the_end_of_a_file_tells_its_length() {
    let file = bytes_of(&split());
    assert!(file.starts_with(&SnapshotInfo::MAGIC));
    assert_eq!(SnapshotInfo::END_BYTES, 8 * END_WORDS);
    let end = file.len() - SnapshotInfo::END_BYTES;
    for start in [0, 100, end] {
        assert_eq!(SnapshotInfo::length_in_end(&file[start..]), Some(file.len() as u64));
    }
    assert_eq!(SnapshotInfo::length_in_end(&file[end + 1..]), None);
    assert_eq!(SnapshotInfo::length_in_end(&file[..file.len() - 1]), None);
    assert_eq!(SnapshotInfo::length_in_end(b""), None);
}
