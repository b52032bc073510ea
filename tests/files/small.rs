//! The files of growing filters of few items, which have one shard.

use crate::file::{END_WORDS, ENTRY_WORDS, FilterFile, HEADER_WORDS, word};
use koel::SnapshotErrorKind::{Damaged, Incomplete};
use koel::{
    ConcurrentCuckooFilter, SnapshotError, SnapshotErrorKind, SnapshotFile, SnapshotInfo,
    StableHash,
};

type Filter = ConcurrentCuckooFilter<StableHash>;

fn filter(items: u64) -> Filter {
    let builder = ConcurrentCuckooFilter::builder().capacity(10);
    let builder = builder.hasher(StableHash::with_seed(3)).growing();
    let filter = builder.build().expect("a small filter");
    (0..items).for_each(|item| filter.insert(&item).expect("memory"));
    filter
}

fn bytes_of(filter: &Filter) -> Vec<u8> {
    let mut bytes = Vec::new();
    filter.write_to(&mut bytes).expect("memory");
    bytes
}

/// Loads a filter from a stream, from a file, and by looking up in its file. All have
/// to agree that it is one, or on the error.
fn all_ways(bytes: &[u8]) -> Result<Filter, SnapshotError> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("filter");
    std::fs::write(&path, bytes).expect("a file");
    let read = Filter::read_from(bytes);
    let loaded = Filter::load(&path);
    let opened = SnapshotFile::open(&path).and_then(|file| file.contains(&0u64));
    match &read {
        Ok(_) => assert!(loaded.is_ok() && opened.is_ok()),
        Err(error) => {
            // Of a file whose length is wrong, that is said first.
            let kinds = [error.kind(), Incomplete];
            for other in [loaded.map(drop), opened.map(drop)] {
                assert!(kinds.contains(&other.expect_err("damage").kind()), "{error}");
            }
        }
    }
    read
}

#[test]
fn a_small_filter_is_loaded_as_it_was_and_matches_the_specification() {
    for items in [0, 1, 10, 1_000, 8_000] {
        let filter = filter(items);
        filter.insert(&0u64).expect("memory");
        let bytes = bytes_of(&filter);
        // The mark has a word.
        assert_eq!(bytes.len(), (64 << 10) + 8 * (HEADER_WORDS + 1 + ENTRY_WORDS + END_WORDS));
        let file = FilterFile::cut(&bytes);
        file.check();
        let again = all_ways(&bytes).expect("a filter");
        assert!(bytes_of(&again) == bytes);
        assert_eq!((again.len(), again.capacity()), (filter.len(), 10));
        for item in 0..items + 1_000 {
            let hash = filter.hash_of(&item);
            assert_eq!(again.count(&hash), filter.count(&hash));
            assert_eq!(file.count(hash.0), filter.count(&hash));
        }
        // It goes on as a filter that was never saved does.
        for item in items..items + 20_000 {
            assert_eq!(again.insert(&item).is_ok(), filter.insert(&item).is_ok());
        }
        assert!(bytes_of(&again) == bytes_of(&filter));
    }
}

#[test]
fn lookups_in_a_small_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("filter");
    let filter = filter(100);
    filter.save(&path).expect("a file");
    let file = SnapshotFile::open(&path).expect("the file");
    assert!((0..100u64).all(|item| file.contains(&item).expect("an answer")));
    let items: Vec<u64> = (0..10_000).collect();
    assert_eq!(file.contains_many(&items).expect("answers"), filter.contains_many(&items));
    assert!(file.size_in_bytes() < 2_000);
    let loaded = file.load().expect("a filter");
    assert!(loaded.grows());
    let info = SnapshotInfo::read(&path).expect("the file");
    assert_eq!((info.stats.items, info.stats.shards, info.stats.splits), (100, 1, 0));
    let bytes = std::fs::metadata(&path).expect("the file").len();
    assert_eq!((info.stats.grows, info.stats.size_in_bytes as u64), (true, bytes));
    let (estimate, right) = (info.stats.false_positive_rate, filter.false_positive_rate());
    assert!((estimate / right - 1.0).abs() < 1e-9, "{estimate}, not {right}");
}

/// Returns the error of a file with this change, and otherwise intact.
fn changed(file: &FilterFile, change: impl FnOnce(&mut FilterFile)) -> Option<SnapshotErrorKind> {
    let mut file = file.clone();
    change(&mut file);
    all_ways(&file.sealed().bytes()).err().map(|error| error.kind())
}

#[test]
fn a_small_file_that_claims_something_else_is_refused() {
    let file = FilterFile::cut(&bytes_of(&filter(20)));
    assert_eq!(changed(&file, |_| ()), None);
    assert_eq!(changed(&file, |file| file.blocks[0][word::DEPTH] = 1), Some(Damaged));
    for items in [0, 19, 21, 1 << 20, 1 << 62, u64::MAX] {
        let kind = changed(&file, |file| file.blocks[0][word::ITEMS] = items);
        assert_eq!(kind, Some(Damaged), "{items}");
    }
    assert_eq!(changed(&file, |file| file.header[word::ROOTS] = 2), Some(Damaged));
    assert_eq!(changed(&file, |file| file.header[word::GROWS] = 0), Some(Damaged));
}
