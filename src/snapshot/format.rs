//! A part as a whole, as the page on the [format](mod@crate::guide::format) says: both ends, checksums, where shards
//! begin.

use crate::layout::sizing::Layout;
use crate::snapshot::error::SnapshotError;
use crate::table::memory::HUGE;
use xxhash_rust::xxh3::xxh3_64;

pub(crate) const HEADER_WORDS: usize = 32;
/// The number of words of the index for each shard.
pub(crate) const ENTRY_WORDS: usize = 6;
pub(crate) const END_WORDS: usize = 3;

pub(crate) const MAGIC: [u8; 8] = *b"\x89koel\r\n\x1a";
pub(crate) const PIECE_MAGIC: [u8; 8] = *b"\x89koelp\r\n";
pub(crate) const VERSION: u64 = 5;

/// The number of bytes of shards from which on they begin at a huge page, which then is at most a thirty-second of them.
const LARGE: u64 = 32 * HUGE as u64;

/// Returns the byte of a file at which its shards begin, if it has this number of shards.
pub(crate) fn first_byte(layout: &Layout, shards: usize) -> u64 {
    let is_large = shards as u64 * (8 * layout.geometry.words() as u64) >= LARGE;
    if is_large { HUGE as u64 } else { 8 * HEADER_WORDS as u64 }
}

/// Returns the bucket that no shard of a growing filter has, which ends the shards of a part.
pub(crate) fn mark(layout: &Layout) -> Vec<u64> {
    let lanes = layout.lanes();
    if layout.grows { [lanes.tops(), 0][..lanes.words()].to_vec() } else { Vec::new() }
}

/// The words as bytes, to read a file into them.
pub(crate) fn bytes_of(words: &mut [u64]) -> &mut [u8] {
    bytemuck::cast_slice_mut(words)
}

/// Converts words to the byte order of a file. Returns their checksum.
pub(crate) fn to_file(words: &mut [u64]) -> u64 {
    words.iter_mut().for_each(|word| *word = word.to_le());
    xxh3_64(bytemuck::cast_slice(words))
}

/// Converts words that were read to the machine's byte order. Returns their checksum.
pub(crate) fn from_file(words: &mut [u64]) -> u64 {
    let sum = xxh3_64(bytemuck::cast_slice(words));
    words.iter_mut().for_each(|word| *word = u64::from_le(*word));
    sum
}

/// Converts words to the byte order of a file, and sets the last one to the checksum of the others. Returns the bytes
/// of all words, and the checksum.
pub(crate) fn seal(words: &mut [u64]) -> (&[u8], u64) {
    let Some((last, others)) = words.split_last_mut() else { return (&[], 0) };
    let sum = to_file(others);
    *last = sum.to_le();
    (bytemuck::cast_slice(words), sum)
}

/// Converts words that were read to the machine's byte order. Returns their checksum if it is right.
pub(crate) fn unseal(words: &mut [u64]) -> Option<u64> {
    let (last, others) = words.split_last_mut()?;
    let sum = from_file(others);
    *last = u64::from_le(*last);
    (*last == sum).then_some(sum)
}

/// The end of a part: what it begins with, the length of the whole part, and the checksum.
pub(crate) struct End;

impl End {
    const MAGIC: [u8; 8] = *b"koel end";

    pub(crate) fn words(bytes: u64) -> [u64; END_WORDS] {
        [u64::from_le_bytes(Self::MAGIC), bytes, 0]
    }

    /// Returns the length of a part according to its last bytes, or `None` if these are not an end. The end is not
    /// validated.
    pub(crate) fn length_in(bytes: &[u8]) -> Option<u64> {
        let (words, _) = bytes.last_chunk::<{ 8 * END_WORDS }>()?.as_chunks::<8>();
        (words[0] == Self::MAGIC).then(|| u64::from_le_bytes(words[1]))
    }

    /// Checks that these last words of a part of `length` bytes, in the byte order of a file, are its end. The checksum
    /// is not checked.
    pub(crate) fn check(words: &[u64], length: u64) -> Result<(), SnapshotError> {
        match Self::length_in(bytemuck::cast_slice(words)) {
            Some(told) if told == length => Ok(()),
            Some(told) => Err(SnapshotError::wrong_length(length, told)),
            None => Err(SnapshotError::no_end(length - 8 * END_WORDS as u64)),
        }
    }
}

#[cfg(test)]
mod tests {

    use crate::hash::StableHash;
    use crate::layout::bucket::Lanes;
    use crate::layout::geometry::{Geometry, Mixed, Place};
    use crate::layout::roots::position_of;
    use crate::layout::shrinking::Shrinking;

    #[test]
    fn the_example_on_the_page_is_right() {
        let hash = StableHash::with_seed(7).hash_bytes(b"https://a.example/");
        let mixed = Mixed::of(hash);
        let lanes = Lanes::of_bits(16);
        let fixed = Geometry::restore(lanes, 3, 4_096).expect("a geometry");
        let numbers_of = |place: Place| [place.first.0, place.second.0, place.fp.head()];
        let (shard, place) = fixed.locate(hash);
        assert_eq!((hash, mixed.0), (0x8256_69AB_53A3_60EC, 0xA4BD_9CF0_8236_3CE5));
        assert_eq!((shard, numbers_of(place)), (1, [0xEE3, 0xED2, 0x8236]));
        let (root, fraction) = mixed.scaled(3);
        let position = position_of(fraction);
        let place = Shrinking::new(lanes, 1.0).place(mixed, position, 2, false);
        assert_eq!((root, position >> 62, numbers_of(place)), (1, 0b11, [0x333, 0x2E0, 0xF0CF]));
    }
}
