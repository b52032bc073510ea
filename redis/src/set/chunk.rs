//! The chunks of a set: what is saved of it, and what clients dump and load.
//!
//! A filter is its [pieces](koel::ConcurrentCuckooFilter::piece_at), as koel makes them, and after them a chunk that
//! tells what it was made of. Few items are one chunk. Half a set, which a client is loading, is one chunk that says
//! so. A client may also load a file that koel saved, cut anywhere.
//!
//! The chunks that are not koel's own are 64-bit words in little-endian order:
//!
//! | word | contents |
//! |---|---|
//! | 0 | the bytes `89 6B 6F 65 6C 72 0D 0A`: `koelr` |
//! | 1 | the version: 1 |
//! | 2 | the kind: 0 for what a set was made of, 1 for few items, 2 for half a set |
//! | 3 to 10 | capacity, rate (as an IEEE 754 binary64 number), seed, bucket size, iterations, expansion, seconds until items are forgotten, number of deleted items; 0 in half a set |
//! | 11 and on | of few items: their hashes, in ascending order |
//! | last | the checksum of all words before: XXH3 with seed 0 |

use crate::set::few::Few;
use crate::set::spec::FilterSpec;
use koel::Window;
use koel::{Piece, Prehashed, SnapshotInfo, StableHash};

const MAGIC: [u8; 8] = *b"\x89koelr\r\n";
const VERSION: u64 = 1;

/// The words before the hashes.
const FRONT: usize = 11;

/// A chunk.
pub enum Chunk<'a> {
    /// A piece of a filter.
    Piece(&'a [u8]),
    /// What the filter of the pieces before was made of.
    Spec(FilterSpec),
    /// A whole set.
    Few(FilterSpec, Few),
    /// Half a set, whose chunks are not saved.
    Half,
    /// The beginning of a file that koel saved.
    File,
}

impl<'a> Chunk<'a> {
    /// Tells what these bytes are, or returns `None` if they are no chunk that makes sense.
    pub fn parse(bytes: &'a [u8]) -> Option<Self> {
        match *bytes.first_chunk::<8>()? {
            Piece::MAGIC => return Some(Chunk::Piece(bytes)),
            SnapshotInfo::MAGIC => return Some(Chunk::File),
            MAGIC => {}
            _ => return None,
        }
        let (words, []) = bytes.as_chunks::<8>() else { return None };
        let words: Vec<u64> = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
        let (checksum, words) = words.split_last()?;
        let (front, hashes) = words.split_first_chunk::<FRONT>()?;
        if front[1] != VERSION || *checksum != checksum_of(&bytes[..bytes.len() - 8]) {
            return None;
        }
        match (front[2], hashes) {
            (0, []) => spec_of(front).map(Chunk::Spec),
            (1, hashes) => {
                // Of anything else, a set would have had a filter from the start.
                let spec = spec_of(front).filter(FilterSpec::begins_small)?;
                spec.plan().ok()?;
                let hashes = hashes.iter().copied().map(Prehashed).collect();
                Some(Chunk::Few(spec, Few::of(hashes)?))
            }
            (2, []) => Some(Chunk::Half),
            _ => None,
        }
    }
}

/// What a set was made of, as a chunk.
pub fn of_spec(spec: &FilterSpec) -> Vec<u8> {
    words(0, Some(spec), &[])
}

pub fn of_few(spec: &FilterSpec, few: &Few) -> Vec<u8> {
    words(1, Some(spec), few.hashes())
}

/// Half a set, of which nothing is saved but that it is one.
pub fn half() -> Vec<u8> {
    words(2, None, &[])
}

fn words(kind: u64, spec: Option<&FilterSpec>, hashes: &[Prehashed]) -> Vec<u8> {
    let of_set = spec.map_or([0; 8], |spec| {
        let FilterSpec { capacity, rate, bucket_size, max_iterations, expansion, .. } = *spec;
        let reported = [u64::from(bucket_size), max_iterations.into(), expansion.into()];
        let [size, iterations, expansion] = reported;
        let (seed, rate) = (spec.seed(), rate.to_bits());
        [capacity, rate, seed, size, iterations, expansion, spec.forget_after, spec.deleted]
    });
    let front = [u64::from_le_bytes(MAGIC), VERSION, kind];
    let hashes = hashes.iter().map(|hash| hash.0);
    let all = front.into_iter().chain(of_set).chain(hashes);
    let mut bytes: Vec<u8> = all.flat_map(u64::to_le_bytes).collect();
    bytes.extend(checksum_of(&bytes).to_le_bytes());
    bytes
}

fn spec_of(front: &[u64; FRONT]) -> Option<FilterSpec> {
    let [_, _, _, capacity, rate, seed, size, iterations, expansion, forget_after, deleted] =
        *front;
    let rate = f64::from_bits(rate);
    let spec = FilterSpec {
        capacity,
        rate,
        hasher: StableHash::with_seed(seed),
        bucket_size: size.try_into().ok()?,
        max_iterations: iterations.try_into().ok()?,
        expansion: expansion.try_into().ok()?,
        forget_after,
        deleted,
    };
    let makes_sense = rate > 0.0 && rate < 1.0 && capacity > 0;
    (makes_sense && forget_after <= Window::MAX_SECONDS).then_some(spec)
}

fn checksum_of(bytes: &[u8]) -> u64 {
    StableHash::with_seed(0).hash_bytes(bytes)
}
