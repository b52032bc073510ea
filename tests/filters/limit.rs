//! Under any limit, what is inserted stays, what is refused is not in, and the limit is kept.

use crate::common::{Filter, Fixed, Hashes, SplitMix, prehashed, rounds, with_rate};
use koel::{BuildErrorKind, Builder, ConcurrentCuckooFilter, Full, FullKind, Prehashed};

fn builder(rate: f64, ticks: u32) -> Builder<Fixed> {
    let builder = ConcurrentCuckooFilter::builder().capacity(10).hasher(Fixed { key: 0 });
    let builder = if ticks > 0 { builder.remembers(ticks) } else { builder };
    with_rate(builder.growing(), rate)
}

type Way = fn(&Filter, &[u64]) -> Vec<Result<bool, Full>>;

/// The ways in which items come in, and whether each was added. (`union.rs` has those of another filter.)
const WAYS: [Way; 3] = [
    |filter, hashes| {
        let each = hashes.iter().map(|hash| filter.insert(&Prehashed(*hash)));
        each.map(|done| done.map(|()| true)).collect()
    },
    |filter, hashes| hashes.iter().map(|hash| filter.insert_if_absent(&Prehashed(*hash))).collect(),
    |filter, hashes| {
        let all = filter.insert_many(&prehashed(hashes)).into_iter();
        all.map(|done| done.map(|()| true)).collect()
    },
];

fn is_kept(builder: &Builder<Fixed>, way: Way, most: usize) {
    let filter = builder.clone().max_bytes(most).build().expect("a small filter");
    let what = |filter: &Filter| format!("{most}, {}", filter.stats());
    let mut random = SplitMix(most as u64);
    let (mut inserted, mut refused) = (Vec::new(), 0);
    // To refuse an item takes long, above all with stamps.
    let enough = if filter.remembers().is_some() { 20 } else { 50 };
    while refused < enough {
        let hashes = random.take(if refused == 0 { 64 } else { 1 });
        for (hash, done) in hashes.iter().zip(way(&filter, &hashes)) {
            match done {
                // One that is taken for another cannot be removed again.
                Ok(is_new) => inserted.extend(is_new.then_some(*hash)),
                Err(full) => {
                    assert_eq!(full.kind(), FullKind::LimitReached);
                    refused += 1;
                }
            }
        }
        assert!(filter.size_in_bytes() <= most, "{}", what(&filter));
    }
    assert_eq!(filter.len(), inserted.len(), "{}", what(&filter));
    assert!(filter.has(&inserted), "{}", what(&filter));
    // Of more shards, some are as large as two others.
    let is_full = 10 * inserted.len() >= 7 * filter.stats().slots;
    assert!(is_full || enough < 50 || most > 300_000, "{}", what(&filter));
    let gone = inserted.split_off(inserted.len() * 3 / 4);
    filter.take(&gone);
    // Half as many fit again.
    let again = random.take(gone.len() / 2);
    assert!(way(&filter, &again).iter().all(Result::is_ok), "{}", what(&filter));
    assert!(filter.has(&inserted) && filter.has(&again), "{}", what(&filter));
    assert!(filter.size_in_bytes() <= most, "{}", what(&filter));
    filter.set_max_bytes(usize::MAX);
    filter.put(&random.take(100_000));
    assert!(filter.has(&inserted), "{}", what(&filter));
}

#[test]
fn a_limit_is_kept_from_the_first_shard_on() {
    for (rate, ticks) in [(0.0015, 0), (1e-5, 0), (0.0015, 62)] {
        let builder = builder(rate, ticks);
        let least = builder.clone().build().expect("a small filter").size_in_bytes();
        let error = builder.clone().max_bytes(least - 1).build().map(drop).expect_err("no room");
        assert_eq!(error.kind(), BuildErrorKind::LimitTooSmall);
        let limits = [least, least + 10_000, 2 * least - 1, 2 * least, 300_000, 1_000_000];
        for (number, most) in limits.into_iter().chain(rounds(None, Some(5_000_000))).enumerate() {
            for way in rounds(&WAYS[number % 3..=number % 3], &WAYS) {
                is_kept(&builder, *way, most);
            }
        }
    }
}

#[test]
fn a_filter_keeps_its_limit_as_it_grows_again() {
    let filter = builder(0.000_12, 0).max_bytes(2_000_000).build().expect("memory");
    let hashes = SplitMix(8).take(1_000_000);
    let fill =
        || hashes.iter().take_while(|hash| filter.insert(&Prehashed(**hash)).is_ok()).count();
    for _ in 0..3 {
        let taken = fill();
        assert!(taken > 300_000, "{taken}");
        assert!(filter.size_in_bytes() <= 2_000_000);
        filter.take(&hashes[..taken]);
        filter.shrink();
    }
    filter.set_max_bytes(300_000);
    let taken = fill();
    assert!((20_000..100_000).contains(&taken), "{taken}");
    assert!(filter.size_in_bytes() <= 300_000);
}

#[test]
fn a_filter_continues_to_grow_after_any_number_of_limits() {
    let raises = rounds(30, 90);
    // Long fingerprints: few items fill a shard.
    let filter = builder(1e-8, 0).build().expect("a small filter");
    let mut items = 0u64..;
    let mut fill = |filter: &Filter, most: usize| {
        items.by_ref().take(most).take_while(|item| filter.insert(item).is_ok()).count()
    };
    let mut fit = 0;
    let mut limit = filter.size_in_bytes();
    for _ in 0..raises {
        limit += 75_000;
        filter.set_max_bytes(limit);
        fit += fill(&filter, usize::MAX);
        assert!(filter.size_in_bytes() <= limit);
    }
    assert!(8 * fit > limit / 2, "{fit} items fit into {limit} bytes");
    filter.set_max_bytes(usize::MAX);
    assert_eq!(fill(&filter, 100_000), 100_000);
    // The last item of each raise was refused.
    let missing = (0..items.start).filter(|item| !filter.contains(item)).count();
    assert!(missing <= raises, "{missing} items are missing");
}
