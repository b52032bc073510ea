//! Cuts a file into pieces, as the specification says, and loads them. The loader has to accept them
//! if, and only if, the file is accepted; and to go on after a piece that is not the right one, or to begin again if that
//! is damaged behind its header.

use crate::file::{FilterFile, HEADER_WORDS, MAGIC_OF_PIECE, word};
use crate::filters::{Filter, is_as_read, mix, written};

/// Checks that the pieces of this file, whose checksums are right, are worth as much as the file.
pub fn load(bytes: &[u8], filter: Option<&Filter>) {
    let pieces = cut(&FilterFile::cut(bytes));
    let mut seed = bytes.iter().fold(3, |sum: u64, byte| mix(sum ^ u64::from(*byte)));
    let mut loader = Filter::loader();
    let mut is_fine = true;
    for piece in &pieces {
        seed = mix(seed);
        let next = loader.next();
        if loader.push(&changed(piece, seed)).is_err() {
            if loader.next() != next {
                // What follows a header that is believed is damaged: the loader has to begin again.
                assert_eq!(loader.next(), Some(0));
                return;
            }
        } else {
            // A header that is believed: whatever follows may be refused.
            return;
        }
        let piece = piece.bytes();
        is_fine &= loader.push(&piece).is_ok();
        if !is_fine {
            break;
        }
    }
    let whole = loader.finish();
    assert_eq!(is_fine && whole.is_ok(), filter.is_some());
    if let (true, Ok(whole), Some(filter)) = (is_fine, whole, filter) {
        if is_as_read(filter, bytes.len()) {
            assert!(written(&whole) == written(filter));
        } else {
            assert_eq!(whole.len(), filter.len());
        }
        dump(&whole, seed);
    }
}

/// The filter comes back from pieces that it makes itself.
fn dump(filter: &Filter, seed: u64) {
    let mut loader = Filter::loader();
    for piece in filter.pieces(seed as usize % 2_000) {
        let piece = piece.expect("a piece");
        loader.push(piece.as_bytes()).expect("the next piece");
        assert_eq!(loader.next(), piece.next());
    }
    assert!(written(&loader.finish().expect("all pieces")) == written(filter));
    let _ = filter.piece_at(seed, 0);
    let _ = filter.piece_at(seed >> 32, 0);
}

/// The same piece with another number in its header, and right checksums.
fn changed(piece: &FilterFile, seed: u64) -> Vec<u8> {
    let mut piece = piece.clone();
    piece.header[2 + seed as usize % (HEADER_WORDS - 3)] ^= mix(seed) >> (seed >> 32 & 63);
    piece.with_sums().bytes()
}

/// The pieces of a file, of one to three shards.
fn cut(file: &FilterFile) -> Vec<FilterFile> {
    let (mut pieces, mut blocks) = (Vec::new(), file.blocks.iter().cloned().peekable());
    let mut header = file.header.clone();
    header[0] = u64::from_le_bytes(MAGIC_OF_PIECE);
    for number in 1.. {
        if blocks.peek().is_none() {
            break;
        }
        let shards = blocks.by_ref().take(1 + number % 3).collect();
        let piece = FilterFile::of(header.clone(), shards).sealed();
        header[word::START] = piece.end_place();
        pieces.push(piece);
    }
    pieces
}
