//! A saved filter, byte by byte: as a file, or in pieces.
//!
//! (This page is for reading; nothing in it can be called.)
//!
//! A *part* of a filter holds consecutive shards. A *file* always holds all shards:
//! [`save`](crate::ConcurrentCuckooFilter::save) writes it, and [`load`](crate::ConcurrentCuckooFilter::load) reads it.
//! A *piece* holds as many shards as were asked for, perhaps all: [`piece_at`](crate::ConcurrentCuckooFilter::piece_at)
//! makes it, and a [`PieceLoader`](crate::PieceLoader) reads it. Files and pieces differ only in some words
//! of the header, and a program that can read one can read the other.
//!
//! A part is a sequence of 64-bit words in little-endian order: a header, the buckets of its shards, an index with an
//! entry for each of them, and an end. So the shards of a fixed filter, one after the other, are its table. A part can be
//! written and read from front to back, and pieces can follow one another in a stream. If a part is in a file of its own,
//! nothing follows its end, and its length tells how many shards it has. koel checks every field against the values given
//! here before a filter depends on it, and refuses a part with any other value. A field for which no values are given may
//! have any value.
//!
//! # Header: 32 words
//!
//! | word | at byte | contents |
//! |---|---|---|
//! | 0 | 0 | in a file, the bytes `89 6B 6F 65 6C 0D 0A 1A`: `koel`, between bytes that a program changes if it takes the file for text. In a piece, `89 6B 6F 65 6C 70 0D 0A`: `koelp` |
//! | 1 | 8 | the version of the format: 5 |
//! | 2 | 16 | the kind of filter: 0 for a fixed filter, 1 for a growing one |
//! | 3 | 24 | `bits`, the size of a fingerprint: 8, 9, 10, 12, 16, 21 or 32 in narrow buckets; 18, 20, 24 or 32 in wide ones |
//! | 4 | 32 | `buckets`, the number of buckets in a shard: an even number up to 131,072, and a power of two and at least 4,096 if there is more than one shard. 8,192 in a growing filter |
//! | 5 | 40 | `near`, the number of buckets in a near block: 0 in a growing filter, and unless `buckets` is a power of two and at least 4,096; then `buckets` if a bucket has two lanes, and 512 otherwise |
//! | 6 | 48 | `roots`, the number of shards that the filter began with, 1 to 2^31. In a fixed filter these are all its shards |
//! | 7 | 56 | the capacity that the filter was built for, at most the number of slots that it began with |
//! | 8 | 64 | the limit of its size in bytes, 2^64 - 1 for no limit. 0 in a fixed filter |
//! | 9 | 72 | the expected growth, as an IEEE 754 binary64 number: finite, 1 or more. 0 in a fixed filter |
//! | 10 | 80 | the false-positive rate after that growth, as an IEEE 754 binary64 number: finite, more than 0. 0 in a fixed filter |
//! | 11, 12 | 88 | the seed of the hasher: 128 bits, the lower half first |
//! | 13, 14 | 104 | two probes: the hashes of certain bytes and of a certain item, described [below](#the-hasher) |
//! | 15 to 18 | 120 | the name of the hasher: UTF-8, 1 to 32 bytes, none of them zero, padded with zeros |
//! | 19 | 152 | the number of words in a bucket: 1 if it is narrow, 2 if it is wide |
//! | 20 | 160 | `ticks`, the number of ticks for which items are remembered: 1 to 62, or 0 if they are remembered for ever |
//! | 21 | 168 | `start`, the [place](#places) where the first shard begins: less than `roots × 2^31`. 0 in a file |
//! | 22 | 176 | in the state of a `DurableFilter`, a random number, so that two states differ even if their contents are the same. 0 in other files and in pieces |
//! | 23 | 184 | the byte at which the first shard begins: 256, right after the header, or 2,097,152, after zeros. Files with 64 MiB of shards have the latter, so that a system can map them in huge pages |
//! | 24 | 192 | in a fixed filter, the number of shards in the part, at least 1. 0 in a growing filter |
//! | 25 to 30 | 200 | zeros |
//! | 31 | 248 | the checksum of words 0 to 30 |
//!
//! Every checksum is the 64-bit XXH3 hash, with seed 0, of the bytes of its words.
//!
//! # Shards
//!
//! A shard is its buckets, one after the other. The shards are in the order of the hashes that lead to them. A fixed
//! filter has `roots` shards. In a growing filter, each root may have been split in half, each half in half again, and so
//! on. A shard of depth `d` covers 2^(-d) of its root, and the shards of a root together cover all of it. If `d` is the
//! greatest depth of all shards of the filter, `roots × 2^d` is at most 64 times their number, plus 2^20.
//!
//! There are no other requirements on lanes: empty lanes may be anywhere in a bucket, and a fingerprint may be in any
//! bucket.
//!
//! # Index: 6 words for each shard
//!
//! In a growing filter, the *mark* comes first, so that a program that reads a stream knows where the shards end. It is a
//! bucket that no shard has: each lane of its first word has its highest bit set and no other, and its second word, if it
//! is wide, is 0. After that, there are as many entries as shards, and in their order:
//!
//! | word | contents |
//! |---|---|
//! | 0 | `depth`, the number of splits that led to the shard: 0 to 31. 0 in a fixed filter |
//! | 1 | the number of items: in a fixed filter, of taken lanes; in a growing filter, of taken lanes that are not void. A lane is *void* if the lower `suffix` bits of its fingerprint are a 1 followed by zeros. Such a lane goes to both halves of each split, so several lanes may stand for one item |
//! | 2 | the checksum of all words of the shard |
//! | 3 to 5 | if the filter forgets, the [time](#ages); otherwise zeros |
//!
//! # End: 3 words
//!
//! | word | contents |
//! |---|---|
//! | 0 | the bytes `6B 6F 65 6C 20 65 6E 64` (`koel end`) |
//! | 1 | the length of the part in bytes |
//! | 2 | the checksum of the header's checksum, followed by the mark, the index, and words 0 and 1 of the end. So the header and the index can be believed before a shard is read, and each shard when it is |
//!
//! # Places
//!
//! A place is a number: `root × 2^31`, plus the part of that root that lies before the place, in units of 2^(-31) of
//! the root. (In a fixed filter, each shard is a root.) A shard of depth `d` covers 2^(31 - d) units, and begins at a
//! multiple of that number. The first shard of a filter begins at 0, each other shard begins where the one before it
//! ends, and the last shard ends at `roots × 2^31`.
//!
//! The place where a piece starts is also the cursor with which the piece is requested. It is less than 2^53 in any
//! filter that began with less than 4 million shards, and less than 2^63 in every filter.
//!
//! # All parts together
//!
//! Parts make up a filter if
//!
//! * the first part starts at 0, each other part starts where the one before it ends, and the last part ends at
//!   `roots × 2^31`,
//! * all parts have the same header, except for words 0, 21 to 24 and 31, and for the limit of the filter's size (word
//!   8). The limit may change, and the limit of the last part counts,
//! * their shards, one after the other, meet the requirements on depths above, and those on times below.
//!
//! Parts do not tell which dump they are from. An item that was in the filter before the first part was begun, and
//! stayed in, is in all parts together if each is made after the one before it, even if some are from a later dump. A
//! part from an earlier dump may lack items.
//!
//! The header of the last piece and the shards and entries of all pieces become a file when the header gets the first word
//! of a file, zeros in words 21 and 22, and the words 23 and 24 of a file, and its checksum and the end are made anew.
//!
//! # Ages
//!
//! A filter *forgets* if its `ticks` are not 0. Then each taken lane has a *stamp*: the lower `stamp_bits` bits of the
//! number of the tick in which its item was inserted or refreshed, where `stamp_bits` is the binary logarithm of
//! `ticks` + 2, rounded up. (In a filter that does not forget, `stamp_bits` is 0.) A lane of a narrow bucket has at
//! least 8 other bits, and a lane in either word of a wide bucket has at least 4. An item whose stamp is `s` is
//! `(tick - s) mod 2^stamp_bits` ticks old, and no older than `ticks`.
//!
//! Ticks may pass while a file is written, so each shard has its own time. Its entry ends with these words:
//!
//! | word | contents |
//! |---|---|
//! | 3 | `tick`, the lower `stamp_bits` bits of the number of the tick in which the shard was copied, as in stamps; plus 2^8 if the user gives numbers to ticks |
//! | 4 | the number of ticks that had passed since some moment, which is the same for all shards of a filter's parts. No shard has a lower number than the one before it; if it has the same number, it has the same `tick` |
//! | 5 | the number that the user gave the tick, for the user's own purposes: ages do not depend on it. 0 if there is none |
//!
//! A loaded filter continues from the time of the last shard. An item of another shard becomes older by as many ticks
//! as passed between the two, and has expired if it is then older than `ticks`.
//!
//! # A bucket
//!
//! A bucket is *narrow* or *wide*. A narrow bucket is one word, cut into as many lanes of `bits` bits as fit, from its
//! low end up. The bits left over are zero. An empty lane is 0. In any other lane, the lowest `stamp_bits` bits are the
//! stamp, and the other bits, which are not all zero, are the fingerprint. In a growing filter, the upper `fbits / 2`
//! bits of the fingerprint, rounded down, are its *anchor*, where `fbits` is `bits - stamp_bits`; or fewer, if the
//! expected growth `g` takes more of the other bits. `suffix` is the number of these other, lower bits, of which at
//! least one is not zero: `fbits - fbits / 2`, or, if that is less, `3 + log2(g)`, rounded up; but at most `fbits - 4`,
//! `fbits - 5` with 4 lanes in a bucket, or `fbits - 6` with fewer.
//!
//! A wide bucket is two words, both cut in the same way into lanes of `half` bits, where `half` is `bits / 2`. A lane
//! of the first word is the *head* of a fingerprint. The same lane of the second word has the stamp in its lowest
//! `stamp_bits` bits, and the fingerprint's *tail* in the others. If there is no fingerprint, both lanes are 0. A head
//! is never 0. A tail may be 0, but not in a growing filter. There the head is the anchor, and `suffix` is the size of
//! the tail, `half - stamp_bits`.
//!
//! # Where an item is
//!
//! All numbers below are unsigned and have 64 bits; bit 0 is the lowest. `×` keeps the lower 64 bits of the product,
//! and `<<` the lower 64 bits of the shifted number. `scale(x, n)` is the 128-bit product of `x` and `n`, taken as two
//! halves: the higher half is the *part*, the lower half the *rest*.
//!
//! The item is first hashed to `h`, as described under [the hasher](#the-hasher). Then `h` is
//! mixed:
//!
//! ```text
//! h = fold(fold(h))
//! ```
//!
//! where `fold(x)` is the part of `scale(x, M)` XOR its rest, and `M` is `0xA750FAA414DC2D91`.
//!
//! What follows depends on the kind of filter. In a fixed filter:
//!
//! * The shard is the part of `scale(h, roots)`. The first bucket is the part of
//!   `scale(rest, buckets)`, where `rest` is the rest of that product.
//! * In a narrow bucket, let `lane` be `1 + (p OR (2^stamp_bits - 1))`, where `p` is the part of
//!   `scale(h << 32, 2^bits - 2^stamp_bits)`. It has a stamp of zeros, and the fingerprint above it. In a wide
//!   bucket, the head is 1 + the part of `scale(h << 32, 2^half - 1)`, and the tail the highest
//!   `half - stamp_bits` bits of the rest of that product.
//! * Let `x` be `lane`, or the head in a wide bucket, and `s` be `M` × `x`. If `near` is 0, the second bucket is `t` -
//!   first, plus `buckets` if that is negative, where `t` is the part of `scale(s × x, buckets)` with its lowest bit set.
//! * Otherwise the item is *far* if the two highest bits of `s` are both zero. Let `k` be `near`, or `buckets` for a far
//!   item. The second bucket is first XOR `d`, where `d` is `(s >> 40) & (k - 1)` with its lowest bit set.
//! * The filter contains the item if either bucket has its fingerprint, whatever the stamp.
//!
//! In a growing filter:
//!
//! * The root is the part of `scale(h, roots)`. Let `f` be the rest of that product, and `r` the
//!   sum of `f` and the part of `scale(p, 0x5555555555555555)`, where `p` is the part of `scale(f, NOT f)`.
//! * The root's shards divide the values of `r` among them in ascending order, and a shard of depth `d` has 2^(64 - d)
//!   values. The item belongs to the shard that has its `r`: the highest `depth` bits of `r` lead to it.
//! * Let `o` be `h` × `M`. The first bucket is the highest 13 bits of `o`. Let `w` be the 32 bits of `o` that follow.
//! * In a narrow bucket, the bits of the lane above suffix and stamp, the anchor, are the same bits of `w`. In a wide
//!   bucket, the anchor is 1 + the part of `scale(w << 32, 2^half - 1)`. The lower `suffix` bits of the fingerprint are
//!   the highest `suffix` bits of `r << depth`, with the lowest of them replaced by 1.
//! * Let `s` be `M` × the anchor `<< (suffix + stamp_bits)`, or × the head in a wide bucket. The item is *far* if the
//!   two highest bits of `s` are both zero, or if a bucket has two lanes.
//! * The second bucket is first XOR `n`, where `n` is the lowest 13 bits of `s >> 40` if the item
//!   is far, and the lowest 9 bits otherwise, with its lowest bit set in either case.
//! * A lane stands for the item if it is not empty, and if its fingerprint agrees with that of the item in all bits
//!   above the lowest 1 of its lower `suffix` bits. The filter contains the item if either bucket has such a lane.
//!
//! For example, the bytes `https://a.example/` have the hash `825669AB53A360EC` with the seed 7, which is mixed to
//! `A4BD9CF082363CE5`. In a fixed filter of 16 bits, 3 shards and 4,096 buckets, they are in shard 1, in bucket `EE3`
//! or `ED2` (the item is not far), as `8236`. In a growing filter of 16 bits that began with 3 shards, each of which
//! was split into four, they are in root 1, in the last of its four shards, in bucket `333` or `2E0` (the item is not
//! far), as `F0CF`.
//!
//! # The hasher
//!
//! koel's own hasher is named `XXH3-64`, and its seed has 64 bits. The hash of a string, or of a sequence of bytes, is
//! the 64-bit XXH3 hash of its bytes, with the seed. Other items are hashed in pieces: the first piece with the seed,
//! and each further piece with the previous hash as its seed. An integer is one piece of 64
//! bits, in little-endian order and with its sign extended; a `u128` or `i128` is one of 128 bits. The pieces of other
//! items are described under [what is hashed](crate::StableHash#what-is-hashed). The states of the
//! `koel` command use this hasher. The higher half of the 128 bits is zero, unless lines are compared as URLs: then the
//! items are the URLs in a normal form that only this command computes.
//!
//! The probes show whether this program, built with this version of Rust and run on this machine, computes the same
//! hashes as the program that saved the file. koel refuses a part with other probes, or with a hasher of another name.
//! The probes are hashes before they are mixed. The first probe is the hash of one piece of four bytes, `6B 6F 65 6C`.
//! The second is the hash of a tuple: the `str` `"koel"`, the `u32` `0x01020304`, the slice of `u8` `[1, 2, 3]`, the
//! `usize` `5`, `Some(6u8)` and the `char` `'k'`. It depends on what the standard library writes for these types, so a
//! program that hashes only bytes can ignore it. (Today the pieces are `6B 6F 65 6C`; `04 03 02 01`; `01 02 03`;
//! `05 00 00 00 00 00 00 00`; `01 00 00 00 00 00 00 00`, `06`; and `6B 00 00 00`.)
//!
//! # Versions
//!
//! This is the fifth version of the format; no release has written the others. A later version will have another
//! number in word 1, and everything else may be different. koel will continue to read every version that a release has
//! written.

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

/// Returns the bucket that no shard of a growing filter has, which ends the shards of a part. Those of a fixed filter are
/// counted in the header, and no bucket follows them.
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
