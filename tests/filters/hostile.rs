//! No input makes the filter hang, lose an item, take memory without bound, or panic where it
//! promises not to.

use crate::common::{GROWING, Hashes, SplitMix, answers, fill_to_refusal, layouts, rounds};
use koel::{
    BuildError, BuildErrorKind, Builder, ConcurrentCuckooFilter, Full, FullKind, Prehashed,
};
use std::error::Error;
use std::panic::{RefUnwindSafe, UnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

fn build(capacity: usize, rate: f64) -> Result<ConcurrentCuckooFilter, BuildError> {
    builder(capacity).false_positive_rate(rate).build()
}

fn builder(capacity: usize) -> Builder {
    ConcurrentCuckooFilter::builder().capacity(capacity)
}

/// Checks that no filter is built, and that the message has these words: what was asked for, and what to do.
#[track_caller]
fn refused(builder: &Builder, kind: BuildErrorKind, words: &[&str]) -> BuildError {
    let error = soon("an error", || builder.clone().build()).expect_err("no such filter");
    assert_eq!(error.kind(), kind, "{builder:?}: {error}");
    for words in words {
        assert!(error.to_string().contains(words), "{words} is not named: {error}");
    }
    error
}

/// Runs the work, and checks that it ends soon.
fn soon<T>(what: &str, work: impl FnOnce() -> T) -> T {
    let begin = Instant::now();
    let result = work();
    let took = begin.elapsed();
    assert!(took < Duration::from_secs(10), "{what} took {took:?}");
    result
}

#[test]
fn a_capacity_of_zero_or_one_is_valid() {
    for layout in layouts() {
        for capacity in [0, 1] {
            let filter = layout.filter(capacity);
            assert_eq!(filter.capacity(), capacity);
            assert!(filter.is_empty() && !filter.contains("an item") && !filter.remove("an item"));
            assert!(filter.stats().load() == 0.0 && !filter.stats().to_string().is_empty());
            if filter.insert("an item").is_ok() {
                assert!(filter.contains("an item") && filter.remove("an item"));
            } else {
                assert_eq!(capacity, 0);
            }
            filter.clear();
            assert!(filter.is_empty());
        }
    }
}

#[test]
fn impossible_requests_are_refused_at_once_with_advice() {
    use BuildErrorKind::{
        CapacityOverflow, InvalidGrowth, InvalidRate, InvalidTicks, LimitTooSmall, NoCapacity,
        RateTooSmall,
    };
    let bare = ConcurrentCuckooFilter::builder();
    for bare in [bare.clone(), bare.clone().growing(), bare.false_positive_rate(0.01)] {
        refused(&bare, NoCapacity, &["no capacity", ".capacity("]);
    }
    let odd =
        [0.0, -0.0, 1.0, -1.0, -0.1, 2.0, 1.000_000_1, f64::NAN, f64::INFINITY, f64::NEG_INFINITY];
    let kinds = |capacity| [builder(capacity), builder(capacity).growing()];
    for builder in [0, 1, 1_000, usize::MAX].into_iter().flat_map(kinds) {
        for rate in odd.into_iter().chain([f64::MAX]) {
            let words = [&rate.to_string(), "more than 0 and less than 1"];
            refused(&builder.clone().false_positive_rate(rate), InvalidRate, &words);
        }
    }
    for builder in kinds(1_000) {
        for rate in [1e-10, 1e-300, f64::MIN_POSITIVE, 5e-324] {
            refused(&builder.clone().false_positive_rate(rate), RateTooSmall, &["ask for "]);
        }
        let fine = &builder.clone().remembers(62);
        refused(&fine.clone().false_positive_rate(1e-9), RateTooSmall, &["ask for "]);
        for ticks in [0, 63, u32::MAX] {
            refused(&builder.clone().remembers(ticks), InvalidTicks, &[&ticks.to_string()]);
        }
    }
    // No fingerprint has bits for a growth of more than 2^23.
    let growing = |growth| builder(10).growing().expected_growth(growth);
    for growth in [0.5, 0.0, -1.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e8, f64::MAX] {
        refused(&growing(growth), InvalidGrowth, &["from 1 to 8388608, "]);
    }
    growing(8_388_608.0).build().expect("the highest growth");
    // One shard takes 64 KiB; two take 128.
    let limited = |capacity, bytes| builder(capacity).growing().max_bytes(bytes);
    for (capacity, least) in [(10, 70_000), (30_000, 150_000)] {
        for bytes in [0, 1, 100, least - 20_000] {
            refused(&limited(capacity, bytes), LimitTooSmall, &[]);
        }
        limited(capacity, least).build().expect("room for the first shards");
    }
    for builder in layouts().iter().flat_map(|it| kinds(usize::MAX).map(|kind| (it, kind))) {
        let builder = builder.1.false_positive_rate(builder.0.rate.max(2e-8));
        refused(&builder, CapacityOverflow, &["18446744073709551615", "smaller capacity"]);
    }
}

#[test]
fn with_capacity_panics_with_the_reason() {
    for capacity in [usize::MAX, 1 << 55] {
        let panic = catch_unwind(|| ConcurrentCuckooFilter::with_capacity(capacity)).unwrap_err();
        let text = panic.downcast_ref::<String>().expect("a text");
        assert_eq!(*text, build(capacity, 0.000_12).expect_err("no memory").to_string());
    }
}

/// As many copies as two buckets have slots; and in a filter that grows as one has, or less where few bits tell the
/// buckets of items apart.
#[test]
fn one_item_fits_as_often_as_its_buckets_have_slots() {
    let fixed = layouts().iter().flat_map(|layout| {
        let capacities = [1, 10, 100, 5_000, 100_000].into_iter();
        capacities.map(|capacity| (layout.filter(capacity), 2 * layout.slots()))
    });
    let growing = GROWING.iter().map(|layout| {
        let most = match layout.bits {
            8 => 5,
            9 | 10 => 4,
            _ => layout.slots(),
        };
        (layout.growing(10).build().expect("a small filter"), most)
    });
    for (filter, most) in fixed.chain(growing) {
        let copies = (0..1_000).take_while(|_| filter.insert("again").is_ok()).count();
        assert_eq!(copies, most, "{filter:?}");
        assert_eq!((filter.len(), filter.count("again")), (copies, copies));
        let refused = filter.insert("again").unwrap_err();
        assert_eq!(filter.insert("again"), Err(Full::clone(&refused)));
        assert!(!filter.grows() || refused.kind() == FullKind::TooManyCopies);
        assert_eq!(filter.insert_if_absent("again"), Ok(false));
        assert!((0..copies).all(|_| filter.remove("again")));
        assert!(filter.is_empty() && !filter.remove("again") && filter.stats().splits == 0);
    }
}

#[test]
fn an_item_inserted_over_and_over_disturbs_no_other() {
    for layout in layouts() {
        let filter = layout.filter(5_000);
        let others = SplitMix(20).take(4_500);
        filter.put(&others);
        let before = filter.count("again");
        let copies = (0..1_000).take_while(|_| filter.insert("again").is_ok()).count();
        assert!(copies + before <= 2 * layout.slots(), "{layout:?}: {copies} copies");
        let counts = answers(&filter, others.iter().copied());

        soon("100,000 refusals", || {
            assert!((0..100_000).all(|_| filter.insert("again").is_err()));
        });
        assert_eq!(filter.len(), others.len() + copies);
        assert_eq!(answers(&filter, others.iter().copied()), counts);
        assert!(filter.has(&others));
        assert!((0..copies).all(|_| filter.remove("again")));
        filter.take(&others);
        assert!(filter.is_empty());
    }
}

#[test]
fn a_full_filter_refuses_soon_and_for_ever() {
    for layout in layouts() {
        let filter = layout.filter(20_000);
        let mut random = SplitMix(21);
        let (mut inserted, refused) = fill_to_refusal(&filter, &mut random);
        let tries = rounds(700, 20_000);
        soon("inserts into a full filter", || {
            assert!((0..tries).all(|_| filter.insert(&Prehashed(refused)).is_err()));
            for _ in 0..tries {
                let hash = random.next();
                inserted.extend(filter.insert(&Prehashed(hash)).is_ok().then_some(hash));
            }
        });
        assert_eq!(filter.len(), inserted.len());
        assert!(filter.has(&inserted));
        assert!(filter.len() <= filter.stats().slots);
    }
}

#[test]
fn removing_an_absent_item_changes_nothing() {
    for layout in layouts() {
        for capacity in [0, 1, 10, 1_000, 30_000] {
            let filter = layout.filter(capacity);
            let (inserted, _) = fill_to_refusal(&filter, &mut SplitMix(22));
            let counts = answers(&filter, inserted.iter().copied());
            let strangers = SplitMix(23).take(50_000);
            for &hash in strangers.iter().filter(|&&hash| !filter.contains(&Prehashed(hash))) {
                assert!(!filter.remove(&Prehashed(hash)), "{hash:#x} was absent, and was removed");
            }
            assert_eq!(filter.len(), inserted.len());
            assert_eq!(answers(&filter, inserted.iter().copied()), counts);
        }
    }
}

#[test]
fn extreme_hashes_are_accepted() {
    let ends = [0, 1, 2, u64::MAX, u64::MAX - 1, 1 << 63, 1 << 32, u64::from(u32::MAX)];
    for layout in layouts() {
        for capacity in [1_000, 3_000_000] {
            let filter = layout.filter(capacity);
            for hash in ends {
                filter.insert(&Prehashed(hash)).expect("room for a thousand");
                assert!(filter.contains(&Prehashed(hash)) && filter.count(&Prehashed(hash)) >= 1);
            }
            assert_eq!(filter.len(), ends.len());
            filter.take(&ends);
            assert!(filter.is_empty());
        }
    }
}

#[test]
fn filters_are_shared_and_errors_are_sent_between_threads() {
    fn shared<T: Send + Sync + Unpin + UnwindSafe + RefUnwindSafe + 'static>() {}
    fn error<E: Error + Send + Sync + Clone + PartialEq + 'static>() {}
    shared::<ConcurrentCuckooFilter>();
    error::<Full>();
    error::<BuildError>();
    let filter = ConcurrentCuckooFilter::with_capacity(0);
    let full: Box<dyn Error + Send + Sync> =
        (0..).find_map(|n: u64| filter.insert(&n).err()).expect("an end").into();
    assert!(full.to_string().contains("larger capacity"), "{full}");
    assert_eq!(format!("{full:?}"), "Full(NoRoomNearby)");
}

/// Twenty rounds of a hundred items, in a filter for a thousand: somebody takes `insert` for that of a set.
#[test]
fn whoever_fills_a_filter_with_copies_is_told_how_to_add_items_once() {
    let filter = ConcurrentCuckooFilter::with_capacity(1_000);
    let rounds = (0..20).flat_map(|_| 0..100);
    let full = rounds.clone().find_map(|item| filter.insert(&item).err()).expect("copies");
    assert!(full.to_string().contains("`insert_if_absent`"), "{full}");
    let growing = ConcurrentCuckooFilter::builder().capacity(1_000).growing().build().unwrap();
    let full = rounds.clone().find_map(|item| growing.insert(&item).err()).expect("copies");
    assert_eq!(full.kind(), FullKind::TooManyCopies);
    assert!(full.to_string().contains("`insert_if_absent`"), "{full}");
    // Copies make a filter grow until it may not.
    let limited = ConcurrentCuckooFilter::builder().capacity(1_000).growing().build().unwrap();
    limited.set_max_bytes(limited.size_in_bytes());
    let mut twice = (0..10_000u32).flat_map(|item| [item; 2]);
    // Three items that look alike may have too many copies before.
    let is_limit = |full: &koel::Full| full.kind() == FullKind::LimitReached;
    let full = twice.find_map(|item| limited.insert(&item).err().filter(is_limit));
    let full = full.expect("the limit");
    assert!(full.to_string().contains("`insert_if_absent`"), "{full}");
    let filter = ConcurrentCuckooFilter::with_capacity(1_000);
    assert_eq!(rounds.filter(|item| filter.insert_if_absent(item) == Ok(true)).count(), 100);
}
