use super::*;
use crate::set::about::About;
use crate::set::items::Answer;
use crate::set::{Body, Counted, Set};
use koel::{Prehashed, StableHash};

/// A set of fixed size, in the tick 1,000.
fn set(capacity: u64, forget_after: u64) -> Set {
    let mut about = About::new(capacity, 0.001);
    (about.expansion, about.forget_after) = (0, forget_after);
    about.hasher = StableHash::with_seed(7);
    let Ok(set) = Set::new(about) else { panic!("no memory") };
    set.begin_tick(1_000);
    set
}

/// Numbers that look random.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) % end
    }
}

fn answers(items: usize) -> Vec<Answer> {
    vec![Ok(false); items]
}

/// Holds the count of a set against what its filter counts, after the end of the tick.
fn check(set: &Set, when: &str) {
    let told = set.len() as u64;
    set.finish_tick();
    let Body::Filter(body) = &set.body else { panic!("a filter") };
    let Counted { filter, count } = &**body;
    let counted = Count::of(filter);
    let mut kept = count.as_ref().expect("a fixed size").again();
    kept.pass(filter.present_tick());
    assert_eq!(told, counted.items, "{when}");
    assert_eq!((kept.items, &kept.expiring), (counted.items, &counted.expiring), "{when}");
}

#[test]
fn what_is_counted_is_what_the_filter_has() {
    // Of one shard and of several; that stay full and that do not.
    for (capacity, forget_after) in [(500, 0), (500, 14), (3_000, 14), (600_000, 14)] {
        let (mut set, mut random) = (set(capacity, forget_after), Random(capacity));
        let first: Vec<Prehashed> =
            (0..capacity.saturating_sub(1_000)).map(|item| set.hash(&item.to_le_bytes())).collect();
        set.add_many(&first, usize::MAX, &mut answers(first.len()));
        let mut tick = 1_000;
        for round in 0..if capacity > 10_000 { 200 } else { 5_000 } {
            let hashes: Vec<Prehashed> = (0..=random.below(300))
                .map(|_| set.hash(&random.below(2 * capacity).to_le_bytes()))
                .collect();
            match random.below(100) {
                0..20 => _ = set.add(hashes[0], usize::MAX),
                20..40 => _ = set.add_if_absent(hashes[0], usize::MAX),
                40..45 => set.add_many(&hashes, usize::MAX, &mut answers(hashes.len())),
                45..60 => set.add_many_if_absent(&hashes, usize::MAX, &mut answers(hashes.len())),
                60..90 => hashes.iter().take(5).for_each(|hash| _ = set.remove(*hash)),
                90..92 => set = set.try_clone().expect("memory"),
                92..94 => {
                    let mut other = set.try_clone().expect("memory");
                    hashes.iter().for_each(|hash| _ = other.remove(*hash));
                    hashes.iter().for_each(|hash| _ = other.add(*hash, usize::MAX));
                    if let Ok(merged) = set.merged(&[&other], usize::MAX) {
                        set = merged;
                    }
                }
                94 => {
                    tick += if random.below(8) == 0 { 20 } else { 3 };
                    set.begin_tick(tick);
                }
                _ => {
                    tick += 1;
                    set.begin_tick(tick);
                }
            }
            assert!(set.len() as u64 <= capacity);
            if random.below(10) == 0 {
                check(&set, &format!("{capacity} for {forget_after}, round {round}"));
            }
        }
    }
}

#[test]
fn to_add_takes_no_count_and_no_end_of_a_tick() {
    // Two shards: what is added to one leaves the other alone.
    let mut set = set(700_000, 14);
    let hashes: Vec<Prehashed> =
        (0..700_001u64).map(|item| set.hash(&item.to_le_bytes())).collect();
    set.add_many(&hashes[..700_000], usize::MAX, &mut answers(700_000));
    assert_eq!(COUNTED.get(), 1);
    let new = hashes[700_000];
    set.begin_tick(1_001);
    assert!(set.add(new, usize::MAX).is_err() && set.add_if_absent(new, usize::MAX).is_err());
    assert!(set.is_ticking() && set.remove(hashes[0]));
    assert!(set.add(new, usize::MAX).is_ok() && set.add(new, usize::MAX).is_err());
    assert!(set.is_ticking());
    // All expires but that one, which is there for another tick.
    set.begin_tick(1_015);
    assert_eq!((set.len(), set.is_ticking()), (1, true));
    let mut added = 0;
    while set.is_ticking() && added < 100 {
        assert!(set.add(hashes[added], usize::MAX).is_ok());
        added += 1;
    }
    assert_eq!((added, set.len(), COUNTED.get()), (100, 101, 1));
}
