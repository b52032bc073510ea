//! One filter takes over what another one knows: nothing is missed afterwards, in either, however
//! they were filled.

use crate::common::{Fixed, Layout, SplitMix, in_time, layouts, rounds, together};
use koel::{ConcurrentCuckooFilter, FullKind, Prehashed, StableHash, UnionErrorKind};
use std::hash::{BuildHasher, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::Ordering::{self, Relaxed};
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::time::Duration;

fn growing(layout: &Layout, capacity: usize, ticks: u32) -> ConcurrentCuckooFilter<Fixed> {
    growing_with(layout, capacity, ticks, Fixed { key: 0 })
}

fn growing_with<S>(
    layout: &Layout,
    capacity: usize,
    ticks: u32,
    hasher: S,
) -> ConcurrentCuckooFilter<S> {
    let builder = ConcurrentCuckooFilter::builder().capacity(capacity).hasher(hasher);
    let least = if ticks > 0 { 2e-8 } else { 2e-9 };
    let builder = builder.false_positive_rate(layout.rate.max(least));
    let builder = if ticks > 0 { builder.remembers(ticks) } else { builder };
    builder.growing().expected_growth(1.0).build().expect("a filter")
}

#[test]
fn a_fixed_filter_has_what_either_knew_once() {
    for layout in layouts() {
        let (one, other) = (layout.filter(40_000), layout.filter(40_000));
        let items = SplitMix(1).take(30_000);
        items[..20_000].iter().for_each(|item| one.insert(&Prehashed(*item)).expect("room"));
        items[10_000..].iter().for_each(|item| other.insert(&Prehashed(*item)).expect("room"));
        let added = one.union(&other).expect("room for 30,000");
        assert!(added <= 10_000, "{layout:?}: {added} of 10,000 were new");
        assert!(layout.bits < 16 || added > 9_900, "{layout:?}: {added} of 10,000 were new");
        assert_eq!(one.len(), 20_000 + added);
        assert!(items.iter().all(|item| one.contains(&Prehashed(*item))), "{layout:?}");
        assert_eq!(one.union(&other), Ok(0), "{layout:?}");
        assert_eq!(other.len(), 20_000);
    }
}

#[test]
fn growing_filters_have_what_either_knew_whatever_their_sizes() {
    let most = rounds(60_000, 250_000);
    // From nothing, from few items, from one shard, and from several that were known to be needed.
    let (small, large) = ([0, 1_000, most / 4, most], [0, most / 4, most]);
    let pairs = |capacity: usize, sizes: &[usize]| -> Vec<_> {
        let pair = |here: &usize, there: &usize| ((*here, capacity), (*there, capacity));
        sizes.iter().flat_map(|here| sizes.iter().map(move |there| pair(here, there))).collect()
    };
    let pairs = [pairs(10, &small), pairs(2 * most, &large)].concat();
    for layout in layouts() {
        for ((here, capacity), (there, other_capacity)) in pairs.iter().copied() {
            let (one, other) = (growing(layout, capacity, 0), growing(layout, other_capacity, 0));
            let items = SplitMix(3).take(here + there);
            let own =
                items[..here].iter().filter(|item| one.insert(&Prehashed(**item)).is_ok()).count();
            let others = &items[here..];
            let inserted = |item: &&u64| other.insert(&Prehashed(**item)).is_ok();
            let others: Vec<u64> = others.iter().filter(inserted).copied().collect();
            let added = one.union(&other).expect("memory");
            let what = format!("{layout:?}: {here} of {capacity}, {there} of {other_capacity}");
            assert_eq!(one.len(), own + added, "{what}");
            assert!(added <= others.len(), "{what}: {added}");
            assert!(layout.bits < 20 || added * 100 >= others.len() * 99, "{what}: {added}");
            let missed = others.iter().filter(|item| !one.contains(&Prehashed(**item))).count();
            assert_eq!(missed, 0, "{what}");
            assert!(items[..own].iter().all(|item| one.contains(&Prehashed(*item))), "{what}");
            assert_eq!(one.union(&other), Ok(0), "{what}");
            assert_eq!(one.union(&one), Ok(0), "{what}");
            // A file of it is sound.
            let copy = one.try_clone().expect("memory");
            assert_eq!(copy.len(), one.len(), "{what}");
        }
    }
}

#[test]
fn what_both_knew_is_there_once_whenever_it_came() {
    for layout in layouts().iter().filter(|layout| layout.bits > 10) {
        for ticks in [0, 4] {
            let (one, other) = (growing(layout, 10, ticks), growing(layout, 10, ticks));
            let most = rounds(150_000, 400_000);
            let items = SplitMix(4).take(most);
            // What came last to the one came first to the other, so fingerprints have lost different bits.
            let (own, others) = (&items[..most / 3 * 2], &items[most / 3..]);
            own.iter().for_each(|item| one.insert(&Prehashed(*item)).expect("memory"));
            others.iter().for_each(|item| other.insert(&Prehashed(*item)).expect("memory"));
            let rate = one.stats().false_positive_rate + other.stats().false_positive_rate;
            let added = one.union(&other).expect("memory");
            let new = most - own.len();
            assert!(added * 100 < new * 102, "{layout:?}: {added} of {new}");
            assert!(
                added * 100 > new * if layout.bits > 12 { 98 } else { 80 },
                "{layout:?}: {added}"
            );
            assert!(items.iter().all(|item| one.contains(&Prehashed(*item))), "{layout:?}");
            assert_eq!(one.union(&other), Ok(0));
            // The estimate follows, and is right.
            let stats = one.stats();
            assert!(stats.false_positive_rate < 1.6 * rate, "{layout:?}: {stats:?}, {rate}");
            let copy = one.try_clone().expect("memory").stats();
            let same = copy.false_positive_rate / stats.false_positive_rate;
            assert!((same - 1.0).abs() < 1e-6, "{layout:?}: {copy:?}, {stats:?}");
            if ticks > 0 {
                assert_eq!(one.expiring().iter().sum::<usize>(), one.len());
            }
        }
    }
}

/// The one has more shards than the other, and their fingerprints have lost different bits.
#[test]
fn unions_to_and_fro_add_nothing_more() {
    let most = rounds(150_000, 400_000);
    for layout in layouts() {
        for (capacity, ticks) in [(10, 0), (10, 3), (most / 2, 0)] {
            let ends = [growing(layout, capacity, ticks), growing(layout, capacity, ticks)];
            let items = SplitMix(31).take(most);
            for (filter, items) in ends.iter().zip([&items[most / 4..], &items[..most / 2]]) {
                items.iter().for_each(|item| _ = filter.insert_if_absent(&Prehashed(*item)));
            }
            let held: Vec<u64> = items
                .iter()
                .copied()
                .filter(|item| {
                    ends[0].contains(&Prehashed(*item)) || ends[1].contains(&Prehashed(*item))
                })
                .collect();
            let what = format!("{layout:?}: {capacity}, {ticks}");
            ends[0].union(&ends[1]).expect("memory");
            ends[1].union(&ends[0]).expect("memory");
            // A fingerprint that is too long for the other loses there what it then loses here, too, but once.
            let mut before = None;
            for turn in 0..6 {
                assert_eq!(ends[turn % 2].union(&ends[1 - turn % 2]), Ok(0), "{what}, turn {turn}");
                let now = ends.each_ref().map(|filter| filter.stats());
                assert!(turn < 2 || before.as_ref() == Some(&now), "{what}, turn {turn}");
                before = Some(now);
            }
            for filter in &ends {
                assert!(held.iter().all(|item| filter.contains(&Prehashed(*item))), "{what}");
                assert!(filter.len() <= held.len(), "{what}: {} of {}", filter.len(), held.len());
            }
        }
    }
}

/// They divide the hashes at different places. What counts is how each began, and not how it has grown.
#[test]
fn filters_that_began_with_different_numbers_of_shards_are_refused_and_unchanged() {
    let most = rounds(60_000, 250_000);
    for layout in layouts().iter().filter(|layout| layout.bits > 8) {
        let sizes = [
            (10, 0),
            (10, 100),
            (10, most),
            (most, 100),
            (most, most),
            (2 * most, 100),
            (4 * most, most),
        ];
        for (number, (capacity, count)) in sizes.into_iter().enumerate() {
            for (other_capacity, other_count) in
                sizes.into_iter().filter(|(other, _)| *other != capacity)
            {
                let filters =
                    [(capacity, count), (other_capacity, other_count)].map(|(capacity, count)| {
                        let filter = growing_with(layout, capacity, 0, StableHash::with_seed(7));
                        SplitMix(number as u64)
                            .take(count)
                            .iter()
                            .for_each(|item| _ = filter.insert(&Prehashed(*item)));
                        filter
                    });
                let bytes = |filter: &ConcurrentCuckooFilter<StableHash>| {
                    let mut bytes = Vec::new();
                    filter.write_to(&mut bytes).expect("memory");
                    bytes
                };
                let before = filters.each_ref().map(bytes);
                let [one, other] = &filters;
                let error = one.union(other).expect_err("they differ");
                assert_eq!(error.kind(), UnionErrorKind::DifferentSize);
                assert_eq!(
                    one.check_union(other).map_err(|error| error.kind()),
                    Err(UnionErrorKind::DifferentSize)
                );
                assert!(error.to_string().contains("one capacity"), "{error}");
                assert!(
                    filters.each_ref().map(bytes) == before,
                    "{layout:?}: {capacity}, {other_capacity}"
                );
            }
        }
        // Few items need one shard, whatever the capacity.
        let [one, other] = [10, 1_000].map(|capacity| growing(layout, capacity, 0));
        other.insert("an item").expect("room");
        assert_eq!((one.check_union(&other), one.union(&other)), (Ok(()), Ok(1)));
    }
}

#[test]
fn entries_that_have_lost_their_bits_go_wherever_their_items_may_be() {
    // Eight bits: a window of three. The one has far more shards than the other, and each of its
    // entries has lost bits, or is in several shards.
    let layout = Layout { bits: 8, rate: 0.4, words: 1 };
    let (small, large) = (growing(&layout, 10, 0), growing(&layout, 10, 0));
    let of_small = SplitMix(5).take(40_000);
    let of_large = SplitMix(6).take(rounds(750_000, 4_000_000));
    of_small.iter().for_each(|item| small.insert(&Prehashed(*item)).expect("memory"));
    of_large.iter().for_each(|item| large.insert(&Prehashed(*item)).expect("memory"));
    let both = [&of_small[..], &of_large[..]].concat();
    for (one, other) in [(&large, &small), (&small, &large)] {
        let before = (one.len(), other.len());
        let added = one.union(other).expect("memory");
        // An entry, or a split that it takes, may have taken the last bit of an item that was counted.
        assert!(one.len() <= before.0 + added && other.len() == before.1);
        assert!(both.iter().all(|item| one.contains(&Prehashed(*item))));
        assert_eq!(one.union(other), Ok(0));
        // No more can be removed than was counted.
        let mut removed = 0;
        let copy = one.try_clone().expect("memory");
        for item in both.iter().chain(&both) {
            removed += usize::from(copy.remove(&Prehashed(*item)));
        }
        assert_eq!(copy.len(), one.len() - removed);
        copy.clear();
        assert!(copy.is_empty() && !both.iter().any(|item| copy.contains(&Prehashed(*item))));
    }
}

/// What a fingerprint has left of its bits, it keeps: this filter grows before the entries come.
#[test]
fn an_empty_filter_errs_as_often_as_the_one_that_it_takes_over() {
    for layout in layouts() {
        let (one, other) = (growing(layout, 10, 0), growing(layout, 10, 0));
        let items = SplitMix(40).take(rounds(150_000, 400_000));
        items.iter().for_each(|item| _ = other.insert(&Prehashed(*item)));
        one.union(&other).expect("memory");
        let [here, there] = [&one, &other].map(|filter| filter.stats());
        let ratio = here.false_positive_rate / there.false_positive_rate;
        assert!(ratio < 1.02, "{layout:?}: {ratio}");
        assert!(10 * here.shards <= 11 * there.shards, "{layout:?}: {here:?}, {there:?}");
    }
}

/// A filter that has few items left in many shards. What they were split for does not matter here.
#[test]
fn a_few_items_of_many_shards_need_no_more_shards() {
    for layout in layouts().iter().filter(|layout| layout.bits > 10) {
        let other = growing(layout, 10, 0);
        let items = SplitMix(41).take(rounds(150_000, 400_000));
        items.iter().for_each(|item| other.insert(&Prehashed(*item)).expect("memory"));
        let (gone, left) = items.split_at(items.len() - 5_000);
        gone.iter().for_each(|item| assert!(other.remove(&Prehashed(*item))));
        for is_limited in [false, true] {
            let one = growing(layout, 10, 0);
            let shards = one.stats().shards;
            if is_limited {
                one.set_max_bytes(one.size_in_bytes());
            }
            let added = one.union(&other).expect("room for 5,000");
            assert!((4_950..=5_000).contains(&added), "{layout:?}: {added}");
            assert!(left.iter().all(|item| one.contains(&Prehashed(*item))), "{layout:?}");
            assert_eq!(one.stats().shards, shards, "{layout:?}");
            assert_eq!(one.union(&other), Ok(0), "{layout:?}");
        }
    }
}

#[test]
fn filters_that_differ_are_refused_and_unchanged() {
    let builder = || ConcurrentCuckooFilter::builder().hasher(Fixed { key: 0 });
    let fixed = |capacity, rate| builder().capacity(capacity).false_positive_rate(rate).build();
    let one = fixed(1_000, 0.001).expect("a filter");
    let different = [
        (fixed(2_000, 0.001), UnionErrorKind::DifferentSize),
        (fixed(1_000, 0.000_01), UnionErrorKind::DifferentLayout),
        (builder().capacity(1_000).remembers(3).build(), UnionErrorKind::DifferentWindow),
        (
            builder().hasher(Fixed { key: 1 }).capacity(1_000).build(),
            UnionErrorKind::DifferentHasher,
        ),
    ];
    one.insert("its own").expect("room");
    for (other, kind) in different {
        let other = other.expect("a filter");
        other.insert("another").expect("room");
        let error = one.union(&other).expect_err("they differ");
        assert_eq!(error.kind(), kind);
        assert_eq!((one.len(), other.len()), (1, 1));
    }
    let growing = |ticks| builder().capacity(10).remembers(ticks).growing().build().expect("one");
    let error = growing(3).union(&growing(4)).expect_err("they differ");
    assert_eq!(error.kind(), UnionErrorKind::DifferentWindow);
}

/// The reason, and how many entries were added and refused.
fn full_of(kind: UnionErrorKind) -> (FullKind, usize, usize) {
    match kind {
        UnionErrorKind::Full { reason, added, refused } => (reason, added, refused),
        kind => panic!("{kind:?}"),
    }
}

#[test]
fn what_does_not_fit_is_told_and_nothing_is_lost() {
    let layout = Layout { bits: 16, rate: 0.000_12, words: 1 };
    let (one, other) = (layout.filter(20_000), layout.filter(20_000));
    let items = SplitMix(7).take(40_000);
    let (own, others) = items.split_at(20_000);
    own.iter().for_each(|item| one.insert(&Prehashed(*item)).expect("room"));
    others.iter().for_each(|item| other.insert(&Prehashed(*item)).expect("room"));
    let error = one.union(&other).expect_err("no room for both");
    let (reason, added, refused) = full_of(error.kind());
    assert_eq!((reason, refused), (FullKind::NoRoomNearby, 1_000));
    assert_eq!(one.len(), 20_000 + added);
    assert!(own.iter().all(|item| one.contains(&Prehashed(*item))));
    assert_eq!(other.len(), 20_000);

    // A filter that grows takes the rest when its limit is raised.
    let limited = growing(&layout, 10, 0);
    let limit = limited.size_in_bytes() + 10_000;
    limited.set_max_bytes(limit);
    let large = growing(&layout, 10, 0);
    let items = SplitMix(7).take(80_000);
    items.iter().for_each(|item| large.insert(&Prehashed(*item)).expect("memory"));
    let error = limited.union(&large).expect_err("no room for 80,000");
    let (reason, added, _) = full_of(error.kind());
    assert_eq!(reason, FullKind::LimitReached);
    assert!(limited.size_in_bytes() <= limit);
    limited.set_max_bytes(usize::MAX);
    assert_eq!(limited.union(&large).map(|more| more + added), Ok(limited.len()));
    assert!(items.iter().all(|item| limited.contains(&Prehashed(*item))));

    // One that may not grow at all.
    let tiny = growing(&layout, 10, 0);
    tiny.insert("its own").expect("room");
    tiny.set_max_bytes(10_000);
    let error = tiny.union(&large).expect_err("no room for another shard");
    let (_, added, _) = full_of(error.kind());
    assert_eq!((added + 1, tiny.contains("its own")), (tiny.len(), true));
}

/// Ages by item, here and there, and what an item is found until.
#[test]
fn an_item_is_found_for_as_long_as_in_either() {
    const TICKS: u32 = 5;
    let fixed = |layout: &Layout| {
        let builder = ConcurrentCuckooFilter::builder().capacity(30_000).remembers(TICKS);
        let builder = builder.hasher(Fixed { key: 0 }).false_positive_rate(layout.rate);
        builder.build().expect("a filter")
    };
    for layout in layouts().iter().filter(|layout| layout.bits > 10) {
        // Stamps take three bits of the fingerprints.
        let layout = &Layout { rate: 8.0 * layout.rate, ..*layout };
        until_both_forget(fixed(layout), fixed(layout));
        // One shard each, with few items and more, and several.
        for (count, capacity) in [(60, 10), (1_000, 10), (3_000, 10), (4_000, 40_000)] {
            let [one, other] = [0; 2].map(|_| growing(layout, capacity, TICKS));
            (0..count).for_each(|item| other.insert(&Prehashed(item * 7 + 1)).expect("memory"));
            (0..6).for_each(|_| other.tick());
            until_both_forget(one, other);
        }
    }

    fn until_both_forget(one: ConcurrentCuckooFilter<Fixed>, other: ConcurrentCuckooFilter<Fixed>) {
        let items = SplitMix(9).take(3_000);
        // Some in the one, some in the other, some in both, at different times.
        let mut last = vec![None; items.len()];
        let (mut random, mut now) = (SplitMix(11), 100);
        one.tick_to(now);
        // The other is ahead by two ticks at first, and behind by one in the end.
        other.tick_to(now + 2);
        for round in 0..7 {
            for (item, last) in items.iter().zip(&mut last) {
                let filter = match random.below(9) {
                    0 => &one,
                    1 => &other,
                    _ => continue,
                };
                filter.insert_or_refresh(&Prehashed(*item)).expect("room");
                *last = (*last).max(filter.present_tick());
            }
            now += 1;
            one.tick_to(now);
            if round < 4 {
                other.tick_to(now + 2);
            }
        }
        one.union(&other).expect("room");
        assert_eq!(one.present_tick(), Some(now));
        for number in now.. {
            one.tick_to(number);
            let within =
                |last: &Option<u64>| last.is_some_and(|last| last + u64::from(TICKS) >= number);
            let missed = items
                .iter()
                .zip(&last)
                .filter(|(item, last)| within(last) && !one.contains(&Prehashed(**item)));
            assert_eq!(missed.count(), 0);
            let beyond = items
                .iter()
                .zip(&last)
                .filter(|(item, last)| !within(last) && one.contains(&Prehashed(**item)));
            // By false positives, which a window of few bits has many of.
            assert!(beyond.count() < 40);
            if number > now + u64::from(TICKS) {
                assert_eq!((one.len(), one.expiring().iter().sum::<usize>()), (0, 0));
                break;
            }
        }
    }
}

/// A filter that was not used for long takes over what is older than its present tick, and grows.
#[test]
fn what_comes_after_the_end_of_all_stays() {
    let layout = Layout { bits: 16, rate: 0.000_4, words: 1 };
    let make = |fixed: bool| {
        let builder = ConcurrentCuckooFilter::builder().hasher(Fixed { key: 0 }).remembers(6);
        let builder = builder.false_positive_rate(layout.rate);
        let capacity = if fixed { 60_000 } else { 10 };
        (builder.clone().capacity(capacity).build(), builder.capacity(10).growing().build())
    };
    fn check(one: ConcurrentCuckooFilter<Fixed>, other: ConcurrentCuckooFilter<Fixed>) {
        let items = SplitMix(30).take(60_000);
        let (old, new) = items.split_at(30_000);
        one.tick_to(1);
        for (number, items) in (95..=100).zip(old.chunks(5_000)) {
            other.tick_to(number);
            items.iter().for_each(|item| other.insert(&Prehashed(*item)).expect("room"));
        }
        one.union(&other).expect("room");
        new.iter().for_each(|item| one.insert(&Prehashed(*item)).expect("room"));
        assert!(items.iter().all(|item| one.contains(&Prehashed(*item))));
        assert_eq!(one.expiring().iter().sum::<usize>(), one.len());
        let copy = one.try_clone().expect("memory");
        for number in 101..=106 {
            one.tick_to(number);
            copy.tick_to(number);
            let left = &items[(number as usize - 101) * 5_000..];
            assert!(left.iter().all(|item| one.contains(&Prehashed(*item)) && copy.contains(&Prehashed(*item))));
        }
        assert!(one.len() >= 34_900 && one.len() <= 35_100);
    }
    check(make(true).0.expect("one"), make(true).0.expect("one"));
    check(make(false).1.expect("one"), make(false).1.expect("one"));
}

#[test]
fn an_item_becomes_as_young_as_in_the_other_in_the_first_ticks_too() {
    let make = || {
        let layout = Layout { bits: 16, rate: 0.000_4, words: 1 };
        let filter = growing(&layout, 10, 6);
        filter.insert(&Prehashed(17)).expect("room");
        filter
    };
    let [one, older, younger] = [make(), make(), make()];
    one.clear();
    (0..5).for_each(|_| older.tick());
    (0..2).for_each(|_| younger.tick());
    assert_eq!(one.union(&older), Ok(1));
    assert_eq!(one.union(&younger), Ok(0));
    (0..4).for_each(|_| one.tick());
    assert!(one.contains(&Prehashed(17)));
    one.tick();
    assert!(!one.contains(&Prehashed(17)));
}

/// Two filters take over from each other, while threads insert, remove and look for items of both.
#[test]
fn filters_in_use_take_over_from_each_other() {
    in_time(|| {
        let layout = Layout { bits: 16, rate: 0.000_12, words: 1 };
        for ticks in [0, 3] {
            let filters = [growing(&layout, 10, ticks), growing(&layout, 10, ticks)];
            let count = rounds(40_000, 400_000);
            let stay: Vec<Vec<u64>> = (0..2).map(|of| SplitMix(20 + of).take(count)).collect();
            together(4, |thread| {
                let own = thread / 2;
                if thread % 2 == 0 {
                    for item in &stay[own] {
                        filters[own].insert(&Prehashed(*item)).expect("memory");
                        assert!(filters[own].contains(&Prehashed(*item)));
                    }
                } else {
                    for _ in 0..20 {
                        filters[own].union(&filters[1 - own]).expect("memory");
                        if ticks > 0 && own == 0 {
                            filters[1].refresh(&Prehashed(stay[1][0]));
                        }
                    }
                }
            });
            for own in 0..2 {
                filters[own].union(&filters[1 - own]).expect("memory");
                assert!(stay.iter().flatten().all(|item| filters[own].contains(&Prehashed(*item))));
                let copy = filters[own].try_clone().expect("memory");
                assert_eq!(copy.len(), filters[own].len());
            }
        }
    });
}

/// Threads insert the items of the other filter while it is taken over, and remove others.
#[test]
fn an_item_is_added_once_by_a_thread_or_by_a_union() {
    in_time(|| {
        let layout = Layout { bits: 32, rate: 2e-8, words: 1 };
        for (own, count) in [(0, 60_000), (90_000, 60_000), (5_000, 150_000)] {
            let (one, other) = (growing(&layout, 10, 0), growing(&layout, 10, 0));
            let items = SplitMix(42).take(own + count);
            let (own, others) = items.split_at(own);
            own.iter().for_each(|item| one.insert(&Prehashed(*item)).expect("memory"));
            others.iter().for_each(|item| other.insert(&Prehashed(*item)).expect("memory"));
            let (added, removed) = (AtomicUsize::new(0), AtomicUsize::new(0));
            together(3, |thread| match thread {
                0 => _ = added.fetch_add(one.union(&other).expect("memory"), Ordering::Relaxed),
                1 => others.iter().for_each(|item| {
                    let is_new = one.insert_if_absent(&Prehashed(*item)).expect("memory");
                    added.fetch_add(usize::from(is_new), Ordering::Relaxed);
                }),
                _ => own.iter().for_each(|item| {
                    removed
                        .fetch_add(usize::from(one.remove(&Prehashed(*item))), Ordering::Relaxed);
                }),
            });
            assert_eq!((added.into_inner(), removed.into_inner()), (others.len(), own.len()));
            assert_eq!(one.len(), others.len());
            assert!(others.iter().all(|item| one.contains(&Prehashed(*item))));
            assert!(others.iter().all(|item| one.remove(&Prehashed(*item))));
            assert!(one.is_empty() && !items.iter().any(|item| one.contains(&Prehashed(*item))));
        }
    });
}

/// This filter shrinks while it takes over the other's items, of which threads remove some.
#[test]
fn nothing_comes_back_or_is_lost_in_a_filter_that_shrinks_beside_a_union() {
    in_time(|| {
        let layout = Layout { bits: 32, rate: 2e-8, words: 1 };
        for (own, count) in [(90_000, 6_000), (150_000, 60_000)] {
            let (one, other) = (growing(&layout, 10, 0), growing(&layout, 10, 0));
            let items = SplitMix(43).take(own + count);
            let (own, others) = items.split_at(own);
            own.iter().for_each(|item| one.insert(&Prehashed(*item)).expect("memory"));
            others.iter().for_each(|item| other.insert(&Prehashed(*item)).expect("memory"));
            let (go, stay) = others.split_at(others.len() / 2);
            own[1_000..].iter().for_each(|item| assert!(one.remove(&Prehashed(*item))));
            let (added, removed) = (AtomicUsize::new(0), AtomicUsize::new(0));
            let is_done = AtomicBool::new(false);
            together(3, |thread| match thread {
                0 => {
                    added.store(one.union(&other).expect("memory"), Relaxed);
                    is_done.store(true, Relaxed);
                }
                1 => {
                    while !is_done.load(Relaxed) {
                        one.shrink();
                    }
                }
                _ => {
                    while !is_done.load(Relaxed) {
                        let gone = go.iter().filter(|item| one.remove(&Prehashed(**item))).count();
                        removed.fetch_add(gone, Relaxed);
                    }
                }
            });
            let (added, removed) = (added.into_inner(), removed.into_inner());
            assert_eq!(added, others.len(), "not each entry was added once");
            assert_eq!(one.len(), 1_000 + added - removed);
            assert!(stay.iter().chain(&own[..1_000]).all(|item| one.contains(&Prehashed(*item))));
            let left = go.iter().filter(|item| one.remove(&Prehashed(**item))).count();
            assert_eq!(left + removed, go.len(), "an item came back, or was lost");
        }
    });
}

/// A hasher that hashes pieces of one kind with a key.
#[derive(Clone)]
struct Keyed {
    kind: &'static str,
    key: u64,
}

struct KeyedHasher(Keyed, u64);

impl BuildHasher for Keyed {
    type Hasher = KeyedHasher;

    fn build_hasher(&self) -> KeyedHasher {
        KeyedHasher(self.clone(), 1)
    }
}

impl KeyedHasher {
    fn piece(&mut self, kind: &str, bytes: &[u8]) {
        let key = if kind == self.0.kind { self.0.key } else { 0 };
        let byte = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01B3);
        self.1 = bytes.iter().fold(self.1 ^ key, byte);
    }
}

macro_rules! pieces {
    ($($write:ident($number:ty))*) => {
        $(fn $write(&mut self, number: $number) {
            self.piece(stringify!($number), &number.to_le_bytes());
        })*
    };
}

impl Hasher for KeyedHasher {
    fn write(&mut self, bytes: &[u8]) {
        // Long texts by another function, as XXH3 does.
        self.piece(if bytes.len() > 240 { "long" } else { "bytes" }, bytes);
    }

    fn finish(&self) -> u64 {
        self.1
    }

    pieces! {
        write_u8(u8) write_u16(u16) write_u32(u32) write_u64(u64) write_u128(u128) write_usize(usize)
        write_i8(i8) write_i16(i16) write_i32(i32) write_i64(i64) write_i128(i128) write_isize(isize)
    }
}

#[test]
fn hashers_that_differ_on_some_kind_of_item_are_refused() {
    let layout = Layout { bits: 16, rate: 0.000_4, words: 1 };
    let kinds = [
        "bytes", "long", "u8", "u16", "u32", "u64", "u128", "usize", "i8", "i16", "i32", "i64",
        "i128", "isize",
    ];
    for kind in kinds {
        let [one, other, same] =
            [0, 1, 1].map(|key| growing_with(&layout, 10, 0, Keyed { kind, key }));
        other.insert("an item").expect("room");
        let error = one.union(&other).expect_err("their hashers differ");
        assert_eq!(error.kind(), UnionErrorKind::DifferentHasher, "{kind}");
        assert_eq!((one.len(), other.len()), (0, 1));
        assert_eq!(same.union(&other), Ok(1), "{kind}");
    }

    // koel's own, with two seeds.
    let [one, other] = [7, 8].map(|seed| {
        let filter = growing_with(&layout, 10, 0, StableHash::with_seed(seed));
        filter.insert("an item").expect("room");
        filter
    });
    for (one, other) in [(&one, &other), (&other, &one)] {
        let error = one.union(other).expect_err("their hashers differ");
        assert_eq!((error.kind(), one.len()), (UnionErrorKind::DifferentHasher, 1));
        assert_eq!(one.try_clone().expect("memory").union(one), Ok(0));
    }
}

/// Makes hashers until it has made enough.
struct Exhausted(AtomicUsize);

impl BuildHasher for Exhausted {
    type Hasher = std::hash::DefaultHasher;

    fn build_hasher(&self) -> Self::Hasher {
        let left = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1));
        left.unwrap_or_else(|_| resume_unwind(Box::new("no more hashers")));
        Self::Hasher::new()
    }
}

#[test]
fn a_hasher_that_panics_while_it_is_asked_leaves_nothing_locked() {
    in_time(|| {
        let layout = Layout { bits: 16, rate: 0.000_4, words: 1 };
        for ticks in [0, 3] {
            for enough in 0.. {
                let [one, other] = [enough, 1_000].map(|enough| {
                    growing_with(&layout, 10, ticks, Exhausted(AtomicUsize::new(enough)))
                });
                SplitMix(3)
                    .take(100)
                    .iter()
                    .for_each(|item| other.insert(&Prehashed(*item)).expect("room"));
                let united = catch_unwind(AssertUnwindSafe(|| one.union(&other)));
                let is_done = united.is_ok();
                assert!(is_done || one.is_empty());
                for filter in [&one, &other] {
                    filter.insert(&Prehashed(1)).expect("room");
                    if ticks > 0 {
                        filter.tick();
                    }
                    filter.clear();
                }
                if is_done {
                    assert_eq!(united.expect("no panic"), Ok(100));
                    break;
                }
            }
        }
    });
}

/// A union beside a filter that shrinks adds nothing that is here already: no entry goes to the hashes of another one.
#[test]
fn a_union_beside_shrinking_adds_nothing_that_is_here() {
    let make = || {
        let builder = ConcurrentCuckooFilter::builder().capacity(150_000).growing();
        builder.expected_growth(64.0).hasher(Fixed { key: 7 }).build().expect("memory")
    };
    let (here, other) = (make(), make());
    let items = SplitMix(51).take(rounds(500_000, 1_500_000));
    items.iter().for_each(|item| here.insert(&Prehashed(*item)).expect("memory"));
    let before = here.len();
    let (done, turns) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Relaxed) {
                items.iter().for_each(|item| _ = other.insert(&Prehashed(*item)));
                for (number, item) in items.iter().enumerate() {
                    other.remove(&Prehashed(*item));
                    if number % 50_000 == 0 {
                        other.shrink();
                    }
                }
                other.shrink();
                turns.fetch_add(1, Relaxed);
            }
        });
        while turns.load(Relaxed) < 2 {
            assert_eq!(here.union(&other), Ok(0));
        }
        done.store(true, Relaxed);
    });
    assert_eq!(here.len(), before);
}

/// Fingerprints that have no bits left are found after a union, and neither counted nor removed, also in shards that are
/// less deep.
#[test]
fn void_lanes_stay_void_in_a_union() {
    let layout = Layout { bits: 8, rate: 0.4, words: 1 };
    let (here, other) = (growing(&layout, 10, 0), growing(&layout, 10, 0));
    let items = SplitMix(52).take(1_500_000);
    items.iter().for_each(|item| other.insert(&Prehashed(*item)).expect("memory"));
    let before = other.len();
    assert!(here.union(&other).expect("memory") <= before);
    assert!(items.iter().all(|item| here.contains(&Prehashed(*item))));
    items.iter().for_each(|item| _ = other.remove(&Prehashed(*item)));
    assert!(other.is_empty() && other.contains(&Prehashed(items[0])));
    let fresh = growing(&layout, 10, 0);
    assert_eq!((fresh.union(&other), fresh.len()), (Ok(0), 0));
    assert!(fresh.stats().shards < other.stats().shards);
    let is_kept = |item| fresh.contains(&Prehashed(item)) || !other.contains(&Prehashed(item));
    assert!(items.iter().all(|item| is_kept(*item)));
    assert!(!items.iter().any(|item| fresh.remove(&Prehashed(*item))));
}

/// As many ticks of an hour's window and of a day's: their numbers are far apart.
#[test]
fn windows_of_other_lengths_are_refused_before_anything_expires() {
    let made = |hours: u64| {
        let builder =
            ConcurrentCuckooFilter::builder().capacity(1_000).hasher(StableHash::with_seed(7));
        let filter =
            builder.forgets_after(Duration::from_secs(3_600 * hours)).build().expect("memory");
        filter.insert(&hours).expect("room");
        filter
    };
    let (hour, day) = (made(1), made(24));
    for (one, other) in [(&hour, &day), (&day, &hour)] {
        let error = one.union(other).expect_err("other windows");
        assert_eq!(error.kind(), UnionErrorKind::DifferentWindow);
        assert!(error.to_string().contains(".forgets_after(time)"), "{error}");
    }
    assert!(hour.contains(&1u64) && day.contains(&24u64));
    assert_eq!(made(1).union(&hour).expect("one window"), 0);
}
