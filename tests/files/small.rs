//! The files of small filters, which have a list of items instead of shards.

use crate::common::rounds;
use crate::file::{BLOCK_HEAD, FilterFile, word};
use koel::SnapshotErrorKind::{Damaged, Incomplete, NotASnapshot, UnsupportedVersion};
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
    let opened = SnapshotFile::<StableHash>::open(&path).map(drop);
    match &read {
        Ok(_) => assert!(loaded.is_ok() && opened.is_ok()),
        Err(error) => {
            // Of a file whose length is wrong, that is said first.
            let kinds = [error.kind(), Incomplete];
            for other in [loaded.map(drop), opened] {
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
        assert_eq!(bytes.len() as u64, 8 * (38 + items + 1));
        let file = FilterFile::cut(&bytes);
        file.check();
        assert!(file.is_list());
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
    assert!(bytes_of(&filter(10)).len() <= 1_000);
}

#[test]
fn lookups_in_a_small_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("filter");
    let filter = filter(100);
    filter.save(&path).expect("a file");
    let file = SnapshotFile::<StableHash>::open(&path).expect("the file");
    assert!((0..1_000u64).all(|item| file.contains(&item).expect("an answer") == (item < 100)));
    assert_eq!(file.false_positive_rate().expect("a rate"), 0.0);
    assert!(file.size_in_bytes() < 2_000);
    let loaded = file.load().expect("a filter");
    assert!(loaded.grows());
    assert_eq!(file.heap_bytes_when_loaded(), loaded.size_in_bytes() - size_of_val(&loaded));
    let info = SnapshotInfo::read(&path).expect("the file");
    assert_eq!((info.items, info.shards, info.splits, info.grows), (100, 1, 0, true));
    assert_eq!(info.bytes, std::fs::metadata(&path).expect("the file").len());
}

/// Returns the error of a file with this change, and otherwise intact.
fn changed(file: &FilterFile, change: impl FnOnce(&mut FilterFile)) -> Option<SnapshotErrorKind> {
    let mut file = file.clone();
    change(&mut file);
    all_ways(&file.sealed().bytes()).err().map(|error| error.kind())
}

#[test]
fn a_damaged_list_is_refused() {
    let bytes = bytes_of(&filter(20));
    let every = rounds(4, 1);
    for at in 0..bytes.len() {
        for bit in (at % every..8).step_by(every) {
            let mut bad = bytes.clone();
            bad[at] ^= 1 << bit;
            let kind = all_ways(&bad).expect_err("damage").kind();
            let kinds = [NotASnapshot, UnsupportedVersion, Damaged, Incomplete];
            assert!(kinds.contains(&kind), "byte {at}: {kind:?}");
        }
    }
    for length in 0..bytes.len() {
        let kind = all_ways(&bytes[..length]).expect_err("a part").kind();
        assert_eq!(kind, if length < 8 { NotASnapshot } else { Incomplete }, "{length} bytes");
    }
    let file = FilterFile::cut(&bytes);
    let first = BLOCK_HEAD;
    assert_eq!(changed(&file, |_| ()), None);
    assert_eq!(changed(&file, |file| file.blocks[0].swap(first, first + 1)), Some(Damaged));
    assert_eq!(changed(&file, |file| file.blocks[0][word::DEPTH] = 1), Some(Damaged));
    for items in [0, 19, 21, 1 << 20, 1 << 62, u64::MAX] {
        let kind = changed(&file, |file| file.blocks[0][word::ITEMS] = items);
        assert!(matches!(kind, Some(Damaged | Incomplete)), "{items}: {kind:?}");
    }
    // This stands for a gap in a list.
    let greatest = |greatest| changed(&file, |file| file.blocks[0][first + 19] = greatest);
    assert_eq!([greatest(u64::MAX - 1), greatest(u64::MAX)], [None, Some(Damaged)]);
    // A list is that of a growing filter that began with one shard.
    assert_eq!(changed(&file, |file| file.header[word::ROOTS] = 2), Some(Damaged));
    assert_eq!(changed(&file, |file| file.header[word::LIST] = 2), Some(Damaged));
    assert_eq!(changed(&file, |file| file.header[word::TICKS] = 1), Some(Damaged));
    assert_eq!(changed(&file, |file| file.header[word::GROWS] = 0), Some(Damaged));
    // More copies than a filter takes.
    let slots = file.slots() as usize;
    for (copies, kind) in [(slots, None), (slots + 1, Some(Damaged))] {
        let found = changed(&file, |file| {
            let block = &mut file.blocks[0];
            let last = block[first + 19];
            let sum = block.pop();
            block.extend((1..copies).map(|_| last));
            block[word::ITEMS] += copies as u64 - 1;
            block.extend(sum);
        });
        assert_eq!(found, kind, "{copies} copies");
    }
}
