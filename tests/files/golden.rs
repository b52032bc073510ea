//! Files of the present version of the format can be loaded for ever.
//!
//! The files in `tests/golden` stand for the files that users have, so they must never be written again, and what
//! is said here of their answers must never change. (A new version of the format gets files of its own, whose names
//! end in its number.) The ones that are not there are written by the command below.
//!
//! ```sh
//! cargo test --test files -- --ignored golden
//! ```

use crate::Filter;
use crate::common::{bytes_of, rounds};
use crate::file::FilterFile;
use koel::{ConcurrentCuckooFilter, PersistentHasher, Prehashed, StableHash};
use std::path::PathBuf;

const SEED: u64 = 0x0123_4567_89AB_CDEF;
const FIXED: &str = "fixed-5.koel";
const FIXED_WIDE: &str = "fixed-wide-5.koel";
const GROWING: &str = "growing-5.koel";
const GROWING_WIDE: &str = "growing-wide-5.koel";
const SMALL: &str = "small-5.koel";
const FORGETFUL: &str = "fixed-forgets-5.koel";
const FORGETFUL_WIDE: &str = "fixed-wide-forgets-5.koel";
const FORGETFUL_GROWING: &str = "growing-forgets-5.koel";
const FORGETFUL_SMALL: &str = "small-forgets-5.koel";

fn path(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests", "golden", name].iter().collect()
}

/// Calls `act` with the hashes of items of several types, `each` of every type.
fn with_items(filter: &Filter, each: u64, act: impl Fn(&Filter, u64)) {
    let hasher = *filter.hasher();
    for n in 0..each {
        act(filter, filter.hash_of(&n).0);
        act(filter, filter.hash_of(format!("str {n}").as_str()).0);
        act(filter, filter.hash_of(&format!("String {n}")).0);
        act(filter, filter.hash_of(&(n as u8, format!("pair {n}").as_str())).0);
        act(filter, filter.hash_of(&n.to_le_bytes()[..]).0);
        // Longer than the hasher's buffer.
        act(filter, filter.hash_of(&"long ".repeat(n as usize % 97)[..]).0);
        act(filter, hasher.hash_bytes(format!("bytes {n}").as_bytes()));
    }
}

fn fill(filter: &Filter, each: u64) {
    with_items(filter, each, |filter, hash| {
        filter.insert_if_absent(&Prehashed(hash)).expect("room");
    });
}

#[test]
#[ignore = "writes golden files"]
fn write_the_files_that_are_not_there() {
    let write = |name: &str, bytes: Vec<u8>| {
        if !path(name).exists() {
            std::fs::write(path(name), bytes).expect("a file");
        }
    };
    let builder = |capacity, rate| {
        let builder = ConcurrentCuckooFilter::builder().hasher(StableHash::with_seed(SEED));
        builder.capacity(capacity).false_positive_rate(rate)
    };
    for (name, rate) in [(FIXED, 0.0025), (FIXED_WIDE, 6e-7)] {
        let fixed = builder(1_500, rate).build().expect("a filter");
        fill(&fixed, 200);
        write(name, bytes_of(&fixed));
    }
    for (name, capacity, rate, each) in [
        (GROWING, 1_000, 0.002, 20_000),
        (GROWING_WIDE, 2_000, 3e-4, 12_000),
        (SMALL, 1_000, 0.002, 100),
    ] {
        let growing = builder(capacity, rate).growing().expected_growth(8.0);
        let growing = growing.build().expect("a filter");
        fill(&growing, each);
        write(name, bytes_of(&growing));
    }
    for (name, rate) in [(FORGETFUL, 0.02), (FORGETFUL_WIDE, 1e-6)] {
        let fixed = builder(1_500, rate).remembers(6).build().expect("a filter");
        fill_in_time(&fixed, 1_000);
        write(name, bytes_of(&fixed));
    }
    for (name, rate, items) in [(FORGETFUL_GROWING, 0.02, 60_000), (FORGETFUL_SMALL, 0.001, 100)] {
        let growing = builder(1_000, rate).remembers(6).growing().expected_growth(8.0);
        let growing = growing.build().expect("a filter");
        fill_in_time(&growing, items);
        write(name, bytes_of(&growing));
    }
}

/// Lets items come in ten ticks, a tenth of them in each.
fn fill_in_time(filter: &Filter, items: u64) {
    for tick in 0..10 {
        filter.tick_to(2_000 + tick);
        for item in (tick..items).step_by(10) {
            filter.insert(&item).expect("room");
        }
    }
}

/// What the statistics say: the capacity, the bits and slots in a bucket, the number of slots, and of splits.
#[derive(Debug, PartialEq)]
struct Size {
    capacity: usize,
    bits: u32,
    in_a_bucket: usize,
    slots: usize,
    splits: usize,
}

/// Loads the filter from the file and from a stream, and checks its size, what it answers for 10,000 items that are
/// not in it, and that both are written as the same bytes again.
fn loaded(name: &str, size: Size, false_positives: usize) -> [Filter; 2] {
    let bytes = std::fs::read(path(name)).expect("the file");
    FilterFile::cut(&bytes).check();
    let filters = [
        Filter::load(path(name)).expect("a golden file"),
        Filter::read_from(&bytes[..]).expect("a golden file"),
    ];
    for filter in &filters {
        assert_eq!(filter.hasher().seed(), SEED.into());
        let stats = filter.stats();
        let (bits, in_a_bucket) = (stats.fingerprint_bits, stats.slots_per_bucket);
        let (slots, splits) = (stats.slots, stats.splits);
        let capacity = filter.capacity();
        assert_eq!(Size { capacity, bits, in_a_bucket, slots, splits }, size, "{name}");
        let absent = |n: &u32| filter.contains(format!("absent {n}").as_str());
        assert_eq!((0..10_000).filter(absent).count(), false_positives, "{name}");
        // This holds as long as this version is the one that is written.
        assert!(bytes_of(filter) == bytes, "{name} is not written as the same bytes");
    }
    filters
}

fn finds_all(filter: &Filter, each: u64) {
    with_items(filter, each, |filter, hash| assert!(filter.contains(&Prehashed(hash)), "{hash:x}"));
    assert!(filter.contains(&7u64));
    assert!(filter.contains(&(7u8, "pair 7")));
    assert!(filter.contains(&[7u8, 0, 0, 0, 0, 0, 0, 0][..]));
    for text in ["str 7", "String 7", "bytes 7"] {
        let hash = xxhash_rust::xxh3::xxh3_64_with_seed(text.as_bytes(), SEED);
        assert!(filter.contains(text) && filter.contains(&Prehashed(hash)), "{text}");
        assert!(filter.contains(text.as_bytes()) && filter.contains(&String::from(text)));
    }
}

#[test]
fn fixed_filters_load_unchanged() {
    let narrow = Size { capacity: 1_500, bits: 12, in_a_bucket: 5, slots: 1_650, splits: 0 };
    let wide = Size { capacity: 1_500, bits: 24, in_a_bucket: 5, slots: 1_650, splits: 0 };
    for (name, size, len, false_positives) in
        [(FIXED, narrow, 1_097, 13), (FIXED_WIDE, wide, 1_097, 0)]
    {
        for filter in loaded(name, size, false_positives) {
            assert_eq!(filter.len(), len);
            finds_all(&filter, 200);
        }
    }
}

#[test]
fn growing_filters_load_unchanged_and_go_on_growing() {
    let narrow = Size { capacity: 1_000, bits: 16, in_a_bucket: 4, slots: 163_840, splits: 4 };
    let wide = Size { capacity: 2_000, bits: 18, in_a_bucket: 7, slots: 114_688, splits: 1 };
    let files = [(GROWING, narrow, 100_066, 20_000, 5), (GROWING_WIDE, wide, 60_088, 12_000, 0)];
    for (name, size, len, each, false_positives) in files {
        let splits = size.splits;
        for filter in loaded(name, size, false_positives) {
            assert_eq!((filter.len(), filter.stats().expected_growth), (len, 8.0));
            finds_all(&filter, each);
            let more = rounds(40_000, 100_000);
            fill(&filter, more);
            assert!(filter.stats().splits > splits);
            finds_all(&filter, more);
        }
    }
}

#[test]
fn a_filter_of_few_items_loads_unchanged_and_grows() {
    let size = Size { capacity: 1_000, bits: 16, in_a_bucket: 4, slots: 32_768, splits: 0 };
    for filter in loaded(SMALL, size, 0) {
        assert_eq!(filter.len(), 597);
        finds_all(&filter, 100);
        fill(&filter, 10_000);
        finds_all(&filter, 10_000);
        assert!(filter.stats().splits > 0);
    }
}

/// The items of the last seven ticks are in the filter, and go one after the other.
fn forgets_in_time(filter: &Filter, items: u64) {
    assert_eq!((filter.remembers(), filter.present_tick()), (Some(6), Some(2_009)));
    assert_eq!(filter.expiring(), [items as usize / 10; 7]);
    for first in 3..10 {
        let in_time = (0..items).filter(|item| item % 10 >= first);
        assert_eq!(filter.len(), in_time.clone().count());
        assert!(in_time.clone().all(|item| filter.contains(&item)), "{first}");
        filter.tick();
    }
    assert!(filter.is_empty() && !(0..items).any(|item| filter.contains(&item)));
}

#[test]
fn filters_that_forget_load_unchanged_and_forget_in_time() {
    let narrow = Size { capacity: 1_500, bits: 12, in_a_bucket: 5, slots: 1_650, splits: 0 };
    let wide = Size { capacity: 1_500, bits: 32, in_a_bucket: 4, slots: 1_672, splits: 0 };
    for (name, size, false_positives) in [(FORGETFUL, narrow, 85), (FORGETFUL_WIDE, wide, 0)] {
        for filter in loaded(name, size, false_positives) {
            forgets_in_time(&filter, 1_000);
        }
    }
    let growing = Size { capacity: 1_000, bits: 16, in_a_bucket: 4, slots: 65_536, splits: 1 };
    for filter in loaded(FORGETFUL_GROWING, growing, 13) {
        forgets_in_time(&filter, 60_000);
    }
    let small = Size { capacity: 1_000, bits: 20, in_a_bucket: 6, slots: 49_152, splits: 0 };
    for filter in loaded(FORGETFUL_SMALL, small, 0) {
        forgets_in_time(&filter, 100);
        fill(&filter, 10_000);
        finds_all(&filter, 10_000);
    }
}
