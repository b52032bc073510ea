//! What Miri is to see of a filter in its time: threads in tables so small that a hundred items split them, and every
//! way on which memory is made, given back and made again.
//!
//! Miri interprets each instruction, checks the memory of `unsafe` code, and lets loads return old values where their
//! orderings allow it. That takes some thousand times as long, so the tests are small. Without it they take a moment.

// Shuttle's atomics work in its own tests only.
#![cfg(not(shuttle))]

use koel_small::{ConcurrentCuckooFilter, StableHash};

type Filter = ConcurrentCuckooFilter<StableHash>;

fn growing() -> Filter {
    let builder = ConcurrentCuckooFilter::builder().capacity(1).hasher(StableHash::with_seed(1));
    builder.growing().build().expect("a filter")
}

fn fixed(capacity: usize) -> Filter {
    let builder = ConcurrentCuckooFilter::builder().capacity(capacity);
    builder.hasher(StableHash::with_seed(1)).build().expect("a filter")
}

/// One thread inserts, one inserts and removes, and one looks for what stays.
fn what_stays_is_found(filter: &Filter, items: u64) {
    (0..10u64).for_each(|item| filter.insert(&item).expect("room"));
    std::thread::scope(|scope| {
        scope.spawn(|| (10..items).for_each(|item| filter.insert(&item).expect("room")));
        scope.spawn(|| {
            for item in 1_000..1_000 + items / 4 {
                filter.insert(&item).expect("room");
                assert!(filter.remove(&item));
            }
        });
        for round in 0..items / 10 {
            assert!((0..10u64).all(|item| filter.contains(&item)), "in round {round}");
        }
    });
    assert!((0..items).all(|item| filter.contains(&item)));
    assert_eq!(filter.len(), items as usize);
}

#[test]
fn an_item_is_found_while_others_come_and_go_in_a_fixed_filter() {
    what_stays_is_found(&fixed(80), 60);
}

#[test]
fn an_item_is_found_while_shards_are_split() {
    what_stays_is_found(&growing(), 120);
}

#[test]
fn one_of_three_threads_wins_each_item() {
    let filter = growing();
    let win = || (0..40u64).filter(|item| filter.insert_if_absent(item).expect("memory")).count();
    let wins: usize = std::thread::scope(|scope| {
        let threads = [(); 3].map(|()| scope.spawn(win));
        threads.map(|thread| thread.join().expect("no panic")).into_iter().sum()
    });
    assert_eq!(wins, filter.len());
}

#[test]
fn memory_that_is_given_back_is_used_again() {
    let filter = growing();
    for _ in 0..2 {
        (0..150u64).for_each(|item| filter.insert(&item).expect("memory"));
        (10..150u64).for_each(|item| assert!(filter.remove(&item)));
        filter.shrink();
        assert!((0..10u64).all(|item| filter.contains(&item)));
        (0..10u64).for_each(|item| assert!(filter.remove(&item)));
    }
    filter.clear();
    assert!(filter.is_empty());
}

#[test]
fn a_copy_and_a_file_have_what_the_filter_has() {
    for filter in [fixed(40), growing()] {
        (0..40u64).for_each(|item| filter.insert(&item).expect("room"));
        let mut bytes = Vec::new();
        filter.write_to(&mut bytes).expect("memory");
        let read = Filter::read_from(&bytes[..]).expect("a file");
        for copy in [read, filter.try_clone().expect("memory")] {
            assert!((0..40u64).all(|item| copy.contains(&item)));
        }
    }
}
