//! The last number of a tick.

use crate::common::bytes_of;
use koel::{ConcurrentCuckooFilter, PersistentHasher, StableHash};

#[test]
fn the_last_number_stays_and_items_expire_as_before() {
    let builder = || {
        let builder = ConcurrentCuckooFilter::builder().capacity(100).remembers(3);
        builder.hasher(StableHash::with_seed(1))
    };
    let fixed = || builder().build().expect("a filter");
    let shard = || builder().growing().build().expect("a filter");
    let shards = || {
        let builder = builder().capacity(100_000).growing();
        builder.build().expect("a filter")
    };
    check(&fixed(), &fixed());
    check(&shard(), &shard());
    check(&shards(), &shards());
}

fn check<S>(filter: &ConcurrentCuckooFilter<S>, other: &ConcurrentCuckooFilter<S>)
where
    S: PersistentHasher + Clone,
{
    filter.tick_to(u64::MAX - 1);
    for item in 0..3 {
        filter.insert(&item).expect("room");
        filter.tick();
        assert_eq!(filter.present_tick(), Some(u64::MAX));
        assert_eq!([0, 5, u64::MAX].map(|number| filter.tick_to(number)), [0; 3]);
        assert_eq!(filter.begin_tick_to(1), 0);
    }
    let file = bytes_of(filter);
    let loaded = ConcurrentCuckooFilter::read_from(&file[..]).expect("what was saved");
    let copy: ConcurrentCuckooFilter<S> = filter.try_clone().expect("memory");
    other.tick_to(7);
    other.union(filter).expect("room");
    for filter in [filter, &loaded, &copy, other] {
        for left in (0..=3).rev() {
            assert_eq!(filter.present_tick(), Some(u64::MAX));
            let found = (0..3).filter(|item| filter.contains(item));
            assert!(found.eq(3 - left..3), "they do not expire one by one");
            filter.tick();
        }
        // And a file that is written then.
        let file = bytes_of(filter);
        let loaded = ConcurrentCuckooFilter::<S>::read_from(&file[..]).expect("it is whole");
        assert_eq!((loaded.len(), loaded.present_tick()), (0, Some(u64::MAX)));
    }
    // A filter that is behind is as far then, whatever has become of the ages.
    let copy = other.try_clone().expect("memory");
    other.insert("the last").expect("room");
    copy.union(other).expect("room");
    assert!(copy.contains("the last"));
}
