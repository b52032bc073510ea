//! One filter takes over what another one knows: nothing is missed afterwards, in either, however
//! they were filled.

use crate::common::{Fixed, Layout, SplitMix, in_time, layouts, leave_list, rounds, together};
use koel::{ConcurrentCuckooFilter, GrowingCuckooFilter, UnionErrorKind};

fn growing(layout: &Layout, capacity: usize, ticks: u32) -> GrowingCuckooFilter<Fixed> {
    let builder = ConcurrentCuckooFilter::builder().capacity(capacity).hasher(Fixed { key: 0 });
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
        items[..20_000].iter().for_each(|item| one.insert_hash(*item).expect("room"));
        items[10_000..].iter().for_each(|item| other.insert_hash(*item).expect("room"));
        let added = one.union(&other).expect("room for 30,000");
        assert!(added <= 10_000, "{layout:?}: {added} of 10,000 were new");
        assert!(layout.bits < 16 || added > 9_900, "{layout:?}: {added} of 10,000 were new");
        assert_eq!(one.len(), 20_000 + added);
        assert!(items.iter().all(|item| one.contains_hash(*item)), "{layout:?}");
        assert_eq!(one.union(&other), Ok(0), "{layout:?}");
        assert_eq!(other.len(), 20_000);
    }
}

#[test]
fn growing_filters_have_what_either_knew_whatever_their_sizes() {
    let most = rounds(60_000, 250_000);
    // From nothing, from lists, from one shard, and from several that were known to be needed.
    let sizes = [(0, 10), (1_000, 10), (most / 4, 10), (most, 10), (most, most / 2)];
    for layout in layouts() {
        for ((here, capacity), (there, other_capacity)) in
            sizes.iter().flat_map(|one| sizes.iter().map(move |other| (*one, *other)))
        {
            let (one, other) = (growing(layout, capacity, 0), growing(layout, other_capacity, 0));
            let items = SplitMix(3).take(here + there);
            let own = items[..here].iter().filter(|item| one.insert_hash(**item).is_ok()).count();
            let others = &items[here..];
            let inserted = |item: &&u64| other.insert_hash(**item).is_ok();
            let others: Vec<u64> = others.iter().filter(inserted).copied().collect();
            let added = one.union(&other).expect("memory");
            let what = format!("{layout:?}: {here} of {capacity}, {there} of {other_capacity}");
            assert_eq!(one.len(), own + added, "{what}");
            assert!(added <= others.len(), "{what}: {added}");
            assert!(layout.bits < 20 || added * 100 >= others.len() * 99, "{what}: {added}");
            let missed = others.iter().filter(|item| !one.contains_hash(**item)).count();
            assert_eq!(missed, 0, "{what}");
            assert!(items[..own].iter().all(|item| one.contains_hash(*item)), "{what}");
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
            own.iter().for_each(|item| one.insert_hash(*item).expect("memory"));
            others.iter().for_each(|item| other.insert_hash(*item).expect("memory"));
            let rate = one.stats().false_positive_rate() + other.stats().false_positive_rate();
            let added = one.union(&other).expect("memory");
            let new = most - own.len();
            assert!(added * 100 < new * 102, "{layout:?}: {added} of {new}");
            assert!(
                added * 100 > new * if layout.bits > 12 { 98 } else { 80 },
                "{layout:?}: {added}"
            );
            assert!(items.iter().all(|item| one.contains_hash(*item)), "{layout:?}");
            assert_eq!(one.union(&other), Ok(0));
            // The estimate follows, and is right.
            let stats = one.stats();
            assert!(stats.false_positive_rate() < 1.6 * rate, "{layout:?}: {stats:?}, {rate}");
            let copy = one.try_clone().expect("memory").stats();
            let same = copy.false_positive_rate() / stats.false_positive_rate();
            assert!((same - 1.0).abs() < 1e-6, "{layout:?}: {copy:?}, {stats:?}");
            if ticks > 0 {
                assert_eq!(one.expiring().iter().sum::<usize>(), one.len());
            }
        }
    }
}

#[test]
fn entries_that_have_lost_their_bits_go_wherever_their_items_may_be() {
    // Eight bits: a window of three. The one has far more shards than the other, and each of its
    // entries has lost bits, or is in several shards.
    let layout = Layout { bits: 8, rate: 0.4, words: 1 };
    let (small, large) = (growing(&layout, 10, 0), growing(&layout, 10, 0));
    let of_small = SplitMix(5).take(40_000);
    let of_large = SplitMix(6).take(rounds(1_500_000, 4_000_000));
    of_small.iter().for_each(|item| small.insert_hash(*item).expect("memory"));
    of_large.iter().for_each(|item| large.insert_hash(*item).expect("memory"));
    let both = [&of_small[..], &of_large[..]].concat();
    for (one, other) in [(&large, &small), (&small, &large)] {
        let before = (one.len(), other.len());
        let added = one.union(other).expect("memory");
        assert_eq!((one.len(), other.len()), (before.0 + added, before.1));
        assert!(both.iter().all(|item| one.contains_hash(*item)));
        assert_eq!(one.union(other), Ok(0));
        // No more can be removed than was counted, and then nothing is left.
        let mut removed = 0;
        let copy = one.try_clone().expect("memory");
        for item in both.iter().chain(&both) {
            removed += usize::from(copy.remove_hash(*item));
        }
        assert_eq!(copy.len(), one.len() - removed);
        if copy.is_empty() {
            assert!(!both.iter().any(|item| copy.contains_hash(*item)));
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
        assert_eq!((error.kind(), error.added(), error.full()), (kind, 0, None));
        assert_eq!((one.len(), other.len()), (1, 1));
    }
    let growing = |ticks| builder().capacity(10).remembers(ticks).growing().build().expect("one");
    let error = growing(3).union(&growing(4)).expect_err("they differ");
    assert_eq!(error.kind(), UnionErrorKind::DifferentWindow);
}

#[test]
fn what_does_not_fit_is_told_and_nothing_is_lost() {
    let layout = Layout { bits: 16, rate: 0.000_12, words: 1 };
    let (one, other) = (layout.filter(20_000), layout.filter(20_000));
    let items = SplitMix(7).take(40_000);
    let (own, others) = items.split_at(20_000);
    own.iter().for_each(|item| one.insert_hash(*item).expect("room"));
    others.iter().for_each(|item| other.insert_hash(*item).expect("room"));
    let error = one.union(&other).expect_err("no room for both");
    assert_eq!((error.kind(), error.refused()), (UnionErrorKind::Full, 1_000));
    assert_eq!(one.len(), 20_000 + error.added());
    assert!(own.iter().all(|item| one.contains_hash(*item)));
    assert_eq!(other.len(), 20_000);

    // A filter that grows takes the rest when its limit is raised.
    let limited = growing(&layout, 10, 0);
    limited.set_max_bytes(100_000);
    let large = growing(&layout, 10, 0);
    items.iter().for_each(|item| large.insert_hash(*item).expect("memory"));
    let error = limited.union(&large).expect_err("no room for 40,000");
    assert_eq!(error.full().map(|full| full.kind()), Some(koel::FullKind::LimitReached));
    assert!(limited.size_in_bytes() <= 100_000);
    let added = error.added();
    limited.set_max_bytes(usize::MAX);
    assert_eq!(limited.union(&large).map(|more| more + added), Ok(limited.len()));
    assert!(items.iter().all(|item| limited.contains_hash(*item)));

    // One that may not leave its list.
    let tiny = growing(&layout, 10, 0);
    tiny.insert("its own").expect("room");
    tiny.set_max_bytes(10_000);
    let error = tiny.union(&large).expect_err("no room for a shard");
    assert_eq!((error.added(), tiny.len(), tiny.contains("its own")), (0, 1, true));
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
        // Lists, shards, and a list that becomes shards.
        for (count, capacity) in [(60, 10), (1_000, 10), (3_000, 10), (4_000, 40_000)] {
            let [one, other] = [growing(layout, capacity, TICKS), growing(layout, 10, TICKS)];
            (0..count).for_each(|item| other.insert_hash(item * 7 + 1).expect("memory"));
            (0..6).for_each(|_| other.tick());
            until_both_forget(one, other);
        }
    }

    fn until_both_forget<R: koel::Room>(
        one: ConcurrentCuckooFilter<Fixed, R>,
        other: ConcurrentCuckooFilter<Fixed, R>,
    ) {
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
                filter.insert_or_refresh_hash(*item).expect("room");
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
                .filter(|(item, last)| within(last) && !one.contains_hash(**item));
            assert_eq!(missed.count(), 0);
            let beyond = items
                .iter()
                .zip(&last)
                .filter(|(item, last)| !within(last) && one.contains_hash(**item));
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
    fn check<R: koel::Room>(
        one: ConcurrentCuckooFilter<Fixed, R>,
        other: ConcurrentCuckooFilter<Fixed, R>,
    ) {
        let items = SplitMix(30).take(60_000);
        let (old, new) = items.split_at(30_000);
        one.tick_to(1);
        for (number, items) in (95..=100).zip(old.chunks(5_000)) {
            other.tick_to(number);
            items.iter().for_each(|item| other.insert_hash(*item).expect("room"));
        }
        one.union(&other).expect("room");
        new.iter().for_each(|item| one.insert_hash(*item).expect("room"));
        assert!(items.iter().all(|item| one.contains_hash(*item)));
        assert_eq!(one.expiring().iter().sum::<usize>(), one.len());
        let copy = one.try_clone().expect("memory");
        for number in 101..=106 {
            one.tick_to(number);
            copy.tick_to(number);
            let left = &items[(number as usize - 101) * 5_000..];
            assert!(left.iter().all(|item| one.contains_hash(*item) && copy.contains_hash(*item)));
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
        leave_list(&filter);
        filter.insert_hash(17).expect("room");
        filter
    };
    let [one, older, younger] = [make(), make(), make()];
    one.clear();
    (0..5).for_each(|_| older.tick());
    (0..2).for_each(|_| younger.tick());
    assert_eq!(one.union(&older), Ok(1));
    assert_eq!(one.union(&younger), Ok(0));
    (0..4).for_each(|_| one.tick());
    assert!(one.contains_hash(17));
    one.tick();
    assert!(!one.contains_hash(17));
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
                        filters[own].insert_hash(*item).expect("memory");
                        assert!(filters[own].contains_hash(*item));
                    }
                } else {
                    for _ in 0..20 {
                        filters[own].union(&filters[1 - own]).expect("memory");
                        if ticks > 0 && own == 0 {
                            filters[1].refresh_hash(stay[1][0]);
                        }
                    }
                }
            });
            for own in 0..2 {
                filters[own].union(&filters[1 - own]).expect("memory");
                assert!(stay.iter().flatten().all(|item| filters[own].contains_hash(*item)));
                let copy = filters[own].try_clone().expect("memory");
                assert_eq!(copy.len(), filters[own].len());
            }
        }
    });
}
