//! Repairs the parts of an input that a fuzzer would never get right by chance, such as checksums,
//! and leaves the rest to the fuzzer.

use std::ops::Range;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

pub const HEADER_WORDS: usize = 24;
/// The word of the header with the number of ticks.
const TICKS: usize = 20;
/// The words that are 0 in a file: `start`, and the number of a state.
pub const OF_PIECES: Range<usize> = 21..23;
pub const END_WORDS: usize = 8;
/// The words of a block other than its buckets.
const BLOCK_WORDS: usize = 4;

/// How much is repaired. Each level includes the ones before it.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
pub enum Repair {
    /// The checksums, the numbers of the blocks, the end, and the hasher.
    Sums,
    /// The buckets: bits that are left over above the lanes, and windows without a 1.
    Buckets,
    /// The number of items in a block.
    Items,
    /// The depths, so that the blocks make up their roots.
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
        header[1] = 4;
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

        let block = block_words(&header)?;
        let blocks = (rest.len() + 2).saturating_sub(END_WORDS).max(block) / block;
        let mut blocks: Vec<Vec<u64>> = (0..blocks)
            .map(|number| rest.iter().skip(number * block).take(block).copied().collect())
            .collect();
        blocks.iter_mut().for_each(|words| words.resize(block, 0));

        if forgets(&header) {
            repair_times(&header, &mut blocks);
        }
        if self >= Repair::Buckets {
            blocks.iter_mut().for_each(|words| repair_buckets(&header, words));
        }
        if self >= Repair::Items {
            blocks.iter_mut().for_each(|words| repair_items(&header, words));
        }
        if self >= Repair::Depths {
            repair_depths(&mut header, &mut blocks);
        }
        Some(sealed(header, blocks))
    }
}

/// The words of a block, if shards are as small as those of a fuzzer.
pub fn block_words(header: &[u64]) -> Option<usize> {
    let buckets = usize::try_from(header[4]).ok().filter(|n| *n <= 8)?;
    Some(BLOCK_WORDS + buckets * words_of_a_bucket(header) + time_words(header))
}

fn forgets(header: &[u64]) -> bool {
    header[TICKS] > 0
}

/// The words of a block that tell its time.
const TIME_WORDS: usize = 3;

fn time_words(header: &[u64]) -> usize {
    if forgets(header) { TIME_WORDS } else { 0 }
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

/// Makes all blocks of the time of the first one.
fn repair_times(header: &[u64], blocks: &mut [Vec<u64>]) {
    let at = |block: &[u64]| block.len() - 1 - TIME_WORDS;
    let Some(first) = blocks.first() else { return };
    let mut time = first[at(first)..][..TIME_WORDS].to_vec();
    time[0] &= 1 << 8 | ((1 << stamp_bits(header)) - 1);
    // From a higher number, a loaded filter goes on from another one.
    time[1] &= u64::MAX >> 1;
    if time[0] >> 8 == 0 {
        time[2] = 0;
    }
    for block in blocks {
        let at = at(block);
        block[at..][..TIME_WORDS].copy_from_slice(&time);
    }
}

/// Where the buckets end in a block.
fn end_of_buckets(header: &[u64], block: &[u64]) -> usize {
    block.len() - 1 - time_words(header)
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

fn repair_buckets(header: &[u64], block: &mut [u64]) {
    let (grows, bits, words) = (header[2] == 1, lane_bits(header), words_of_a_bucket(header));
    let stamp = stamp_bits(header).min(bits - 1);
    let narrow_window = ((1 << window_bits(header, stamp)) - 1) << stamp;
    let last = end_of_buckets(header, block);
    let now = block[last.max(block.len().saturating_sub(1 + TIME_WORDS))];
    let stamps = (1 << stamp) - 1;
    // A stamp that is too old becomes that of the block's time.
    let stamped = |lane: u64| match forgets(header) {
        true if now.wrapping_sub(lane) & stamps > header[TICKS] => lane & !stamps | now & stamps,
        _ => lane,
    };
    for bucket in block[3..last].chunks_mut(words) {
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

/// The number of lanes of a block that are counted as items: those that are not void.
fn counted(header: &[u64], block: &[u64]) -> u64 {
    let words = words_of_a_bucket(header);
    let stamp = stamp_bits(header).min(lane_bits(header) - 1);
    let window = window_bits(header, stamp);
    let is_void = |[first, second]: [u64; 2]| {
        let of_window = if words == 1 { first } else { second };
        header[2] == 1 && of_window >> stamp & ((1 << window) - 1) == 1 << (window - 1)
    };
    let buckets = block[3..end_of_buckets(header, block)].chunks(words);
    let taken = buckets.flat_map(|bucket| lanes(header, bucket)).filter(|(_, lane)| lane[0] != 0);
    taken.filter(|(_, lane)| !is_void(*lane)).count() as u64
}

/// Whether the word of an end that has no meaning is zero, as it is written.
pub fn is_plain(bytes: &[u8]) -> bool {
    let end = bytes.len().saturating_sub(8 * END_WORDS);
    bytes.get(end + 24..end + 32).is_none_or(|word| word == [0; 8])
}

fn repair_items(header: &[u64], block: &mut [u64]) {
    block[2] = counted(header, block);
}

fn repair_depths(header: &mut [u64], blocks: &mut Vec<Vec<u64>>) {
    if header[2] == 0 {
        blocks.iter_mut().for_each(|block| block[1] = 0);
        blocks.truncate(header[6].clamp(1, blocks.len() as u64) as usize);
        header[6] = blocks.len() as u64;
        return;
    }
    let (mut covered, mut whole, mut roots) = (0u64, 0, 0);
    for (number, block) in blocks.iter_mut().enumerate() {
        // No deeper than a small directory allows.
        block[1] = (block[1] % 13).max(u64::from(31 - covered.trailing_zeros().min(31)));
        covered += 1 << (31 - block[1]);
        if covered == 1 << 31 {
            (covered, whole, roots) = (0, number + 1, roots + 1);
        }
    }
    if whole > 0 {
        blocks.truncate(whole);
        header[6] = roots;
    }
}

/// Seals a part, which begins at the place that the header says.
pub fn sealed(mut header: Vec<u64>, mut blocks: Vec<Vec<u64>>) -> Vec<u8> {
    let mut sums = vec![seal(&mut header)];
    let mut place = header[OF_PIECES.start];
    for (number, block) in (0..).zip(&mut blocks) {
        block[0] = number;
        let sum = seal(block);
        let others = &block[..block.len() - 1];
        let time = if header[TICKS] == 0 { 0 } else { TIME_WORDS };
        sums.extend(others.iter().skip(1).take(2));
        sums.extend(&others[others.len().saturating_sub(time)..]);
        sums.push(sum);
        let depth = block.get(1).map_or(0, |depth| depth % 64);
        place = place.wrapping_add((1 << 31) >> depth);
    }
    let items = |block: &Vec<u64>| block.get(2).copied().unwrap_or(0);
    let items = blocks.iter().map(items).fold(0, u64::wrapping_add);
    let words = header.len() + blocks.iter().map(Vec::len).sum::<usize>() + END_WORDS;
    let (name, count) = (u64::from_le_bytes(*b"koel end"), blocks.len() as u64);
    let mut end = vec![name, count, items, 0, 8 * words as u64, place, sum_of(&sums), 0];
    seal(&mut end);
    let all = header.iter().chain(blocks.iter().flatten()).chain(&end);
    all.flat_map(|word| word.to_le_bytes()).collect()
}

pub fn seal(words: &mut [u64]) -> u64 {
    let (last, others) = words.split_last_mut().expect("a checksum");
    *last = sum_of(others);
    *last
}

fn sum_of(words: &[u64]) -> u64 {
    xxh3_64(&words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>())
}
