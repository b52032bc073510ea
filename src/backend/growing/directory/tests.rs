use super::*;
use crate::layout::bucket::Lanes;
use crate::layout::geometry::Geometry;
use crate::layout::shrinking::GROWING_BUCKETS;

const THREE: Roots = Roots { count: 3 };

const SHARDS: usize = 64;

fn tables() -> Arena {
    let lanes = Lanes::of_bits(16);
    let geometry = Geometry::new(lanes, SHARDS, GROWING_BUCKETS);
    Arena::new(geometry).expect("memory")
}

/// The entry of a shard of the first table.
fn entry(tables: &Arena, depth: u32, number: usize) -> Entry {
    Entry::new(tables.sites_from(number).next().expect("a shard").1, depth)
}

/// A directory of three roots, of which the second is split, and then its upper half.
fn three_roots(tables: &Arena) -> Directory {
    let entry = |depth, number| entry(tables, depth, number);
    let directory = Directory::new(THREE, tables).expect("memory");
    let second = Mixed(u64::MAX / 2);
    directory.deepen(1).expect("memory");
    directory.replace(directory.look_up(second), entry(1, 1), entry(1, 3));
    directory.deepen(2).expect("memory");
    let upper = Mixed(u64::MAX / 3 * 2 - 1);
    directory.replace(directory.look_up(upper), entry(2, 3), entry(2, 4));
    directory
}

#[test]
fn every_hash_has_a_shard_and_the_shards_come_in_order() {
    let tables = tables();
    let entry = |depth, number| entry(&tables, depth, number);
    let directory = three_roots(&tables);
    let shards: Vec<Entry> = directory.shards().map(|seen| seen.entry).collect();
    let expected = [entry(0, 0), entry(1, 1), entry(2, 3), entry(2, 4), entry(0, 2)];
    assert_eq!(shards, expected);
    let mut last = 0;
    for step in 0..=60_000 {
        let seen = directory.look_up(Mixed(step * (u64::MAX / 60_000)));
        let at = shards.iter().position(|shard| *shard == seen.entry).expect("known");
        assert!(at == last || at == last + 1);
        last = at;
    }
    assert_eq!(last, shards.len() - 1);
}

#[test]
fn an_old_list_is_right_about_what_it_has() {
    let tables = tables();
    let entry = |depth, number| entry(&tables, depth, number);
    let directory = three_roots(&tables);
    assert_eq!(directory.shallowest(), 0);
    let first = directory.look_up(Mixed(0));
    directory.replace(first, entry(1, 0), entry(1, 5));
    directory.replace(directory.look_up(Mixed(u64::MAX)), entry(1, 2), entry(1, 6));
    assert!(!first.is_unchanged());
    assert_eq!(directory.shallowest(), 1);
}

#[test]
fn the_least_depth_is_known_without_a_look_at_the_entries() {
    let tables = tables();
    let depths = [0, 3, 3, 2, 1, 1, 1];
    let directory = Directory::restore(THREE, &tables, depths.into_iter()).expect("memory");
    let mut seed = 1u64;
    for number in 10..60 {
        let least = directory.shards().map(SeenEntry::depth).min();
        assert_eq!(Some(directory.shallowest()), least);
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let shard = directory.look_up(Mixed(seed));
        let depth = shard.depth() + 1;
        directory.deepen(depth).expect("memory");
        let lower = Entry::new(tables.at(shard.entry), depth);
        directory.replace(shard, lower, entry(&tables, depth, number));
    }
    assert!(directory.shallowest() > 0);
}

#[test]
fn lists_of_one_level_more_are_counted_and_made_once() {
    let directory = Directory::new(THREE, &tables()).expect("memory");
    let figures = || (directory.heap_bytes(), directory.missing_bytes(1));
    let (held, missing) = if cfg!(target_pointer_width = "64") { (64, 88) } else { (36, 48) };
    assert_eq!(figures(), (held, missing));
    directory.deepen(1).expect("memory");
    directory.deepen(1).expect("memory");
    assert_eq!(figures(), (held + missing, 0));
}
