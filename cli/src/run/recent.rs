//! The lines that a worker has met lately, by their hashes.
//!
//! Real input repeats itself: most lines of a log were there a moment ago. Such a line need not be
//! added again, wherever the filter is. A worker processes its chunks in the order of the input, so a
//! line that it has met before is not the first of its kind.

/// The number of bits of a hash that choose its slot: 64 KiB stay in the cache of a core.
const BITS: u32 = 13;

pub struct Recent {
    /// The hash that was met last, of those that belong into each slot.
    slots: Box<[u64]>,
}

impl Recent {
    pub fn new() -> Self {
        // Each slot begins with a hash that does not belong into it.
        Recent { slots: (0..1 << BITS).map(|slot: u64| !(slot << (64 - BITS))).collect() }
    }

    /// Whether this hash was met lately. It is met now.
    #[inline]
    pub fn met(&mut self, hash: u64) -> bool {
        let slot = &mut self.slots[(hash >> (64 - BITS)) as usize];
        std::mem::replace(slot, hash) == hash
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_met_once_it_has_come() {
        let mut recent = Recent::new();
        let hashes = (0..1 << 16).map(|n: u64| n << 48);
        for hash in hashes.clone().flat_map(|hash| [hash, !hash, hash | 1]) {
            assert!(!recent.met(hash), "{hash:x}");
            assert!(recent.met(hash), "{hash:x}");
        }
        assert_eq!(hashes.filter(|hash| recent.met(*hash)).count(), 0);
    }
}
