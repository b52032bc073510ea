//! Repairs the parts of an input that a fuzzer would never get right by chance, such as checksums,
//! and leaves the rest to the fuzzer. What the parts are, the reader of the tests knows.

use crate::file::{
    BLOCK_HEAD, END_WORDS, ENTRY_WORDS, FilterFile, HASHER, HEADER_WORDS, MAGIC, TIME, word,
};

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
        std::iter::once(input.to_vec()).chain(repaired.map(|file| file.sealed().bytes()))
    }

    fn file(self, input: &[u8]) -> Option<FilterFile> {
        let mut file = cut(input)?;
        repair_times(&mut file);
        for number in 0..file.blocks.len() {
            let mut block = std::mem::take(&mut file.blocks[number]);
            if self >= Repair::Buckets {
                repair_buckets(&file, &mut block);
            }
            if self >= Repair::Items {
                block[word::ITEMS] = file.counted(&block).cast_unsigned();
            }
            file.blocks[number] = block;
        }
        if self >= Repair::Depths {
            repair_depths(&mut file);
        }
        Some(file)
    }
}

/// Takes an input for a file with as many shards as it is long, of a header that can be read.
fn cut(input: &[u8]) -> Option<FilterFile> {
    let words = input.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word));
    let words: Vec<u64> = words.collect();
    let (header, rest) = words.split_at_checked(HEADER_WORDS)?;
    let mut file = FilterFile::of(repaired_header(header), Vec::new());
    // Shards as small as those of a fuzzer.
    if !(1..=8).contains(&file.buckets()) {
        return None;
    }
    let (words, mark) = (file.shard_words(), file.mark.len());
    let count = rest.len().saturating_sub(END_WORDS + mark).max(1).div_ceil(words + ENTRY_WORDS);
    let word = |at: usize| rest.get(at).copied().unwrap_or(0);
    let block = |number: usize| {
        let index = count * words + mark + number * ENTRY_WORDS;
        let [depth, items, sum, time @ ..] =
            std::array::from_fn::<u64, ENTRY_WORDS, _>(|at| word(index + at));
        let buckets = (number * words..(number + 1) * words).map(word);
        [sum, depth, items].into_iter().chain(buckets).chain(time).collect()
    };
    file.blocks = (0..count).map(block).collect();
    Some(file)
}

/// The header of a file whose lanes can be cut out.
fn repaired_header(header: &[u64]) -> Vec<u64> {
    let mut file = FilterFile { header: header.to_vec(), ..FilterFile::default() };
    let header = &mut file.header;
    header[0] = u64::from_le_bytes(MAGIC);
    header[1] = 5;
    header[word::GROWS] &= 1;
    // The near block of so few buckets as fit into an input.
    header[word::NEAR] = if header[word::GROWS] == 0 { 2 } else { 0 };
    header[word::WORDS] = 1 + (header[word::WORDS] >> 1 & 1);
    header[word::TICKS] %= 63;
    header[word::START..=word::STATE].fill(0);
    header[word::FIRST] = 8 * HEADER_WORDS as u64;
    header[word::SHARDS + 1..].fill(0);
    let (sizes, bits) = (file.sizes(), file.header[word::BITS]);
    if !sizes.contains(&bits) {
        file.header[word::BITS] = sizes[bits as usize % sizes.len()];
    }
    if !file.has_room_for_stamps() {
        file.header[word::TICKS] = 0;
    }
    let hasher = file.hasher();
    file.header[HASHER].copy_from_slice(&hasher);
    file.header
}

/// Makes all shards of the time of the first one.
fn repair_times(file: &mut FilterFile) {
    let at = |block: &[u64]| block.len() - TIME;
    let mut time: [u64; TIME] = file.blocks[0].last_chunk().copied().expect("a time");
    time[0] &= 1 << 8 | ((1 << file.stamp_bits()) - 1);
    // From a higher number, a loaded filter goes on from another one.
    time[1] &= u64::MAX >> 1;
    if time[0] >> 8 == 0 {
        time[2] = 0;
    }
    let time = if file.ticks() > 0 { time } else { [0; TIME] };
    for block in &mut file.blocks {
        let at = at(block);
        block[at..].copy_from_slice(&time);
    }
}

fn repair_buckets(file: &FilterFile, block: &mut [u64]) {
    let (grows, bits, stamp) = (file.grows(), file.lane_bits(), file.stamp_bits());
    let now = block[file.time_at(block)];
    let (stamps, window) = ((1 << stamp) - 1, ((1 << file.window()) - 1) << stamp);
    let repaired = |mut lane: u64| {
        let head = if file.words() == 2 { lane >> bits } else { lane };
        if head == 0 {
            return 0;
        }
        if lane >> stamp == 0 || grows && lane & window == 0 {
            lane |= 1 << stamp;
        }
        // A stamp that is too old becomes that of the shard's time.
        let is_old = file.ticks() > 0 && now.wrapping_sub(lane) & stamps > file.ticks();
        if is_old { lane & !stamps | now & stamps } else { lane }
    };
    let last = block.len() - TIME;
    for bucket in block[BLOCK_HEAD..last].chunks_mut(file.words()) {
        let lanes: Vec<u64> = file.lanes(bucket).map(repaired).collect();
        bucket.copy_from_slice(&file.bucket(lanes.into_iter()));
    }
}

fn repair_depths(file: &mut FilterFile) {
    if !file.grows() {
        file.blocks.iter_mut().for_each(|block| block[word::DEPTH] = 0);
        file.blocks.truncate(file.roots().clamp(1, file.blocks.len() as u64) as usize);
        file.header[word::ROOTS] = file.blocks.len() as u64;
        return;
    }
    let (mut covered, mut whole, mut roots) = (0u64, 0, 0);
    for (number, block) in file.blocks.iter_mut().enumerate() {
        // No deeper than a small directory allows.
        let depth = (block[word::DEPTH] % 13).max(u64::from(31 - covered.trailing_zeros().min(31)));
        block[word::DEPTH] = depth;
        covered += 1 << (31 - depth);
        if covered == 1 << 31 {
            (covered, whole, roots) = (0, number + 1, roots + 1);
        }
    }
    if whole > 0 {
        file.blocks.truncate(whole);
        file.header[word::ROOTS] = roots;
    }
}
