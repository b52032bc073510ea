//! A copy of a filter is identical to it: by a stream, by a file, by pieces, and in memory.

use crate::common::{bytes_of, layouts, rounds};
use crate::file::{ENTRY_WORDS, FilterFile};
use crate::pieces::{cut, growing, loaded, pieces_of};
use crate::{Filter, HASH, builder, place, with_items};
use koel::{ConcurrentCuckooFilter, SnapshotErrorKind, SnapshotFile, SnapshotInfo, StableHash};
use std::hash::BuildHasher;

/// Sizes of pieces: one shard each, a few, and all of them.
const SIZES: [usize; 4] = [0, 200_000, 1 << 20, usize::MAX];

/// Makes copies of the filter in all ways. What it is written as matches the specification.
pub fn copies(filter: &Filter) -> Vec<Filter> {
    let bytes = bytes_of(filter);
    FilterFile::cut(&bytes).check();
    let place = place();
    let report = filter.save(&place.path).expect("a file");
    assert_eq!((report.bytes, report.items), (bytes.len() as u64, filter.len()));
    assert!(std::fs::read(&place.path).expect("the file") == bytes);
    let mut copies = vec![
        Filter::load(&place.path).expect("a filter that was just saved"),
        Filter::read_from(&bytes[..]).expect("a filter that was just written"),
        filter.try_clone().expect("memory"),
    ];
    for most_bytes in SIZES {
        let pieces = pieces_of(filter, most_bytes);
        let words = cut(&pieces);
        assert!(FilterFile::joined(&words).bytes() == bytes, "the pieces do not make up the file");
        for (piece, words) in pieces.iter().zip(&words) {
            let size = piece.as_bytes().len();
            assert!(size <= most_bytes || words.blocks.len() == 1);
            let is_last = words.end_place() == words.roots() << 31;
            assert_eq!(piece.next(), (!is_last).then_some(words.end_place()));
            // There would not have been room for one more.
            let shard = 8 * (words.shard_words() + ENTRY_WORDS);
            assert!(is_last || most_bytes - size.min(most_bytes) < shard);
        }
        copies.push(loaded(&pieces));
    }
    copies
}

/// Checks the copies of a filter with these items, and returns one.
pub fn check(filter: &Filter, items: std::ops::Range<u64>) -> Filter {
    let bytes = bytes_of(filter);
    let mut copies = copies(filter);
    for copy in &copies {
        assert!(bytes_of(copy) == bytes, "a copy is written as other bytes");
        let (mut stats, before) = (copy.stats(), filter.stats());
        let off = stats.false_positive_rate - before.false_positive_rate;
        assert!(off.abs() <= 0.02 * before.false_positive_rate, "{stats}\n{before}");
        stats.false_positive_rate = before.false_positive_rate;
        stats.size_in_bytes = before.size_in_bytes;
        assert_eq!(stats, before);
        assert!(items.clone().all(|item| copy.contains(&item)));
        // It can be changed like the original.
        let half = items.start..items.start + (items.end - items.start) / 2;
        half.clone().for_each(|item| assert!(copy.remove(&item), "{item}"));
        half.for_each(|item| copy.insert(&item).expect("as much room as before"));
        assert_eq!(copy.len(), filter.len());
        assert!(items.clone().all(|item| copy.contains(&item)));
    }
    copies.pop().expect("a copy")
}

#[test]
fn a_fixed_filter_comes_back_unchanged() {
    for layout in layouts() {
        let few = rounds(&[0, 1, 1_000][..], &[0, 1, 10, 1_000, 3_855, 20_000]);
        // This capacity takes several shards. A short run leaves most of it empty.
        let large = (rounds(30_000, 1_000_000), 1_000_000);
        for (items, capacity) in few.iter().map(|&items| (items, items)).chain([large]) {
            check(&with_items(layout.filter_with(capacity as usize, HASH), items), 0..items);
        }
    }
}

#[test]
fn a_growing_filter_comes_back_unchanged_and_continues_to_grow() {
    for layout in layouts() {
        let most = rounds(40_000, 600_000);
        for (capacity, items) in [(1_000, 0), (1_000, 1), (1_000, most), (100_000, most)] {
            let filter = growing(capacity, (16.0 * layout.rate).min(0.9));
            let filter = with_items(filter, items);
            let copy = check(&filter, 0..items);
            let (splits, end) = (copy.stats().splits, 3 * items + 200_000);
            (items..end).for_each(|item| copy.insert(&item).expect("memory"));
            assert!(copy.stats().splits > splits && copy.len() as u64 == end);
            assert!((0..end).all(|item| copy.contains(&item)));
            // (One that is mostly empty shrinks as a file is read.)
            (0..items / 2).for_each(|item| assert!(filter.remove(&item)));
            let in_pieces = copies(&filter).pop().expect("a copy");
            assert!(bytes_of(&in_pieces) == bytes_of(&filter));
        }
    }
}

/// A hasher that does not restore every seed.
#[derive(Clone)]
struct Forgetful(u64);

impl BuildHasher for Forgetful {
    type Hasher = koel::StableHasher;

    fn build_hasher(&self) -> koel::StableHasher {
        StableHash::with_seed(0).build_hasher()
    }
}

impl koel::PersistentHasher for Forgetful {
    const NAME: &'static str = "forgetful";

    fn seed(&self) -> u128 {
        self.0.into()
    }

    fn from_seed(seed: u128) -> Option<Self> {
        Some(Forgetful(seed.min(9) as u64))
    }
}

#[test]
fn a_hasher_that_comes_back_with_another_seed_is_refused() {
    let again = |seed| {
        let filter = ConcurrentCuckooFilter::builder().capacity(9).hasher(Forgetful(seed)).build();
        ConcurrentCuckooFilter::<Forgetful>::read_from(&bytes_of(&filter.expect("a filter"))[..])
    };
    assert_eq!(again(7).expect("the same hasher").hasher().0, 7);
    let error = again(70).map(drop).expect_err("another hasher");
    assert_eq!(error.kind(), SnapshotErrorKind::WrongHasher);
}

/// Whatever is in a journal, and whether this build can read it or not.
#[test]
fn a_file_with_a_journal_is_neither_loaded_nor_replaced() {
    let place = place();
    for name in ["seen.koel".into(), "long".repeat(40)] {
        let path = &place.at(&name);
        // The name of a journal has at most 110 bytes of the file's.
        let begin = if name.len() > 110 {
            format!("{:016x}", xxhash_rust::xxh3::xxh3_64(name.as_bytes()))
        } else {
            name
        };
        let beside = |end: &str| place.at(&format!("{begin}.journal.{end}"));
        let filter = Filter::with_capacity_and_hasher(9, HASH);
        filter.save(path).expect("a file");
        std::fs::write(beside("7"), "").expect("a journal that has nothing");
        std::fs::write(beside("7.txt"), "something else").expect("a file");
        std::fs::write(beside(""), "something else").expect("a file");
        Filter::load(path).expect("all of the filter");
        filter.save(path).expect("nothing is lost");
        assert_eq!(SnapshotInfo::read(path).expect("a file").journal_bytes, 0);
        std::fs::write(beside("7"), "unknown").expect("a journal");
        let refused =
            [Filter::load(path).map(drop), filter.save(path).map(drop)].map(Result::unwrap_err);
        for error in refused {
            assert_eq!(error.kind(), SnapshotErrorKind::HasJournal, "{error}");
            assert!(error.to_string().contains(&*beside("7").to_string_lossy()), "{error}");
        }
        let file = SnapshotFile::open(path).expect("a file");
        assert_eq!((file.info().journal_bytes, file.contains(&1u64)), (7, Ok(false)));
        // Nor does a new file take the place of one that is gone.
        std::fs::remove_file(path).expect("the file");
        let error = filter.save(path).expect_err("a journal without its state");
        assert_eq!(error.kind(), SnapshotErrorKind::HasJournal);
        assert_eq!(Filter::load(path).expect_err("no file").kind(), SnapshotErrorKind::NotFound);
    }
}

/// Of a growing filter that lost most of its items.
#[test]
fn a_file_that_is_mostly_empty_makes_a_small_filter() {
    let filter = with_items(builder(1_000).growing().build().expect("memory"), 400_000);
    for (left, before, shrinks) in [(300_000u64, 400_000, false), (20_000, 300_000, true)] {
        (left..before).for_each(|item| assert!(filter.remove(&item)));
        let before = filter.stats().shards;
        for loaded in &copies(&filter)[..2] {
            assert_eq!(loaded.stats().shards * 3 < before, shrinks);
            assert_eq!(loaded.len(), filter.len());
            assert!((0..left).all(|item| loaded.contains(&item)));
        }
    }
}
