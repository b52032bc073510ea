//! Hot items, and items chosen by an attacker who knows the hash function. The filter may refuse
//! such items, but it must not grow without bound or lose other items.
//!
//! (`tests/filters/growth.rs` in koel checks the limit on the directory's size: compared with tiny
//! shards, a directory may be large.)

use crate::common::{Hashes, SplitMix, rounds};
use crate::small::{Filter, LAYOUTS, Layout, layouts};
use koel_small::Prehashed;

#[test]
fn copies_of_one_item_are_refused_and_cause_no_growth() {
    for &layout in layouts() {
        let filter = layout.filter();
        let copies = (0..1_000).filter(|_| filter.insert(&0).is_ok()).count();
        let most = match layout.bits {
            8 => 5,
            9 | 10 => 4,
            _ => layout.slots(),
        };
        assert_eq!(copies, most, "{layout:?}");
        assert_eq!((filter.count(&0), filter.len()), (copies, copies));
        assert!(filter.stats().splits == 0, "{}", filter.stats());
        assert_eq!(filter.insert_if_absent(&0), Ok(false));
        let others = (1..2_000).filter(|item| filter.insert(item).is_ok()).count();
        assert!(others > 1_500, "{layout:?}: {others}");
        assert!(filter.count(&0) >= copies, "{layout:?}");
        assert!((0..copies).all(|_| filter.remove(&0)), "{layout:?}");
        assert_eq!(filter.len(), others);
    }
}

/// Each of 200 items is inserted a thousand times, or 200 times in a short run.
#[test]
fn the_growth_for_hot_items_is_bounded_by_their_copies() {
    for &layout in layouts() {
        let filter = layout.filter();
        let mut inserted = vec![0; 200];
        for _ in 0..rounds(200, 1_000) {
            for (item, inserted) in inserted.iter_mut().enumerate() {
                *inserted += usize::from(filter.insert(&item).is_ok());
            }
        }
        let len = inserted.iter().sum();
        layout.check_len(&filter, len);
        for (item, &inserted) in inserted.iter().enumerate() {
            assert!(filter.count(&item) >= inserted, "{layout:?}: {item}");
        }
        // A shard is split when it is half full, and each half may then be a quarter full. But two
        // hot items with the same first bits fill half a shard, and splits do not separate them.
        let slots = filter.stats().slots;
        assert!(slots <= 16 * len, "{layout:?}: {}", filter.stats());
    }
}

const M: u64 = 0xA750_FAA4_14DC_2D91;

/// Mixes a hash like `Mixed::of` in `src/layout/geometry.rs`.
fn mixed(hash: u64) -> u64 {
    let fold = |x| {
        let product = u128::from(x) * u128::from(M);
        product as u64 ^ (product >> 64) as u64
    };
    fold(fold(hash))
}

/// Returns 300 items whose first 20 bits are the same, so that 20 splits do not separate them.
fn inseparable() -> Vec<u64> {
    let mut random = SplitMix(1);
    let hashes = std::iter::repeat_with(|| random.next());
    hashes.filter(|hash| mixed(*hash) >> 44 == 0x1_2345).take(300).collect()
}

/// Returns an item with the same two buckets as all others, whichever shard it is in.
fn of_two_buckets(random: &mut SplitMix) -> u64 {
    let is_one = |hash: &u64| mixed(*hash).wrapping_mul(M) >> 50 == 0x1234;
    std::iter::repeat_with(|| random.next()).find(is_one).expect("one")
}

/// Inserts these items, and returns those that were not refused.
fn attack(layout: Layout, filter: &Filter, tried: &[u64]) -> Vec<u64> {
    let inserted = filter.put_some(tried);
    layout.check_len(filter, inserted.len());
    assert!(filter.has(&inserted), "{}", filter.stats());
    inserted
}

#[test]
fn items_that_share_both_buckets_take_a_bounded_multiple_of_the_memory() {
    let mut random = SplitMix(1);
    let crowd: Vec<u64> = (0..3_000).map(|_| of_two_buckets(&mut random)).collect();
    for &layout in layouts() {
        let filter = layout.filter();
        let inserted = attack(layout, &filter, &crowd);
        // An eighth of the slots was taken before the last split, unless there were few shards.
        let stats = filter.stats();
        let few = 17 * stats.slots / stats.shards;
        assert!(stats.slots <= few.max(8 * inserted.len() + few), "{layout:?}: {stats}");
        // Among other items, they split the shards that the others have filled.
        let filter = layout.filter();
        let others = filter.put_some(&SplitMix(2).take(2_000));
        let mut random = SplitMix(3);
        let crowd =
            (0..20_000).filter(|_| filter.insert(&Prehashed(of_two_buckets(&mut random))).is_ok());
        let items = others.len() + crowd.count();
        layout.check_len(&filter, items);
        assert!(filter.has(&others), "{layout:?}");
        let slots = filter.stats().slots;
        assert!(slots <= 16 * items, "{layout:?}: {}", filter.stats());
    }
}

#[test]
fn inseparable_items_are_refused_in_the_end() {
    let crowd = inseparable();
    for &layout in layouts() {
        let filter = layout.filter();
        // New items have whole windows again after the old ones are removed.
        for _ in 0..6 {
            let inserted = attack(layout, &filter, &crowd);
            assert!(inserted.len() < crowd.len(), "{}", filter.stats());
            assert!(filter.stats().shards < 64, "{layout:?}: {}", filter.stats());
            inserted.iter().for_each(|&hash| _ = filter.remove(&Prehashed(hash)));
            assert!(filter.is_empty(), "{layout:?}");
        }
    }
}

#[test]
fn a_limit_is_kept_and_no_inserted_item_is_lost() {
    for &layout in layouts() {
        for most in [5_000, 10_000, 100_000, 300_000] {
            let filter = layout.builder().max_bytes(most).build().expect("one shard");
            let mut random = SplitMix(4);
            let (mut inserted, mut refused) = (Vec::new(), 0);
            while refused < 200 {
                let hash = random.next();
                match filter.insert(&Prehashed(hash)) {
                    Ok(()) => inserted.push(hash),
                    Err(_) => refused += 1,
                }
                let bytes = filter.size_in_bytes();
                assert!(bytes <= most, "{layout:?}: {bytes} of {most}");
            }
            layout.check_len(&filter, inserted.len());
            assert!(filter.has(&inserted), "{layout:?}");
            let gone = inserted.split_off(inserted.len() / 2);
            gone.iter().for_each(|&hash| _ = filter.remove(&Prehashed(hash)));
            let again = random.take(gone.len() / 4);
            let fit = filter.put_some(&again).len();
            // At 8 bits, splits leave duplicates behind that take up many of the lanes.
            assert!(fit >= again.len() / 2, "{layout:?}: {fit} of {}", again.len());
            layout.check_len(&filter, inserted.len() + fit);
            assert!(filter.has(&inserted), "{layout:?}");
            assert!(filter.size_in_bytes() <= most);
        }
    }
}

/// The estimate holds after the filter has grown to thousands of times its size.
#[test]
fn the_reported_rate_is_the_measured_rate() {
    let all = [(LAYOUTS[3], 100_000), (LAYOUTS[4], 100_000)];
    for &(layout, items) in &all[..rounds(1, 2)] {
        let filter = layout.filter();
        let mut random = SplitMix(5);
        for _ in 0..items {
            // A few are refused, because the shards are tiny.
            let _ = filter.insert(&Prehashed(random.next()));
        }
        let stats = filter.stats();
        assert!(stats.growth > 1_024.0 && stats.items > items * 9 / 10, "{stats}");
        let probes = rounds(500_000, 4_000_000);
        let hits = (0..probes).filter(|_| filter.contains(&Prehashed(random.next()))).count();
        let rate = hits as f64 / f64::from(probes);
        let told = stats.false_positive_rate;
        assert!((told / rate - 1.0).abs() < 0.08, "{layout:?}: {rate:e} measured, {stats}");
    }
}
