//! Ticks, copies and unions that go on without end let each other have a turn.

use crate::common::{Filter, Fixed, Raise, bytes_of, in_time, rounds};
use koel::{ConcurrentCuckooFilter, Prehashed};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread::scope;

const WINDOW: u32 = 3;

fn fixed() -> Filter {
    let builder = ConcurrentCuckooFilter::builder().capacity(400_000).remembers(WINDOW);
    builder.hasher(Fixed { key: 0 }).build().expect("a filter")
}

fn growing() -> Filter {
    let builder = ConcurrentCuckooFilter::builder().capacity(10).remembers(WINDOW);
    builder.hasher(Fixed { key: 0 }).growing().build().expect("a filter")
}

#[test]
fn ticks_end_beside_threads_that_copy_without_end() {
    in_time(|| copies_beside_ticks(&fixed(), 100_000));
    in_time(|| copies_beside_ticks(&growing(), 100_000));
    // It stays one shard.
    in_time(|| copies_beside_ticks(&growing(), 0));
}

/// A thread refreshes its items before each tick, so each copy has them. It adds others, which expire.
fn copies_beside_ticks(filter: &Filter, others: usize) {
    let own = 0..200u64;
    let mut others = (200..).take(others);
    let refresh = || {
        own.clone().for_each(|item| {
            filter.insert_or_refresh(&item).expect("room");
        });
    };
    refresh();
    let (is_over, copies) = (AtomicBool::new(false), AtomicU64::new(0));
    let ticks = rounds(20, 500);
    let check = |copy: &Filter| {
        let missing = own.clone().filter(|item| !copy.contains(item)).count();
        assert_eq!(missing, 0, "a copy lacks items within their window");
        for _ in 0..=WINDOW {
            copy.tick();
        }
        assert_eq!(copy.len(), 0, "a copy counts what has expired");
        copies.fetch_add(1, SeqCst);
    };
    scope(|scope| {
        let copied = || filter.try_clone().expect("memory");
        let saved = || Filter::read_from(&bytes_of(filter)[..]).expect("what was saved");
        for thread in 0..3 {
            let (is_over, check) = (&is_over, &check);
            scope.spawn(move || {
                let _over = Raise(is_over);
                while !is_over.load(SeqCst) {
                    if thread == 0 {
                        check(&copied());
                        check(&saved());
                    } else {
                        // As if without end: one begins before the other is done.
                        copied();
                    }
                }
            });
        }
        let _over = Raise(&is_over);
        for tick in 0..ticks {
            refresh();
            for other in others.by_ref().take(100_000 / ticks) {
                filter.insert(&other).expect("room");
            }
            filter.tick();
            // At least one copy for two ticks.
            while copies.load(SeqCst) < tick as u64 / 2 && !is_over.load(SeqCst) {
                std::thread::yield_now();
            }
        }
    });
}

/// Three filters take over from each other in a circle, and each from itself, while each lets ticks pass.
#[test]
fn unions_end_beside_ticks() {
    in_time(|| unions_beside_ticks(fixed));
    in_time(|| unions_beside_ticks(growing));
}

fn unions_beside_ticks(filter: fn() -> Filter) {
    let filters = [filter(), filter(), filter()];
    for (filter, first) in filters.iter().zip([0, 1_000, 2_000]) {
        (first..first + 1_000)
            .for_each(|item| filter.insert(&Prehashed(item << 40)).expect("room"));
        filter.tick_to(1);
    }
    let (is_over, number) = (AtomicBool::new(false), AtomicU64::new(1));
    scope(|scope| {
        for filter in &filters {
            let (is_over, number) = (&is_over, &number);
            scope.spawn(move || {
                let _over = Raise(is_over);
                while !is_over.load(SeqCst) {
                    filter.tick_to(number.fetch_add(1, SeqCst));
                }
            });
        }
        let unions = [(0, 1), (1, 2), (2, 0), (1, 0), (0, 0)].map(|(here, there)| {
            let [here, there] = [&filters[here], &filters[there]];
            scope.spawn(move || {
                for _ in 0..rounds(20, 500) {
                    here.union(there).expect("room");
                }
            })
        });
        let _over = Raise(&is_over);
        unions.into_iter().for_each(|union| union.join().expect("no panic"));
    });
}
