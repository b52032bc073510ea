//! Lookups in a file give the answers of the loaded filter, or an error.

use crate::common::{LAYOUTS, SplitMix, layouts, prehashed, rounds};
use crate::file::{END_WORDS, FilterFile, HEADER_WORDS};
use koel::SnapshotErrorKind::{Damaged, Incomplete, NotFound, WrongHasher};
use koel::{ConcurrentCuckooFilter, Prehashed, SnapshotFile, StableHash};
use std::fs;
use std::hash::BuildHasher;
use std::path::Path;

/// The bytes before the first block, and after the last one.
const HEADER: usize = 8 * HEADER_WORDS;
const END: usize = 8 * END_WORDS;

const HASH: StableHash = StableHash::with_seed(7);

fn growing(items: u64, rate: f64) -> ConcurrentCuckooFilter<StableHash> {
    let builder = ConcurrentCuckooFilter::builder().capacity(1).hasher(HASH).growing();
    let filter = builder.false_positive_rate(rate).expected_growth(1.0).build().expect("a filter");
    (0..items).for_each(|item| filter.insert(&item).expect("memory"));
    filter
}

fn saved(filter: &ConcurrentCuckooFilter<StableHash>, path: &Path) {
    filter.save(path).expect("a file");
}

fn agrees(filter: &ConcurrentCuckooFilter<StableHash>, path: &Path) {
    saved(filter, path);
    let file = SnapshotFile::<StableHash>::open(path).expect("a file");
    let mut hashes: Vec<Prehashed> =
        (0..rounds(20_000, 40_000u64)).map(|item| filter.hash_of(&item)).collect();
    // The first and the last shard too.
    hashes.extend([0, 1, u64::MAX, u64::MAX - 1].map(Prehashed));
    let expected = filter.contains_many(&hashes);
    assert_eq!(file.contains_many(&hashes).expect("answers"), expected);
    for item in 0..20u64 {
        assert!(file.contains(&(item * 400)).expect("an answer") == filter.contains(&(item * 400)));
    }
    assert_eq!(file.info().stats.items, filter.len());
    let loaded = file.load().expect("the filter").stats();
    assert_eq!(loaded.items, filter.len());
    let own = loaded.size_in_bytes - file.heap_bytes_when_loaded();
    assert!(own <= 4_096, "{own} more bytes than were told: {loaded}");
    let (rate, now) = (file.false_positive_rate().expect("a rate"), loaded.false_positive_rate);
    assert!((0.9 * now..=1.1 * now).contains(&rate), "told {rate:e}, is {now:e}");
}

#[test]
fn a_file_answers_like_the_filter_that_it_holds() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("filter");
    for layout in layouts() {
        for items in [0, 1, 20_000] {
            let filter = layout.filter_with(items.max(30), HASH);
            (0..items as u64).for_each(|item| filter.insert(&item).expect("room"));
            agrees(&filter, &path);
        }
    }
    let many = rounds(60_000, 300_000);
    for (items, rate) in [(0, 1e-3), (20_000, 1e-3), (many, 1e-3), (many, 1e-7)] {
        agrees(&growing(items, rate), &path);
    }
    // Many roots, of which some have been split.
    let builder =
        ConcurrentCuckooFilter::builder().capacity(rounds(100_000, 300_000)).hasher(HASH).growing();
    let filter = builder.build().expect("a filter");
    let items = 0u64..;
    for item in items.take_while(|_| filter.stats().splits < 5) {
        filter.insert(&item).expect("memory");
    }
    agrees(&filter, &path);
}

#[test]
fn a_lookup_reads_only_the_shard_that_it_needs() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("filter");
    saved(&growing(rounds(30_000, 60_000), 1e-3), &path);
    let file = FilterFile::cut(&fs::read(&path).expect("the file"));
    let block = 8 * file.blocks[0].len();
    let all: Vec<u64> = (0..rounds(1_000, 4_000u64)).map(|item| HASH.hash_one(item)).collect();
    let mut spared = 0;
    for spare in 0..file.blocks.len() {
        let mut bytes = file.bytes();
        for other in (0..file.blocks.len()).filter(|other| *other != spare) {
            bytes[HEADER + other * block + block / 2] ^= 1;
        }
        fs::write(&path, &bytes).expect("a file");
        let file = SnapshotFile::<StableHash>::open(&path).expect("what it is read from is whole");
        for hash in &all {
            match file.contains(&Prehashed(*hash)) {
                Ok(found) => {
                    assert!(found);
                    spared += 1;
                }
                Err(error) => {
                    assert_eq!(error.kind(), Damaged);
                    let at = error.offset().expect("an offset") as usize;
                    assert!(
                        at == HEADER + (at - HEADER) / block * block
                            && at != HEADER + spare * block
                    );
                }
            }
        }
    }
    assert_eq!(spared, all.len(), "each item is in one shard");
}

#[test]
fn no_lookup_answers_from_a_damaged_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("filter");
    let mut random = SplitMix(5);
    for whole in [file_of(&growing(16_000, 1e-3)), file_of(&LAYOUTS[3].filter_with(60, HASH))] {
        let hashes: Vec<u64> =
            (0..rounds(2_000, 16_000u64)).map(|item| HASH.hash_one(item)).collect();
        fs::write(&path, &whole).expect("a file");
        let right = SnapshotFile::<StableHash>::open(&path).expect("a file");
        let right = right.contains_many(&prehashed(&hashes)).expect("answers");
        let (block, all) = (FilterFile::cut(&whole).blocks[0].len() * 8, whole.len());
        let edges =
            (0..HEADER).chain((HEADER..all - END).step_by(block).flat_map(|at| at..at + 24));
        let edges =
            edges.chain((HEADER + block..=all - END).step_by(block).flat_map(|at| at - 8..at));
        let others: Vec<usize> = (0..50).map(|_| random.next() as usize % all).collect();
        for at in edges.chain(all - END..all).chain(others).step_by(rounds(3, 1)) {
            let mut bytes = whole.clone();
            bytes[at] ^= 1 << (at % 8);
            fs::write(&path, &bytes).expect("a file");
            let opened = SnapshotFile::<StableHash>::open(&path);
            let answers = opened.and_then(|file| file.contains_many(&prehashed(&hashes)));
            assert!(answers.is_err(), "byte {at}");
        }
        for length in (0..300).chain(all - 300..all).step_by(rounds(7, 1)) {
            fs::write(&path, &whole[..length]).expect("a file");
            assert!(SnapshotFile::<StableHash>::open(&path).is_err(), "{length} bytes");
        }
        fs::write(&path, &whole).expect("a file");
        let again = SnapshotFile::<StableHash>::open(&path).expect("a file");
        assert_eq!(again.contains_many(&prehashed(&hashes)).expect("answers"), right);
    }
}

fn file_of(filter: &ConcurrentCuckooFilter<StableHash>) -> Vec<u8> {
    let mut bytes = Vec::new();
    filter.write_to(&mut bytes).expect("memory");
    bytes
}

/// The block has its own checksum, so only what was read when the file was opened can tell.
#[test]
fn a_shard_of_another_file_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("filter");
    let (filter, other) = (growing(10_000, 1e-3), growing(9_000, 1e-3));
    let (bytes, others) = (file_of(&filter), file_of(&other));
    assert_eq!(bytes.len(), others.len());
    fs::write(&path, &bytes).expect("a file");
    let opened = SnapshotFile::<StableHash>::open(&path).expect("a file");
    let mixed = [&bytes[..HEADER], &others[HEADER..bytes.len() - END], &bytes[bytes.len() - END..]]
        .concat();
    fs::write(&path, mixed).expect("the same file with other contents");
    assert_eq!(opened.contains(&1u64).expect_err("another block").kind(), Damaged);
    let error = SnapshotFile::<StableHash>::open(&path).expect_err("a block of another file");
    assert_eq!(error.kind(), Damaged);
    fs::write(&path, &bytes[..9_000]).expect("the same file, cut off");
    assert_eq!(opened.contains(&1u64).expect_err("a short file").kind(), Incomplete);
}

#[test]
fn a_file_that_was_replaced_answers_as_it_was() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("filter");
    let filter = growing(1_000, 1e-6);
    saved(&filter, &path);
    let file = SnapshotFile::<StableHash>::open(&path).expect("a file");
    filter.clear();
    saved(&filter, &path);
    assert!(file.contains(&999u64).expect("an answer"));
    assert_eq!(file.load().expect("the filter").stats().items, 1_000);
    let file = SnapshotFile::<StableHash>::open(&path).expect("a file");
    assert!(!file.contains(&999u64).expect("an answer"));
}

#[test]
fn what_is_no_filter_with_this_hasher_is_not_opened() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("filter");
    let open = || SnapshotFile::<StableHash>::open(&path).expect_err("nothing to open").kind();
    assert_eq!(open(), NotFound);
    let mut bytes = FilterFile::cut(&file_of(&growing(10, 1e-3)));
    bytes.header[15] = u64::from_le_bytes(*b"another\0");
    bytes.header[16..19].fill(0);
    fs::write(&path, bytes.sealed().bytes()).expect("a file");
    assert_eq!(open(), WrongHasher);
}
