//! States that were made with one seed become one, and what a server dumped becomes a state.

use crate::common::*;
use koel::{ConcurrentCuckooFilter, StableHash};

#[test]
fn workers_that_went_apart_know_together_what_either_saw() {
    let place = Place::new();
    // A state of one shard, one of several, and an empty one.
    place.ok("add few.koel --seed 7", numbered(0..2_000));
    place.ok("add many.koel --seed 7", numbered(1_000..120_000));
    place.ok("add none.koel --seed 7", b"");
    let merged = place.json("merge seen.koel few.koel many.koel none.koel", "");
    has(&merged, json!({ "states": 3, "unchanged": false }));
    assert_eq!(place.known("seen.koel", &numbered(0..120_000)), numbered(0..120_000));
    assert_eq!(place.known("seen.koel", &numbered(200_000..201_000)), b"");
    // What is merged already changes nothing.
    let before = place.read("seen.koel");
    let merged = place.json("merge seen.koel many.koel", "");
    has(&merged, json!({ "states": 1, "added": 0, "unchanged": true }));
    assert_eq!(place.read("seen.koel"), before);
    // It is a state like any other.
    place.row(
        "dedup -q -s seen.koel",
        numbered(119_990..120_010),
        0,
        numbered(120_000..120_010),
        "",
    );
    place.row("merge -q few.koel seen.koel", "", 0, "", "");
    assert_eq!(place.known("few.koel", &numbered(0..120_010)), numbered(0..120_010));
}

#[test]
fn states_that_differ_are_refused_with_the_reason() {
    let place = Place::new();
    place.ok("add a.koel --seed 7", b"one\n");
    for (options, why) in [
        ("--seed 8", "b.koel: this state has another seed than the others"),
        ("", "b.koel: this state has another seed than the others"),
        ("--seed 7 --rate 0.01", "b.koel: this state stores "),
        ("--seed 7 --capacity 100000", "this state was made for 100,000 lines, and the others for"),
        ("--seed 7 --url", "b.koel: this state compares URLs (--url), and the others lines"),
        (
            "--seed 7 --forget-after 30d",
            "b.koel: this state forgets lines after 30d, and the others never",
        ),
    ] {
        place.ok(&format!("add b.koel {options}"), "two\n");
        place.assert_refused(&[
            ("merge out.koel a.koel b.koel", why),
            ("merge a.koel b.koel", "nothing was saved"),
        ]);
        std::fs::remove_file(place.path("b.koel")).expect("a state");
    }
    place.ok("add day.koel --seed 7 --forget-after 1d", b"three\n");
    place.ok("add month.koel --seed 7 --forget-after 30d", b"four\n");
    place.ok("add large.koel --seed 7", numbered(0..100_000));
    place.write("text.koel", b"not a state");
    place.assert_refused(&[
        (
            "merge day.koel month.koel",
            "month.koel: this state forgets lines after 30d, and the others after 1d",
        ),
        ("merge out.koel month.koel day.koel", "after 1d, and the others after 30d"),
        ("merge out.koel a.koel missing.koel", "missing.koel: no such state"),
        ("merge out.koel text.koel", "text.koel"),
        ("merge - a.koel", "a state must be a file"),
        ("merge a.koel", "STATE"),
        ("merge --max-memory 256K a.koel large.koel", "raise --max-memory"),
        ("add --seed 8 a.koel", "another seed"),
        ("add --seed x c.koel", "a number from 0 to"),
    ]);
}

#[test]
fn a_rate_that_is_higher_than_planned_is_told() {
    let place = Place::new();
    // Each is planned for its own lines.
    for worker in 0..6 {
        let lines = numbered(40_000 * worker..40_000 * (worker + 1));
        place.ok(&format!("add {worker}.koel --seed 7 --rate 0.01 --capacity 10000"), &lines);
    }
    let words = "merge all.koel 0.koel 1.koel 2.koel 3.koel 4.koel 5.koel";
    place.row(words, "", 0, "", "koel: the rate is ");
    has(&place.json("merge all.koel 0.koel", ""), json!({ "rate_exceeded": true }));
}

/// The chunks of a filter with these lines, and what the server says of it at their end.
fn dumped(count: u32, capacity: usize) -> Vec<Vec<u8>> {
    let builder = ConcurrentCuckooFilter::builder().capacity(capacity).false_positive_rate(1e-4);
    let filter = builder.hasher(StableHash::with_seed(7)).growing().build().unwrap();
    for line in 0..count {
        filter.insert(&format!("line number {line}")).unwrap();
    }
    let pieces = filter.pieces(100_000).map(|piece| piece.unwrap().as_bytes().to_vec());
    pieces.chain([b"\x89koelr, which is not koel's".to_vec()]).collect()
}

#[test]
fn chunks_of_a_server_are_a_state() {
    for (count, capacity) in [(0, 10), (1_000, 10), (100_000, 10), (10, 1_000_000)] {
        let place = Place::new();
        place.write("chunks", dumped(count, capacity).concat());
        place.row("merge seen.koel chunks", "", 0, "", "");
        assert_eq!(place.known("seen.koel", &numbered(0..count)), numbered(0..count));
        let next = numbered(count..count + 1);
        place.row("dedup -q --state seen.koel", numbered(0..count + 1), 0, next, "");
        // A state that was made of them takes them again.
        has(&place.json("merge seen.koel chunks", ""), json!({ "added": 0 }));
    }
}

#[test]
fn what_is_not_a_whole_dump_is_refused_and_leaves_nothing() {
    let place = Place::new();
    let chunks = dumped(100_000, 10);
    let whole = chunks.concat();
    let builder =
        ConcurrentCuckooFilter::builder().capacity(1_000_000).hasher(StableHash::with_seed(7));
    // The first of several chunks says enough.
    let fixed = builder.build().unwrap().piece_at(0, 0).unwrap().as_bytes().to_vec();
    for (what, bytes, why) in [
        ("nothing", vec![], "chunks: it is empty"),
        ("some chunks", chunks[0].clone(), "it ends before the filter is complete"),
        ("half a chunk", whole[..chunks[0].len() / 2].to_vec(), "a dump has the chunks"),
        ("text", b"hello\n".to_vec(), "use a state saved by dedup or add"),
        ("a fixed size", fixed, "fixed size"),
    ] {
        place.write("chunks", &bytes);
        println!("{what}");
        place.assert_refused(&[("merge seen.koel chunks", why)]);
    }
}
