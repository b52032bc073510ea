//! Removals from a filter that has grown so far that lanes became void, and went to both halves of splits: as many
//! succeed as items are counted, and what is void stays.

use crate::common::{Hashes, Interrupted, SplitMix, bytes_of, rounds, together};
use koel::{Builder, ConcurrentCuckooFilter, Prehashed, StableHash};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

type Filter = ConcurrentCuckooFilter<StableHash>;

/// A filter of short fingerprints, which become void after a few doublings.
fn filter(bits: u32) -> Filter {
    let filter = builder(bits).build().expect("a small filter");
    assert_eq!(filter.stats().fingerprint_bits, bits);
    filter
}

fn builder(bits: u32) -> Builder<StableHash> {
    let rate = match bits {
        8 => 0.2,
        10 => 0.04,
        _ => 0.008,
    };
    let builder = ConcurrentCuckooFilter::builder().capacity(10).hasher(StableHash::with_seed(0));
    builder.growing().false_positive_rate(rate).expected_growth(1.0)
}

fn fill(filter: &Filter, count: u64) -> impl Iterator<Item = u64> + Clone {
    let hashes = (0..count).map(|n| SplitMix(n << 20).next());
    hashes.clone().for_each(|hash| filter.insert(&Prehashed(hash)).expect("memory"));
    hashes
}

fn hits(filter: &Filter, probes: u32) -> f64 {
    let mut strangers = SplitMix(1 << 60);
    (0..probes).map(|_| f64::from(u8::from(filter.contains(&Prehashed(strangers.next()))))).sum()
}

/// Removes each of these items once. Returns how often that succeeded.
fn remove_each(filter: &Filter, hashes: impl Iterator<Item = u64>) -> usize {
    hashes.filter(|hash| filter.remove(&Prehashed(*hash))).count()
}

/// Checks that no item is left, and that none of these can be removed, though some may still be found.
fn assert_is_empty(filter: &Filter, hashes: impl Iterator<Item = u64>) {
    assert_eq!((filter.len(), filter.is_empty()), (0, true));
    assert_eq!(remove_each(filter, hashes), 0);
    assert_eq!((filter.len(), filter.is_empty()), (0, true));
}

fn assert_is_cleared(filter: &Filter) {
    filter.clear();
    assert_eq!((filter.len(), filter.is_empty()), (0, true));
    assert_eq!(hits(filter, rounds(20_000, 100_000)), 0.0, "lanes are left over");
    assert_eq!(filter.false_positive_rate(), 0.0);
}

#[test]
fn every_item_that_is_counted_is_removed_once() {
    for bits in [8, 10, 12] {
        let filter = filter(bits);
        let count = rounds(8_000, 30_000);
        let hashes = fill(&filter, count);
        assert!((1..count).contains(&(filter.len() as u64)), "{bits} bits: {}", filter.len());
        for (number, hash) in hashes.clone().enumerate() {
            let before = filter.len();
            let removed = usize::from(filter.remove(&Prehashed(hash)));
            assert_eq!(filter.len() + removed, before, "{bits} bits: item {number}");
            if number % 2_000 == 0 {
                assert!(filter.has(&hashes.clone().skip(number + 1).collect::<Vec<_>>()));
            }
        }
        assert_is_empty(&filter, hashes.clone());
        assert!(hashes.clone().any(|hash| filter.contains(&Prehashed(hash))), "{bits} bits");
        assert_is_cleared(&filter);
        for hash in hashes.take(1_000) {
            assert!(!filter.remove(&Prehashed(hash)));
            assert_eq!(filter.insert_if_absent(&Prehashed(hash)), Ok(true));
            assert_eq!(filter.len(), 1);
            assert!(!filter.is_empty() && filter.remove(&Prehashed(hash)));
        }
    }
}

#[test]
fn removals_of_several_threads_are_as_many_as_items_are_counted() {
    for round in 0..rounds(2, 20) {
        let filter = filter(8);
        let count = rounds(8_000, 30_000);
        let hashes = fill(&filter, count);
        let counted = filter.len();
        let removed = AtomicUsize::new(0);
        together(2, |thread| {
            let skip = thread * (round as usize % 2) * count as usize / 2;
            let all = hashes.clone().skip(skip).chain(hashes.clone().take(skip));
            removed.fetch_add(remove_each(&filter, all), Relaxed);
        });
        assert_eq!(removed.into_inner(), counted);
        assert_is_empty(&filter, hashes.clone());
        assert_eq!(filter.insert(&Prehashed(1)), Ok(()));
        assert_eq!((filter.len(), filter.is_empty()), (1, false));
    }
}

/// One thread removes what was there, down to the last item; another inserts and removes its own.
#[test]
fn an_emptying_filter_loses_nothing_that_comes() {
    for _ in 0..rounds(3, 30) {
        let filter = filter(8);
        let hashes = fill(&filter, 10_000);
        together(2, |thread| {
            if thread == 0 {
                remove_each(&filter, hashes.clone());
                return;
            }
            let mut random = SplitMix(1 << 50);
            for _ in 0..2_000 {
                let own = random.take(20);
                filter.put(&own);
                assert!(filter.has(&own));
                remove_each(&filter, own.into_iter());
            }
        });
        assert_is_empty(&filter, hashes);
    }
}

#[test]
fn the_reported_rate_is_kept_whatever_is_removed() {
    for bits in [8, 10, 12] {
        // The oldest, the newest, or any: the lanes that stay are newer, older or as before.
        for which in 0..3 {
            let filter = filter(bits);
            let count = rounds(8_000, 30_000);
            let hashes = fill(&filter, count);
            let goes = |n: &u64| match which {
                0 => *n < count / 4 * 3,
                1 => *n >= count / 4,
                _ => !n.is_multiple_of(4),
            };
            let gone = hashes.clone().zip(0..).filter(|(_, n)| goes(n));
            remove_each(&filter, gone.map(|(hash, _)| hash));
            let probes = rounds(100_000, 400_000);
            let (found, told) = (hits(&filter, probes), filter.false_positive_rate());
            // Several lanes may match one item, so at high rates fewer items are found than matched.
            let most = f64::from(probes) * told;
            let least = f64::from(probes) * (1.0 - (-told).exp());
            let about = |expected: f64| 4.0 * expected.sqrt();
            assert!(found <= most + about(most), "{bits} bits, {which}: {found} of {most}");
            let least = 0.9 * least - about(least);
            assert!(found >= least, "{bits} bits, {which}: {found} of {least}");
        }
    }
}

#[test]
fn each_item_that_a_loaded_filter_counts_is_removed_once() {
    let filter = filter(8);
    let count = rounds(5_000, 20_000);
    let hashes = fill(&filter, count);
    for (removed, hash) in hashes.clone().enumerate() {
        if (removed as u64 * 10).is_multiple_of(count) || removed as u64 + rounds(40, 400) > count {
            let loaded = Filter::read_from(&bytes_of(&filter)[..]).expect("a file");
            assert_eq!(loaded.len(), filter.len());
            let told = [&loaded, &filter].map(Filter::false_positive_rate);
            // One that is mostly empty shrinks.
            let is_same = loaded.stats().shards == filter.stats().shards;
            assert!(!is_same || told[0] < told[1] + 1e-9, "{told:?}");
            let counted = loaded.len();
            assert_eq!(remove_each(&loaded, hashes.clone().skip(removed)), counted);
            assert_is_empty(&loaded, hashes.clone());
        }
        filter.remove(&Prehashed(hash));
    }
}

/// What is void expires, and was not counted: where it became void, in a copy of that, and in a small filter that it was
/// merged into.
#[test]
fn no_void_item_is_counted_as_it_expires() {
    let window = || builder(8).remembers(2).build().expect("a small filter");
    let grown = window();
    fill(&grown, 10_000).for_each(drop);
    assert!(grown.len() < 10_000);
    let [loaded, merged] = [Filter::read_from(&bytes_of(&grown)[..]).expect("a file"), window()];
    assert!(merged.union(&grown).expect("memory") <= grown.len());
    for (filter, which) in [(&grown, "grown"), (&loaded, "loaded"), (&merged, "merged")] {
        assert!(!filter.is_empty(), "{which}");
        (0..3).for_each(|_| filter.tick());
        assert_eq!((filter.len(), filter.false_positive_rate()), (0, 0.0), "{which}");
        fill(filter, 5).for_each(drop);
        assert_eq!(filter.len(), 5, "{which}");
    }
}

/// A file of a filter from which items are removed meanwhile has those that stay, and counts no more than there were.
#[test]
fn removals_during_a_save_lose_nothing_that_stays() {
    for round in 0..rounds(5, 50) {
        let filter = filter(8);
        let hashes = fill(&filter, 10_000 + 100 * round);
        let before = filter.len();
        let is_last = |hash: &u64| filter.part_of(&Prehashed(*hash), 4) == 3;
        let mut going = hashes.clone().filter(is_last);
        // The first writes each remove some items from the filter that is being saved.
        let mut writes = filter.stats().shards / 2;
        let mut writer = Interrupted(Vec::new(), || {
            let more = if writes > 0 { 20 } else { 0 };
            writes = writes.saturating_sub(1);
            remove_each(&filter, going.by_ref().take(more));
        });
        filter.write_to(&mut writer).expect("memory");
        let loaded = Filter::read_from(&writer.0[..]).expect("a file");
        assert_eq!(going.next(), None);
        assert!((filter.len()..=before).contains(&loaded.len()));
        let mut staying = hashes.filter(|hash| !is_last(hash));
        assert!(staying.all(|hash| loaded.contains(&Prehashed(hash))));
    }
}

/// Clears, splits and shrinking beside each other leave the right number of items, round after round.
#[test]
fn a_clear_beside_splits_and_shrinking_leaves_the_right_number() {
    for round in 0..rounds(60, 7_000) {
        let filter = filter(8);
        let hashes = fill(&filter, 3_000);
        let others: Vec<u64> = (0..300).map(|n| SplitMix(n << 20 | 1).next()).collect();
        together(3, |thread| match thread {
            0 => filter.clear(),
            1 => _ = filter.shrink(),
            _ => filter.put(&others),
        });
        assert!(filter.len() <= 300, "{round}: {}", filter.len());
        filter.clear();
        assert_eq!(filter.len(), 0, "{round}");
        let new = hashes.take(1_000);
        new.clone().for_each(|hash| filter.insert(&Prehashed(hash)).expect("memory"));
        let counted = filter.len();
        assert!((1..=1_000).contains(&counted), "{round}: {counted}");
        assert_eq!(remove_each(&filter, new.clone()), counted, "{round}");
        assert_is_empty(&filter, new);
    }
}
