//! The answers and the size of a filter that grows from its first items to a hundred times as many.
//! (In `tests/random`, shards are so small that every run splits many times.)

use crate::common::{Fixed, Hashes, SplitMix, mixed, rounds};
use koel::{Builder, ConcurrentCuckooFilter, Prehashed, StableHash};

fn builder(capacity: usize) -> Builder<Fixed> {
    ConcurrentCuckooFilter::builder().capacity(capacity).hasher(Fixed { key: 0 }).growing()
}

fn filter(capacity: usize) -> ConcurrentCuckooFilter<Fixed> {
    let filter = builder(capacity).false_positive_rate(0.0015).build().expect("a small filter");
    assert_eq!(filter.stats().fingerprint_bits, 16);
    filter
}

/// False-positive rates, for narrow and for wide buckets.
const RATES: [f64; 2] = [0.0015, 1e-5];

/// A filter that begins with one shard.
fn small(rate: f64) -> ConcurrentCuckooFilter<Fixed> {
    builder(10).false_positive_rate(rate).build().expect("a small filter")
}

/// Checks that the directory, the stripes and the bookkeeping of the shards take next to nothing.
fn assert_lean(filter: &ConcurrentCuckooFilter<Fixed>) {
    let stats = filter.stats();
    // The filter may have allocated a 32nd more than it uses, or a shard.
    let used = stats.slots / stats.slots_per_bucket * 8;
    assert!(stats.size_in_bytes <= used + used / 20 + (64 << 10) + 8_192, "{stats}");
    let n = stats.items;
    // Few shards cannot be split one after another.
    let most = if n >= 1 << 19 { 1.7 } else { 2.2 };
    if n >= 1 << 15 {
        assert!(stats.size_in_bytes as f64 <= most * 2.0 * n as f64, "{stats}");
    }
}

#[test]
fn growing_loses_nothing_and_keeps_the_rate() {
    let filter = filter(1 << 14);
    let mut random = SplitMix(1);
    let mut strangers = SplitMix(1 << 60);
    let mut inserted = 0;
    for doubling in 14..=rounds(20, 21) {
        while inserted < 1 << doubling {
            filter.insert(&Prehashed(random.next())).expect("memory");
            inserted += 1;
            if inserted % 4_096 == 0 {
                assert_lean(&filter);
            }
        }
        assert_eq!(filter.len(), inserted);
        let mut again = SplitMix(1);
        assert!((0..inserted).all(|_| filter.contains(&Prehashed(again.next()))), "2^{doubling}");
        if doubling % 3 == 0 || doubling == 20 {
            let probes = rounds(500_000, 2_500_000);
            let hits =
                (0..probes).filter(|_| filter.contains(&Prehashed(strangers.next()))).count();
            let told = filter.false_positive_rate();
            let expected = f64::from(probes) * told;
            let off = (hits as f64 - expected) / expected.sqrt();
            assert!(
                off.abs() <= 3.0,
                "2^{doubling}: {hits} hits, {expected:.0} expected, {off:+.2} σ"
            );
            assert!(hits as f64 <= 0.0012 * f64::from(probes), "2^{doubling}: {hits} hits");
        }
    }
    let stats = filter.stats();
    assert!(stats.growth >= 40.0 && stats.splits == stats.shards - 1, "{stats}");
    // Hardly any allocated shard is unused.
    let buckets = stats.slots / stats.slots_per_bucket * 8;
    assert!(stats.size_in_bytes as f64 <= 1.06 * buckets as f64, "{stats}");
}

#[test]
fn a_filter_of_any_capacity_grows() {
    for &capacity in rounds(&[0, 10, 40_000][..], &[0, 1, 10, 1_000, 40_000, 1_000_000]) {
        let filter = filter(capacity);
        assert_eq!(filter.capacity(), capacity);
        assert!(filter.is_empty() && !filter.contains(&0));
        let before = filter.size_in_bytes();
        (0..capacity).for_each(|item| filter.insert(&item).expect("the capacity fits"));
        // By chance, a shard or two may fill up earlier than the others.
        assert!(filter.stats().growth <= 1.2, "{}", filter.stats());
        assert!(capacity > 40_000 || filter.size_in_bytes() == before);
        let more = capacity + 100_000;
        (capacity..more).for_each(|item| filter.insert(&item).expect("memory"));
        assert!((0..more).all(|item| filter.contains(&item)));
        assert_eq!(filter.len(), more);
    }
}

#[test]
fn a_cleared_filter_is_as_large_as_before_and_empty() {
    let filter = filter(10);
    let hashes = SplitMix(4).take(rounds(60_000, 200_000));
    filter.put(&hashes);
    let (shards, bytes) = (filter.stats().shards, filter.size_in_bytes());
    filter.clear();
    assert!(filter.is_empty());
    assert_eq!(filter.false_positive_rate(), 0.0);
    assert!(hashes.iter().all(|&hash| !filter.contains(&Prehashed(hash))));
    assert!(hashes.iter().all(|&hash| filter.insert_if_absent(&Prehashed(hash)).is_ok()));
    assert!(filter.has(&hashes));
    assert_eq!((filter.stats().shards, filter.size_in_bytes()), (shards, bytes));
}

/// An attacker who knows the hash function has chosen items with the same first 14 bits, so that
/// splits do not separate them. Without a limit, each split would double the directory.
#[test]
fn inseparable_items_are_refused() {
    let mut random = SplitMix(8);
    let hashes = std::iter::repeat_with(|| random.next());
    let lot: Vec<u64> = hashes.filter(|hash| mixed(*hash) >> 50 == 0x1234).take(60_000).collect();
    for &rate in rounds(&[0.0015][..], &[0.0015, 0.000_03, 2e-8]) {
        let filter = builder(1).false_positive_rate(rate).build().expect("a small filter");
        for _ in 0..rounds(3, 6) {
            let mut refused = 0;
            let mut lot = lot.clone();
            lot.retain(|&hash| {
                let fits = refused < 100 && filter.insert(&Prehashed(hash)).is_ok();
                refused += usize::from(!fits);
                fits
            });
            assert!(refused > 0);
            assert!(filter.has(&lot));
            assert!(filter.size_in_bytes() < 4 << 20, "{}", filter.stats());
            filter.take(&lot);
            assert!(filter.is_empty());
        }
    }
}

#[test]
fn the_statistics_are_readable() {
    let filter = filter(1_000);
    (0..100_000).for_each(|item| filter.insert(&item).expect("memory"));
    let stats = filter.stats();
    let text = stats.to_string();
    assert!(text.starts_with("100000 items, 1000 to begin with"), "{text}");
    assert!(text.contains(&format!("by {} splits", stats.splits)), "{text}");
    let bits = format!("directory of {} bits", stats.directory_depth);
    assert!(text.contains(&bits), "{text}");
    assert_eq!(stats.expected_growth, 256.0);
    assert!(format!("{stats:?}").contains("splits"));
    assert!(format!("{filter:?}").contains("capacity: 1000"));
}

/// Those of the guide's "More items than fit into memory".
#[test]
fn partitions_take_together_what_one_filter_takes_unless_they_are_parts_of_it() {
    const PARTITIONS: u64 = 16;
    let items = rounds(640_000, 6_400_000);
    let grown = || {
        let builder = ConcurrentCuckooFilter::builder().seen_set();
        let builder = builder.capacity((items / PARTITIONS) as usize);
        builder.hasher(StableHash::with_seed(7)).build().expect("memory")
    };
    let one = grown();
    let partition_of = |item: u64| {
        let hash = StableHash::with_seed(0x9A27).hash_bytes(&item.to_le_bytes());
        ((u128::from(hash) * u128::from(PARTITIONS)) >> 64) as usize
    };
    let part_of = |item: u64| one.part_of(&item, PARTITIONS as usize);
    let size_by = |of: &dyn Fn(u64) -> usize| {
        let filters: Vec<_> = (0..PARTITIONS).map(|_| grown()).collect();
        let new = |item| filters[of(item)].insert_if_absent(&item).expect("memory");
        let lost = (0..items).filter(|item| !new(*item)).count();
        assert!(lost < 20 && !(0..items).any(new), "{lost} are lost");
        filters.iter().map(ConcurrentCuckooFilter::size_in_bytes).sum::<usize>()
    };
    (0..items).for_each(|item| one.insert(&item).expect("memory"));
    let (whole, own, parts) = (one.size_in_bytes(), size_by(&partition_of), size_by(&part_of));
    assert!(10 * own < 11 * whole, "{own} bytes instead of {whole}");
    assert!(parts > 2 * own, "{parts} bytes by parts: the guide need not warn of {own} any more");
}

#[test]
fn few_items_take_one_shard() {
    for rate in RATES {
        let filter = small(rate);
        let empty = filter.size_in_bytes();
        let shard = if rate == RATES[1] { 128 << 10 } else { 64 << 10 };
        assert!((shard..shard + 2_048).contains(&empty), "{}", filter.stats());
        let half_full = filter.stats().slots / 2;
        (0..half_full as u64).for_each(|n| filter.insert(&Prehashed(n)).expect("memory"));
        assert_eq!((filter.size_in_bytes(), filter.stats().shards), (empty, 1));
    }
    // A fixed filter is as large, without its table.
    assert!(size_of::<ConcurrentCuckooFilter>() <= 328);
}
