//! What a server dumped becomes a state, or is merged into one.

use crate::common::*;
use koel::{ConcurrentCuckooFilter, StableHash};

fn lines(from: u32, to: u32) -> Vec<u8> {
    (from..to).flat_map(|line| format!("line {line}\n").into_bytes()).collect()
}

/// The chunks of a filter with these lines, and what the server says of it at their end.
fn dumped(count: u32, capacity: usize) -> Vec<Vec<u8>> {
    let builder = ConcurrentCuckooFilter::builder().capacity(capacity).false_positive_rate(1e-4);
    let filter = builder.hasher(StableHash::with_seed(7)).growing().build().unwrap();
    for line in 0..count {
        filter.insert(&format!("line {line}")).unwrap();
    }
    let pieces = filter.pieces(100_000).map(|piece| piece.unwrap().as_bytes().to_vec());
    pieces.chain([b"\x89koelr, which is not koel's".to_vec()]).collect()
}

#[test]
fn chunks_of_a_server_are_a_state() {
    for (count, capacity) in [(0, 10), (1_000, 10), (100_000, 10), (10, 1_000_000)] {
        let place = Place::new();
        place.write("chunks", dumped(count, capacity).concat());
        let ran = place.koel("merge seen.koel chunks");
        assert_eq!((ran.code, ran.stdout.len()), (Some(0), 0), "{}", ran.stderr);
        assert_eq!(place.known("seen.koel", &lines(0, count)), lines(0, count));
        let ran = place.koel_on("dedup -q --state seen.koel", &lines(0, count + 1));
        assert_eq!((ran.stdout, &*ran.stderr), (lines(count, count + 1), ""));
        // A state that was made of them takes them again.
        let ran = place.koel("merge seen.koel chunks --json");
        assert_eq!((ran.code, json(&ran)["added"].as_u64()), (Some(0), Some(0)), "{}", ran.stderr);
    }
}

#[test]
fn what_is_not_a_whole_dump_is_refused_and_leaves_nothing() {
    let place = Place::new();
    let chunks = dumped(100_000, 10);
    let whole = chunks.concat();
    let mut damaged = whole.clone();
    damaged[200_000] ^= 1;
    let builder =
        ConcurrentCuckooFilter::builder().capacity(1_000_000).hasher(StableHash::with_seed(7));
    // The first of several chunks says enough.
    let fixed = builder.build().unwrap().piece_at(0, 0).unwrap().as_bytes().to_vec();
    let swapped = [&chunks[1][..], &chunks[0], &chunks[2]].concat();
    for (what, bytes, why) in [
        ("nothing", vec![], "chunks: it is empty"),
        ("some chunks", chunks[0].clone(), "it ends before the filter is complete"),
        ("half a chunk", whole[..chunks[0].len() / 2].to_vec(), "a dump has the chunks"),
        ("half a front", whole[..100].to_vec(), "a dump has the chunks"),
        ("text", b"hello\n".to_vec(), "use a state saved by dedup or add"),
        ("swapped", swapped, "a dump has the chunks"),
        ("damaged", damaged, "a dump has the chunks"),
        ("a fixed size", fixed, "fixed size"),
    ] {
        place.write("chunks", &bytes);
        let ran = place.koel("merge seen.koel chunks");
        assert_eq!((ran.code, ran.stdout.len()), (Some(2), 0), "{what}");
        assert!(ran.stderr.contains(why), "{what}: {}", ran.stderr);
        assert_eq!(place.names(), ["chunks"], "{what}");
    }
}
