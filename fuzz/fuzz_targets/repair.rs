//! Repairs the parts of an input that a fuzzer would never get right by chance, such as checksums,
//! and leaves the rest to the fuzzer.

use std::ops::Range;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

pub const HEADER_WORDS: usize = 32;
/// The word of the header with the number of ticks.
const TICKS: usize = 20;
/// The words that are 0 in a file: `start`, and the number of a state.
pub const OF_PIECES: Range<usize> = 21..23;
/// The word with the byte at which the shards begin, and that with their number.
const FIRST: usize = 23;
const SHARDS: usize = 24;
const END_WORDS: usize = 3;
/// The words of the index for each shard.
const ENTRY_WORDS: usize = 6;
/// The words of an entry that tell the time.
const TIME_WORDS: usize = 3;

/// A shard, and its entry in the index.
#[derive(Clone, Debug)]
pub struct Shard {
    pub buckets: Vec<u64>,
    pub depth: u64,
    items: u64,
    time: [u64; TIME_WORDS],
}

/// Cuts the shards, and their entries, out of the words of a part. Takes any words for them.
pub fn shards_in(header: &[u64], rest: &[u64]) -> Option<Vec<Shard>> {
    let words = shard_words(header)?;
    let others = END_WORDS + mark(header).len();
    let count = rest.len().saturating_sub(others).max(1).div_ceil(words + ENTRY_WORDS);
    let word = |at: usize| rest.get(at).copied().unwrap_or(0);
    let shard = |number: usize| {
        let index = count * words + mark(header).len() + number * ENTRY_WORDS;
        let [depth, items, _, a, b, c] = std::array::from_fn(|at| word(index + at));
        let buckets = (0..words).map(|at| word(number * words + at)).collect();
        Shard { buckets, depth, items, time: [a, b, c] }
    };
    Some((0..count).map(shard).collect())
}

/// What comes before the index of a growing filter: a bucket that no shard has.
fn mark(header: &[u64]) -> Vec<u64> {
    let bits = lane_bits(header);
    let heads = (0..64 / bits).map(|lane| 1 << ((lane + 1) * bits - 1)).sum();
    [heads, 0][..if header[2] == 1 { words_of_a_bucket(header) } else { 0 }].to_vec()
}

/// How much is repaired. Each level includes the ones before it.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
pub enum Repair {
    /// The checksums, the end, and the hasher.
    Sums,
    /// The buckets: bits that are left over above the lanes, and windows without a 1.
    Buckets,
    /// The number of items in a shard.
    Items,
    /// The depths, so that the shards make up their roots.
    Depths,
}

impl Repair {
    /// Returns the input as it is, and then repaired at each level.
    pub fn all(input: &[u8]) -> impl Iterator<Item = Vec<u8>> {
        let repairs = [Repair::Sums, Repair::Buckets, Repair::Items, Repair::Depths];
        let repaired = repairs.into_iter().filter_map(|repair| repair.file(input));
        std::iter::once(input.to_vec()).chain(repaired)
    }

    fn file(self, input: &[u8]) -> Option<Vec<u8>> {
        let (words, _) = input.as_chunks::<8>();
        let words: Vec<u64> = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
        let (header, rest) = words.split_at_checked(HEADER_WORDS)?;
        let mut header = header.to_vec();
        header[0] = u64::from_le_bytes(*b"\x89koel\r\n\x1a");
        header[1] = 5;
        header[2] &= 1;
        // The near block of so few buckets as fit into an input.
        header[5] = if header[2] == 0 { 2 } else { 0 };
        header[12] = 0;
        let pieces: [&[u8]; 7] = [
            b"koel",
            b"\x04\x03\x02\x01",
            b"\x01\x02\x03",
            b"\x05\0\0\0\0\0\0\0",
            b"\x01\0\0\0\0\0\0\0",
            b"\x06",
            b"k\0\0\0",
        ];
        header[13] = xxh3_64_with_seed(b"koel", header[11]);
        header[14] = pieces.iter().fold(header[11], |hash, piece| xxh3_64_with_seed(piece, hash));
        header[15..19].copy_from_slice(&[u64::from_le_bytes(*b"XXH3-64\0"), 0, 0, 0]);
        header[19] = 1 + (header[19] >> 1 & 1);
        header[TICKS] %= 63;
        header[OF_PIECES].fill(0);

        let mut shards = shards_in(&header, rest)?;
        repair_times(&header, &mut shards);
        if self >= Repair::Buckets {
            shards.iter_mut().for_each(|shard| repair_buckets(&header, shard));
        }
        if self >= Repair::Items {
            shards.iter_mut().for_each(|shard| shard.items = counted(&header, shard));
        }
        if self >= Repair::Depths {
            repair_depths(&mut header, &mut shards);
        }
        Some(sealed(header, &shards))
    }
}

/// The words of a shard, if shards are as small as those of a fuzzer.
fn shard_words(header: &[u64]) -> Option<usize> {
    let buckets = usize::try_from(header[4]).ok().filter(|n| (1..=8).contains(n))?;
    Some(buckets * words_of_a_bucket(header))
}

fn forgets(header: &[u64]) -> bool {
    header[TICKS] > 0
}

/// The size of the window of a growing filter's lane, without the stamp.
fn window_bits(header: &[u64], stamp: u32) -> u32 {
    let bits = lane_bits(header) - stamp;
    if words_of_a_bucket(header) == 2 {
        return bits;
    }
    let least_anchor = match 64 / lane_bits(header) {
        ..4 => 6,
        4 => 5,
        _ => 4,
    };
    let growth = f64::from_bits(header[9]).log2().ceil().clamp(0.0, 64.0) as u32;
    bits.div_ceil(2).max((3 + growth).min(bits.saturating_sub(least_anchor)))
}

fn stamp_bits(header: &[u64]) -> u32 {
    if forgets(header) { (header[TICKS] + 1).ilog2() + 1 } else { 0 }
}

/// Makes all shards of the time of the first one.
fn repair_times(header: &[u64], shards: &mut [Shard]) {
    let mut time = shards.first().map_or([0; TIME_WORDS], |shard| shard.time);
    time[0] &= 1 << 8 | ((1 << stamp_bits(header)) - 1);
    // From a higher number, a loaded filter goes on from another one.
    time[1] &= u64::MAX >> 1;
    if time[0] >> 8 == 0 {
        time[2] = 0;
    }
    let time = if forgets(header) { time } else { [0; TIME_WORDS] };
    shards.iter_mut().for_each(|shard| shard.time = time);
}

fn words_of_a_bucket(header: &[u64]) -> usize {
    if header[19] == 2 { 2 } else { 1 }
}

/// The bits of a lane in each word of its bucket.
fn lane_bits(header: &[u64]) -> u32 {
    header[3].clamp(2, 32) as u32 / words_of_a_bucket(header) as u32
}

/// The lanes of a bucket: where each is, and its bits in the first word and in the last.
fn lanes(header: &[u64], bucket: &[u64]) -> Vec<(u32, [u64; 2])> {
    let bits = lane_bits(header);
    let ends = [bucket[0], bucket[bucket.len() - 1]];
    let of_word = |at: u32| ends.map(|word| word >> at & ((1 << bits) - 1));
    (0..64 / bits).map(|lane| (lane * bits, of_word(lane * bits))).collect()
}

fn repair_buckets(header: &[u64], shard: &mut Shard) {
    let (grows, bits, words) = (header[2] == 1, lane_bits(header), words_of_a_bucket(header));
    let stamp = stamp_bits(header).min(bits - 1);
    let narrow_window = ((1 << window_bits(header, stamp)) - 1) << stamp;
    let now = shard.time[0];
    let stamps = (1 << stamp) - 1;
    // A stamp that is too old becomes that of the shard's time.
    let stamped = |lane: u64| match forgets(header) {
        true if now.wrapping_sub(lane) & stamps > header[TICKS] => lane & !stamps | now & stamps,
        _ => lane,
    };
    for bucket in shard.buckets.chunks_mut(words) {
        let mut repaired = [0, 0];
        for (at, [first, second]) in lanes(header, bucket) {
            let lacks_a_one = grows && first & narrow_window == 0 || first >> stamp == 0;
            let (first, second) = match words {
                1 if first == 0 => (0, 0),
                1 if lacks_a_one => (stamped(first | 1 << stamp), 0),
                1 => (stamped(first), 0),
                _ if first == 0 => (0, 0),
                _ if grows && second >> stamp == 0 => (first, stamped(second | 1 << stamp)),
                _ => (first, stamped(second)),
            };
            repaired[0] |= first << at;
            repaired[1] |= second << at;
        }
        bucket.copy_from_slice(&repaired[..words]);
    }
}

/// The lanes of a shard that are counted as items: those that are not void.
fn counted(header: &[u64], shard: &Shard) -> u64 {
    let words = words_of_a_bucket(header);
    let stamp = stamp_bits(header).min(lane_bits(header) - 1);
    let window = window_bits(header, stamp);
    let is_void = |[first, second]: [u64; 2]| {
        let of_window = if words == 1 { first } else { second };
        header[2] == 1 && of_window >> stamp & ((1 << window) - 1) == 1 << (window - 1)
    };
    let lanes = shard.buckets.chunks(words).flat_map(|bucket| lanes(header, bucket));
    lanes.filter(|(_, lane)| lane[0] != 0 && !is_void(*lane)).count() as u64
}

fn repair_depths(header: &mut [u64], shards: &mut Vec<Shard>) {
    if header[2] == 0 {
        shards.iter_mut().for_each(|shard| shard.depth = 0);
        shards.truncate(header[6].clamp(1, shards.len() as u64) as usize);
        header[6] = shards.len() as u64;
        return;
    }
    let (mut covered, mut whole, mut roots) = (0u64, 0, 0);
    for (number, Shard { depth, .. }) in shards.iter_mut().enumerate() {
        // No deeper than a small directory allows.
        *depth = (*depth % 13).max(u64::from(31 - covered.trailing_zeros().min(31)));
        covered += 1 << (31 - *depth);
        if covered == 1 << 31 {
            (covered, whole, roots) = (0, number + 1, roots + 1);
        }
    }
    if whole > 0 {
        shards.truncate(whole);
        header[6] = roots;
    }
}

/// Seals a part.
pub fn sealed(mut header: Vec<u64>, shards: &[Shard]) -> Vec<u8> {
    header[FIRST] = 8 * HEADER_WORDS as u64;
    header[SHARDS] = if header[2] == 1 { 0 } else { shards.len() as u64 };
    header[SHARDS + 1..HEADER_WORDS - 1].fill(0);
    header[HEADER_WORDS - 1] = sum_of(&header[..HEADER_WORDS - 1]);
    let mut all = header.clone();
    shards.iter().for_each(|shard| all.extend(&shard.buckets));
    let mut index = mark(&header);
    for Shard { buckets, depth, items, time } in shards {
        index.extend([*depth, *items, sum_of(buckets)]);
        index.extend(time);
    }
    let words = all.len() + index.len() + END_WORDS;
    index.extend([u64::from_le_bytes(*b"koel end"), 8 * words as u64]);
    let sum = sum_of(&[&header[HEADER_WORDS - 1..], &index].concat());
    all.extend(index);
    all.push(sum);
    all.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn sum_of(words: &[u64]) -> u64 {
    xxh3_64(&words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>())
}
