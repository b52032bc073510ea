//! One filter takes over what another one knows: nothing is missed afterwards, in either, however
//! they were filled.

use crate::common::{
    Filter, Fixed, Hashes, Layout, Raise, SplitMix, bytes_of, in_time, layouts, rounds, together,
};
use koel::{
    ConcurrentCuckooFilter, FullKind, PersistentHasher, Prehashed, StableHash, UnionErrorKind,
};
use std::hash::{BuildHasher, Hasher};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

fn growing(layout: &Layout, capacity: usize, ticks: u32) -> Filter {
    growing_with(layout, capacity, ticks, Fixed { key: 0 })
}

fn growing_with<S>(layout: &Layout, capacity: usize, ticks: u32, hasher: S) -> Filter<S> {
    let builder = ConcurrentCuckooFilter::builder().capacity(capacity).hasher(hasher);
    let least = if ticks > 0 { 2e-8 } else { 2e-9 };
    let builder = builder.false_positive_rate(layout.rate.max(least));
    let builder = if ticks > 0 { builder.remembers(ticks) } else { builder };
    builder.growing().expected_growth(1.0).build().expect("a filter")
}

/// Filters that are made alike, from shards of one item.
fn pair(layout: &Layout, ticks: u32) -> [Filter; 2] {
    [(); 2].map(|()| growing(layout, 10, ticks))
}

/// Fills two filters with parts of a list, which may overlap, and takes over what the other has. Of a hundred items that
/// only the other had, as many are added as `new` says.
fn check(what: &str, [one, other]: [&Filter; 2], parts: [Range<usize>; 2], new: Range<usize>) {
    let end = parts[0].end.max(parts[1].end);
    let items = SplitMix(1).take(end);
    let [own, others] = parts.clone().map(|part| &items[part]);
    let own = if own.len() < 100_000 {
        one.put_some(own)
    } else {
        one.put(own);
        own.to_vec()
    };
    let others = other.put_some(others);
    let count = others.len().min(end - parts[0].end);
    let rate = one.stats().false_positive_rate + other.stats().false_positive_rate;
    let added = one.union(other).expect("room");
    let hundredths = (new.start * count / 100)..(new.end * count).div_ceil(100);
    assert!(count == 0 || hundredths.contains(&added), "{what}: {added} of {count} were new");
    assert_eq!((one.len(), other.len()), (own.len() + added, others.len()), "{what}");
    assert!(one.has(&own) && one.has(&others), "{what}");
    assert_eq!((one.union(other), one.union(one)), (Ok(0), Ok(0)), "{what}");
    // The estimate follows, and is right. A file of it is sound.
    let (stats, copy) = (one.stats(), one.try_clone().expect("memory"));
    assert_eq!(copy.len(), one.len(), "{what}");
    assert!(stats.false_positive_rate <= 1.6 * rate, "{what}: {stats:?}, {rate}");
    let off = copy.stats().false_positive_rate - stats.false_positive_rate;
    assert!(off.abs() <= 1e-6 * stats.false_positive_rate, "{what}: {copy:?}, {stats:?}");
    if one.remembers().is_some() {
        assert_eq!(one.expiring().iter().sum::<usize>(), one.len());
    }
}

#[test]
fn a_fixed_filter_has_what_either_knew_once() {
    for layout in layouts() {
        let filters = [(); 2].map(|()| layout.filter(40_000));
        let least = if layout.bits < 16 { 0 } else { 99 };
        let parts = [0..20_000, 10_000..30_000];
        check(&format!("{layout:?}"), filters.each_ref(), parts, least..101);
    }
}

#[test]
fn growing_filters_have_what_either_knew_whatever_their_sizes() {
    let most = rounds(60_000, 250_000);
    // From nothing, from few items, from one shard, and from several that were known to be needed.
    let sizes = [(10, vec![0, 1_000, most / 4, most]), (2 * most, vec![0, most / 4, most])];
    for layout in layouts() {
        for (capacity, sizes) in &sizes {
            for (here, there) in
                sizes.iter().flat_map(|here| sizes.iter().map(move |there| (*here, *there)))
            {
                let filters = [(); 2].map(|()| growing(layout, *capacity, 0));
                let what = format!("{layout:?}: {here} and {there} of {capacity}");
                let least = if layout.bits < 20 { 0 } else { 99 };
                check(&what, filters.each_ref(), [0..here, here..here + there], least..101);
            }
        }
    }
}

/// What came last to the one came first to the other, so fingerprints have lost different bits.
#[test]
fn what_both_knew_is_there_once_whenever_it_came() {
    let most = rounds(150_000, 400_000);
    for layout in layouts().iter().filter(|layout| layout.bits > 10) {
        for ticks in [0, 4] {
            let filters = pair(layout, ticks);
            let least = if layout.bits > 12 { 98 } else { 80 };
            let parts = [0..most / 3 * 2, most / 3..most];
            check(&format!("{layout:?}, {ticks}"), filters.each_ref(), parts, least..102);
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
            let is_held = |item: &u64| ends.iter().any(|end| end.has(&[*item]));
            let held: Vec<u64> = items.iter().copied().filter(is_held).collect();
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
                assert!(filter.has(&held), "{what}");
                assert!(filter.len() <= held.len(), "{what}: {} of {}", filter.len(), held.len());
            }
        }
    }
}

/// Neither is united with the other, and neither changes.
#[track_caller]
fn differ<S: PersistentHasher>(filters: [&Filter<S>; 2], kind: UnionErrorKind, said: &str) {
    let before = filters.map(bytes_of);
    for [one, other] in [filters, [filters[1], filters[0]]] {
        let error = one.union(other).expect_err("they differ");
        let checked = one.check_union(other).map_err(|error| error.kind());
        assert_eq!((error.kind(), checked), (kind, Err(kind)));
        assert!(error.to_string().contains(said), "{error}");
        assert!(filters.map(bytes_of) == before, "{one:?}, {other:?}");
    }
}

/// They divide the hashes at different places. What counts is how each began, and not how it has grown.
#[test]
fn filters_that_began_with_different_numbers_of_shards_are_refused_and_unchanged() {
    let most = rounds(60_000, 250_000);
    for layout in layouts().iter().filter(|layout| layout.bits > 8) {
        let sizes = [(10, 0), (10, 100), (10, most), (most, 100), (most, most)];
        let sizes = [&sizes[..], &[(2 * most, 100), (4 * most, most)]].concat();
        let made = |(capacity, count): (usize, usize)| {
            let filter = growing(layout, capacity, 0);
            filter.put_some(&SplitMix(capacity as u64).take(count));
            filter
        };
        for (at, one) in sizes.iter().enumerate() {
            for other in sizes[..at].iter().filter(|other| other.0 != one.0) {
                let kind = UnionErrorKind::DifferentSize;
                differ([&made(*one), &made(*other)], kind, "one capacity");
            }
        }
        // Few items need one shard, whatever the capacity.
        let [one, other] = [10, 1_000].map(|capacity| growing(layout, capacity, 0));
        other.insert("an item").expect("room");
        assert_eq!((one.check_union(&other), one.union(&other)), (Ok(()), Ok(1)));
    }
}

/// Eight bits have a window of three. The one has far more shards than the other, and each of its entries has lost bits, or
/// is in several shards. Those that have no bits left are found after a union, and neither counted nor removed.
#[test]
fn entries_that_have_lost_their_bits_go_wherever_their_items_may_be() {
    let layout = Layout { bits: 8, rate: 0.4, words: 1 };
    let [small, large] = pair(&layout, 0);
    let both = SplitMix(5).take(40_000 + rounds(1_500_000, 4_000_000));
    let (of_small, of_large) = both.split_at(40_000);
    small.put(of_small);
    large.put(of_large);
    for (one, other) in [(&large, &small), (&small, &large)] {
        let before = (one.len(), other.len());
        let added = one.union(other).expect("memory");
        // An entry, or a split that it takes, may have taken the last bit of an item that was counted.
        assert!(one.len() <= before.0 + added && other.len() == before.1);
        assert!(one.has(&both));
        assert_eq!(one.union(other), Ok(0));
        // No more can be removed than was counted.
        let copy = one.try_clone().expect("memory");
        let twice = both.iter().chain(&both);
        let removed = twice.filter(|item| copy.remove(&Prehashed(**item))).count();
        assert_eq!(copy.len(), one.len() - removed);
        // What is void stays void, also in shards that are less deep.
        assert!(copy.is_empty() && copy.contains(&Prehashed(of_large[0])));
        let fresh = growing(&layout, 10, 0);
        assert_eq!((fresh.union(&copy), fresh.len()), (Ok(0), 0));
        assert!(fresh.stats().shards < copy.stats().shards);
        let is_kept = |item| fresh.contains(&Prehashed(item)) || !copy.contains(&Prehashed(item));
        assert!(both.iter().all(|item| is_kept(*item)));
        assert!(!both.iter().any(|item| fresh.remove(&Prehashed(*item))));
        copy.clear();
        assert_eq!((copy.len(), copy.found(&both)), (0, 0));
    }
}

/// What a fingerprint has left of its bits, it keeps: this filter grows before the entries come.
#[test]
fn an_empty_filter_errs_as_often_as_the_one_that_it_takes_over() {
    for layout in layouts() {
        let [one, other] = pair(layout, 0);
        other.put_some(&SplitMix(40).take(rounds(150_000, 400_000)));
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
        other.put(&items);
        let (gone, left) = items.split_at(items.len() - 5_000);
        other.take(gone);
        for is_limited in [false, true] {
            let one = growing(layout, 10, 0);
            let shards = one.stats().shards;
            if is_limited {
                one.set_max_bytes(one.size_in_bytes());
            }
            let added = one.union(&other).expect("room for 5,000");
            assert!((4_950..=5_000).contains(&added), "{layout:?}: {added}");
            assert!(one.has(left), "{layout:?}");
            assert_eq!(one.stats().shards, shards, "{layout:?}");
            assert_eq!(one.union(&other), Ok(0), "{layout:?}");
        }
    }
}

/// With windows of as many ticks, an hour and a day: their numbers are far apart.
#[test]
fn filters_that_differ_are_refused_and_unchanged() {
    use UnionErrorKind::{DifferentHasher, DifferentLayout, DifferentSize, DifferentWindow};
    let builder = |key| ConcurrentCuckooFilter::builder().hasher(Fixed { key }).capacity(1_000);
    let fixed = || builder(0).false_positive_rate(0.001);
    let hours = |hours: u64| fixed().forgets_after(Duration::from_secs(3_600 * hours));
    let cases = [
        (fixed(), fixed().capacity(2_000), DifferentSize, ""),
        (fixed(), fixed().false_positive_rate(0.000_01), DifferentLayout, ""),
        (fixed(), fixed().remembers(3), DifferentWindow, ""),
        (fixed(), builder(1).false_positive_rate(0.001), DifferentHasher, ""),
        (fixed().growing().remembers(3), fixed().growing().remembers(4), DifferentWindow, ""),
        (hours(1), hours(24), DifferentWindow, ".forgets_after(time)"),
    ];
    for (one, other, kind, said) in cases {
        let filters = [one, other].map(|builder| builder.build().expect("a filter"));
        filters.iter().for_each(|filter| filter.insert("its own").expect("room"));
        differ(filters.each_ref(), kind, said);
    }
    let [one, other] = [(); 2].map(|()| hours(1).build().expect("a filter"));
    other.insert("another").expect("room");
    assert_eq!(one.union(&other).expect("one window"), 1);
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
    let [one, other] = [(); 2].map(|()| layout.filter(20_000));
    let items = SplitMix(7).take(80_000);
    one.put(&items[..20_000]);
    other.put(&items[20_000..40_000]);
    let error = one.union(&other).expect_err("no room for both");
    let (reason, added, refused) = full_of(error.kind());
    assert_eq!((reason, refused), (FullKind::NoRoomNearby, 1_000));
    assert_eq!(one.len(), 20_000 + added);
    assert!(one.has(&items[..20_000]));
    assert_eq!(other.len(), 20_000);

    // A filter that grows takes the rest when its limit is raised.
    let limited = growing(&layout, 10, 0);
    let limit = limited.size_in_bytes() + 10_000;
    limited.set_max_bytes(limit);
    let large = growing(&layout, 10, 0);
    large.put(&items);
    let error = limited.union(&large).expect_err("no room for 80,000");
    let (reason, added, _) = full_of(error.kind());
    assert_eq!(reason, FullKind::LimitReached);
    assert!(limited.size_in_bytes() <= limit);
    limited.set_max_bytes(usize::MAX);
    assert_eq!(limited.union(&large).map(|more| more + added), Ok(limited.len()));
    assert!(limited.has(&items));

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
            other.put(&(0..count).map(|item| item * 7 + 1).collect::<Vec<_>>());
            (0..6).for_each(|_| other.tick());
            until_both_forget(one, other);
        }
    }

    fn until_both_forget(one: Filter, other: Filter) {
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
        for number in now..=now + u64::from(TICKS) + 1 {
            one.tick_to(number);
            let (within, beyond): (Vec<_>, Vec<_>) = items
                .iter()
                .zip(&last)
                .partition(|(_, last)| last.is_some_and(|last| last + u64::from(TICKS) >= number));
            let found = |items: &[(&u64, _)]| {
                items.iter().filter(|(item, _)| one.contains(&Prehashed(**item))).count()
            };
            assert_eq!(found(&within), within.len());
            // By false positives, which a window of few bits has many of.
            assert!(found(&beyond) < 40);
        }
        assert_eq!((one.len(), one.expiring().iter().sum::<usize>()), (0, 0));
    }
}

/// A filter that was not used for long takes over what is older than its present tick, and grows.
#[test]
fn what_comes_after_the_end_of_all_stays() {
    let layout = Layout { bits: 16, rate: 0.000_4, words: 1 };
    for grows in [false, true] {
        let [one, other] = [(); 2].map(|()| {
            let builder = ConcurrentCuckooFilter::builder().hasher(Fixed { key: 0 }).remembers(6);
            let builder = builder.capacity(if grows { 10 } else { 60_000 });
            let builder = builder.false_positive_rate(layout.rate);
            if grows { builder.growing().build() } else { builder.build() }.expect("a filter")
        });
        let items = SplitMix(30).take(60_000);
        let (old, new) = items.split_at(30_000);
        one.tick_to(1);
        for (number, items) in (95..=100).zip(old.chunks(5_000)) {
            other.tick_to(number);
            other.put(items);
        }
        one.union(&other).expect("room");
        one.put(new);
        assert!(one.has(&items));
        assert_eq!(one.expiring().iter().sum::<usize>(), one.len());
        let copy = one.try_clone().expect("memory");
        for number in 101..=106 {
            one.tick_to(number);
            copy.tick_to(number);
            let left = &items[(number as usize - 101) * 5_000..];
            assert!(one.has(left) && copy.has(left));
        }
        assert!(one.len() >= 34_900 && one.len() <= 35_100);
    }
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
            let filters = pair(&layout, ticks);
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
                assert!(stay.iter().all(|stay| filters[own].has(stay)));
                let copy = filters[own].try_clone().expect("memory");
                assert_eq!(copy.len(), filters[own].len());
            }
        }
    });
}

/// A filter with these many items of its own takes over another one's, while threads remove some and add others, and
/// perhaps one lets it shrink. Each item is added once, and what is removed does not come back.
fn beside_threads(own: usize, count: usize, shrinks: bool) {
    let layout = Layout { bits: 32, rate: 2e-8, words: 1 };
    let [one, other] = pair(&layout, 0);
    let items = SplitMix(42).take(own + count);
    let (own, others) = items.split_at(own);
    one.put(own);
    other.put(others);
    let (own, go) = if shrinks { own.split_at(1_000) } else { (&own[..0], own) };
    // Of a filter that shrinks, those that the union adds go as well.
    let (come, go_too) =
        if shrinks { (&others[..0], &others[count / 2..]) } else { (others, &own[..0]) };
    let (added, removed, is_done) =
        (AtomicUsize::new(0), AtomicUsize::new(0), AtomicBool::new(false));
    let remove = |items: &[u64]| {
        let gone = items.iter().filter(|item| one.remove(&Prehashed(**item))).count();
        removed.fetch_add(gone, Relaxed);
    };
    // So that there are shards to join.
    remove(if shrinks { go } else { &[] });
    together(4, |thread| match thread {
        0 => {
            let _done = Raise(&is_done);
            added.fetch_add(one.union(&other).expect("memory"), Relaxed);
        }
        1 => come.iter().for_each(|item| {
            let is_new = one.insert_if_absent(&Prehashed(*item)).expect("memory");
            added.fetch_add(usize::from(is_new), Relaxed);
        }),
        2 if shrinks => {
            while !is_done.load(Relaxed) {
                remove(go_too);
            }
        }
        2 => remove(go),
        _ => {
            while shrinks && !is_done.load(Relaxed) {
                one.shrink();
            }
        }
    });
    remove(go_too);
    assert_eq!(added.into_inner(), others.len(), "not each entry was added once");
    assert_eq!(removed.into_inner(), go.len() + go_too.len(), "an item came back, or was lost");
    let stay = &others[..count - go_too.len()];
    assert_eq!(one.len(), own.len() + stay.len());
    one.take(own);
    one.take(stay);
    assert_eq!((one.len(), one.found(&items)), (0, 0));
}

#[test]
fn an_item_is_added_once_by_a_thread_or_by_a_union() {
    in_time(|| {
        for (own, count) in [(0, 60_000), (90_000, 60_000), (5_000, 150_000)] {
            beside_threads(own, count, false);
        }
    });
}

#[test]
fn nothing_comes_back_or_is_lost_in_a_filter_that_shrinks_beside_a_union() {
    in_time(|| {
        for (own, count) in [(90_000, 6_000), (150_000, 60_000)] {
            beside_threads(own, count, true);
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
    let filters = [7, 8].map(|seed| growing_with(&layout, 10, 0, StableHash::with_seed(seed)));
    filters.iter().for_each(|filter| filter.insert("an item").expect("room"));
    differ(filters.each_ref(), UnionErrorKind::DifferentHasher, "");
    let copy = filters[0].try_clone().expect("memory");
    assert_eq!(copy.union(&filters[0]), Ok(0));
}

/// A union beside a filter that shrinks adds nothing that is here already: no entry goes to the hashes of another one. And
/// what stays in that filter is in the union, and in a copy.
#[test]
fn a_union_beside_shrinking_adds_nothing_that_is_here() {
    let make = || {
        let builder = ConcurrentCuckooFilter::builder().capacity(150_000).growing();
        builder.expected_growth(64.0).hasher(Fixed { key: 7 }).build().expect("memory")
    };
    let (here, other) = (make(), make());
    let items = SplitMix(51).take(rounds(500_000, 1_500_000));
    let (stay, come_and_go) = items.split_at(10_000);
    here.put(&items);
    other.put(stay);
    let before = here.len();
    let (done, turns) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Relaxed) {
                other.put_some(come_and_go);
                for items in come_and_go.chunks(50_000) {
                    items.iter().for_each(|item| _ = other.remove(&Prehashed(*item)));
                    other.shrink();
                }
                turns.fetch_add(1, Relaxed);
            }
        });
        let _done = Raise(&done);
        while turns.load(Relaxed) < 2 {
            assert_eq!(here.union(&other), Ok(0));
            let united = make();
            united.union(&other).expect("memory");
            assert!(united.has(stay) && other.try_clone().expect("memory").has(stay));
        }
    });
    assert_eq!(here.len(), before);
}
