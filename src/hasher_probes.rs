//! Items that distinguish hashers.
//!
//! A hasher may treat each kind of piece that an item is hashed in differently: bytes, text, integers of each size,
//! lengths. So there is a probe of each kind. Two hashers that agree on all probes may still differ: the probes detect
//! different implementations, not deliberate deception.

use std::hash::{BuildHasher, Hasher};

/// Returns the hashes by which a file identifies its hasher: one of bytes, and one of an item of many pieces. Files
/// contain them, so they must never change.
pub fn of_file(hasher: &impl BuildHasher) -> [u64; 2] {
    let mut bytes = hasher.build_hasher();
    bytes.write(b"koel");
    let items = ("koel", 0x0102_0304_u32, &[1u8, 2, 3][..], 5usize, Some(6u8), 'k');
    [bytes.finish(), hasher.hash_one(items)]
}

/// Returns whether two hashers agree on the items in a file's probes, and on single items of each kind.
pub fn agree<S: BuildHasher>(one: &S, other: &S) -> bool {
    let hashes = |hasher: &S| {
        // Hashers treat many bytes differently from few.
        let long = "k".repeat(300);
        let texts = [0, 4, 30, 300].map(|length| hasher.hash_one(&long[..length]));
        let bytes = [0, 4, 30, 300].map(|length| hasher.hash_one(&long.as_bytes()[..length]));
        let numbers = [0, 1, 2, u64::MAX].map(|number| hasher.hash_one(number));
        let sizes = [
            hasher.hash_one(1u8),
            hasher.hash_one(1u16),
            hasher.hash_one(1u32),
            hasher.hash_one(1u128),
            hasher.hash_one(1usize),
            hasher.hash_one(-1i8),
            hasher.hash_one(-1i16),
            hasher.hash_one(-1i32),
            hasher.hash_one(-1i64),
            hasher.hash_one(-1i128),
            hasher.hash_one(-1isize),
            hasher.hash_one(&[1u64, 2, 3][..]),
            hasher.hash_one(()),
        ];
        (of_file(hasher), texts, bytes, numbers, sizes)
    };
    hashes(one) == hashes(other)
}
