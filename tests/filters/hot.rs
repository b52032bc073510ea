//! Hot items: a filter that grows takes every other item, however many of them have all the copies that they
//! may have.

use crate::common::{Filter, Fixed, GROWING, Hashes, Layout, SplitMix, prehashed, rounds};
use koel::{ConcurrentCuckooFilter, FullKind, Prehashed};

/// The number of hot items, and the layouts and windows of a run with so many.
fn cases() -> Vec<(usize, Layout, u32)> {
    let few = [(150, 0, 0), (150, 4, 0), (150, 7, 3), (5_000, 9, 0)];
    // With a window, the vaguer layouts have less than 12 bits left, which is too few for this.
    let all = [10, 150, 5_000].into_iter().flat_map(|hot| {
        let forgets = (0..GROWING.len()).filter(|at| GROWING[*at].rate < 0.01);
        let without = (0..GROWING.len()).map(move |at| (hot, at, 0));
        without.chain(forgets.map(move |at| (hot, at, 5)))
    });
    let cases = rounds(few.to_vec(), all.collect()).into_iter();
    cases.map(|(hot, at, ticks)| (hot, GROWING[at], ticks)).collect()
}

/// A filter that forgets if there are ticks, where it takes a few bits more.
fn filter(layout: Layout, ticks: u32) -> Filter {
    let builder = match ticks {
        0 => layout.growing(10),
        _ => layout.growing(10).remembers(ticks).false_positive_rate(layout.rate.max(1e-7)),
    };
    builder.build().expect("a small filter")
}

/// The copies that such a filter takes of an item if it has nothing else.
fn most_copies(layout: Layout, ticks: u32) -> usize {
    let filter = filter(layout, ticks);
    (0..100).take_while(|_| filter.insert(&Prehashed(1)).is_ok()).count()
}

/// Inserts each of these items until it is refused, in turns. None is refused before it has so many copies.
fn saturate(filter: &Filter, hot: &[u64], most: usize) {
    let mut left = hot.to_vec();
    for round in 0..=3 * most {
        left.retain(|item| match filter.insert(&Prehashed(*item)) {
            Ok(()) => true,
            Err(full) => {
                assert_eq!(full.kind(), FullKind::TooManyCopies, "{item}: {}", filter.stats());
                assert!(
                    filter.count(&Prehashed(*item)) >= most,
                    "{item}: refused in round {round}"
                );
                false
            }
        });
    }
    assert!(left.is_empty(), "{} items have no limit", left.len());
}

#[test]
fn hot_items_do_not_keep_others_out() {
    for (hot, layout, ticks) in cases() {
        let filter = filter(layout, ticks);
        let most = most_copies(layout, ticks);
        let hot: Vec<u64> = (0..hot as u64).map(|n| n << 40).collect();
        saturate(&filter, &hot, most);
        let others = SplitMix(7).take(rounds(100_000, 1_000_000));
        let mut refused = 0;
        for (n, hash) in others.iter().enumerate() {
            // To the filter, an item that it cannot tell from a hot one is the hot one.
            let is_hot = || filter.count(&Prehashed(*hash)) >= most;
            if let Err(full) = filter.insert(&Prehashed(*hash)) {
                let why = (full.kind(), is_hot());
                assert_eq!(why, (FullKind::TooManyCopies, true), "item {n}: {}", filter.stats());
                refused += 1;
            }
        }
        let stats = filter.stats();
        assert!(
            refused as f64 <= 1.0 + others.len() as f64 * layout.rate / 16.0,
            "{refused}: {stats}"
        );
        assert!(hot.iter().all(|item| filter.count(&Prehashed(*item)) >= most));
        assert!(filter.has(&others));
        saturate(&filter, &hot, most);
        let stats = filter.stats();
        assert!(stats.slots < 16 * stats.items + (1 << 20), "{stats}");
    }
}

/// Every item is hot. (With less than 12 bits, buckets have so few alternates that this fills shards early, and
/// fingerprints become void soon.)
#[test]
fn a_filter_of_nothing_but_hot_items_grows_with_them() {
    for layout in rounds(&GROWING[4..5], &GROWING[3..]) {
        let filter = filter(*layout, 0);
        let most = most_copies(*layout, 0);
        let items = rounds(20_000, 200_000);
        for hash in SplitMix(8).take(items) {
            for copy in 0..most {
                let inserted = filter.insert(&Prehashed(hash));
                let is_another = || filter.count(&Prehashed(hash)) >= most;
                assert!(inserted.is_ok() || is_another(), "copy {copy}: {}", filter.stats());
            }
        }
        let stats = filter.stats();
        assert!(stats.items > most * items * 9 / 10, "{stats}");
        assert!(stats.slots < 8 * stats.items, "{stats}");
    }
}

/// In batches, and in a filter that takes over what another one knows.
#[test]
fn hot_items_keep_no_others_out_of_batches_and_unions() {
    let (layout, others) = (GROWING[4], SplitMix(9).take(rounds(100_000, 1_000_000)));
    let most = most_copies(layout, 0);
    let hot: Vec<u64> = (0..150).map(|n| n << 40).collect();
    let (one, other) = (filter(layout, 0), filter(layout, 0));
    for filter in [&one, &other] {
        let copies = filter.insert_many(&prehashed(&hot.repeat(most)));
        assert!(copies.iter().all(Result::is_ok), "{}", filter.stats());
        assert!(filter.insert_many(&prehashed(&hot)).iter().all(Result::is_err));
    }
    let (of_one, of_other) = others.split_at(others.len() / 2);
    for (filter, others) in [(&one, of_one), (&other, of_other)] {
        // A few cannot be told from hot ones.
        let refused = filter.insert_many(&prehashed(others)).into_iter().filter_map(Result::err);
        let kinds: Vec<_> = refused.map(|full| full.kind()).collect();
        assert!(kinds.len() < 10, "{kinds:?}: {}", filter.stats());
        assert!(kinds.iter().all(|kind| *kind == FullKind::TooManyCopies), "{kinds:?}");
    }
    let added = one.union(&other).expect("memory");
    assert!(added * 100 > of_other.len() * 99, "{added}");
    assert!(others.iter().chain(&hot).all(|hash| one.contains(&Prehashed(*hash))));
    assert!(hot.iter().all(|hash| one.count(&Prehashed(*hash)) >= most));
    assert_eq!(one.union(&other), Ok(0));
}

/// A filter has one copy more of an item than a bucket has slots at the most, which comes if the item's other bucket
/// gets room.
#[test]
fn one_copy_too_many_comes_when_the_other_bucket_gets_room() {
    let builder = ConcurrentCuckooFilter::builder().capacity(20_000).growing();
    let filter = builder.false_positive_rate(0.001).hasher(Fixed { key: 0 }).build();
    let filter = filter.expect("memory");
    let most = filter.stats().slots_per_bucket;
    let mut full = Vec::new();
    for number in 0..60_000u64 {
        let hash = SplitMix(number << 20).next();
        if filter.insert(&Prehashed(hash)).is_ok() {
            full.push(hash);
        }
    }
    for number in 0..3_000u64 {
        let hot = Prehashed(SplitMix(number << 20 | 1).next());
        let copies = |filter: &Filter| filter.count(&hot);
        while copies(&filter) < most && filter.insert(&hot).is_ok() {}
        full.drain(..full.len().min(15)).for_each(|hash| _ = filter.remove(&Prehashed(hash)));
        let before = copies(&filter);
        let came = filter.insert(&hot).is_ok();
        assert!(copies(&filter) <= (most + 1).max(before), "{number}: {before}, {came}");
        (0..before).for_each(|_| _ = filter.remove(&hot));
    }
}
