//! Cuts a file into pieces, as the specification says, and loads them. The loader has to accept them
//! if, and only if, the file is accepted, and to go on after any piece that is not the right one.

use crate::filters::{Filter, mix, written};
use crate::repair::{END_WORDS, HEADER_WORDS, LIST, block_words, seal, sum_of};
use koel_small::{AnyCuckooFilter, Room, StableHash};

const FRONT_WORDS: usize = 33;
const DEPTH: usize = 1;

/// Checks that the pieces of this file, whose checksums are right, are worth as much as the file.
pub fn load<R: Room>(bytes: &[u8], filter: Option<&Filter<R>>) {
    let Some(pieces) = cut(bytes) else { return };
    let mut seed = bytes.iter().fold(3, |sum: u64, byte| mix(sum ^ u64::from(*byte)));
    let mut loader = Filter::<R>::loader();
    let mut any = AnyCuckooFilter::<StableHash>::loader();
    let mut is_fine = true;
    for piece in &pieces {
        seed = mix(seed);
        let next = loader.next();
        if loader.push(&changed(piece, seed)).is_err() {
            assert_eq!(loader.next(), next);
        } else {
            // The turn, the number of a first piece, or the limit: whatever follows may be refused.
            return;
        }
        is_fine &= loader.push(piece).is_ok();
        assert!(any.push(piece).is_ok() || !is_fine);
        if !is_fine {
            break;
        }
    }
    let whole = loader.finish();
    assert_eq!(is_fine && whole.is_ok(), filter.is_some());
    if let (true, Ok(whole), Some(filter)) = (is_fine, whole, filter) {
        assert!(written(&whole) == written(filter));
        assert!(any.finish().is_ok());
        dump(&whole, seed);
    }
}

/// The filter comes back from pieces that it makes itself.
fn dump<R: Room>(filter: &Filter<R>, seed: u64) {
    let mut loader = Filter::<R>::loader();
    for piece in filter.pieces(seed as usize % 2_000) {
        let piece = piece.expect("a piece");
        loader.push(piece.as_bytes()).expect("the next piece");
        assert_eq!(loader.next(), piece.next());
    }
    assert!(written(&loader.finish().expect("all pieces")) == written(filter));
    let _ = filter.piece_at(seed, 0);
    let _ = filter.piece_at(seed >> 32, 0);
}

/// The same piece with another number in its front, and right checksums.
fn changed(piece: &[u8], seed: u64) -> Vec<u8> {
    let mut words = words_of(piece);
    words[2 + seed as usize % (FRONT_WORDS - 3)] ^= mix(seed) >> (seed >> 32 & 63);
    seal(&mut words[9..][..HEADER_WORDS]);
    seal(&mut words[..FRONT_WORDS]);
    bytes_of(&words)
}

/// The pieces of a file, of one to three blocks.
fn cut(bytes: &[u8]) -> Option<Vec<Vec<u8>>> {
    let words = words_of(bytes);
    let (header, rest) = words.split_at_checked(HEADER_WORDS)?;
    let (blocks, _) = rest.split_at_checked(rest.len().checked_sub(END_WORDS)?)?;
    let is_list = header[LIST] == 1;
    let block = if is_list { blocks.len() } else { block_words(header)? };
    let (mut pieces, mut place, mut next) =
        (Vec::new(), 0u64, blocks.chunks(block.max(1)).peekable());
    for turn in 1.. {
        if next.peek().is_none() {
            break;
        }
        let start = place;
        let mut own: Vec<Vec<u64>> = next.by_ref().take(1 + turn % 3).map(Vec::from).collect();
        for (number, block) in (0..).zip(&mut own) {
            place = place.wrapping_add((1 << 31) >> block.get(DEPTH).map_or(0, |depth| depth % 32));
            // What a list is sealed with stays, because the file has it, too.
            if !is_list {
                block[0] = number;
                seal(block);
            }
        }
        let sums: Vec<u64> = own.iter().filter_map(|block| block.last().copied()).collect();
        let length = 8 * (FRONT_WORDS + own.iter().map(Vec::len).sum::<usize>()) as u64;
        let magic = u64::from_le_bytes(*b"\x89koelp\r\n");
        let mut front =
            vec![magic, 1, length, 7, turn as u64, start, place, own.len() as u64, sum_of(&sums)];
        front.extend(header);
        front.push(0);
        seal(&mut front);
        front.extend(own.iter().flatten());
        pieces.push(bytes_of(&front));
    }
    Some(pieces)
}

fn words_of(bytes: &[u8]) -> Vec<u64> {
    bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect()
}

fn bytes_of(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}
