//! The file of a saved filter, byte by byte.
//!
//! (This page is to be read; nothing in it can be called. [`save`](crate::ConcurrentCuckooFilter::save) writes such
//! files, [`load`](crate::ConcurrentCuckooFilter::load) reads them.)
//!
//! A file is a row of 64-bit words, each in little-endian order: a header, a block for each shard, an
//! end. It can be written and read from front to back. This is version 1. What a field may be is
//! checked before it is believed, and anything else is refused.
//!
//! # Header: 24 words
//!
//! | word | at byte | what |
//! |---|---|---|
//! | 0 | 0 | the bytes `89 6B 6F 65 6C 0D 0A 1A` (`.koel` and what programs that take a file for text change) |
//! | 1 | 8 | the version of the format, 1 |
//! | 2 | 16 | 0 of a fixed filter, 1 of one that grows |
//! | 3 | 24 | `bits` of a fingerprint: 8, 9, 10, 12, 16, 21 or 32. A bucket has `64 / bits` lanes, rounded down |
//! | 4 | 32 | `buckets` of a shard, from 2 to 131,072; if there are several shards, a multiple of 512. 8,192 if it grows |
//! | 5 | 40 | `near`, the buckets of a near block: a power of two from 2 to 512, of which `buckets` is a multiple. 0 if it grows |
//! | 6 | 48 | `roots`, the shards that the filter began with; if it is fixed, all of them. At least 1 |
//! | 7 | 56 | the capacity that was asked for |
//! | 8 | 64 | the most bytes that it may take, 2^64 - 1 for no limit; of a fixed filter 0 |
//! | 9 | 72 | the growth that is expected, as an IEEE 754 number, finite, 1 or more; of a fixed filter 0 |
//! | 10 | 80 | the false-positive rate after that, another such number, finite, more than 0; of a fixed filter 0 |
//! | 11, 12 | 88 | the seed of the hasher, 128 bits, the lower half first |
//! | 13, 14 | 104 | two probes: what the hasher makes of some bytes and of some items, told [below](#the-hasher) |
//! | 15 to 18 | 120 | the name of the hasher, UTF-8, filled up with zeros |
//! | 19 to 22 | 152 | zeros. Whatever a later koel may put here, one that does not know it has to refuse |
//! | 23 | 184 | the checksum of words 0 to 22 |
//!
//! All checksums are XXH3, 64 bits, of seed 0, over the bytes of the words.
//!
//! # Blocks: 4 words and a word for each bucket
//!
//! | word | what |
//! |---|---|
//! | 0 | the number of the block: 0, 1, 2, … |
//! | 1 | `depth`: how often the shard was split, 0 to 31; 0 if the filter is fixed |
//! | 2 | how many items are in, as two's complement: as many as lanes are taken if the filter is fixed. If it grows, that number or up to `buckets` × lanes less, since lanes that are used up go to both halves of a split, and their items are shared out |
//! | 3 and on | the buckets |
//! | last | the checksum of all words of the block before it |
//!
//! The blocks come in the order of the hashes that lead to their shards. In a fixed filter there are
//! `roots`. In one that grows, each root is cut in halves, those in halves again, and so on: a block
//! of depth `d` stands for 2^(-d) of its root, and the blocks of a root make up all of it. The deepest
//! block has `roots × 2^d` of at most 2^20 more than 64 times the number of blocks.
//!
//! # End: 6 words
//!
//! | word | what |
//! |---|---|
//! | 0 | the bytes `6B 6F 65 6C 20 65 6E 64` (`koel end`) |
//! | 1 | the number of blocks |
//! | 2 | the sum of their items, as two's complement |
//! | 3 | the length of the file in bytes |
//! | 4 | the checksum of the checksums: that of the header, then those of all blocks |
//! | 5 | the checksum of words 0 to 4 |
//!
//! # A bucket
//!
//! A word is cut into lanes of `bits` bits, from its low end up; bits that are left over are zero. A
//! lane is 0 when it is empty, and a fingerprint otherwise. In a filter that grows, of a fingerprint's
//! lower `window` = `bits - bits / 2` (rounded down) bits, at least one is not zero.
//!
//! # Where an item is
//!
//! All numbers are unsigned and of 64 bits, of which bit 0 is the lowest, `×` keeps the lower 64 bits of a product, and
//! `scale(x, n)` is the two halves of the 128-bit product of `x` and `n`: a *part* (the higher) and the
//! *rest*.
//!
//! The item is hashed to `h`; see [the hasher](#the-hasher). It is mixed: `h ^= h >> 27`,
//! `h ×= 0x3C79AC492BA7B653`, `h ^= h >> 33`, `h ×= 0x1C69B3F74AC4AE35`, `h ^= h >> 27`. Then, in a
//! fixed filter:
//!
//! * the shard is the part of `scale(h, roots)`, and the first bucket the part of its rest scaled by
//!   `buckets`;
//! * the fingerprint is 1 + the part of `scale(h << 32, 2^bits - 1)`;
//! * with `s` = fingerprint × `0x9E3779B97F4A7C15`: if `near` is 2, or a bucket has two lanes, or bits 20 and 21 of `s`
//!   are both zero, the item is wide: with `t` = the part of `scale(s, buckets)` with its lowest bit
//!   set, the second bucket is `t` - first, plus `buckets` if that is negative. Otherwise it is
//!   first XOR (bits 40 and on of `s`, as many as `near - 1` has, with the lowest bit set).
//! * The item is in if either bucket has a lane with its fingerprint.
//!
//! And in one that grows:
//!
//! * the root is the part of `scale(h, roots)`. The highest bits of the rest `r` choose the block: of the root's
//!   blocks it is the one whose first `depth` bits are those of `r`;
//! * with `o` = `h` × `0xD6E8FEB86659FD93`, the first bucket is the highest 13 bits of `o`;
//! * the fingerprint's higher `bits / 2` bits, the *anchor*, are the next ones of `o`, after those 13; its
//!   lower `window` bits are the highest of `r << depth`, of which the lowest is replaced by 1;
//! * with `s` = (the fingerprint with the window zeroed) × `0x9E3779B97F4A7C15`: the second bucket is
//!   first XOR (bits 40 and on of `s`, 9 of them, with the lowest bit set). If bits 58 and 59 of `s` are both
//!   zero, or a bucket has two lanes, 13 bits of it instead of 9.
//! * A lane stands for the item if it agrees with the fingerprint in all bits above the lane's lowest 1.
//!   The item is in if such a lane is in either bucket.
//!
//! For example, the bytes `https://a.example/` with the seed 7 have the hash `825669AB53A360EC`, mixed
//! `18404E52057BC722`. In a fixed filter of 16 bits, 3 shards, 4,096 buckets and a near block of 128 they are in shard 0,
//! in bucket `48C` or `6F7` (the item is wide), as `057C`. In one of 16 bits that began with 3 shards and was split
//! twice they are in root 0, in the second of its four blocks, in bucket `CC` or `141` (not wide), as
//! `4323`.
//!
//! # The hasher
//!
//! That of koel is named `XXH3-64`, and its seed has 64 bits. An item of bytes, if it was hashed by
//! [`hash_bytes`](crate::StableHash::hash_bytes), is just that: XXH3 of the bytes, 64 bits, with the seed.
//! For others see [what is hashed](crate::StableHash#what-is-hashed).
//!
//! The probes tell whether the hashes of this program, in this version of Rust, on this machine are
//! still what they were. The first is what the hasher makes of the piece of four bytes `6B 6F 65 6C`. The second is
//! the hash of a tuple: the `str` `"koel"`, the `u32` `0x01020304`, the slice of `u8` `[1, 2, 3]`, the `usize` `5`,
//! `Some(6u8)` and the `char` `'k'`, which depends on what the standard library writes of them. Whoever only
//! hashes bytes need not look at that one. (Today these are the pieces `6B 6F 65 6C`, `FF`; `04 03 02 01`;
//! `03 00 00 00 00 00 00 00`, `01 02 03`; `05 00 00 00 00 00 00 00`; `01 00 00 00 00 00 00 00`, `06`; and
//! `6B 00 00 00`.)
//!
//! # Versions
//!
//! A later version will have another number in word 1, and may have everything else otherwise. koel
//! goes on reading all versions that it ever wrote.

use crate::layout::aging::GROWING_BUCKETS;
use crate::layout::bucket::Lanes;
use crate::layout::geometry::{Geometry, Numbers, SHARD_BUCKETS};
use crate::layout::sizing::{GrowthPlan, is_layout};
use crate::room::parts::Plan;
use crate::snapshot::allocate::can_be_had;
use crate::snapshot::error::Reason;
use crate::stable_hash::PersistentHasher;
use std::hash::Hasher;
use xxhash_rust::xxh3::xxh3_64;

pub(crate) const HEADER_WORDS: usize = 24;
pub(crate) const END_WORDS: usize = 6;
/// Those of a block before its buckets.
pub(crate) const BLOCK_HEAD: usize = 3;
/// Those of a block beside its buckets.
pub(crate) const BLOCK_WORDS: usize = BLOCK_HEAD + 1;

const MAGIC: [u8; 8] = *b"\x89koel\r\n\x1a";
const END: [u8; 8] = *b"koel end";
const VERSION: u64 = 1;
const NAME_WORDS: usize = 4;

/// The words of a block.
pub(crate) fn block_words(plan: &Plan) -> usize {
    BLOCK_WORDS + plan.geometry().buckets() as usize
}

/// Its bytes.
pub(crate) fn block_bytes(plan: &Plan) -> u64 {
    8 * block_words(plan) as u64
}

/// The bytes of some words as they are in a file, to be read into.
pub(crate) fn bytes_of(words: &mut [u64]) -> &mut [u8] {
    bytemuck::cast_slice_mut(words)
}

/// Puts the checksum of the other words into the last one; gives their bytes, and the checksum.
pub(crate) fn seal(words: &mut [u64]) -> (&[u8], u64) {
    let Some((last, others)) = words.split_last_mut() else { return (&[], 0) };
    others.iter_mut().for_each(|word| *word = word.to_le());
    let sum = xxh3_64(bytemuck::cast_slice(others));
    *last = sum.to_le();
    (bytemuck::cast_slice(words), sum)
}

/// The other way: what was read becomes words; gives the checksum if it is right.
pub(crate) fn unseal(words: &mut [u64]) -> Option<u64> {
    let others = words.len().saturating_sub(1);
    let sum = xxh3_64(bytemuck::cast_slice(&words[..others]));
    words.iter_mut().for_each(|word| *word = u64::from_le(*word));
    (words.last() == Some(&sum)).then_some(sum)
}

/// What a file begins with.
pub(crate) struct Header<S> {
    pub plan: Plan,
    pub capacity: usize,
    pub hasher: S,
}

/// The hashes by which a file knows a hasher: of bytes, and of items.
fn probes(hasher: &impl PersistentHasher) -> [u64; 2] {
    let mut bytes = hasher.build_hasher();
    bytes.write(b"koel");
    let items = ("koel", 0x0102_0304_u32, &[1u8, 2, 3][..], 5usize, Some(6u8), 'k');
    [bytes.finish(), hasher.hash_one(items)]
}

fn name_of<S: PersistentHasher>() -> [u64; NAME_WORDS] {
    const {
        let name = S::NAME.as_bytes();
        let mut at = 0;
        assert!(
            !name.is_empty() && name.len() <= 8 * NAME_WORDS,
            "a hasher's name has 1 to 32 bytes"
        );
        while at < name.len() {
            assert!(name[at] != 0, "a hasher's name has no zero in it");
            at += 1;
        }
    };
    let mut words = [0; NAME_WORDS];
    for (word, bytes) in words.iter_mut().zip(S::NAME.as_bytes().chunks(8)) {
        let mut padded = [0; 8];
        padded[..bytes.len()].copy_from_slice(bytes);
        *word = u64::from_le_bytes(padded);
    }
    words
}

fn name_in(words: &[u64]) -> String {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

pub(crate) fn header<S: PersistentHasher>(
    plan: &Plan,
    capacity: usize,
    hasher: &S,
) -> Words<HEADER_WORDS> {
    let Numbers { lanes, shards, buckets, near_block } = plan.geometry().numbers();
    let growth = match plan {
        Plan::Fixed(_) => [0; 3],
        Plan::Growing(GrowthPlan { max_bytes, expected_growth, rate, .. }) => {
            // No limit is none on other machines, too.
            let most = if *max_bytes == usize::MAX { u64::MAX } else { *max_bytes as u64 };
            [most, expected_growth.to_bits(), rate.to_bits()]
        }
    };
    let seed = hasher.seed();
    let mut words = [0; HEADER_WORDS];
    words[0] = u64::from_le_bytes(MAGIC);
    words[1] = VERSION;
    words[2] = plan.grows().into();
    words[3] = lanes.bits().into();
    words[4] = buckets.into();
    words[5] = if plan.grows() { 0 } else { near_block.into() };
    words[6] = shards as u64;
    words[7] = capacity as u64;
    words[8..11].copy_from_slice(&growth);
    words[11] = seed as u64;
    words[12] = (seed >> 64) as u64;
    words[13..15].copy_from_slice(&probes(hasher));
    words[15..19].copy_from_slice(&name_of::<S>());
    words
}

/// So many words.
pub(crate) type Words<const N: usize> = [u64; N];

/// Whether what was read begins like a filter.
pub(crate) fn is_snapshot(words: &Words<HEADER_WORDS>) -> bool {
    words[0].to_ne_bytes() == MAGIC
}

/// What was read as a header, and its checksum. `own_bytes` is what the filter takes beside the heap.
pub(crate) fn read_header<S: PersistentHasher>(
    words: &mut Words<HEADER_WORDS>,
    own_bytes: usize,
) -> Result<(Header<S>, u64), Reason> {
    if !is_snapshot(words) {
        return Err(Reason::NotASnapshot);
    }
    let version = u64::from_le(words[1]);
    if version != VERSION {
        return Err(Reason::UnsupportedVersion { version });
    }
    let sum = unseal(words).ok_or(Reason::damaged(0, "the checksum of the header is wrong"))?;
    let seed = u128::from(words[12]) << 64 | u128::from(words[11]);
    let hasher = hasher_of(&words[15..19], seed, &words[13..15])?;
    let plan = plan_of(words, own_bytes)?;
    for word in 19..23 {
        field(words, word, "what later versions may use", |value| value == 0)?;
    }
    let capacity = field(words, 7, "the capacity", |_| true)?;
    Ok((Header { plan, capacity, hasher }, sum))
}

fn hasher_of<S: PersistentHasher>(name: &[u64], seed: u128, hashes: &[u64]) -> Result<S, Reason> {
    if *name != name_of::<S>() {
        return Err(Reason::WrongHasher { found: name_in(name), wanted: S::NAME });
    }
    let same = |hasher: &S| hasher.seed() == seed && probes(hasher) == *hashes;
    S::from_seed(seed).filter(same).ok_or(Reason::OtherHashes { name: S::NAME })
}

fn plan_of(words: &Words<HEADER_WORDS>, own_bytes: usize) -> Result<Plan, Reason> {
    let grows = field(words, 2, "the kind of filter", |kind| kind <= 1)? == 1;
    let is_layout = |bits| u32::try_from(bits).is_ok_and(is_layout);
    let bits = field(words, 3, "the bits of a fingerprint", is_layout)? as u32;
    let lanes = Lanes::of_bits(bits);
    let fits = |buckets| {
        let most = u64::from(SHARD_BUCKETS);
        if grows { buckets == u64::from(GROWING_BUCKETS) } else { (2..=most).contains(&buckets) }
    };
    let buckets = field(words, 4, "the buckets of a shard", fits)? as u32;
    let in_them = |block| if grows { block == 0 } else { block <= u64::from(buckets) };
    let near_block = field(words, 5, "the near block", in_them)? as u32;
    let shards = field(words, 6, "the number of shards", |shards| shards > 0)?;
    can_be_had(&Geometry::new(lanes, 1, buckets), shards)?;
    if grows {
        let geometry = Geometry::new(lanes, shards, buckets);
        return growth_of(words, geometry, own_bytes).map(Plan::Growing);
    }
    for word in 8..11 {
        field(words, word, "what only a filter that grows has", |value| value == 0)?;
    }
    let geometry = Geometry::restore(Numbers { lanes, shards, buckets, near_block });
    geometry.map(Plan::Fixed).ok_or(Reason::damaged(32, "there is no filter of these sizes"))
}

fn growth_of(
    words: &Words<HEADER_WORDS>,
    geometry: Geometry,
    own_bytes: usize,
) -> Result<GrowthPlan, Reason> {
    let max_bytes = usize::try_from(words[8]).unwrap_or(usize::MAX);
    let [expected_growth, rate] = [9, 10].map(|word: usize| f64::from_bits(words[word]));
    if !(expected_growth >= 1.0 && expected_growth.is_finite()) {
        return Err(Reason::damaged(72, "the expected growth is none"));
    }
    if !(rate > 0.0 && rate.is_finite()) {
        return Err(Reason::damaged(80, "the false-positive rate is none"));
    }
    Ok(GrowthPlan { geometry, max_bytes, own_bytes, expected_growth, rate })
}

/// A number of the header.
fn field(
    words: &[u64],
    index: usize,
    what: &str,
    is_right: impl Fn(u64) -> bool,
) -> Result<usize, Reason> {
    let value = words[index];
    if !is_right(value) {
        return Err(Reason::damaged(8 * index as u64, format!("{what} cannot be {value}")));
    }
    // More than this machine can have.
    usize::try_from(value).map_err(|_| Reason::OutOfMemory { bytes: usize::MAX })
}

/// What a file ends with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct End {
    pub blocks: u64,
    pub items: i64,
    /// Of the whole file.
    pub bytes: u64,
    pub sums: u64,
}

impl End {
    pub fn words(self) -> Words<END_WORDS> {
        let End { blocks, items, bytes, sums } = self;
        [u64::from_le_bytes(END), blocks, items.cast_unsigned(), bytes, sums, 0]
    }

    /// What was read as an end, at a certain byte.
    pub fn read(words: &mut Words<END_WORDS>, at: u64) -> Result<Self, Reason> {
        if words[0].to_ne_bytes() != END {
            return Err(Reason::NoEnd { at });
        }
        unseal(words).ok_or(Reason::damaged(at, "the checksum of the end is wrong"))?;
        let [_, blocks, items, bytes, sums, _] = *words;
        Ok(End { blocks, items: items.cast_signed(), bytes, sums })
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use crate::layout::aging::Aging;
    use crate::layout::geometry::{Mixed, Place};
    use crate::stable_hash::StableHash;

    /// The example of the page.
    #[test]
    fn the_page_has_a_right_example() {
        let hash = StableHash::with_seed(7).hash_bytes(b"https://a.example/");
        let mixed = Mixed::of(hash);
        let lanes = Lanes::of_bits(16);
        let numbers = Numbers { lanes, shards: 3, buckets: 4_096, near_block: 128 };
        let fixed = Geometry::restore(numbers).expect("a geometry");
        let numbers_of = |place: Place| [place.first.0, place.second.0, place.fp.get()];
        let (shard, place) = fixed.locate(hash);
        assert_eq!((hash, mixed.0), (0x8256_69AB_53A3_60EC, 0x1840_4E52_057B_C722));
        assert_eq!((shard, numbers_of(place)), (0, [0x48C, 0x6F7, 0x57C]));
        let (root, rest) = mixed.scaled(3);
        let place = Aging::new(lanes).place(mixed, 3, 2);
        assert_eq!((root, rest >> 62, numbers_of(place)), (0, 0b01, [0xCC, 0x141, 0x4323]));
    }
}
