//! When two lines are equal, and the hash that represents a line.
//!
//! The comparison is part of the hasher's seed, which is saved in the state. A state can therefore
//! not be used with another comparison by mistake.

use crate::state::keys::lower_case;
use crate::state::keys::url_key::UrlRules;
use koel::{PersistentHasher, Prehashed, StableHash, StableHasher};
use std::fmt;
use std::hash::BuildHasher;

/// How lines are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// Byte by byte.
    Bytes,
    /// By the lower case of their characters.
    IgnoringCase,
    /// As URLs by the WHATWG standard, if they are URLs, and byte by byte otherwise.
    Urls(UrlRules),
}

const URLS: u64 = 1;
const SORT_QUERY: u64 = 2;
const IGNORE_TRACKING: u64 = 4;
const IGNORE_CASE: u64 = 16;

/// Buffers for keys, which are reused from line to line.
#[derive(Default)]
pub struct Scratch {
    text: String,
    bytes: Vec<u8>,
}

impl Scratch {
    /// Gives back the buffers of more than `most` bytes.
    pub fn shrink(&mut self, most: usize) {
        if self.text.capacity().max(self.bytes.capacity()) > most {
            *self = Scratch::default();
        }
    }
}

impl Comparison {
    fn bits(self) -> u64 {
        match self {
            Comparison::Bytes => 0,
            Comparison::IgnoringCase => IGNORE_CASE,
            Comparison::Urls(UrlRules { sort_query, ignore_tracking }) => {
                URLS | if sort_query { SORT_QUERY } else { 0 }
                    | if ignore_tracking { IGNORE_TRACKING } else { 0 }
            }
        }
    }

    fn from_bits(bits: u64) -> Option<Self> {
        match bits {
            0 => Some(Comparison::Bytes),
            IGNORE_CASE => Some(Comparison::IgnoringCase),
            1 | 3 | 5 | 7 => Some(Comparison::Urls(UrlRules {
                sort_query: bits & SORT_QUERY != 0,
                ignore_tracking: bits & IGNORE_TRACKING != 0,
            })),
            _ => None,
        }
    }

    /// Returns whether a line that is no URL is not of the expected kind.
    pub fn expects_urls(self) -> bool {
        self.bits() & URLS != 0
    }

    /// Returns the key by which a line is compared, and whether the line is of the expected kind.
    #[inline]
    pub fn key<'a>(self, line: &'a [u8], scratch: &'a mut Scratch) -> (&'a [u8], bool) {
        match self {
            Comparison::Bytes => (line, true),
            other => other.rewritten(line, scratch),
        }
    }

    #[inline(never)]
    fn rewritten<'a>(self, line: &'a [u8], scratch: &'a mut Scratch) -> (&'a [u8], bool) {
        let Scratch { text, bytes } = scratch;
        match self {
            Comparison::Bytes => (line, true),
            Comparison::IgnoringCase => (lower_case::key(line, text, bytes), true),
            Comparison::Urls(rules) => {
                rules.key(line, text).map_or((line, false), |key| (key, true))
            }
        }
    }
}

/// Displays a comparison as the options that ask for it.
impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Comparison::Bytes => f.write_str("lines, byte by byte"),
            Comparison::IgnoringCase => f.write_str("lines, in lower case (--ignore-case)"),
            Comparison::Urls(UrlRules { sort_query, ignore_tracking }) => {
                let sorted = if *sort_query { " --sort-query" } else { "" };
                let untracked = if *ignore_tracking { " --ignore-tracking" } else { "" };
                write!(f, "URLs (--url{sorted}{untracked})")
            }
        }
    }
}

/// The hasher of a state: hashes the keys of lines as the library's own hasher hashes bytes.
///
/// In files it has the library's name, so programs read the states of lines that are compared byte
/// by byte, and the other way round. How other lines are compared is in the upper half of the seed,
/// which the library's hasher refuses.
#[derive(Clone, Copy)]
pub struct LineHash {
    comparison: Comparison,
    hash: StableHash,
}

impl LineHash {
    pub fn random(comparison: Comparison) -> Self {
        LineHash { comparison, hash: StableHash::random() }
    }

    pub fn with_seed(comparison: Comparison, seed: u64) -> Self {
        LineHash { comparison, hash: StableHash::with_seed(seed) }
    }

    pub fn comparison(&self) -> Comparison {
        self.comparison
    }

    #[inline(always)] // once a line; the compiler does not by itself
    pub fn of_key(&self, key: &[u8]) -> Prehashed {
        Prehashed(self.hash.hash_bytes(key))
    }
}

impl BuildHasher for LineHash {
    type Hasher = StableHasher;

    fn build_hasher(&self) -> StableHasher {
        self.hash.build_hasher()
    }
}

impl PersistentHasher for LineHash {
    const NAME: &'static str = StableHash::NAME;

    fn seed(&self) -> u128 {
        u128::from(self.comparison.bits()) << 64 | self.hash.seed()
    }

    fn from_seed(seed: u128) -> Option<Self> {
        let comparison = Comparison::from_bits((seed >> 64) as u64)?;
        let hash = StableHash::from_seed(u128::from(seed as u64))?;
        Some(LineHash { comparison, hash })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_tells_how_lines_are_compared_or_is_refused() {
        let again = |bits: u128| LineHash::from_seed(bits << 64 | 7).map(|hash| hash.seed());
        for bits in [0, 1, 3, 5, 7, 16] {
            assert_eq!(again(bits), Some(bits << 64 | 7));
        }
        for bits in [2, 4, 6, 8, 9, 13, 15, 17, 24, 32, 1 << 63] {
            assert_eq!(again(bits), None, "{bits}");
        }
    }
}
