//! The specification of the file format is correct and complete: a reader that is written from it
//! alone gives the same answers as the filters.

use crate::Filter;
use crate::common::{Hashes, Layout, SplitMix, bytes_of, growing_layouts, layouts, rounds};
use crate::file::{FilterFile, mix, word};
use koel::{ConcurrentCuckooFilter, Prehashed, StableHash};

const HASH: StableHash = StableHash::with_seed(0x0123_4567_89AB_CDEF);

fn growing(rate: f64, capacity: usize) -> Filter {
    let builder = ConcurrentCuckooFilter::builder().capacity(capacity).hasher(HASH);
    builder.false_positive_rate(rate).growing().expected_growth(1.0).build().expect("a filter")
}

fn file_of(filter: &Filter) -> FilterFile {
    let bytes = bytes_of(filter);
    let file = FilterFile::cut(&bytes);
    assert!(file.bytes() == bytes);
    file.check();
    let void = file.blocks.iter().map(|block| file.void_lanes(block)).sum::<i64>();
    assert!((file.items()..=file.items() + void).contains(&(filter.len() as i64)));
    assert_eq!(file.bits(), filter.stats().fingerprint_bits);
    file
}

/// Checks that the filter and the reader give the same counts for the inserted hashes and for others. Returns how many
/// of the others were absent and how many present.
fn agree(filter: &Filter, file: &FilterFile, inserted: &[u64]) -> [usize; 2] {
    for hash in inserted {
        let found = file.count(*hash);
        assert!(found > 0, "{hash:x} was inserted");
        assert_eq!(found, filter.count(&Prehashed(*hash)), "{hash:x}");
    }
    let mut answers = [0, 0];
    for hash in SplitMix(!(inserted.len() as u64)).take(rounds(20_000, 100_000)) {
        let found = file.count(hash);
        assert_eq!(found, filter.count(&Prehashed(hash)), "{hash:x}");
        answers[usize::from(found > 0)] += 1;
    }
    answers
}

/// Small ones, and one of several shards.
#[test]
fn fixed_filters_of_all_layouts_and_sizes_match_the_specification() {
    let sizes = [1, 2, 5, 9, 20, 50, 77, 300, 1_000, 4_321, 30_000, 123_456];
    for layout in layouts() {
        let large = layout.slots() * 260_000;
        let all = sizes.into_iter().map(|size| (size, size));
        for (capacity, items) in all.chain([(large, large / rounds(100, 4))]) {
            let filter = layout.filter_with(capacity, HASH);
            let hashes = SplitMix(capacity as u64).take(items);
            filter.put(&hashes);
            let file = file_of(&filter);
            let is_large = capacity == large;
            assert!(!is_large || file.roots() >= 3, "{layout:?}");
            assert_eq!(file.header[word::NEAR] >= 512, is_large, "{layout:?}");
            assert!(is_large || file.header[word::NEAR] == 0, "{layout:?}");
            let [out, found] = agree(&filter, &file, &hashes);
            let is_rare = layout.bits > 12 || capacity < 100 || is_large;
            assert!(out > 0 && (found > 0 || is_rare), "{layout:?} {capacity}");
        }
    }
}

#[test]
fn a_filter_that_grew_evenly_matches_the_specification() {
    for &Layout { bits, rate, .. } in growing_layouts() {
        let (many, most) = rounds((30_000, 100_000), (200_000, 600_000));
        for (capacity, items) in [(1, 0), (1, 40), (1_000, many), (300_000, most)] {
            let filter = growing(rate, capacity);
            let hashes = SplitMix(items as u64).take(items);
            filter.put(&hashes);
            let file = file_of(&filter);
            assert_eq!(file.bits(), bits);
            let [out, found] = agree(&filter, &file, &hashes);
            let is_rare = bits > 12 || items < 1_000;
            assert!(out > 0 && (found > 0 || is_rare), "{bits} bits: {out} {found}");
            assert!(capacity < 300_000 || file.roots() > 1);
        }
    }
}

/// Returns hashes. Two thirds of them begin with five zero bits after mixing.
fn crowded(items: usize) -> Vec<u64> {
    let mut random = SplitMix(3);
    let mut next = |zeros: u32| {
        let hashes = std::iter::repeat_with(|| random.next());
        hashes.into_iter().find(|hash| mix(*hash).leading_zeros() >= zeros).expect("one of them")
    };
    (0..items as u32).map(|number| next(if number.is_multiple_of(3) { 0 } else { 5 })).collect()
}

#[test]
fn a_filter_that_grew_in_one_part_matches_the_specification() {
    for &Layout { bits, rate, .. } in growing_layouts() {
        for &capacity in rounds(&[1][..], &[1, 200_000]) {
            let filter = growing(rate, capacity);
            // Such hashes use up small windows without making room, so some are refused. And some cannot be told
            // apart, so that they are refused as copies.
            let mut hashes = crowded(rounds(100_000, 200_000));
            hashes.retain(|hash| filter.insert(&Prehashed(*hash)).is_ok());
            let file = file_of(&filter);
            let depths = file.depths();
            let (least, most) = depths.fold((31, 0), |(a, b), depth| (a.min(depth), b.max(depth)));
            assert!(least + 2 < most, "{bits} bits: {least} to {most}");
            agree(&filter, &file, &hashes);
        }
    }
}

#[test]
fn void_lanes_match_the_specification() {
    let filter = growing(0.13, 1);
    let hashes = SplitMix(5).take(2_500_000);
    let (old, new) = hashes.split_at(30_000);
    filter.put(&hashes);
    let file = file_of(&filter);
    assert!(file.depths().all(|depth| depth > file.window()));
    // Such a window has only its highest bit left, and the lane matches every item with its anchor.
    let window = 1 << file.window();
    let buckets = file.blocks.iter().flat_map(|block| file.buckets_of(block).chunks(file.words()));
    let void = buckets.flat_map(|bucket| file.lanes(bucket));
    let void = void.filter(|lane| lane % window == window / 2).count();
    assert!(void > old.len(), "{void}");
    agree(&filter, &file, &old[..rounds(10_000, old.len())]);
    agree(&filter, &file, &new[new.len() - rounds(10_000, 100_000)..]);
}

#[test]
fn no_lane_is_void_within_the_expected_growth() {
    for &growth in rounds(&[2.0, 8.0][..], &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0]) {
        for rate in [0.9, 0.1, 0.03, 0.01, 1e-3] {
            let builder = ConcurrentCuckooFilter::builder().capacity(100).hasher(HASH).growing();
            let builder = builder.false_positive_rate(rate).expected_growth(growth);
            let filter = builder.build().expect("a filter");
            let mut random = SplitMix(8);
            // One more shard would be more than the growth.
            while (filter.shards() as f64) < growth {
                (0..50).for_each(|_| _ = filter.insert(&Prehashed(random.next())));
            }
            let file = file_of(&filter);
            let void = file.blocks.iter().map(|block| file.void_lanes(block)).sum::<i64>();
            assert_eq!(void, 0, "growth {growth}, {rate}");
        }
    }
}

#[test]
fn items_are_hashed_as_the_specification_says() {
    let filter = growing(0.005, 1_000);
    filter.insert("a str").expect("memory");
    filter.insert(&b"bytes"[..]).expect("memory");
    filter.insert(&7u64).expect("memory");
    filter.insert(&Prehashed(HASH.hash_bytes(b"hashed"))).expect("memory");
    let file = file_of(&filter);
    let items: [&[&[u8]]; 4] = [&[b"a str"], &[b"bytes"], &[b"\x07\0\0\0\0\0\0\0"], &[b"hashed"]];
    for pieces in items {
        assert_eq!(file.count(file.hash_of(pieces)), 1, "{pieces:?}");
    }
}
