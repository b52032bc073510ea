//! Cuts a file into pieces, as the specification says, and loads them. The loader has to accept them
//! if, and only if, the file is accepted; and to go on after a piece that is not the right one, or to begin again if that
//! is damaged behind its header.

use crate::filters::{Filter, is_as_read, mix, written};
use crate::repair::{HEADER_WORDS, OF_PIECES, Shard, sealed, shards_in};

/// Checks that the pieces of this file, whose checksums are right, are worth as much as the file.
pub fn load(bytes: &[u8], filter: Option<&Filter>) {
    let Some(pieces) = cut(bytes) else { return };
    let mut seed = bytes.iter().fold(3, |sum: u64, byte| mix(sum ^ u64::from(*byte)));
    let mut loader = Filter::loader();
    let mut is_fine = true;
    for piece in &pieces {
        seed = mix(seed);
        let next = loader.next();
        if loader.push(&piece.changed(seed)).is_err() {
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

/// A piece, but for its end.
struct Part {
    header: Vec<u64>,
    shards: Vec<Shard>,
}

impl Part {
    fn bytes(&self) -> Vec<u8> {
        sealed(self.header.clone(), &self.shards)
    }

    /// The same piece with another number in its header, and right checksums.
    fn changed(&self, seed: u64) -> Vec<u8> {
        let mut header = self.header.clone();
        header[2 + seed as usize % (HEADER_WORDS - 3)] ^= mix(seed) >> (seed >> 32 & 63);
        sealed(header, &self.shards)
    }
}

/// The pieces of a file, of one to three shards.
fn cut(bytes: &[u8]) -> Option<Vec<Part>> {
    let words = bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word));
    let words: Vec<u64> = words.collect();
    let (header, rest) = words.split_at_checked(HEADER_WORDS)?;
    let (mut pieces, mut place) = (Vec::new(), 0u64);
    let mut next = shards_in(header, rest)?.into_iter().peekable();
    for number in 1.. {
        if next.peek().is_none() {
            break;
        }
        let mut header = header.to_vec();
        header[0] = u64::from_le_bytes(*b"\x89koelp\r\n");
        header[OF_PIECES].copy_from_slice(&[place, 0]);
        let shards: Vec<Shard> = next.by_ref().take(1 + number % 3).collect();
        for shard in &shards {
            place = place.wrapping_add((1 << 31) >> (shard.depth % 64));
        }
        pieces.push(Part { header, shards });
    }
    Some(pieces)
}
