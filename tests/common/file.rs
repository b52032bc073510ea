//! An independent reader of saved filters, in files and in pieces. It is written from the specification
//! (`koel::format`) and uses no code of koel. It can also change parts and fix their checksums.

// Each test program uses only a part of this.
#![allow(dead_code)]

use std::ops::Range;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

pub const HEADER_WORDS: usize = 32;
pub const ENTRY_WORDS: usize = 6;
pub const END_WORDS: usize = 3;
/// What a piece begins with.
pub const MAGIC_OF_PIECE: [u8; 8] = [0x89, 0x6B, 0x6F, 0x65, 0x6C, 0x70, 0x0D, 0x0A];

/// The words of a [block](FilterFile::blocks) before its buckets.
pub const BLOCK_HEAD: usize = 3;
/// The words of a block that tell its time, which are its last.
pub const TIME: usize = 3;

/// What a file begins with.
pub const MAGIC: [u8; 8] = [0x89, 0x6B, 0x6F, 0x65, 0x6C, 0x0D, 0x0A, 0x1A];

pub mod word {
    pub const GROWS: usize = 2;
    pub const BITS: usize = 3;
    pub const BUCKETS: usize = 4;
    pub const NEAR: usize = 5;
    pub const ROOTS: usize = 6;
    pub const CAPACITY: usize = 7;
    pub const MAX_BYTES: usize = 8;
    pub const GROWTH: usize = 9;
    pub const RATE: usize = 10;
    pub const SEED: usize = 11;
    pub const PROBES: usize = 13;
    pub const NAME: usize = 15;
    pub const WORDS: usize = 19;
    pub const TICKS: usize = 20;
    pub const START: usize = 21;
    pub const STATE: usize = 22;
    pub const FIRST: usize = 23;
    pub const SHARDS: usize = 24;
    // Of a block.
    pub const SUM: usize = 0;
    pub const DEPTH: usize = 1;
    pub const ITEMS: usize = 2;
}

/// The words of a header that [tell the hasher](FilterFile::hasher).
pub const HASHER: Range<usize> = word::SEED + 1..word::WORDS;

/// The words of an end.
pub mod end {
    pub const BYTES: usize = 1;
    pub const SUM: usize = 2;
}

/// The words of a file or a piece, including checksums. [`cut`](FilterFile::cut) does not validate
/// them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FilterFile {
    pub header: Vec<u64>,
    /// The words between the header and the shards.
    pub between: Vec<u64>,
    /// The shards: for each, the checksum, the depth and the number of items from the index; then its buckets; and then
    /// its time from the index.
    pub blocks: Vec<Vec<u64>>,
    /// What comes before the index.
    pub mark: Vec<u64>,
    pub end: Vec<u64>,
}

/// Whether a part is as the specification says, or what is wrong.
pub type Verdict<T = ()> = Result<T, String>;

/// Returns what is wrong unless this holds.
macro_rules! ensure {
    ($holds:expr) => {
        if !$holds {
            return Err(format!("line {}: {}", line!(), stringify!($holds)));
        }
    };
}

pub fn sum_of(words: &[u64]) -> u64 {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    xxh3_64(&bytes)
}

pub fn is_sealed(words: &[u64]) -> bool {
    let (sum, others) = words.split_last().expect("a checksum");
    sum_of(others) == *sum
}

pub fn seal(words: &mut [u64]) {
    let (sum, others) = words.split_last_mut().expect("a checksum");
    *sum = sum_of(others);
}

impl FilterFile {
    /// The part that has this header and these blocks, before it is [sealed](Self::sealed).
    pub fn of(header: Vec<u64>, blocks: Vec<Vec<u64>>) -> Self {
        let (between, end) = (Vec::new(), vec![u64::from_le_bytes(*b"koel end"), 0, 0]);
        let part = FilterFile { header, between, blocks, mark: Vec::new(), end };
        FilterFile { mark: part.right_mark(), ..part }
    }

    pub fn cut(bytes: &[u8]) -> Self {
        Self::divided(bytes, |_| Ok(())).expect("a part")
    }

    /// Reads a part that may be anything, and refuses what the specification does not allow.
    pub fn read(bytes: &[u8]) -> Verdict<Self> {
        let part = Self::divided(bytes, Self::judge_header)?;
        part.judge_blocks()?;
        Ok(part)
    }

    fn divided(bytes: &[u8], judge: impl FnOnce(&Self) -> Verdict) -> Verdict<Self> {
        let (words, rest) = bytes.as_chunks::<8>();
        ensure!(rest.is_empty() && words.len() > HEADER_WORDS + END_WORDS);
        let words: Vec<u64> = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
        let (header, words) = words.split_at(HEADER_WORDS);
        let (header, blocks) = (header.to_vec(), Vec::new());
        let [between, mark, end] = [const { Vec::new() }; 3];
        let mut part = FilterFile { header, between, blocks, mark, end };
        judge(&part)?;
        let first = part.header[word::FIRST] as usize / 8 - HEADER_WORDS;
        let mark = part.right_mark().len();
        let shard = part.shard_words() + ENTRY_WORDS;
        ensure!(words.len() >= first + mark + END_WORDS);
        let all = words.len() - first - mark - END_WORDS;
        ensure!(all.is_multiple_of(shard));
        let count = all / shard;
        let (between, words) = words.split_at(first);
        let (shards, words) = words.split_at(count * part.shard_words());
        let (mark, words) = words.split_at(mark);
        let (index, end) = words.split_at(count * ENTRY_WORDS);
        let blocks = shards.chunks(part.shard_words()).zip(index.as_chunks().0);
        let block = |(words, [depth, items, sum, time @ ..]): (&[u64], &[u64; ENTRY_WORDS])| {
            [&[*sum, *depth, *items], words, time].concat()
        };
        part.blocks = blocks.map(block).collect();
        (part.between, part.mark, part.end) = (between.to_vec(), mark.to_vec(), end.to_vec());
        Ok(part)
    }

    /// The words of a shard.
    pub fn shard_words(&self) -> usize {
        self.buckets() as usize * self.words()
    }

    /// The byte at which a shard begins, or the mark after the last one.
    pub fn shard_at(&self, number: usize) -> usize {
        8 * (HEADER_WORDS + self.between.len() + number * self.shard_words())
    }

    /// The byte at which the mark or else the index begins.
    pub fn index_at(&self) -> usize {
        self.shard_at(self.blocks.len())
    }

    /// The byte at which the entry of a shard begins.
    pub fn entry_at(&self, number: usize) -> usize {
        self.index_at() + 8 * (self.mark.len() + number * ENTRY_WORDS)
    }

    /// What comes before the index: in a growing filter, a bucket whose heads have only their highest bit, with tails
    /// of zeros.
    fn right_mark(&self) -> Vec<u64> {
        let top = |lane: u32| 1u64 << ((lane + 1) * self.lane_bits() - 1);
        let heads = (0..self.slots()).map(top).sum();
        let words = if self.grows() { self.words() } else { 0 };
        [heads, 0][..words].to_vec()
    }

    /// The words of the index, without the mark. A block may lack words.
    fn index(&self) -> impl Iterator<Item = u64> {
        self.blocks.iter().flat_map(|block| {
            let at = |at: usize| block.get(at).copied().unwrap_or(0);
            let time = self.time_at(block);
            let time = (time..time + TIME).map(at);
            [at(word::DEPTH), at(word::ITEMS), at(word::SUM)].into_iter().chain(time)
        })
    }

    fn all_words(&self) -> Vec<u64> {
        let mut all = [&self.header[..], &self.between].concat();
        self.blocks.iter().for_each(|block| all.extend(self.buckets_of(block)));
        all.extend(&self.mark);
        all.extend(self.index());
        all.extend(&self.end);
        all
    }

    pub fn bytes(&self) -> Vec<u8> {
        self.all_words().iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    /// Fixes all derived values: the number of shards, the checksums and the end. The items and item counts of the blocks
    /// stay as they are.
    pub fn sealed(mut self) -> Self {
        self.header[word::SHARDS] = if self.grows() { 0 } else { self.blocks.len() as u64 };
        self.end[end::BYTES] = self.bytes().len() as u64;
        self.with_sums()
    }

    /// Fixes the checksums. Everything else stays as it is.
    pub fn with_sums(mut self) -> Self {
        seal(&mut self.header);
        let sums = self.blocks.iter().map(|block| sum_of(self.buckets_of(block)));
        for (number, sum) in sums.collect::<Vec<_>>().into_iter().enumerate() {
            self.blocks[number].first_mut().into_iter().for_each(|first| *first = sum);
        }
        self.with_index_sum()
    }

    /// Fixes the checksum of the index.
    pub fn with_index_sum(mut self) -> Self {
        self.end[end::SUM] = self.index_sum();
        self
    }

    fn index_sum(&self) -> u64 {
        let header = self.header[HEADER_WORDS - 1];
        let words = [header].into_iter().chain(self.mark.iter().copied()).chain(self.index());
        sum_of(&words.chain(self.end[..end::SUM].iter().copied()).collect::<Vec<u64>>())
    }

    pub fn start(&self) -> u64 {
        self.header[word::START]
    }

    /// Where the last block ends.
    pub fn end_place(&self) -> u64 {
        self.places().last().map_or(self.start(), |(_, after)| after)
    }

    /// Where each block begins and ends.
    pub fn places(&self) -> impl Iterator<Item = (u64, u64)> {
        self.depths().scan(self.start(), |place, depth| {
            let begins = *place;
            *place = begins.wrapping_add((1 << 31) >> depth.min(63));
            Some((begins, *place))
        })
    }

    /// Returns the file that the parts of a filter make up, after checking that they do.
    pub fn joined(parts: &[FilterFile]) -> FilterFile {
        let last = &parts[parts.len() - 1];
        let mut place = 0;
        for part in parts {
            part.check_part();
            assert_eq!(part.start(), place);
            place = part.end_place();
        }
        assert_eq!(place, last.roots() << 31);
        let blocks = parts.iter().flat_map(|part| part.blocks.clone()).collect();
        let (mut header, end) = (last.header.clone(), last.end.clone());
        header[0] = u64::from_le_bytes(MAGIC);
        header[word::START..=word::STATE].fill(0);
        FilterFile { header, between: Vec::new(), blocks, mark: last.mark.clone(), end }.sealed()
    }

    pub fn bits(&self) -> u32 {
        self.header[word::BITS] as u32
    }

    /// Returns the number of words in a bucket.
    pub fn words(&self) -> usize {
        self.header[word::WORDS] as usize
    }

    /// Returns the bits of a lane in each word of its bucket.
    pub fn lane_bits(&self) -> u32 {
        self.bits() / self.words() as u32
    }

    pub fn slots(&self) -> u32 {
        64 / self.lane_bits()
    }

    pub fn grows(&self) -> bool {
        self.header[word::GROWS] == 1
    }

    pub fn seed(&self) -> u64 {
        self.header[word::SEED]
    }

    pub fn buckets(&self) -> u64 {
        self.header[word::BUCKETS]
    }

    pub fn roots(&self) -> u64 {
        self.header[word::ROOTS]
    }

    /// Returns the number of slots that the filter began with.
    pub fn slots_at_first(&self) -> u64 {
        self.roots() * self.buckets() * u64::from(self.slots())
    }

    fn near(&self) -> u64 {
        self.header[word::NEAR]
    }

    /// Returns the number of ticks for which items are remembered, or 0.
    pub fn ticks(&self) -> u64 {
        self.header[word::TICKS]
    }

    /// The sizes of a lane that there are with so many words.
    pub fn sizes(&self) -> &'static [u64] {
        if self.words() == 1 { &[8, 9, 10, 12, 16, 21, 32] } else { &[18, 20, 24, 32] }
    }

    /// Whether a lane has enough bits besides its stamp.
    pub fn has_room_for_stamps(&self) -> bool {
        let least = if self.words() == 1 { 8 } else { 4 };
        self.lane_bits() >= self.stamp_bits() + least
    }

    /// Returns the size of the stamp in bits.
    pub fn stamp_bits(&self) -> u32 {
        if self.ticks() == 0 { 0 } else { (self.ticks() + 1).ilog2() + 1 }
    }

    /// Returns the size of the window in bits: the lower part of a growing filter's fingerprint.
    pub fn window(&self) -> u32 {
        let bits = self.lane_bits() - self.stamp_bits();
        let least_anchor = match self.slots() {
            ..4 => 6,
            4 => 5,
            _ => 4,
        };
        let for_growth =
            3 + f64::from_bits(self.header[word::GROWTH]).log2().ceil().clamp(0.0, 64.0) as u32;
        let half = bits.div_ceil(2);
        match self.words() {
            1 => half.max(for_growth.min(bits.saturating_sub(least_anchor))),
            _ => bits,
        }
    }

    /// Returns the index of the first of the words that tell the time of a block.
    pub fn time_at(&self, block: &[u64]) -> usize {
        block.len().saturating_sub(TIME)
    }

    /// Returns how many ticks ago an item came, by its stamp and the time of its block.
    fn age(&self, block: &[u64], stamp: u64) -> u64 {
        let now = block[self.time_at(block)] & 0xFF;
        now.wrapping_sub(stamp) & ((1 << self.stamp_bits()) - 1)
    }

    fn taken(&self, block: &[u64]) -> impl Iterator<Item = u64> {
        let buckets = self.buckets_of(block).chunks(self.words());
        buckets.flat_map(|bucket| self.lanes(bucket)).filter(|lane| *lane != 0)
    }

    /// Returns how many lanes of a growing filter's shard are void: their windows are a 1 and then zeros.
    pub fn void_lanes(&self, block: &[u64]) -> i64 {
        if !self.grows() {
            return 0;
        }
        let window = |lane: u64| lane >> self.stamp_bits() & ((1 << self.window()) - 1);
        let void = |lane: &u64| window(*lane) == 1 << (self.window() - 1);
        self.taken(block).filter(void).count() as i64
    }

    /// Returns how many items are counted in a block: those of lanes that are not void.
    pub fn counted(&self, block: &[u64]) -> i64 {
        self.taken(block).count() as i64 - self.void_lanes(block)
    }

    /// The number of items, without those of void lanes.
    pub fn items(&self) -> i64 {
        self.blocks.iter().map(|block| block[word::ITEMS].cast_signed()).sum()
    }

    pub fn depths(&self) -> impl Iterator<Item = u32> {
        self.blocks.iter().map(|block| block[word::DEPTH] as u32)
    }

    /// Returns the lanes of a bucket, each with the bits of its first word above those of the second.
    pub fn lanes(&self, bucket: &[u64]) -> impl Iterator<Item = u64> {
        let bits = self.lane_bits();
        let part = move |word: u64, lane| word >> (lane * bits) & ((1 << bits) - 1);
        let join = move |lane| bucket.iter().fold(0, |all, word| all << bits | part(*word, lane));
        (0..self.slots()).map(join)
    }

    /// Returns the bucket that has these [lanes](Self::lanes).
    pub fn bucket(&self, lanes: impl Iterator<Item = u64>) -> Vec<u64> {
        let (bits, words) = (self.lane_bits(), self.words());
        let mut bucket = vec![0; words];
        for (at, lane) in lanes.enumerate() {
            for (number, word) in bucket.iter_mut().rev().enumerate() {
                let part = lane >> (number as u32 * bits) & ((1 << bits) - 1);
                *word |= part << (at as u32 * bits);
            }
        }
        bucket
    }

    /// Returns the words of a block that are its buckets.
    pub fn buckets_of<'a>(&self, block: &'a [u64]) -> &'a [u64] {
        &block[BLOCK_HEAD.min(block.len())..self.time_at(block).max(BLOCK_HEAD.min(block.len()))]
    }

    /// Checks everything that the specification says of one part.
    pub fn check_part(&self) {
        self.judge_header().and_then(|()| self.judge_blocks()).expect("a part");
    }

    /// Checks everything that the specification says of a file.
    pub fn check(&self) {
        self.judge_file().expect("a file");
    }

    /// Whether it is a file.
    pub fn judge_file(&self) -> Verdict {
        self.judge_header()?;
        self.judge_blocks()?;
        ensure!(self.header[0].to_le_bytes() == MAGIC);
        self.judge_whole()
    }

    /// Whether the blocks are a whole filter.
    pub fn judge_whole(&self) -> Verdict {
        ensure!(self.start() == 0 && self.end_place() == self.roots() << 31);
        let deepest = self.depths().max().expect("a block");
        ensure!(u128::from(self.roots()) << deepest <= (1 << 20) + 64 * self.blocks.len() as u128);
        Ok(())
    }

    fn judge_header(&self) -> Verdict {
        let header = &self.header;
        ensure!([MAGIC, MAGIC_OF_PIECE].contains(&header[0].to_le_bytes()));
        ensure!(header[1] == 5);
        ensure!(is_sealed(header));
        let is_piece = header[0].to_le_bytes() == MAGIC_OF_PIECE;
        ensure!(is_piece || header[word::START] == 0);
        ensure!(self.ticks() <= 62);
        ensure!((1..=2).contains(&header[word::WORDS]));
        ensure!(header[word::GROWS] <= 1);
        ensure!(self.sizes().contains(&header[word::BITS]));
        ensure!(self.has_room_for_stamps());
        let (near, buckets) = (self.near(), self.buckets());
        ensure!((2..=131_072).contains(&buckets));
        ensure!((1..=1 << 31).contains(&self.roots()));
        ensure!(buckets.is_multiple_of(2));
        let by_distance = buckets.is_power_of_two() && buckets >= 4_096;
        ensure!(self.roots() == 1 || by_distance);
        ensure!(header[word::CAPACITY] <= self.slots_at_first());
        ensure!([8 * HEADER_WORDS as u64, 1 << 21].contains(&header[word::FIRST]));
        ensure!(header[word::SHARDS + 1..HEADER_WORDS - 1].iter().all(|word| *word == 0));
        let [growth, rate] = [word::GROWTH, word::RATE].map(|at| f64::from_bits(header[at]));
        if self.grows() {
            ensure!((buckets, near) == (8_192, 0));
            ensure!(growth >= 1.0 && growth.is_finite() && rate > 0.0 && rate.is_finite());
        } else {
            let block = if self.slots() == 2 { buckets } else { 512 };
            ensure!(near == if by_distance { block } else { 0 });
            ensure!(header[word::MAX_BYTES..=word::RATE] == [0, 0, 0]);
        }
        ensure!(header[HASHER] == self.hasher());
        Ok(())
    }

    fn judge_blocks(&self) -> Verdict {
        ensure!(!self.blocks.is_empty());
        ensure!(self.between.iter().all(|word| *word == 0));
        ensure!(self.mark == self.right_mark());
        let shards = if self.grows() { 0 } else { self.blocks.len() as u64 };
        ensure!(self.header[word::SHARDS] == shards);
        for block in &self.blocks {
            ensure!(sum_of(self.buckets_of(block)) == block[word::SUM]);
            self.judge_block(block)?;
        }
        let times = self.blocks.iter().filter(|_| self.ticks() > 0);
        let times: Vec<_> = times.map(|block| &block[self.time_at(block)..][..2]).collect();
        for pair in times.windows(2) {
            let [[before, earlier], [after, later]] =
                [pair[0], pair[1]].map(|time| [time[0], time[1]]);
            ensure!(earlier < later || earlier == later && before & 0xFF == after & 0xFF);
        }
        // Each shard is a half of a half, so it begins at a multiple of its own size.
        for ((begins, _), depth) in self.places().zip(self.depths()) {
            ensure!(begins.is_multiple_of(1 << (31 - depth)) && begins < self.roots() << 31);
        }
        ensure!(self.end[0].to_le_bytes() == *b"koel end");
        ensure!(self.end[end::BYTES] == self.bytes().len() as u64);
        ensure!(self.end[end::SUM] == self.index_sum());
        Ok(())
    }

    fn judge_block(&self, block: &[u64]) -> Verdict {
        ensure!(block[word::DEPTH] <= if self.grows() { 31 } else { 0 });
        let stamps = (1 << self.stamp_bits()) - 1;
        let time = &block[self.time_at(block)..];
        ensure!(self.ticks() > 0 || time == [0; TIME]);
        ensure!(time[0] & !(1 << 8) <= stamps);
        ensure!(time[0] >> 8 == 1 || time[2] == 0);
        for bucket in self.buckets_of(block).chunks(self.words()) {
            for word in bucket {
                ensure!(word.checked_shr(self.slots() * self.lane_bits()).unwrap_or(0) == 0);
            }
            for lane in self.lanes(bucket).filter(|lane| *lane != 0) {
                ensure!(self.words() == 1 || lane >> self.lane_bits() != 0);
                let item = lane >> self.stamp_bits();
                ensure!(!self.grows() || item & ((1 << self.window()) - 1) != 0);
                ensure!(self.ticks() == 0 || item != 0);
                ensure!(self.ticks() == 0 || self.age(block, lane & stamps) <= self.ticks());
            }
        }
        ensure!(block[word::ITEMS].cast_signed() == self.counted(block));
        Ok(())
    }

    /// The words of the header that tell the hasher: the rest of the seed, which has 64 bits, the probes and the name.
    pub fn hasher(&self) -> [u64; 7] {
        let pieces: [&[u8]; 7] = [
            b"\x6B\x6F\x65\x6C",
            b"\x04\x03\x02\x01\0\0\0\0",
            b"\x01\x02\x03",
            b"\x05\0\0\0\0\0\0\0",
            b"\x01\0\0\0\0\0\0\0",
            b"\x06\0\0\0\0\0\0\0",
            b"\x6B\0\0\0\0\0\0\0",
        ];
        let name = u64::from_le_bytes(*b"XXH3-64\0");
        [0, self.hash(pieces[0]), self.hash_of(&pieces), name, 0, 0, 0]
    }

    /// Returns the hash of an item that consists of bytes.
    pub fn hash(&self, bytes: &[u8]) -> u64 {
        xxh3_64_with_seed(bytes, self.seed())
    }

    /// Returns the hash of an item that writes these pieces to the hasher.
    pub fn hash_of(&self, pieces: &[&[u8]]) -> u64 {
        let more = |hash, piece: &&[u8]| xxh3_64_with_seed(piece, hash);
        pieces.iter().fold(self.seed(), more)
    }

    /// Returns the number of lanes that match the item with this hash.
    pub fn count(&self, hash: u64) -> usize {
        match self.grows() {
            false => self.count_fixed(mix(hash)),
            true => self.count_growing(mix(hash)),
        }
    }

    fn count_fixed(&self, h: u64) -> usize {
        let (shard, rest) = scale(h, self.roots());
        let (first, _) = scale(rest, self.buckets());
        let stamps = (1u64 << self.stamp_bits()) - 1;
        let in_head = if self.words() == 1 { stamps } else { 0 };
        let (index, rest) = scale(h << 32, ((1 << self.lane_bits()) - 1) & !in_head);
        let head = 1 + (index | in_head);
        let fingerprint = match self.words() {
            1 => head,
            _ => head << self.lane_bits() | rest >> (64 - self.lane_bits()) & !stamps,
        };
        let s = head.wrapping_mul(M);
        let second = if self.near() == 0 {
            let t = (scale(s.wrapping_mul(head), self.buckets()).0 | 1).cast_signed();
            (t - first.cast_signed()).rem_euclid(self.buckets().cast_signed()).cast_unsigned()
        } else {
            let k = if s >> 62 == 0 { self.buckets() } else { self.near() };
            first ^ (s >> 40 & (k - 1) | 1)
        };
        self.count_in(shard as usize, [first, second], |lane| {
            lane & !stamps == fingerprint && lane != 0
        })
    }

    fn count_growing(&self, h: u64) -> usize {
        let (root, f) = scale(h, self.roots());
        let r = f + scale(scale(f, !f).0, 0x5555_5555_5555_5555).0;
        let (block, depth) = self.block_of(root, r);
        let o = h.wrapping_mul(M);
        let first = o >> (64 - 13);
        let w = o << 13 >> 32;
        let (anchor, s) = match self.words() {
            1 => {
                let below = self.window() + self.stamp_bits();
                let anchor = w >> below & ((1 << (self.bits() - below)) - 1);
                (anchor, anchor << below)
            }
            _ => {
                let anchor = 1 + scale(w << 32, (1 << self.lane_bits()) - 1).0;
                (anchor, anchor)
            }
        };
        let fingerprint = anchor << self.window() | r << depth >> (64 - self.window()) | 1;
        let s = s.wrapping_mul(M);
        let distance = if s >> 62 == 0 || self.slots() == 2 { 13 } else { 9 };
        let second = first ^ (s >> 40 & ((1 << distance) - 1) | 1);
        self.count_in(block, [first, second], |lane| {
            let lane = lane >> self.stamp_bits();
            let above = lane.trailing_zeros() + 1;
            lane != 0 && lane >> above == fingerprint >> above
        })
    }

    /// Returns the block with the items of this root and rest, and its depth.
    fn block_of(&self, root: u64, rest: u64) -> (usize, u32) {
        // The item's position among all roots, in units of 2^-31 of a root, like `end` below.
        let place = root << 31 | rest >> (64 - 31);
        let mut end = 0;
        for (index, depth) in self.depths().enumerate() {
            end += 1 << (31 - depth);
            if place < end {
                return (index, depth);
            }
        }
        unreachable!("the blocks make up all roots")
    }

    fn count_in(&self, block: usize, buckets: [u64; 2], is_it: impl Fn(u64) -> bool) -> usize {
        let words = self.buckets_of(&self.blocks[block]);
        let bucket = |bucket: u64| &words[bucket as usize * self.words()..][..self.words()];
        let lanes = buckets.into_iter().flat_map(|number| self.lanes(bucket(number)));
        lanes.filter(|lane| is_it(*lane)).count()
    }
}

/// Returns the two halves of the product `x * n`: one of `n` parts, and the rest.
fn scale(x: u64, n: u64) -> (u64, u64) {
    let product = u128::from(x) * u128::from(n);
    ((product >> 64) as u64, product as u64)
}

const M: u64 = 0xA750_FAA4_14DC_2D91;

pub fn mix(h: u64) -> u64 {
    let fold = |x| {
        let (part, rest) = scale(x, M);
        part ^ rest
    };
    fold(fold(h))
}
