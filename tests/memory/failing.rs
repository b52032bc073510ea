//! Each allocation of an operation fails once. The operation succeeds without the memory or says that there is none, the
//! filter has what it had before, and the same operation succeeds when there is memory again.

use crate::runner::{Test, tests};
use crate::{FAILS_ON, FAILURES, UNTIL_FAILURE};
use koel::{
    BuildError, BuildErrorKind, ConcurrentCuckooFilter, DurableFilter, FullKind, SnapshotFile,
    StableHash,
};
use std::fmt::Debug;
use std::sync::atomic::Ordering::Relaxed;

pub const TESTS: &[Test] = &tests![
    a_build_or_a_copy_whose_allocation_fails_says_so,
    an_insert_whose_allocation_fails_loses_nothing,
    a_join_whose_allocation_fails_loses_nothing,
    a_union_whose_allocation_fails_says_so,
    a_save_or_a_load_whose_allocation_fails_says_so,
    a_durable_filter_whose_allocation_fails_loses_nothing,
];

type Filter = ConcurrentCuckooFilter<StableHash>;

const HASH: StableHash = StableHash::with_seed(7);

/// Enough for some splits of the smallest growing filter.
const ITEMS: u64 = 60_000;

/// Does the work, while a request for memory fails after so many that are granted, or each from then on. Returns the
/// outcome, and whether any has failed.
fn failing<T>(granted: usize, on: bool, work: impl FnOnce() -> T) -> (T, bool) {
    FAILURES.store(0, Relaxed);
    FAILS_ON.store(on, Relaxed);
    UNTIL_FAILURE.store(granted, Relaxed);
    let outcome = work();
    UNTIL_FAILURE.store(usize::MAX, Relaxed);
    (outcome, FAILURES.load(Relaxed) > 0)
}

/// Does the work again and again. Each time, another one of its requests fails, first alone and then with all after it.
/// `check` gets each outcome. Returns how often a request has failed.
#[track_caller]
fn fail_each<T>(mut work: impl FnMut() -> T, mut check: impl FnMut(T)) -> usize {
    let mut times = 0;
    for on in [false, true] {
        for granted in 0.. {
            let (outcome, has_failed) = failing(granted, on, &mut work);
            check(outcome);
            if !has_failed {
                break;
            }
            times += 1;
        }
    }
    times
}

/// Asserts that an outcome is a success, or an error that speaks of memory.
#[track_caller]
fn assert_told<T, E: Debug + ToString>(outcome: Result<T, E>) -> Option<T> {
    match outcome {
        Ok(value) => Some(value),
        Err(error) => {
            let text = error.to_string();
            assert!(text.contains("memory") || text.contains("allocated"), "{text}");
            None
        }
    }
}

fn builders() -> impl Iterator<Item = (koel::Builder<StableHash>, &'static str)> {
    let kinds = [(1e-3, None, "narrow"), (1e-7, None, "wide"), (1e-3, Some(50), "forgets")];
    kinds.into_iter().map(|(rate, ticks, name)| {
        let builder = ConcurrentCuckooFilter::builder()
            .capacity(1_000)
            .false_positive_rate(rate)
            .hasher(HASH);
        (ticks.into_iter().fold(builder, |builder, ticks| builder.remembers(ticks)), name)
    })
}

#[track_caller]
fn assert_has(filter: &Filter, items: u64) {
    assert!((0..items).all(|item| filter.contains(&item)), "an item is lost");
}

fn filled(builder: koel::Builder<StableHash>, items: u64) -> Filter {
    let filter = builder.build().expect("memory");
    (0..items).for_each(|item| filter.insert(&item).expect("room"));
    filter
}

fn a_build_or_a_copy_whose_allocation_fails_says_so() {
    let is_told = |built: Result<Filter, BuildError>| match built {
        Ok(filter) => assert!(filter.insert(&1).is_ok()),
        Err(error) => assert_eq!(error.kind(), BuildErrorKind::OutOfMemory, "{error}"),
    };
    for (builder, _) in builders() {
        let sizes = [10_000, 3_000_000].map(|capacity| builder.clone().capacity(capacity));
        for builder in sizes {
            assert!(fail_each(|| builder.clone().build(), is_told) > 0);
            assert!(fail_each(|| builder.clone().growing().build(), is_told) > 0);
        }
        let filter = filled(builder.growing(), ITEMS);
        let copies = fail_each(
            || filter.try_clone(),
            |copy| _ = assert_told(copy).map(|copy| assert_has(&copy, ITEMS)),
        );
        assert!(copies > 0);
    }
}

fn an_insert_whose_allocation_fails_loses_nothing() {
    for (builder, _) in builders() {
        let filter = builder.growing().build().expect("memory");
        let mut refused = 0;
        for item in 0..ITEMS {
            if let Err(full) = failing(0, true, || filter.insert(&item)).0 {
                assert_eq!(full.kind(), FullKind::NoMemory);
                refused += 1;
                filter.insert(&item).expect("memory");
            }
        }
        assert!(refused > 0, "no insert was refused");
        assert_eq!(filter.len() as u64, ITEMS);
        assert_has(&filter, ITEMS);
    }
}

fn a_join_whose_allocation_fails_loses_nothing() {
    for (builder, name) in builders() {
        if name == "forgets" {
            continue; // it joins by itself
        }
        let filter = filled(builder.growing(), ITEMS);
        (1_000..ITEMS).for_each(|item| assert!(filter.remove(&item)));
        let joins = fail_each(|| filter.shrink(), |_| assert_has(&filter, 1_000));
        assert!(joins > 0);
        assert!(filter.shards() < 4, "{} shards", filter.shards());
    }
}

fn a_union_whose_allocation_fails_says_so() {
    for (builder, _) in builders() {
        let one = filled(builder.clone().growing(), 1_000);
        let other = filled(builder.growing(), ITEMS);
        let unions = fail_each(
            || one.try_clone().ok().map(|copy| (copy.union(&other), copy)),
            |outcome| {
                let Some((outcome, copy)) = outcome else { return };
                if outcome.is_ok() {
                    assert_has(&copy, ITEMS);
                }
                assert_told(outcome);
                assert_has(&copy, 1_000);
            },
        );
        assert!(unions > 0);
    }
}

fn a_save_or_a_load_whose_allocation_fails_says_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("filter");
    for (builder, _) in builders() {
        for builder in [builder.clone().capacity(100_000), builder.growing()] {
            let filter = filled(builder, ITEMS);
            let whole = |filter: Filter| assert_has(&filter, ITEMS);
            filter.save(&path).expect("memory");
            fail_each(
                || filter.save(&path),
                |saved| {
                    assert_told(saved);
                    whole(Filter::load(&path).expect("the file before, or the new one"));
                },
            );
            let bytes = std::fs::read(&path).expect("the file");
            let check = |loaded| _ = assert_told(loaded).map(whole);
            assert!(fail_each(|| Filter::load(&path), check) > 0);
            assert!(fail_each(|| Filter::read_from(&*bytes), check) > 0);
            fail_each(
                || SnapshotFile::<StableHash>::open(&path),
                |opened| {
                    if let Some(file) = assert_told(opened) {
                        assert!((0..ITEMS).all(|item| file.contains(&item).expect("a whole file")));
                    }
                },
            );
        }
    }
}

fn a_durable_filter_whose_allocation_fails_loses_nothing() {
    for (builder, _) in builders() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("filter");
        let builder = builder.growing();
        let mut items = 0;
        let opened = fail_each(
            || DurableFilter::open(&path, builder.clone()),
            |opened| {
                let Some(filter) = assert_told(opened) else { return };
                assert!((0..items).all(|item| filter.contains(&item)), "an item is lost");
                for _ in 0..5_000 {
                    let added = failing(0, true, || filter.insert(&items)).0;
                    if assert_told(added).is_none() {
                        filter.insert(&items).expect("memory");
                    }
                    items += 1;
                }
                assert!(fail_each(|| filter.checkpoint(), |done| _ = assert_told(done)) > 0);
                assert!((0..items).all(|item| filter.contains(&item)), "an item is lost");
            },
        );
        assert!(opened > 0);
    }
}
