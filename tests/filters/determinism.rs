//! The same operations in the same order, with the same hasher, make the same filter. And only the
//! hash of an item matters, not the method or the type through which it comes.

use crate::common::{Filter, Hashes, LAYOUTS, SplitMix, answers, fill_to_refusal, layouts, rounds};
use koel::{ConcurrentCuckooFilter, Prehashed};

fn capacities() -> &'static [usize] {
    rounds(&[1, 10, 300, 1_500], &[1, 10, 300, 5_000, 30_000])
}

/// Returns random hashes, enough that two different tables give different answers.
fn queries() -> impl Iterator<Item = u64> {
    let mut random = SplitMix(77);
    (0..30_000).map(move |_| random.next())
}

/// Fills, overfills, partly empties and refills the filter. Returns the outcome of each insert.
fn history<S: std::hash::BuildHasher>(filter: &Filter<S>, seed: u64) -> Vec<u8> {
    let mut random = SplitMix(seed);
    let mut inserted = Vec::new();
    let mut outcomes = Vec::new();
    for step in 0..2 * filter.stats().slots {
        let hash = random.next();
        let outcome = match step % 3 {
            0 | 1 => match filter.insert(&Prehashed(hash)) {
                Ok(()) => {
                    inserted.push(hash);
                    1
                }
                Err(_) => 0,
            },
            _ => match filter.insert_if_absent(&Prehashed(hash)) {
                Ok(true) => {
                    inserted.push(hash);
                    3
                }
                Ok(false) => 2,
                Err(_) => 0,
            },
        };
        outcomes.push(outcome);
        if outcome == 0 {
            // Make some room after every refusal.
            for _ in 0..20.min(inserted.len()) {
                let hash = inserted.swap_remove(random.below(inserted.len()));
                assert!(filter.remove(&Prehashed(hash)));
            }
        }
    }
    assert!(outcomes.contains(&0), "nothing was refused");
    outcomes
}

/// Runs a test with two filters that were made alike, of each layout and capacity.
fn for_pairs(test: impl Fn([Filter; 2], &str)) {
    for layout in layouts() {
        for &capacity in capacities() {
            let filters = [(); 2].map(|()| layout.filter(capacity));
            test(filters, &format!("{layout:?}, capacity {capacity}"));
        }
    }
}

#[test]
fn the_same_operations_give_the_same_outcomes_and_the_same_table() {
    for_pairs(|[one, other], what| {
        assert_eq!(history(&one, 5), history(&other, 5), "{what}");
        assert_eq!(one.stats(), other.stats());
        assert_eq!(answers(&one, queries()), answers(&other, queries()));
    });
}

/// The comparison in the test above can tell tables apart.
#[test]
fn other_operations_give_other_outcomes_and_another_table() {
    for layout in layouts().iter().filter(|layout| layout.is_vague()) {
        let [one, other] = [(); 2].map(|()| layout.filter(5_000));
        assert_ne!(history(&one, 5), history(&other, 6));
        assert_ne!(answers(&one, queries()), answers(&other, queries()), "{layout:?}");
    }
}

#[test]
fn a_cleared_filter_behaves_like_a_new_one() {
    for_pairs(|[used, new], what| {
        history(&used, 8);
        used.clear();
        assert_eq!(used.stats(), new.stats());
        assert_eq!(history(&used, 9), history(&new, 9), "{what}");
        assert_eq!(answers(&used, queries()), answers(&new, queries()));
    });
}

/// Not even the positions of items change: later operations go as if nothing had been refused.
#[test]
fn a_refused_insert_leaves_no_trace() {
    for_pairs(|[one, other], what| {
        let (_, refused) = fill_to_refusal(&one, &mut SplitMix(10));
        let mut hashes = SplitMix(10);
        while hashes.clone().next() != refused {
            other.insert(&Prehashed(hashes.next())).expect("it fitted in the first filter");
        }
        for _ in 0..20 {
            assert!(one.insert(&Prehashed(refused)).is_err());
            match one.insert_if_absent(&Prehashed(refused)) {
                Ok(new) => assert!(!new && one.contains(&Prehashed(refused))),
                Err(_) => assert!(!one.contains(&Prehashed(refused))),
            }
        }
        assert_eq!(answers(&one, queries()), answers(&other, queries()));
        assert_eq!(history(&one, 11), history(&other, 11), "{what}");
    });
}

#[test]
fn two_default_filters_hash_differently() {
    let [one, other] = [(); 2].map(|()| ConcurrentCuckooFilter::with_capacity(10));
    assert!((0..10u64).all(|item| one.hash_of(&item) != other.hash_of(&item)));
}

#[test]
fn an_item_is_the_same_owned_or_borrowed() {
    let filter = LAYOUTS[6].filter(2_000);
    for n in 0..900u32 {
        let (text, bytes) = (format!("https://{n}.example/"), n.to_le_bytes()[..3].to_vec());
        filter.insert(text.as_str()).expect("the capacity fits");
        filter.insert(&bytes).expect("the capacity fits");
        assert!(filter.contains(&text) && filter.contains(&text.as_str()));
        assert!(filter.contains(&text.clone().into_boxed_str()) && filter.remove(&text));
        assert!(filter.contains(&bytes[..]) && filter.count(&bytes.as_slice()) == 1);
        assert!(filter.remove(bytes.as_slice()) && filter.is_empty());
    }
}

/// Of every layout, not only of those that a short run takes: wide buckets once lost all in a copy.
#[test]
fn a_copy_in_memory_gives_the_same_answers() {
    for layout in LAYOUTS {
        for capacity in [1, 300, 20_000] {
            let filter = layout.filter(capacity);
            let hashes = SplitMix(9).take(capacity);
            filter.put(&hashes);
            let copy = filter.try_clone().expect("memory");
            assert_eq!((copy.len(), copy.stats().shards), (capacity, filter.stats().shards));
            assert!(copy.has(&hashes), "{layout:?}");
            let queries = || queries().take(2_000);
            assert_eq!(answers(&copy, queries()), answers(&filter, queries()), "{layout:?}");
        }
    }
}
