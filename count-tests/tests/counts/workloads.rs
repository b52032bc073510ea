//! The operations that are counted, one by one and as workloads, in a fixed and in a growing filter.

use crate::accesses::{Tally, Touched};
use koel_counted::counting::{Note, noted};
use koel_counted::{ConcurrentCuckooFilter, GrowingCuckooFilter, RandomState, Room};
use std::ops::Range;

/// The items that fill a filter. There are a dozen growing shards then.
const ITEMS: u64 = 200_000;
/// Keys from here on are never inserted.
const ABSENT: u64 = 1 << 40;

pub type Filter<R> = ConcurrentCuckooFilter<RandomState, R>;

pub fn fixed() -> ConcurrentCuckooFilter {
    ConcurrentCuckooFilter::with_capacity(ITEMS as usize)
}

pub fn growing() -> GrowingCuckooFilter {
    let builder = ConcurrentCuckooFilter::builder().capacity(1).growing();
    builder.false_positive_rate(0.001_4).build().expect("memory")
}

/// The tally of each operation of a kind.
pub type Tallies = (&'static str, Vec<Tally>);

fn each<T>(keys: Range<u64>, operation: impl Fn(u64) -> T) -> Vec<Tally> {
    keys.map(|key| Tally::of(&noted(|| operation(key)).1)).collect()
}

/// Fills a filter, asks it, and empties half of it.
pub fn operations<R: Room>(filter: &Filter<R>) -> Vec<Tallies> {
    let insert = |key| filter.insert_hash(key).expect("room");
    let insert_if_absent = |key| filter.insert_hash_if_absent(key).expect("room");
    let (mut inserts, mut checked) = (Vec::new(), Vec::new());
    for key in (0..ITEMS).step_by(2) {
        inserts.extend(each(key..key + 1, insert));
        checked.extend(each(key + 1..key + 2, insert_if_absent));
    }
    let storing = |tallies: &[Tally], words| -> Vec<Tally> {
        tallies.iter().filter(|tally| tally.words() == words).copied().collect()
    };
    let mut all = vec![
        ("contains, hit", each(0..ITEMS, |key| assert!(filter.contains_hash(key)))),
        ("contains, miss", each(ABSENT..ABSENT + ITEMS, |key| filter.contains_hash(key))),
        ("count, present", each(0..ITEMS, |key| assert!(filter.count_hash(key) > 0))),
        ("insert, an empty lane", storing(&inserts, 1)),
        ("insert, one move", storing(&inserts, 2)),
        ("insert_if_absent, present", each(0..ITEMS, insert_if_absent)),
        ("insert_if_absent, an empty lane", storing(&checked, 1)),
        ("insert_if_absent, one move", storing(&checked, 2)),
        ("remove, absent", each(ABSENT..ABSENT + ITEMS, |key| filter.remove_hash(key))),
        ("remove, present", each(ITEMS / 2..ITEMS, |key| filter.remove_hash(key))),
    ];
    // Items of a list have no words, and an item older than a split is removed in another way.
    let is_usual = |tally: &Tally| tally.other_swaps == 0 && !tally.splits();
    all.iter_mut().for_each(|(_, tallies)| tallies.retain(is_usual));
    all
}

/// What the operations of each workload touched, without those that split a shard, and their number.
pub fn workloads<R: Room>(new: impl Fn() -> Filter<R>) -> Vec<(&'static str, Touched, u64)> {
    let each = |operations: &mut dyn Iterator<Item = Vec<Note>>| {
        let (mut touched, mut number) = (Touched::default(), 0);
        for notes in operations {
            if !Tally::of(&notes).splits() {
                touched.add(&notes);
                number += 1;
            }
        }
        (touched, number)
    };
    let filter = new();
    let insert = |key| noted(|| filter.insert_hash(key).expect("room")).1;
    let inserts = each(&mut (0..ITEMS).map(insert));
    let filter = new();
    let insert_if_absent = |key| noted(|| filter.insert_hash_if_absent(key).expect("room")).1;
    let look_up = |key| noted(|| filter.contains_hash(key)).1;
    let checked = each(&mut (0..ITEMS).map(insert_if_absent));
    let known = each(&mut (0..ITEMS).map(insert_if_absent));
    let hits = each(&mut (0..ITEMS).map(look_up));
    let misses = each(&mut (ABSENT..ABSENT + ITEMS).map(look_up));
    let kept = ITEMS / 8 * 7;
    let removals = each(&mut (kept..ITEMS).map(|key| noted(|| filter.remove_hash(key)).1));
    // As `koel bench` has it: nine lookups, half of them hits, to one insert.
    let mixed = each(&mut (0..10 * (ITEMS - kept)).map(|number| match number % 10 {
        0 => insert_if_absent(ITEMS + number),
        at if (number / 10 + at) % 2 == 0 => look_up(number % kept),
        _ => look_up(ABSENT + number),
    }));
    let all = [
        ("insert, new", inserts),
        ("insert_if_absent, new", checked),
        ("insert_if_absent, known", known),
        ("lookup, hit", hits),
        ("lookup, miss", misses),
        ("remove", removals),
        ("mix 9 : 1", mixed),
    ];
    all.into_iter().map(|(name, (touched, number))| (name, touched, number)).collect()
}

/// Each operation on a filter of a few items, which are in a list.
pub fn listed() -> Vec<Tallies> {
    let filter = growing();
    const FEW: Range<u64> = 0..100;
    vec![
        ("insert", each(FEW, |key| filter.insert_hash(key).expect("memory"))),
        (
            "insert_if_absent",
            each(FEW, |key| filter.insert_hash_if_absent(2 * key).expect("memory")),
        ),
        ("contains", each(FEW, |key| filter.contains_hash(key))),
        ("count", each(FEW, |key| filter.count_hash(key))),
        ("remove", each(FEW, |key| filter.remove_hash(key))),
    ]
}

/// The removals of items that are older than several splits.
pub fn removals_of_old_items() -> Vec<Tally> {
    let filter = growing();
    (0..ITEMS).for_each(|key| filter.insert_hash(key).expect("memory"));
    each(0..1_000, |key| assert!(filter.remove_hash(key)))
}

/// The first inserts into a fixed filter.
pub fn some_inserts() -> Vec<Vec<Note>> {
    let filter = fixed();
    (0..1_000).map(|key| noted(|| filter.insert_hash(key).expect("room")).1).collect()
}

/// What the figures of a filter access, and how often they may do so at most.
pub fn figures<R: Room>(filter: &Filter<R>) -> [(&'static str, usize, Vec<Note>); 7] {
    // In each of 128 shards, the counts of 16 segments, and what is recorded of the shard.
    let some_shards = 128 * (16 + 24);
    let all_shards = filter.buckets() / 256;
    [
        ("{:?}", 10, noted(|| format!("{filter:?}")).1),
        ("buckets", 10, noted(|| filter.buckets()).1),
        ("capacity", 10, noted(|| filter.capacity()).1),
        ("size_in_bytes", 10, noted(|| filter.size_in_bytes()).1),
        ("the planned rate", 10, noted(|| filter.false_positive_rate_at_capacity()).1),
        ("the present rate", some_shards, noted(|| filter.false_positive_rate()).1),
        ("stats", some_shards + all_shards, noted(|| filter.stats()).1),
    ]
}
