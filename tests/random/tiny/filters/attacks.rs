//! Items chosen by an attacker who knows the hash function. The filter may refuse such items, but it must not grow
//! without bound or lose other items.
//!
//! (`tests/filters/growth.rs` in koel has items that no split separates: compared with tiny shards, a directory may be
//! large. `tests/filters/hot.rs` has those of which there are many copies.)

use crate::common::{Hashes, M, SplitMix, mixed};
use crate::small::{Tiny, layouts};
use koel_small::Prehashed;

/// Returns an item with the same two buckets as all others, whichever shard it is in.
fn of_two_buckets(random: &mut SplitMix) -> u64 {
    let is_one = |hash: &u64| mixed(*hash).wrapping_mul(M) >> 50 == 0x1234;
    std::iter::repeat_with(|| random.next()).find(is_one).expect("one")
}

#[test]
fn items_that_share_both_buckets_take_a_bounded_multiple_of_the_memory() {
    let mut random = SplitMix(1);
    let crowd: Vec<u64> = (0..3_000).map(|_| of_two_buckets(&mut random)).collect();
    for &layout in layouts() {
        let filter = layout.tiny();
        let inserted = filter.put_some(&crowd);
        layout.check_len(&filter, inserted.len());
        assert!(filter.has(&inserted), "{}", filter.stats());
        // An eighth of the slots was taken before the last split, unless there were few shards.
        let stats = filter.stats();
        let few = 17 * stats.slots / stats.shards;
        assert!(stats.slots <= few.max(8 * inserted.len() + few), "{layout:?}: {stats}");
        // Among other items, they split the shards that the others have filled.
        let filter = layout.tiny();
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
