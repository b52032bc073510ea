//! A growing filter of few items: its size, its answers, and how it comes to have shards.

use crate::common::{Fixed, SplitMix, prehashed, rounds, together};
use koel::{Builder, ConcurrentCuckooFilter, FullKind, Prehashed};
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
fn the_size_follows_the_items() {
    for rate in RATES {
        let filter = filter(rate);
        assert!(size_of_val(&filter) <= 256 && filter.size_in_bytes() <= 512);
        let half_full = filter.stats().slots / 2;
        for n in 1..=half_full {
            filter.insert(&Prehashed(n as u64)).expect("memory");
            let most = if n <= 10 { 912 } else { 912 + 9 * n };
            assert!(filter.size_in_bytes() <= most, "{n} items: {}", filter.stats());
        }
        assert!(filter.size_in_bytes() >= shard(&filter), "{}", filter.stats());
        assert!(filter.size_in_bytes() <= shard(&filter) * 12 / 10, "{}", filter.stats());
    }
    assert!(size_of::<ConcurrentCuckooFilter>() <= 256);
}

#[test]
fn few_items_are_told_apart_exactly() {
    let filter = filter(RATES[0]);
    for n in 0..5_000 {
        assert_eq!(filter.insert_if_absent(&Prehashed(n)), Ok(true));
        assert_eq!(filter.insert_if_absent(&Prehashed(n)), Ok(false));
    }
    assert!((0..5_000).all(|n| filter.contains(&Prehashed(n)) && filter.count(&Prehashed(n)) == 1));
    assert!(!(5_000..2_000_000).any(|n| filter.contains(&Prehashed(n))));
    assert_eq!((filter.false_positive_rate(), filter.stats().splits), (0.0, 0));
    assert!(
        (0..5_000)
            .step_by(2)
            .all(|n| filter.remove(&Prehashed(n)) && !filter.remove(&Prehashed(n)))
    );
    assert!((0..5_000).all(|n| filter.contains(&Prehashed(n)) == (n % 2 == 1)));
    assert_eq!(filter.len(), 2_500);
    filter.clear();
    assert!(filter.is_empty() && filter.size_in_bytes() <= size_of_val(&filter) + 136);
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

/// Items of the same filters come in different orders. What they are in is the same, byte by byte.
#[test]
fn the_shards_do_not_depend_on_the_order_of_the_listed_items() {
    for rate in RATES {
        let hasher = koel::StableHash::with_seed(1);
        let bytes_of = |hashes: &mut dyn Iterator<Item = u64>| {
            let builder = ConcurrentCuckooFilter::builder().capacity(10).hasher(hasher);
            let filter = builder.growing().false_positive_rate(rate).build().expect("a filter");
            hashes.for_each(|hash| filter.insert(&Prehashed(hash)).expect("memory"));
            let mut bytes = Vec::new();
            filter.write_to(&mut bytes).expect("memory");
            (bytes, shard(&filter))
        };
        let shard_of_all = bytes_of(&mut (0..20_000)).1;
        for (items, listed) in [(1_000, true), (8_000, true), (20_000, false)] {
            // Both change to shards with the same items.
            let at = (shard_of_all / 8).min(items) as u64;
            let forwards = bytes_of(&mut (0..items as u64));
            let backwards = bytes_of(&mut (0..at).rev().chain(at..items as u64));
            assert!(forwards == backwards, "{items} items");
            assert_eq!(forwards.0.len() == 8 * (items + 38), listed);
        }
    }
}

/// Under any limit, what is inserted stays, what is refused is not in, and the limit is kept.
#[test]
fn a_limit_is_kept_in_the_list_and_in_the_change_to_shards() {
    for rate in RATES {
        let few = [300, 2_000, 30_000, 60_000, 70_000, 71_500, 100_000, 140_000, 150_000, 250_000];
        for most in few {
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
            assert!(inserted.iter().all(|&hash| filter.contains(&Prehashed(hash))));
            assert!(most < 30_000 || 10 * inserted.len() >= most, "{most}: {}", inserted.len());
            filter.set_max_bytes(usize::MAX);
            (0..100_000).for_each(|_| filter.insert(&Prehashed(random.next())).expect("memory"));
            assert!(inserted.iter().all(|&hash| filter.contains(&Prehashed(hash))));
        }
    }
}

/// Threads race through the change to shards. Each item has one winner and is found from then on.
#[test]
fn threads_change_to_shards_together() {
    for round in 0..rounds(6, 60) {
        let filter = filter(RATES[round % 2]);
        let items = 20_000;
        let hashes = SplitMix(round as u64).take(items);
        let winners: Vec<AtomicU32> = hashes.iter().map(|_| AtomicU32::new(0)).collect();
        let removed = AtomicUsize::new(0);
        let pinned: Vec<u64> = (0..100).collect();
        pinned.iter().for_each(|&hash| filter.insert(&Prehashed(hash)).expect("memory"));
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
        assert!(
            won > items * 99 / 100 && hashes.iter().all(|&hash| filter.contains(&Prehashed(hash)))
        );
    }
}

/// Lookups take no lock, and find what stays while other items come and go beside it.
#[test]
fn items_that_stay_are_found_while_their_list_changes() {
    for round in 0..rounds(4, 40) {
        let filter = filter(RATES[round % 2]);
        let stays = SplitMix(round as u64).take(100);
        let goes = SplitMix(1_000 + round as u64).take(4_000);
        stays.iter().for_each(|&hash| filter.insert(&Prehashed(hash)).expect("memory"));
        let is_over = AtomicBool::new(false);
        together(3, |thread| {
            if thread > 0 {
                while !is_over.load(Relaxed) {
                    for &hash in &stays {
                        assert!(filter.contains(&Prehashed(hash)), "an item is missed");
                        assert_eq!(filter.count(&Prehashed(hash)), 1, "an item is counted wrong");
                    }
                }
                return;
            }
            for _ in 0..rounds(3, 10) {
                for &hash in &goes {
                    filter.insert(&Prehashed(hash)).expect("memory");
                    assert!(filter.contains(&Prehashed(hash)), "a new item is missed");
                }
                for &hash in &goes {
                    assert!(filter.remove(&Prehashed(hash)) && !filter.contains(&Prehashed(hash)));
                }
            }
            is_over.store(true, Relaxed);
        });
        assert_eq!((filter.len(), filter.false_positive_rate()), (100, 0.0));
    }
}

/// A thread keeps a share in the lists that it has looked into last.
#[test]
fn the_lists_of_many_filters_are_told_apart() {
    for round in 0..rounds(10, 100) {
        // They are where the filters of the last round were.
        let filters: Vec<_> = (0..20).map(|_| filter(RATES[0])).collect();
        for step in 0..40 {
            for (number, filter) in filters.iter().enumerate() {
                let hash = SplitMix(round << 32 | step << 16 | number as u64).next();
                assert!(!filter.contains(&Prehashed(hash)), "a list of another filter was asked");
                filter.insert(&Prehashed(hash)).expect("memory");
                assert!(filter.contains(&Prehashed(hash)), "a list that was is asked");
                assert!(!filters[(number + 1) % 20].contains(&Prehashed(hash)));
                if step == 20 {
                    filter.clear();
                    assert!(!filter.contains(&Prehashed(hash)), "a list that was is asked");
                }
            }
        }
    }
}

/// The hash that becomes this one when a filter spreads its bits.
fn unmixed(hash: u64) -> u64 {
    let unshifted = |x: u64, by: u32| (0..3).fold(x, |y, _| x ^ (y >> by));
    // Each step of Newton's doubles the bits that are right, of which three are to begin with.
    let inverse =
        |x: u64| (0..5).fold(x, |y, _| y.wrapping_mul(2_u64.wrapping_sub(x.wrapping_mul(y))));
    let x = unshifted(hash, 27).wrapping_mul(inverse(0x1C69_B3F7_4AC4_AE35));
    let x = unshifted(x, 33).wrapping_mul(inverse(0x3C79_AC49_2BA7_B653));
    unshifted(x, 27)
}

/// No list has an item with the hash that stands for a gap. Its filter goes on in shards.
#[test]
fn an_item_whose_hash_is_that_of_a_gap() {
    let gap = unmixed(u64::MAX);
    for rate in RATES {
        for items in [0, 1, 15, 16, 17, 1_000] {
            let small = filter(rate);
            (0..items).for_each(|n| small.insert(&Prehashed(n)).expect("memory"));
            assert!(!small.contains(&Prehashed(gap)) && !small.remove(&Prehashed(gap)));
            assert_eq!((small.count(&Prehashed(gap)), small.false_positive_rate()), (0, 0.0));
            assert_eq!(small.insert_if_absent(&Prehashed(gap)), Ok(true));
            assert!(small.false_positive_rate() > 0.0, "{}", small.stats());
            assert_eq!(small.insert_if_absent(&Prehashed(gap)), Ok(false));
            assert_eq!((small.count(&Prehashed(gap)), small.len()), (1, items as usize + 1));
            assert!((0..items).all(|n| small.contains(&Prehashed(n))));
            assert!(small.remove(&Prehashed(gap)));
        }
        let limited = builder(rate).max_bytes(10_000).build().expect("a small filter");
        let refused = limited.insert(&Prehashed(gap)).expect_err("there is no room for shards");
        assert_eq!((refused.kind(), limited.len()), (FullKind::LimitReached, 0));
        assert!(limited.insert(&Prehashed(0)).is_ok() && !limited.contains(&Prehashed(gap)));
    }
}

#[test]
fn batches_of_any_size_cross_the_change() {
    for batch in [1, 7, 100, 5_000, 30_000] {
        let filter = filter(RATES[0]);
        let hashes = SplitMix(batch as u64).take(30_000);
        for hashes in hashes.chunks(batch) {
            let new = filter.insert_if_absent_many(&prehashed(hashes));
            assert!(new.iter().all(Result::is_ok));
            assert!(filter.contains_many(&prehashed(hashes)).iter().all(|found| *found));
        }
        assert_eq!(filter.contains_many(&prehashed(&hashes)).len(), hashes.len());
        assert!(hashes.iter().all(|&hash| filter.contains(&Prehashed(hash))));
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
