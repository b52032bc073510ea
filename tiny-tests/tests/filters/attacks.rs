//! Hot items, and items that somebody has chosen who knows how they are hashed: refusals, but no
//! growth without bound, and nobody else is lost for it. (What a directory may take at most is for
//! `tests/filters/growth.rs` in koel: beside tiny shards it may be large.)

use crate::common::SplitMix;
use crate::small::{Filter, LAYOUTS};

#[test]
fn one_item_over_and_over_is_refused_and_grows_nothing() {
    for layout in LAYOUTS {
        let filter = layout.filter();
        let copies = (0..1_000).filter(|_| filter.insert(&0).is_ok()).count();
        assert_eq!(copies, 2 * layout.slots(), "{layout:?}");
        assert_eq!((filter.count(&0), filter.len()), (copies, copies));
        assert!(filter.stats().splits() == 0, "{}", filter.stats());
        assert_eq!(filter.insert_if_absent(&0), Ok(false));
        let others = (1..2_000).filter(|item| filter.insert(item).is_ok()).count();
        assert!(others > 1_500, "{layout:?}: {others}");
        assert!(filter.count(&0) >= copies, "{layout:?}");
        assert!((0..copies).all(|_| filter.remove(&0)), "{layout:?}");
        assert_eq!(filter.len(), others);
    }
}

/// Each comes a thousand times.
#[test]
fn hot_items_take_no_more_than_their_copies_need() {
    for layout in LAYOUTS {
        let filter = layout.filter();
        let mut inserted = vec![0; 200];
        for _ in 0..1_000 {
            for (item, inserted) in inserted.iter_mut().enumerate() {
                *inserted += usize::from(filter.insert(&item).is_ok());
            }
        }
        let len = inserted.iter().sum();
        assert_eq!(filter.len(), len);
        for (item, &inserted) in inserted.iter().enumerate() {
            assert!(filter.count(&item) >= inserted, "{layout:?}: {item}");
        }
        // A shard is split when it is half full, and its halves may be a quarter full each; but of
        // two hot items with the same first bits, half of a shard, each split is in vain.
        let slots = filter.stats().slots();
        assert!(slots <= 16 * len, "{layout:?}: {}", filter.stats());
    }
}

/// What times an odd number is 1.
fn inverse(odd: u64) -> u64 {
    (0..6).fold(odd, |x, _| x.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(x))))
}

/// The hash that `Mixed::of` in src/geometry.rs makes this of.
fn unmixed(mixed: u64) -> u64 {
    let x = mixed ^ (mixed >> 27) ^ (mixed >> 54);
    let x = x.wrapping_mul(inverse(0x1C69_B3F7_4AC4_AE35));
    let x = (x ^ (x >> 33)).wrapping_mul(inverse(0x3C79_AC49_2BA7_B653));
    x ^ (x >> 27) ^ (x >> 54)
}

/// Items that no split of the first 40 tells apart.
fn inseparable(random: &mut SplitMix) -> u64 {
    unmixed(0x1234_5678_9A00_0000 | random.next() >> 40)
}

/// Items that have both buckets in common, whatever shard they are in.
fn of_two_buckets(random: &mut SplitMix) -> u64 {
    let other = 0x1234_5600_0000_0000 | random.next() >> 24;
    unmixed(other.wrapping_mul(inverse(0xD6E8_FEB8_6659_FD93)))
}

/// Returns what went in.
fn attack(filter: &Filter, item: fn(&mut SplitMix) -> u64) -> Vec<u64> {
    let mut random = SplitMix(1);
    let tried: Vec<u64> = (0..3_000).map(|_| item(&mut random)).collect();
    let inserted = tried.iter().copied().filter(|&hash| filter.insert_hash(hash).is_ok());
    let inserted: Vec<u64> = inserted.collect();
    assert!(inserted.len() < tried.len(), "{}", filter.stats());
    assert_eq!(filter.len(), inserted.len());
    assert!(inserted.iter().all(|&hash| filter.contains_hash(hash)), "{}", filter.stats());
    inserted
}

#[test]
fn items_that_share_both_buckets_are_refused_at_once() {
    for layout in LAYOUTS {
        let filter = layout.filter();
        let inserted = attack(&filter, of_two_buckets);
        assert_eq!(inserted.len(), 2 * layout.slots(), "{layout:?}");
        assert_eq!(filter.stats().splits(), 0, "{layout:?}");
        // Beside others, they make the shards split that others have filled.
        let filter = layout.filter();
        let others = SplitMix(2).take(2_000).into_iter();
        let others: Vec<u64> = others.filter(|&hash| filter.insert_hash(hash).is_ok()).collect();
        let before = filter.len();
        let mut random = SplitMix(3);
        let crowd = (0..20_000).filter(|_| filter.insert_hash(of_two_buckets(&mut random)).is_ok());
        assert_eq!(crowd.count(), filter.len() - before);
        assert!(others.iter().all(|&hash| filter.contains_hash(hash)), "{layout:?}");
        let slots = filter.stats().slots();
        assert!(slots <= 16 * filter.len(), "{layout:?}: {}", filter.stats());
    }
}

#[test]
fn items_that_no_split_tells_apart_are_refused_in_the_end() {
    for layout in LAYOUTS {
        let filter = layout.filter();
        // They come and go; those that come have whole windows.
        for _ in 0..6 {
            let inserted = attack(&filter, inseparable);
            assert!(filter.stats().shards() < 64, "{layout:?}: {}", filter.stats());
            assert!(inserted.iter().all(|&hash| filter.remove_hash(hash)), "{layout:?}");
            assert!(filter.is_empty(), "{layout:?}");
        }
    }
}

#[test]
fn a_limit_is_kept_and_what_was_let_in_is_in() {
    for layout in LAYOUTS {
        for most in [4_000, 10_000, 100_000, 300_000] {
            let filter = layout.builder().max_bytes(most).build().expect("one shard");
            let mut random = SplitMix(4);
            let (mut inserted, mut refused) = (Vec::new(), 0);
            while refused < 200 {
                let hash = random.next();
                match filter.insert_hash(hash) {
                    Ok(()) => inserted.push(hash),
                    Err(_) => refused += 1,
                }
                let bytes = filter.size_in_bytes();
                assert!(bytes <= most, "{layout:?}: {bytes} of {most}");
            }
            assert_eq!(filter.len(), inserted.len());
            assert!(inserted.iter().all(|&hash| filter.contains_hash(hash)), "{layout:?}");
            let gone = inserted.split_off(inserted.len() / 2);
            assert!(gone.iter().all(|&hash| filter.remove_hash(hash)), "{layout:?}");
            let again = random.take(gone.len() / 4);
            let fit = again.iter().filter(|&&hash| filter.insert_hash(hash).is_ok()).count();
            // At 8 bits, much of the room is taken by what splits have left over.
            assert!(fit >= again.len() / 2, "{layout:?}: {fit} of {}", again.len());
            assert_eq!(filter.len(), inserted.len() + fit);
            assert!(inserted.iter().all(|&hash| filter.contains_hash(hash)), "{layout:?}");
            assert!(filter.size_in_bytes() <= most);
        }
    }
}

/// The estimate, after the filter has grown to thousands of times its size.
#[test]
fn the_rate_that_is_told_is_the_rate_that_is_measured() {
    for (layout, items) in [(LAYOUTS[3], 100_000), (LAYOUTS[4], 100_000)] {
        let filter = layout.filter();
        let mut random = SplitMix(5);
        for _ in 0..items {
            // A few are refused, as shards are so small.
            let _ = filter.insert_hash(random.next());
        }
        let stats = filter.stats();
        assert!(stats.growth() > 1_024.0 && stats.items() > items * 9 / 10, "{stats}");
        let probes = 4_000_000;
        let hits = (0..probes).filter(|_| filter.contains_hash(random.next())).count();
        let rate = hits as f64 / f64::from(probes);
        let told = stats.false_positive_rate();
        assert!((told / rate - 1.0).abs() < 0.08, "{layout:?}: {rate:e} measured, {stats}");
    }
}
