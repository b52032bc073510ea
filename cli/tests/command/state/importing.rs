//! What a server dumped becomes a state.

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
fn a_missing_file_is_named_in_plain_words() {
    let ran = Place::new().koel("import new.koel nosuch");
    assert_eq!((ran.code, &*ran.stderr), (Some(2), "koel: nosuch: No such file or directory\n"));
}

#[test]
fn chunks_of_a_server_are_a_state() {
    for (count, capacity) in [(0, 10), (1_000, 10), (100_000, 10), (10, 1_000_000)] {
        let place = Place::new();
        let chunks = dumped(count, capacity).concat();
        place.write("chunks", &chunks);
        let ran = place.koel("import seen.koel chunks");
        assert_eq!((ran.code, ran.stdout.len()), (Some(0), 0), "{}", ran.stderr);
        assert_eq!(place.known("seen.koel", &lines(0, count)), lines(0, count));
        let ran = place.koel_on("dedup -q --state seen.koel", &lines(0, count + 1));
        assert_eq!((ran.stdout, &*ran.stderr), (lines(count, count + 1), ""));

        let ran = place.koel_on("import -q again.koel", &chunks);
        assert_eq!((ran.code, &*ran.stderr), (Some(0), ""));
        assert_eq!(place.known("again.koel", &lines(0, count)), lines(0, count));
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
        ("nothing", vec![], "there is nothing to import"),
        ("some chunks", chunks[0].clone(), "it ends before the filter is complete"),
        ("half a chunk", whole[..chunks[0].len() / 2].to_vec(), "pass the chunks"),
        ("half a front", whole[..100].to_vec(), "pass the chunks"),
        ("text", b"hello\n".to_vec(), "pass the chunks"),
        ("swapped", swapped, "pass the chunks"),
        ("damaged", damaged, "pass the chunks"),
        ("a fixed size", fixed, "this filter has a fixed size"),
    ] {
        place.write("chunks", &bytes);
        let ran = place.koel("import seen.koel chunks");
        assert_eq!((ran.code, ran.stdout.len()), (Some(2), 0), "{what}");
        assert!(ran.stderr.contains(why), "{what}: {}", ran.stderr);
        assert_eq!(place.names(), ["chunks"], "{what}");
    }
    place.write("chunks", &whole);
    place.write("seen.koel", "precious");
    let ran = place.koel("import seen.koel chunks");
    assert!(ran.code == Some(2) && ran.stderr.contains("it exists"), "{}", ran.stderr);
    assert_eq!(place.read("seen.koel"), b"precious");
}
