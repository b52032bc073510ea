//! Ticks pass while threads insert, refresh and look.

use crate::common::{SplitMix, layouts, rounds, together, with_rate};
use koel::{ConcurrentCuckooFilter, RandomState, StableHash};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};

const WINDOW: u64 = 3;

/// In a filter that is nine tenths full, so that items move; and in one that splits its shards, and sweeps those that are
/// full.
#[test]
fn an_item_within_its_window_is_found_while_others_expire_and_move() {
    for layout in layouts() {
        let builder = ConcurrentCuckooFilter::builder().remembers(WINDOW as u32);
        let fixed = with_rate(builder.clone().capacity(40_000), layout.rate);
        keep_alive(&fixed.build().expect("a filter"), 35_000);
        let growing = builder.capacity(100).growing().expected_growth(16.0);
        keep_alive(&with_rate(growing, layout.rate).build().expect("a filter"), 100_000);
    }
}

/// Three threads keep items of their own alive, in a filter that others fill up to this number of items; a
/// fourth lets ticks pass. What was refreshed at most so many ticks ago is found.
fn keep_alive(filter: &ConcurrentCuckooFilter<RandomState>, most: usize) {
    let (begun, done) = (AtomicU64::new(0), AtomicU64::new(0));
    let is_over = AtomicBool::new(false);
    together(4, |thread| {
        let mut random = SplitMix(thread as u64);
        if thread == 0 {
            for _ in 0..rounds(60, 2_000) {
                begun.fetch_add(1, SeqCst);
                filter.tick();
                done.fetch_add(1, SeqCst);
                // Others fill the filter meanwhile.
                while filter.len() < most {
                    let _ = filter.insert(&random.next());
                }
            }
            is_over.store(true, SeqCst);
            return;
        }
        let own: Vec<u64> = (0..200).map(|n| n << 8 | thread as u64).collect();
        let mut last = vec![None; own.len()];
        while !is_over.load(SeqCst) {
            for (item, last) in own.iter().zip(&mut last) {
                let before = done.load(SeqCst);
                let was_there = filter.refresh(item);
                let may_expire = last.is_none_or(|last| begun.load(SeqCst) - last > WINDOW);
                assert!(was_there || may_expire, "an item within its window is lost");
                *last = match was_there || filter.insert(item).is_ok() {
                    true => Some(before),
                    false => None,
                };
                let item = &own[random.below(own.len())];
                let _ = filter.insert_if_absent(&random.next()).is_ok() && filter.contains(item);
            }
            for (item, last) in own.iter().zip(&last) {
                let is_there = filter.contains(item);
                let may_expire = last.is_none_or(|last| begun.load(SeqCst) - last > WINDOW);
                assert!(is_there || may_expire, "an item within its window is not found");
            }
        }
    });
    for _ in 0..=WINDOW {
        filter.tick();
    }
    assert_eq!(filter.len(), 0, "the count has drifted");
    assert_eq!(filter.stats().items, 0);
}

/// Of several threads that see an item for the first time in its window, one is told that it is new.
#[test]
fn an_item_is_new_once_in_its_window() {
    let filter = ConcurrentCuckooFilter::builder().capacity(20_000).remembers(1).build();
    let filter = filter.expect("a filter");
    let new = AtomicU64::new(0);
    for round in 0..rounds(20, 500) {
        together(4, |thread| {
            if thread == 0 {
                filter.tick();
            }
            for item in 0..2_000u64 {
                let is_new = match thread % 2 {
                    0 => filter.insert_if_absent(&(item, round)),
                    _ => filter.insert_or_refresh(&(item, round)),
                };
                new.fetch_add(is_new.expect("room").into(), SeqCst);
            }
        });
        let new = new.swap(0, SeqCst);
        assert!((1_990..=2_000).contains(&new), "{new} of 2,000 items were new");
    }
}

/// Entries of another filter are as old here as the numbers of the ticks say, though both filters tick meanwhile. Without
/// numbers, both are taken to be at the same tick when the union begins.
#[test]
fn a_union_keeps_ages_while_both_filters_tick() {
    const ITEMS: u64 = 50_000;
    let kinds = [(60_000, false, true), (60_000, true, true), (400_000, false, false)];
    for ((capacity, grows, has_numbers), round) in
        kinds.into_iter().flat_map(|kind| (0..rounds(3, 30)).map(move |round| (kind, round)))
    {
        let filter = || {
            let builder = ConcurrentCuckooFilter::builder().capacity(capacity).remembers(20);
            let builder = builder.hasher(StableHash::with_seed(round));
            let filter = if grows { builder.growing().build() } else { builder.build() };
            filter.expect("a filter")
        };
        let (here, there) = (filter(), filter());
        if has_numbers {
            [&here, &there].into_iter().for_each(|filter| _ = filter.tick_to(100));
        }
        (0..ITEMS).for_each(|item| there.insert(&item).expect("room"));
        together(3, |thread| match (thread, has_numbers) {
            (0, _) => _ = here.union(&there).expect("room"),
            (1, true) => (101..=108).for_each(|number| _ = here.tick_to(number)),
            (_, true) => (101..=105).for_each(|number| _ = there.tick_to(number)),
            (1, false) => (0..8).for_each(|_| [&there, &here].into_iter().for_each(|it| it.tick())),
            (_, false) => {}
        });
        // It began after some number of ticks, which may differ by one. An item that shares its fingerprint with a younger
        // one would have another age. There are none.
        let first = here.age(&0u64).expect("it is there");
        assert!(first == 8 || !has_numbers, "{first}");
        let wrong = (0..ITEMS).filter(|item| here.age(item) != Some(first)).count();
        assert_eq!(wrong, 0, "items are not as old as they are, growing: {grows}");
    }
}

/// A tick that makes up for many expires everything that was there before. What another filter adds while it passes is
/// not that old, also in shards that are split meanwhile.
#[test]
fn what_a_union_adds_stays_while_a_tick_expires_everything() {
    const ITEMS: u64 = 100_000;
    let filter = || {
        let builder = ConcurrentCuckooFilter::builder().capacity(100).remembers(3);
        builder.hasher(StableHash::with_seed(1)).growing().build().expect("a filter")
    };
    let (here, there) = (filter(), filter());
    there.tick_to(9);
    (0..ITEMS).for_each(|item| there.insert(&item).expect("room"));
    there.tick_to(10);
    here.tick_to(1);
    here.begin_tick_to(10);
    here.union(&there).expect("memory");
    // These split the shards.
    (ITEMS..4 * ITEMS).for_each(|item| here.insert(&item).expect("memory"));
    while !here.tick_in_parts(usize::MAX) {}
    assert_eq!((0..ITEMS).filter(|item| !here.contains(item)).count(), 0, "items are lost");
    assert!(here.age(&0u64) == Some(1));
}
