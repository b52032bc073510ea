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
/// A file: what was asked for, and what was put into it.
struct Golden {
    name: &'static str,
    capacity: usize,
    rate: f64,
    grows: bool,
    forgets: bool,
    items: u64,
    /// What its statistics say: the bits and slots in a bucket, the number of slots, and of splits.
    size: (u32, usize, usize, usize),
    length: usize,
    /// Of 10,000 items that are not in it.
    false_positives: usize,
}

#[rustfmt::skip]
const FILES: [Golden; 9] = [
    golden("fixed", 1_500, 0.0025, 200, (12, 5, 1_650, 0), 1_097, 13),
    golden("fixed-wide", 1_500, 6e-7, 200, (24, 5, 1_650, 0), 1_097, 0),
    golden("growing", 1_000, 0.002, 20_000, (16, 4, 163_840, 4), 100_066, 5),
    golden("growing-wide", 2_000, 3e-4, 12_000, (18, 7, 114_688, 1), 60_088, 0),
    golden("small", 1_000, 0.002, 100, (16, 4, 32_768, 0), 597, 0),
    golden("fixed-forgets", 1_500, 0.02, 1_000, (12, 5, 1_650, 0), 700, 85),
    golden("fixed-wide-forgets", 1_500, 1e-6, 1_000, (32, 4, 1_672, 0), 700, 0),
    golden("growing-forgets", 1_000, 0.02, 60_000, (16, 4, 65_536, 1), 42_000, 13),
    golden("small-forgets", 1_000, 0.001, 100, (20, 6, 49_152, 0), 70, 0),
];

const fn golden(
    name: &'static str,
    capacity: usize,
    rate: f64,
    items: u64,
    size: (u32, usize, usize, usize),
    length: usize,
    false_positives: usize,
) -> Golden {
    let bytes = name.as_bytes();
    let (grows, forgets) = (bytes[0] != b'f', bytes[bytes.len() - 1] == b's');
    Golden { name, capacity, rate, grows, forgets, items, size, length, false_positives }
}

fn path(name: &str) -> PathBuf {
    let name = format!("{name}-5.koel");
    [env!("CARGO_MANIFEST_DIR"), "tests", "golden", &name].iter().collect()
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
    for file in FILES.iter().filter(|file| !path(file.name).exists()) {
        let builder = ConcurrentCuckooFilter::builder().hasher(StableHash::with_seed(SEED));
        let builder = builder.capacity(file.capacity).false_positive_rate(file.rate);
        let builder = if file.forgets { builder.remembers(6) } else { builder };
        let builder = if file.grows { builder.growing().expected_growth(8.0) } else { builder };
        let filter = builder.build().expect("a filter");
        match file.forgets {
            true => fill_in_time(&filter, file.items),
            false => fill(&filter, file.items),
        }
        std::fs::write(path(file.name), bytes_of(&filter)).expect("a file");
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

/// Loads the filter from the file and from a stream, and checks its figures, and that both are written as the same
/// bytes again.
fn loaded(file: &Golden) -> [Filter; 2] {
    let bytes = std::fs::read(path(file.name)).expect("the file");
    FilterFile::cut(&bytes).check();
    let filters = [
        Filter::load(path(file.name)).expect("a golden file"),
        Filter::read_from(&bytes[..]).expect("a golden file"),
    ];
    for filter in &filters {
        assert_eq!(filter.hasher().seed(), SEED.into());
        let stats = filter.stats();
        let size = (stats.fingerprint_bits, stats.slots_per_bucket, stats.slots, stats.splits);
        assert_eq!(size, file.size, "{}", file.name);
        assert_eq!((filter.capacity(), filter.len()), (file.capacity, file.length));
        assert!(!file.grows || stats.expected_growth == 8.0);
        let absent = |n: &u32| filter.contains(format!("absent {n}").as_str());
        assert_eq!((0..10_000).filter(absent).count(), file.false_positives, "{}", file.name);
        // This holds as long as this version is the one that is written.
        assert!(bytes_of(filter) == bytes, "{} is not written as the same bytes", file.name);
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
fn files_load_unchanged_and_their_filters_go_on() {
    for file in &FILES {
        for filter in loaded(file) {
            match file.forgets {
                true => forgets_in_time(&filter, file.items),
                false => finds_all(&filter, file.items),
            }
            // One that forgets has become empty.
            let more = rounds(40_000, 100_000);
            if file.grows {
                fill(&filter, more);
                assert!(filter.stats().splits > file.size.3);
                finds_all(&filter, more);
            }
        }
    }
}
