//! The header of a part, which describes the filter.

use crate::backend::Backend;
use crate::error::{NoMemory, zeros};
#[cfg(all(unix, feature = "durable"))]
use crate::hash::random_number;
use crate::hash::{HashedBy, PersistentHasher, StableHash};
use crate::layout::geometry::{Geometry, MAX_SHARDS, SHARD_BUCKETS};
use crate::layout::shrinking::GROWING_BUCKETS;
use crate::layout::sizing::{Layout, lanes_of};
use crate::layout::stamps::MAX_TICKS;
use crate::snapshot::error::{SnapshotError, SnapshotErrorKind};
use crate::snapshot::format::{HEADER_WORDS, MAGIC, PIECE_MAGIC, VERSION, unseal};
use crate::table::Table;
use crate::table::memory::HUGE;
use std::ops::Range;

/// The words with the name of the hasher.
const NAME: Range<usize> = 15..19;
/// The word with the number of ticks for which items are remembered.
const TICKS: usize = 20;
/// The word with the limit of the filter's size.
const LIMIT: usize = 8;
/// The word with the place where the part begins.
const START: usize = 21;
/// The word with the number of a state.
const STATE: usize = 22;
/// The word with the byte at which the shards begin.
const FIRST: usize = 23;
/// The word with the number of shards of the part, in a fixed filter.
const SHARDS: usize = 24;

/// The part of a filter to write.
#[derive(Clone, Copy)]
pub(crate) struct Part {
    /// The place where it begins.
    pub start: u64,
    /// Whether the part is a file, which holds all of the filter.
    pub is_file: bool,
    /// The random number of a state, or 0.
    pub state: u64,
    /// The maximum number of bytes of the part, unless it has only one shard.
    pub most_bytes: usize,
}

impl Part {
    /// The whole filter, as a file.
    pub(crate) const FILE: Part =
        Part { start: 0, is_file: true, state: 0, most_bytes: usize::MAX };

    /// The whole filter, as a file that differs from every other one, also from one with the same contents.
    #[cfg(all(unix, feature = "durable"))]
    pub(crate) fn state() -> Part {
        Part { state: random_number(), ..Part::FILE }
    }
}

/// The header of a part that was read.
pub(crate) struct Header {
    pub layout: Layout,
    words: [u64; HEADER_WORDS],
}

impl Header {
    /// Parses and validates the words of a header, but for the hasher.
    pub(crate) fn read(mut words: [u64; HEADER_WORDS]) -> Result<Self, SnapshotError> {
        if !is_snapshot(&words) {
            return Err(SnapshotError::not_a_snapshot());
        }
        let version = u64::from_le(words[1]);
        if version != VERSION {
            return Err(unsupported(version));
        }
        let damaged = || SnapshotError::damaged(0, "the checksum of the header is wrong");
        unseal(&mut words).ok_or_else(damaged)?;
        let header = Header { layout: layout_of(&words)?, words };
        if header.is_file() && header.start() != 0 {
            return Err(SnapshotError::damaged(8 * START as u64, "a file begins at 0"));
        }
        Ok(header)
    }

    pub(crate) fn is_file(&self) -> bool {
        self.words[0] == u64::from_le_bytes(MAGIC)
    }

    pub(crate) fn start(&self) -> u64 {
        self.words[START]
    }

    pub(crate) fn first(&self) -> u64 {
        self.words[FIRST]
    }

    /// Returns the byte at which a shard begins, or the index after the last one.
    #[inline]
    pub(crate) fn offset(&self, shard: usize) -> u64 {
        self.first() + 8 * (shard * self.layout.geometry.words()) as u64
    }

    /// Checks the words between the header and the shards.
    pub(crate) fn check_zeros(&self, words: &[u64]) -> Result<(), SnapshotError> {
        let Some(wrong) = words.iter().position(|word| *word != 0) else { return Ok(()) };
        let at = 8 * (HEADER_WORDS + wrong) as u64;
        Err(SnapshotError::damaged(at, "there should be zeros before the shards"))
    }

    pub(crate) fn shards(&self) -> Option<u64> {
        (!self.layout.grows).then_some(self.words[SHARDS])
    }

    pub(crate) fn sum(&self) -> u64 {
        self.words[HEADER_WORDS - 1]
    }

    /// Returns the random number of a state, or 0.
    #[cfg(all(unix, feature = "durable"))]
    pub(crate) fn state(&self) -> u64 {
        self.words[STATE]
    }

    fn hashed_by(&self) -> HashedBy {
        let words = &self.words;
        let name = std::array::from_fn(|at| words[NAME][at / 8].to_le_bytes()[at % 8]);
        let seed = u128::from(words[12]) << 64 | u128::from(words[11]);
        HashedBy { name, seed, probes: [words[13], words[14]] }
    }

    pub(crate) fn hasher_name(&self) -> String {
        let bytes = self.hashed_by().name;
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        String::from_utf8_lossy(&bytes[..end]).into_owned()
    }

    /// Returns the filter's hasher, if it is of this type. The layout is then that of a filter with it.
    pub(crate) fn hasher<S: PersistentHasher>(&mut self) -> Result<S, SnapshotError> {
        let wrong = |text| Err(SnapshotError::new(SnapshotErrorKind::WrongHasher, text));
        let found = self.hasher_name();
        if found != S::NAME {
            let known = if found == StableHash::NAME { " (koel's `StableHash`)" } else { "" };
            return wrong(format!(
                "its items were hashed by {found:?}{known}, not by {:?}: load it with the hasher that it \
                 was saved with",
                S::NAME
            ));
        }
        let hashed_by = self.hashed_by();
        let is_right = |hasher: &S| HashedBy::new(hasher) == hashed_by;
        let Some(hasher) = S::from_seed(hashed_by.seed).filter(is_right) else {
            return wrong(format!(
                "{:?} does not hash as it did when this was saved: it has another key, or what is hashed \
                 is another form of the items (as URLs in a state of the koel command), or the standard \
                 library now writes items differently; load it with the program that saved it",
                S::NAME
            ));
        };
        // The fields of a filter.
        self.layout.own_bytes = size_of::<(Backend, S)>();
        Ok(hasher)
    }

    /// Returns whether two headers can belong to one filter. The limit of its size may have changed.
    pub(crate) fn is_of_one_filter_with(&self, other: &Self) -> bool {
        let of_part = [0, LIMIT, START, STATE, FIRST, SHARDS, HEADER_WORDS - 1];
        (0..HEADER_WORDS).all(|at| of_part.contains(&at) || self.words[at] == other.words[at])
    }
}

/// Returns the words of a part's header, without the checksum, and of what follows it before the shards, which begin at
/// byte `first`. A part of a fixed filter has `shards` shards.
pub(crate) fn header(
    layout: &Layout,
    hasher: &HashedBy,
    part: Part,
    (first, shards): (u64, u64),
) -> Result<Vec<u64>, NoMemory> {
    let Layout { geometry, capacity, rate, grows, expected_growth, max_bytes, .. } = layout;
    let lanes = layout.lanes();
    let HashedBy { name, seed, probes } = *hasher;
    let mut words = zeros(first as usize / 8)?;
    let magic = if part.is_file { MAGIC } else { PIECE_MAGIC };
    words[0] = u64::from_le_bytes(magic);
    words[1] = VERSION;
    words[2] = (*grows).into();
    words[3] = lanes.fingerprint_bits().into();
    words[4] = geometry.buckets().into();
    words[5] = if *grows { 0 } else { geometry.near_block().into() };
    words[6] = geometry.shards() as u64;
    words[7] = *capacity as u64;
    if *grows {
        // "No limit" has to mean the same on machines with a smaller `usize`.
        words[LIMIT] = if *max_bytes == usize::MAX { u64::MAX } else { *max_bytes as u64 };
        words[9..11].copy_from_slice(&[expected_growth.to_bits(), rate.to_bits()]);
    }
    words[11] = seed as u64;
    words[12] = (seed >> 64) as u64;
    words[13..15].copy_from_slice(&probes);
    for (word, bytes) in words[NAME].iter_mut().zip(name.as_chunks::<8>().0) {
        *word = u64::from_le_bytes(*bytes);
    }
    words[19] = lanes.words() as u64;
    words[TICKS] = lanes.remembers().into();
    (words[START], words[STATE]) = (part.start, part.state);
    (words[FIRST], words[SHARDS]) = (first, if *grows { 0 } else { shards });
    Ok(words)
}

/// Returns whether these words, in the byte order of a file, begin like a file or a piece.
pub(crate) fn is_snapshot(words: &[u64; HEADER_WORDS]) -> bool {
    [MAGIC, PIECE_MAGIC].contains(&words[0].to_ne_bytes())
}

fn unsupported(version: u64) -> SnapshotError {
    let advice = match version.swap_bytes() {
        VERSION => "its bytes are in the opposite order; restore it as it was saved",
        _ => "load it with the version of koel that saved it, or a later one",
    };
    let text = format!(
        "it has version {version} of the format, and this version of koel reads only version \
         {VERSION}: {advice}"
    );
    SnapshotError::new(SnapshotErrorKind::UnsupportedVersion, text)
}

/// Checks that a table of `shards` shards like this one would fit into the address space.
pub(crate) fn check_fits(one: &Geometry, shards: usize) -> Result<(), NoMemory> {
    let bytes = Table::bytes(one).saturating_mul(shards);
    if bytes > isize::MAX as usize / 2 { Err(NoMemory(bytes)) } else { Ok(()) }
}

fn layout_of(words: &[u64; HEADER_WORDS]) -> Result<Layout, SnapshotError> {
    let grows = field(words, 2, "the kind of filter", |kind| kind <= 1)? == 1;
    let is_right = |number| (1..=2).contains(&number);
    let is_wide = field(words, 19, "the number of words in a bucket", is_right)? == 2;
    let what = "the number of ticks for which items are remembered";
    let ticks = field(words, TICKS, what, |ticks| ticks <= MAX_TICKS.into())? as u8;
    let bits = field(words, 3, "the size of a fingerprint", |bits| bits <= 32)? as u32;
    let lanes = lanes_of(bits, is_wide, ticks)
        .ok_or_else(|| SnapshotError::damaged(24, "no filter has such fingerprints"))?;
    let fits = |buckets| {
        let most = u64::from(SHARD_BUCKETS);
        if grows { buckets == u64::from(GROWING_BUCKETS) } else { (2..=most).contains(&buckets) }
    };
    let buckets = field(words, 4, "the number of buckets in a shard", fits)? as u32;
    let in_reach = |shards| (1..=MAX_SHARDS.into()).contains(&shards);
    let shards = field(words, 6, "the number of shards", in_reach)?;
    let geometry = Geometry::restore(lanes, shards, buckets);
    let what = "no filter has this combination of sizes";
    let geometry = geometry.ok_or_else(|| SnapshotError::damaged(32, what))?;
    check_fits(&geometry.with_shards(1), shards)?;
    let near = if grows { 0 } else { u64::from(geometry.near_block()) };
    field(words, 5, "the size of a near block", |block| block == near)?;
    // A filter begins with a slot for each item of its capacity, and never has fewer shards than at first.
    let slots = geometry.all_buckets().saturating_mul(lanes.slots() as u64);
    let capacity = field(words, 7, "the capacity of its shards", |items| items <= slots)?;
    let is_byte = |first| [8 * HEADER_WORDS as u64, HUGE as u64].contains(&first);
    field(words, FIRST, "the byte at which its shards begin", is_byte)?;
    let in_part = |number| if grows { number == 0 } else { (1..=shards as u64).contains(&number) };
    field(words, SHARDS, "the number of shards in it", in_part)?;
    for word in SHARDS + 1..HEADER_WORDS - 1 {
        field(words, word, "a field without a meaning", |value| value == 0)?;
    }
    if !grows {
        for word in 8..11 {
            field(words, word, "a field that only growing filters have", |value| value == 0)?;
        }
        return Ok(Layout::fixed(geometry, capacity));
    }
    let number = |word: usize, least: f64, what: &str| {
        let number = f64::from_bits(words[word]);
        let is_right = number >= least && number > 0.0 && number.is_finite();
        let what = || SnapshotError::damaged(8 * word as u64, format!("{what} cannot be {number}"));
        is_right.then_some(number).ok_or_else(what)
    };
    let expected_growth = number(9, 1.0, "the expected growth")?;
    let rate = number(10, 0.0, "the false-positive rate")?;
    let max_bytes = usize::try_from(words[LIMIT]).unwrap_or(usize::MAX);
    Ok(Layout { max_bytes, ..Layout::growing(geometry, capacity, expected_growth, rate) })
}

/// Returns a word of the header if it is valid. `what` names it in the error.
fn field(
    words: &[u64],
    index: usize,
    what: &str,
    is_right: impl Fn(u64) -> bool,
) -> Result<usize, SnapshotError> {
    let value = words[index];
    if !is_right(value) {
        return Err(SnapshotError::damaged(8 * index as u64, format!("{what} cannot be {value}")));
    }
    // The size exceeds this machine's `usize`.
    Ok(usize::try_from(value).map_err(|_| NoMemory(usize::MAX))?)
}
