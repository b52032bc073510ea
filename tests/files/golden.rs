//! Files of version 1 of the format can be loaded for ever.
//!
//! The files in `tests/golden` stand for the files that users have, so they must never be written
//! again. (A new version of the format gets files of its own.) Two of them have the hasher under its
//! former name, which no program writes any more. The third was written by the command below.
//!
//! ```sh
//! cargo test --test files -- --ignored golden
//! ```

use koel::{ConcurrentCuckooFilter, Fixed, Growing, PersistentHasher, Room, StableHash};
use std::path::PathBuf;

type Filter<R> = ConcurrentCuckooFilter<StableHash, R>;

const SEED: u64 = 0x0123_4567_89AB_CDEF;
const FIXED: &str = "fixed-1.koel";
const GROWING: &str = "growing-1.koel";
const FIXED_OF_BYTES: &str = "fixed-of-bytes-1.koel";

fn path(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests", "golden", name].iter().collect()
}

/// Calls `act` with the hashes of items of several types, `each` of every type.
fn with_items<R: Room>(filter: &Filter<R>, each: u64, act: impl Fn(&Filter<R>, u64)) {
    let hasher = *filter.hasher();
    for n in 0..each {
        act(filter, filter.hash_of(&n));
        act(filter, filter.hash_of(format!("str {n}").as_str()));
        act(filter, filter.hash_of(&format!("String {n}")));
        act(filter, filter.hash_of(&(n as u8, format!("pair {n}").as_str())));
        act(filter, filter.hash_of(&n.to_le_bytes()[..]));
        // Longer than the hasher's buffer.
        act(filter, filter.hash_of(&"long ".repeat(n as usize % 97)[..]));
        act(filter, hasher.hash_bytes(format!("bytes {n}").as_bytes()));
    }
}

fn fill<R: Room>(filter: &Filter<R>, each: u64) {
    with_items(filter, each, |filter, hash| {
        filter.insert_hash_if_absent(hash).expect("room");
    });
}

#[test]
#[ignore = "writes the golden file"]
fn write_the_file() {
    let builder = ConcurrentCuckooFilter::builder().hasher(StableHash::with_seed(SEED));
    let fixed = builder.capacity(1_500).false_positive_rate(0.0025).build().expect("a filter");
    fill(&fixed, 200);
    fixed.save(path(FIXED_OF_BYTES)).expect("a file");
}

/// Loads the filter from the file and from a stream, and checks that both are written as the same
/// bytes again.
fn loaded<R: Room>(name: &str) -> [Filter<R>; 2] {
    let bytes = std::fs::read(path(name)).expect("the file");
    let filters = [
        Filter::load(path(name)).expect("a file of version 1"),
        Filter::read_from(&bytes[..]).expect("a file of version 1"),
    ];
    for filter in &filters {
        let named = if name == FIXED_OF_BYTES { "XXH3-64 of bytes" } else { "XXH3-64" };
        assert_eq!((filter.hasher().seed(), filter.hasher().name()), (SEED.into(), named));
        let mut again = Vec::new();
        filter.write_to(&mut again).expect("memory");
        // This holds as long as version 1 is the one that is written.
        assert!(again == bytes, "{name} is not written as the same bytes");
    }
    filters
}

fn finds_all<R: Room>(filter: &Filter<R>, each: u64) {
    with_items(filter, each, |filter, hash| assert!(filter.contains_hash(hash), "{hash:x}"));
    assert!(filter.contains("str 7"));
    assert!(filter.contains(&String::from("String 7")));
    assert!(filter.contains(&7u64));
    assert!(filter.contains(&(7u8, "pair 7")));
    assert!(filter.contains(&[7u8, 0, 0, 0, 0, 0, 0, 0][..]));
    assert!(filter.contains_hash(filter.hasher().hash_bytes(b"bytes 7")));
    let found = (0..10_000).filter(|n| filter.contains(format!("absent {n}").as_str())).count();
    assert!(found < 300, "{found} of 10,000 absent items were found");
}

#[test]
fn a_fixed_filter_of_version_1_loads_unchanged() {
    for filter in loaded::<Fixed>(FIXED) {
        finds_all(&filter, 200);
        let stats = filter.stats();
        assert_eq!((filter.len(), filter.capacity()), (1_296, 1_500));
        assert_eq!((stats.fingerprint_bits(), stats.slots()), (12, 1_700));
    }
}

#[test]
fn a_filter_whose_strings_are_hashed_as_bytes_loads_unchanged() {
    for filter in loaded::<Fixed>(FIXED_OF_BYTES) {
        finds_all(&filter, 200);
        for text in ["str 7", "String 7", "bytes 7"] {
            let hash = xxhash_rust::xxh3::xxh3_64_with_seed(text.as_bytes(), SEED);
            assert!(filter.contains(text) && filter.contains_hash(hash), "{text}");
            assert!(filter.contains(text.as_bytes()));
        }
    }
}

#[test]
fn a_growing_filter_of_version_1_loads_unchanged() {
    for filter in loaded::<Growing>(GROWING) {
        finds_all(&filter, 20_000);
        let stats = filter.stats();
        assert_eq!((filter.len(), filter.capacity()), (119_404, 2_000));
        assert_eq!((stats.fingerprint_bits(), stats.slots()), (12, 4 * 8_192 * 5));
        assert_eq!((stats.splits(), stats.expected_growth()), (3, 8.0));
        // The loaded filter continues to grow.
        fill(&filter, 60_000);
        assert!(filter.stats().splits() > 3);
        finds_all(&filter, 60_000);
    }
}
