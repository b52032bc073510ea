//! Files of all versions of the format can be loaded for ever.
//!
//! The files in `tests/golden` stand for the files that users have, so they must never be written
//! again. (A new version of the format gets files of its own, whose names end in its number.) Two of
//! version 1 have the hasher under its former name, which no program writes any more. The ones that are
//! not there are written by the command below.
//!
//! ```sh
//! cargo test --test files -- --ignored golden
//! ```

use crate::common::rounds;
use koel::{ConcurrentCuckooFilter, Fixed, Growing, PersistentHasher, Room, StableHash};
use std::path::PathBuf;

type Filter<R> = ConcurrentCuckooFilter<StableHash, R>;

const SEED: u64 = 0x0123_4567_89AB_CDEF;
const FIXED: &str = "fixed-1.koel";
const GROWING: &str = "growing-1.koel";
const FIXED_OF_BYTES: &str = "fixed-of-bytes-1.koel";
const WIDE: &str = "fixed-2.koel";
const WIDE_GROWING: &str = "growing-2.koel";
const STAGGERED: &str = "staggered-2.koel";
const LIST: &str = "list-2.koel";
const FORGETFUL: &str = "fixed-3.koel";
const FORGETFUL_GROWING: &str = "growing-3.koel";
const FORGETFUL_LIST: &str = "list-3.koel";

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
#[ignore = "writes golden files"]
fn write_the_files_that_are_not_there() {
    let builder = || ConcurrentCuckooFilter::builder().hasher(StableHash::with_seed(SEED));
    let write = |name: &str, bytes: Vec<u8>| {
        if !path(name).exists() {
            std::fs::write(path(name), bytes).expect("a file");
        }
    };
    let of_rate = |rate| {
        let fixed = builder().capacity(1_500).false_positive_rate(rate).build().expect("a filter");
        fill(&fixed, 200);
        let mut bytes = Vec::new();
        fixed.write_to(&mut bytes).map(|_| bytes).expect("memory")
    };
    write(FIXED_OF_BYTES, of_rate(0.0025));
    write(WIDE, of_rate(6e-7));
    let growing = builder().capacity(2_000).false_positive_rate(3e-4).growing();
    let growing = growing.expected_growth(8.0).build().expect("a filter");
    fill(&growing, 20_000);
    let mut bytes = Vec::new();
    growing.write_to(&mut bytes).expect("memory");
    write(WIDE_GROWING, bytes);
    let small = |each| {
        let growing = builder().capacity(1_000).false_positive_rate(0.002).growing();
        let growing = growing.build().expect("a filter");
        fill(&growing, each);
        let mut bytes = Vec::new();
        growing.write_to(&mut bytes).map(|_| bytes).expect("memory")
    };
    write(STAGGERED, small(10_000));
    write(LIST, small(100));
    let fixed = builder().capacity(1_500).false_positive_rate(0.02).remembers(6);
    let fixed = fixed.build().expect("a filter");
    fill_in_time(&fixed, 1_000);
    write(FORGETFUL, bytes_of(&fixed));
    let growing = |rate, each| {
        let builder = builder().capacity(1_000).false_positive_rate(rate).remembers(6).growing();
        let growing = builder.expected_growth(8.0).build().expect("a filter");
        fill_in_time(&growing, each);
        bytes_of(&growing)
    };
    write(FORGETFUL_GROWING, growing(0.02, 60_000));
    write(FORGETFUL_LIST, growing(0.001, 100));
}

fn bytes_of<R: Room>(filter: &Filter<R>) -> Vec<u8> {
    let mut bytes = Vec::new();
    filter.write_to(&mut bytes).expect("memory");
    bytes
}

/// Lets items come in ten ticks, a tenth of them in each.
fn fill_in_time<R: Room>(filter: &Filter<R>, items: u64) {
    for tick in 0..10 {
        filter.tick_to(2_000 + tick);
        for item in (tick..items).step_by(10) {
            filter.insert(&item).expect("room");
        }
    }
}

/// The items of the last seven ticks are in the filter, and go one after the other.
fn forgets_in_time<R: Room>(filter: &Filter<R>, items: u64) {
    assert_eq!(filter.present_tick(), Some(2_009));
    for first in 3..10 {
        let in_time = (0..items).filter(|item| item % 10 >= first);
        assert_eq!(filter.len(), in_time.clone().count());
        assert!(in_time.clone().all(|item| filter.contains(&item)), "{first}");
        filter.tick();
    }
    assert!(filter.is_empty() && !(0..items).any(|item| filter.contains(&item)));
}

/// Loads the filter from the file and from a stream, and checks that both are written as the same
/// bytes again.
fn loaded<R: Room>(name: &str) -> [Filter<R>; 2] {
    let bytes = std::fs::read(path(name)).expect("the file");
    let filters = [
        Filter::load(path(name)).expect("a golden file"),
        Filter::read_from(&bytes[..]).expect("a golden file"),
    ];
    for filter in &filters {
        let is_former = [FIXED, GROWING].contains(&name);
        let named = if is_former { "XXH3-64" } else { "XXH3-64 of bytes" };
        assert_eq!((filter.hasher().seed(), filter.hasher().name()), (SEED.into(), named));
        let mut again = Vec::new();
        filter.write_to(&mut again).expect("memory");
        // This holds as long as these versions are the ones that are written.
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
        fill(&filter, rounds(30_000, 60_000));
        assert!(filter.stats().splits() > 3);
        finds_all(&filter, rounds(30_000, 60_000));
    }
}

#[test]
fn a_fixed_filter_of_version_2_loads_unchanged() {
    for filter in loaded::<Fixed>(WIDE) {
        finds_all(&filter, 200);
        let stats = filter.stats();
        assert_eq!((filter.len(), filter.capacity()), (1_097, 1_500));
        assert_eq!((stats.fingerprint_bits(), stats.slots_per_bucket()), (24, 5));
    }
}

#[test]
fn a_growing_filter_of_version_2_loads_unchanged() {
    for filter in loaded::<Growing>(WIDE_GROWING) {
        finds_all(&filter, 20_000);
        let stats = filter.stats();
        assert_eq!((stats.fingerprint_bits(), stats.slots_per_bucket()), (18, 7));
        assert_eq!((filter.capacity(), stats.expected_growth()), (2_000, 8.0));
        let splits = stats.splits();
        assert!(splits > 0);
        fill(&filter, rounds(40_000, 100_000));
        assert!(filter.stats().splits() > splits);
        finds_all(&filter, rounds(40_000, 100_000));
    }
}

#[test]
fn a_filter_of_staggered_shards_loads_unchanged() {
    for filter in loaded::<Growing>(STAGGERED) {
        finds_all(&filter, 10_000);
        let stats = filter.stats();
        assert_eq!((stats.fingerprint_bits(), filter.capacity()), (16, 1_000));
        assert!(stats.splits() > 0);
        fill(&filter, 50_000);
        finds_all(&filter, 50_000);
    }
}

#[test]
fn a_filter_that_is_a_list_loads_unchanged() {
    for filter in loaded::<Growing>(LIST) {
        finds_all(&filter, 100);
        assert_eq!((filter.stats().splits(), filter.false_positive_rate()), (0, 0.0));
        fill(&filter, 10_000);
        finds_all(&filter, 10_000);
    }
}

#[test]
fn filters_of_version_3_load_unchanged_and_forget_in_time() {
    for filter in loaded::<Fixed>(FORGETFUL) {
        let stats = filter.stats();
        assert_eq!((stats.fingerprint_bits(), filter.capacity()), (12, 1_500));
        forgets_in_time(&filter, 1_000);
    }
    for filter in loaded::<Growing>(FORGETFUL_GROWING) {
        assert_eq!(filter.stats().fingerprint_bits(), 16);
        forgets_in_time(&filter, 60_000);
    }
    for filter in loaded::<Growing>(FORGETFUL_LIST) {
        forgets_in_time(&filter, 100);
        fill(&filter, 10_000);
        finds_all(&filter, 10_000);
    }
}
