//! A loaded filter is identical to the saved one.

use crate::common::{layouts, rounds};
use crate::{Filter, HASH, builder, place, with_items};
use koel::{ConcurrentCuckooFilter, SnapshotErrorKind, SnapshotFile, SnapshotInfo, StableHash};
use std::hash::BuildHasher;

/// Returns two copies of the filter: through a stream, and through a file.
fn copies(filter: &Filter) -> [Filter; 2] {
    let place = place();
    let path = &place.path;
    let mut stream = Vec::new();
    let report = filter.write_to(&mut stream).expect("memory");
    assert_eq!(filter.save(path).expect("a file"), report);
    assert!(std::fs::read(path).expect("the file") == stream);
    assert_eq!(report.bytes, stream.len() as u64);
    assert_eq!(report.items, filter.len());
    let by_stream = Filter::read_from(&stream[..]).expect("a filter that was just written");
    [by_stream, Filter::load(path).expect("a filter that was just saved")]
}

fn check(filter: &Filter, items: std::ops::Range<u64>) {
    let counts: Vec<usize> = items.clone().map(|item| filter.count(&item)).collect();
    let absent: Vec<bool> =
        (1 << 40..(1 << 40) + 10_000).map(|n: u64| filter.contains(&n)).collect();
    for copy in copies(filter) {
        assert_eq!(copy.len(), filter.len());
        assert_eq!(copy.capacity(), filter.capacity());
        let (stats, before) = (copy.stats(), filter.stats());
        assert_eq!(stats.slots, before.slots);
        assert_eq!(stats.fingerprint_bits, before.fingerprint_bits);
        assert_eq!(stats.splits, before.splits);
        assert_eq!(stats.growth, before.growth);
        assert_eq!(stats.expected_growth, before.expected_growth);
        assert_eq!(stats.directory_depth, before.directory_depth);
        assert_eq!(stats.false_positive_rate_at_capacity, before.false_positive_rate_at_capacity);
        let off = stats.false_positive_rate - before.false_positive_rate;
        assert!(off.abs() <= 0.02 * before.false_positive_rate, "{stats}\n{before}");
        assert!(items.clone().map(|item| copy.count(&item)).eq(counts.iter().copied()));
        let as_before = (1 << 40..).map(|n: u64| copy.contains(&n)).zip(&absent);
        assert!(as_before.take(10_000).all(|(now, before)| now == *before));
        // The copy can be changed like the original.
        let half = items.start + (items.end - items.start) / 2;
        (items.start..half).for_each(|item| assert!(copy.remove(&item), "{item}"));
        (items.start..half).for_each(|item| copy.insert(&item).expect("as much room as before"));
        assert_eq!(copy.len(), filter.len());
        assert!(items.clone().all(|item| copy.contains(&item)));
    }
}

#[test]
fn a_fixed_filter_loads_unchanged() {
    for layout in layouts() {
        let few = rounds(&[0, 1, 1_000][..], &[0, 1, 10, 1_000, 3_855, 20_000]);
        // With the longest fingerprints, this capacity takes several shards. A short run leaves most
        // of it empty.
        let large = (rounds(30_000, 600_000), 600_000);
        for (items, capacity) in few.iter().map(|&items| (items, items)).chain([large]) {
            check(&with_items(layout.filter_with(capacity as usize, HASH), items), 0..items);
        }
    }
}

#[test]
fn a_growing_filter_loads_unchanged_and_continues_to_grow() {
    for layout in layouts() {
        for &items in rounds(&[0, 1, 40_000][..], &[0, 1, 100_000, 600_000]) {
            let builder = builder(1_000).false_positive_rate((16.0 * layout.rate).min(0.9));
            let builder = builder.growing().expected_growth(500.0);
            let filter = with_items(builder.build().expect("a filter"), items);
            check(&filter, 0..items);
            let [copy, _] = copies(&filter);
            let splits = copy.stats().splits;
            for item in items..3 * items {
                copy.insert(&item).expect("memory");
            }
            assert!(items < 10 || copy.stats().splits > splits);
            assert!((0..3 * items).all(|item| copy.contains(&item)));
            assert_eq!(copy.len() as u64, 3 * items);
        }
    }
}

/// A hasher that does not restore every seed.
#[derive(Clone)]
struct Forgetful {
    seed: u64,
    forgets: bool,
}

impl BuildHasher for Forgetful {
    type Hasher = koel::StableHasher;

    fn build_hasher(&self) -> koel::StableHasher {
        StableHash::with_seed(0).build_hasher()
    }
}

impl koel::PersistentHasher for Forgetful {
    const NAME: &'static str = "forgetful";

    fn seed(&self) -> u128 {
        self.seed.into()
    }

    fn from_seed(seed: u128) -> Option<Self> {
        let seed = seed as u64;
        let forgets = seed > 9;
        Some(Forgetful { seed: if forgets { 9 } else { seed }, forgets })
    }
}

#[test]
fn a_hasher_that_comes_back_with_another_seed_is_refused() {
    for (seed, fine) in [(7, true), (70, false)] {
        let hasher = Forgetful { seed, forgets: false };
        let filter = ConcurrentCuckooFilter::builder().capacity(9).hasher(hasher).build();
        let mut stream = Vec::new();
        filter.expect("a filter").write_to(&mut stream).expect("memory");
        let again = ConcurrentCuckooFilter::<Forgetful>::read_from(&stream[..]);
        assert_eq!(again.as_ref().is_ok_and(|again| !again.hasher().forgets), fine);
        assert_eq!(
            again.err().map(|error| error.kind()),
            (!fine).then_some(SnapshotErrorKind::WrongHasher)
        );
    }
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
        let [_, loaded] = copies(&filter);
        assert_eq!(loaded.stats().shards * 3 < before, shrinks);
        assert_eq!(loaded.len(), filter.len());
        assert!((0..left).all(|item| loaded.contains(&item)));
    }
}
