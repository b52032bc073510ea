//! A growing filter of few items: its size, its answers, and its first split.

use crate::common::{Fixed, Hashes, SplitMix, prehashed, rounds, together};
use koel::{BuildErrorKind, Builder, ConcurrentCuckooFilter, FullKind, Prehashed};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering::Relaxed};

/// False-positive rates, for narrow and for wide buckets.
const RATES: [f64; 2] = [0.0015, 1e-5];

fn builder(rate: f64) -> Builder<Fixed> {
    let builder = ConcurrentCuckooFilter::builder().capacity(10).hasher(Fixed { key: 0 });
    builder.growing().false_positive_rate(rate)
}

fn filter(rate: f64) -> ConcurrentCuckooFilter<Fixed> {
    builder(rate).build().expect("a small filter")
}

/// The bytes of a shard's buckets.
fn shard<S>(filter: &ConcurrentCuckooFilter<S>) -> usize {
    let stats = filter.stats();
    let is_wide = [18, 20, 24].contains(&stats.fingerprint_bits)
        || stats.slots > 24_576 && stats.fingerprint_bits == 32;
    if is_wide { 128 << 10 } else { 64 << 10 }
}

#[test]
fn few_items_take_one_shard() {
    for rate in RATES {
        let filter = filter(rate);
        let empty = filter.size_in_bytes();
        assert!((shard(&filter)..shard(&filter) + 2_048).contains(&empty), "{}", filter.stats());
        let half_full = filter.stats().slots / 2;
        (0..half_full as u64).for_each(|n| filter.insert(&Prehashed(n)).expect("memory"));
        assert_eq!((filter.size_in_bytes(), filter.stats().shards), (empty, 1));
    }
    // A fixed filter is as large, without its table.
    assert!(size_of::<ConcurrentCuckooFilter>() <= 328);
}

#[test]
fn few_items_come_and_go() {
    let filter = filter(1e-8);
    for n in 0..5_000 {
        assert_eq!(filter.insert_if_absent(&Prehashed(n)), Ok(true));
        assert_eq!(filter.insert_if_absent(&Prehashed(n)), Ok(false));
    }
    assert!((0..5_000).all(|n| filter.contains(&Prehashed(n)) && filter.count(&Prehashed(n)) == 1));
    assert!(!(5_000..2_000_000).any(|n| filter.contains(&Prehashed(n))));
    assert_eq!(filter.stats().splits, 0);
    assert!(
        (0..5_000)
            .step_by(2)
            .all(|n| filter.remove(&Prehashed(n)) && !filter.remove(&Prehashed(n)))
    );
    assert!((0..5_000).all(|n| filter.contains(&Prehashed(n)) == (n % 2 == 1)));
    assert_eq!(filter.len(), 2_500);
    let size = filter.size_in_bytes();
    filter.clear();
    assert!(filter.is_empty() && filter.size_in_bytes() == size);
}

#[test]
fn no_growing_filter_has_more_copies_of_an_item_than_a_bucket_has_lanes() {
    for rate in RATES {
        let filter = filter(rate);
        let most = filter.stats().slots_per_bucket;
        let refused = (0..=most).find_map(|_| filter.insert(&Prehashed(0)).err());
        assert_eq!(refused.map(|full| full.kind()), Some(FullKind::TooManyCopies));
        assert_eq!((filter.count(&Prehashed(0)), filter.len()), (most, most));
        assert!(filter.remove(&Prehashed(0)) && filter.insert(&Prehashed(0)).is_ok());
    }
}

/// Under any limit, what is inserted stays, what is refused is not in, and the limit is kept.
#[test]
fn a_limit_is_kept_from_the_first_shard_on() {
    for rate in RATES {
        let least = filter(rate).size_in_bytes();
        let error = builder(rate).max_bytes(least - 1).build().map(drop).expect_err("no room");
        assert_eq!(error.kind(), BuildErrorKind::LimitTooSmall);
        for most in [least, least + 10_000, 2 * least - 1, 2 * least, 250_000, 300_000] {
            let filter = builder(rate).max_bytes(most).build().expect("a small filter");
            let mut random = SplitMix(most as u64);
            let (mut inserted, mut refused) = (Vec::new(), 0);
            while refused < 50 {
                let hash = random.next();
                match filter.insert(&Prehashed(hash)) {
                    Ok(()) => inserted.push(hash),
                    Err(full) => {
                        assert_eq!(full.kind(), FullKind::LimitReached);
                        refused += 1;
                    }
                }
                assert!(filter.size_in_bytes() <= most, "{most}: {}", filter.stats());
            }
            assert_eq!(filter.len(), inserted.len());
            assert!(filter.has(&inserted));
            let slots = filter.stats().slots;
            assert!(10 * inserted.len() >= 7 * slots, "{most}: {} of {slots}", inserted.len());
            filter.set_max_bytes(usize::MAX);
            (0..100_000).for_each(|_| filter.insert(&Prehashed(random.next())).expect("memory"));
            assert!(filter.has(&inserted));
        }
    }
}

/// Threads race through the first splits. Each item has one winner and is found from then on.
#[test]
fn threads_split_the_first_shard_together() {
    for round in 0..rounds(6, 60) {
        let filter = filter(RATES[round % 2]);
        let items = 60_000;
        let hashes = SplitMix(round as u64).take(items);
        let winners: Vec<AtomicU32> = hashes.iter().map(|_| AtomicU32::new(0)).collect();
        let removed = AtomicUsize::new(0);
        let pinned: Vec<u64> = (0..100).collect();
        filter.put(&pinned);
        together(4, |thread| {
            for (at, (&hash, winners)) in hashes.iter().zip(&winners).enumerate() {
                let won = filter.insert_if_absent(&Prehashed(hash)).expect("memory");
                winners.fetch_add(u32::from(won), Relaxed);
                assert!(filter.contains(&Prehashed(pinned[at % 100])), "a pinned item is absent");
                if at % 4 == thread && at % 3 == 0 {
                    assert!(filter.insert(&Prehashed(u64::MAX - at as u64)).is_ok());
                    let gone = filter.remove(&Prehashed(u64::MAX - at as u64));
                    removed.fetch_add(usize::from(gone), Relaxed);
                }
            }
        });
        assert_eq!(removed.into_inner(), items.div_ceil(3), "round {round}");
        let winners: Vec<u32> = winners.into_iter().map(AtomicU32::into_inner).collect();
        assert!(winners.iter().all(|&winners| winners <= 1), "two winners");
        let won = winners.iter().sum::<u32>() as usize;
        assert_eq!(filter.len(), won + pinned.len());
        assert!(won > items * 99 / 100 && filter.has(&hashes));
    }
}

struct SetAtEnd<'a>(&'a AtomicBool);

impl Drop for SetAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

#[test]
fn items_that_stay_are_found_while_others_come_and_go() {
    for round in 0..rounds(4, 40) {
        let filter = filter(RATES[round % 2]);
        let stays = SplitMix(round as u64).take(100);
        let goes = SplitMix(1_000 + round as u64).take(4_000);
        filter.put(&stays);
        let is_over = AtomicBool::new(false);
        together(3, |thread| {
            if thread > 0 {
                while !is_over.load(Relaxed) {
                    for &hash in &stays {
                        assert!(filter.contains(&Prehashed(hash)), "an item is missed");
                        assert!(filter.count(&Prehashed(hash)) >= 1, "an item is counted wrong");
                    }
                }
                return;
            }
            // The others end if this thread fails.
            let _over = SetAtEnd(&is_over);
            for _ in 0..rounds(3, 10) {
                for &hash in &goes {
                    filter.insert(&Prehashed(hash)).expect("memory");
                    assert!(filter.contains(&Prehashed(hash)), "a new item is missed");
                }
                filter.take(&goes);
            }
        });
        assert_eq!((filter.len(), filter.stats().shards), (100, 1));
    }
}

#[test]
fn batches_of_any_size_cross_the_first_split() {
    for batch in [1, 7, 100, 5_000, 30_000] {
        let filter = filter(RATES[0]);
        let hashes = SplitMix(batch as u64).take(30_000);
        for hashes in hashes.chunks(batch) {
            let new = filter.insert_if_absent_many(&prehashed(hashes));
            assert!(new.iter().all(Result::is_ok));
            assert!(filter.contains_many(&prehashed(hashes)).iter().all(|found| *found));
        }
        assert_eq!(filter.contains_many(&prehashed(&hashes)).len(), hashes.len());
        assert!(filter.has(&hashes));
        let removed = filter.remove_many(&prehashed(&hashes));
        assert!(removed.iter().filter(|removed| **removed).count() > 29_900);
        assert!(filter.len() < 100);
    }
}

#[test]
fn a_copy_of_a_small_filter_is_independent() {
    let filter = filter(RATES[0]);
    (0..100).for_each(|n| filter.insert(&Prehashed(n)).expect("memory"));
    let copy = filter.try_clone().expect("memory");
    filter.clear();
    assert!((0..100).all(|n| copy.contains(&Prehashed(n)) && !filter.contains(&Prehashed(n))));
    assert_eq!((copy.len(), copy.capacity()), (100, 10));
}
