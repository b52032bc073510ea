//! Lines are forgotten some time after they were seen.
//!
//! States are made here as they would be after some time. What may have gone and what must be there are two ticks
//! apart, so that a tick in the middle of a test would not be noticed.

use crate::common::*;
use koel::Window;
use koel::{ConcurrentCuckooFilter, SnapshotFile, StableHash};

const OF_ALL_AGES: [(i64, &str); 5] = [(40, "a"), (17, "b"), (12, "c"), (5, "d"), (0, "e")];

#[test]
fn what_is_too_old_is_new_again() {
    let place = Place::new();
    place.make_aged_state("seen.koel", OF_ALL_AGES);
    let before = place.read("seen.koel");
    let lines = b"a\nb\nc\nd\ne\nf\n";
    place.row("query --count --invert seen.koel", lines, 0, "3\n", "");
    place.row("dedup --count --state seen.koel", lines, 0, "3\n", "");
    place.row("{query,dedup --repeated --state} seen.koel", lines, 0, "c\nd\ne\n", "");
    assert_eq!(place.read("seen.koel"), before, "only read until now");
    has(&place.json("forget seen.koel", b"b\nc\n"), json!({ "lines": 2, "forgotten": 1 }));
    place.row("dedup --state seen.koel", lines, 0, "a\nb\nc\nf\n", "");
    has(&place.json("add seen.koel", lines), json!({ "added": 0 }));
    has(&place.json("query seen.koel", lines), json!({ "known": 6 }));
}

#[test]
fn info_tells_what_goes_when() {
    let place = Place::new();
    place.make_aged_state("seen.koel", OF_ALL_AGES);
    let info = place.info("seen.koel");
    has(&info, json!({ "items": 3 }));
    has(
        &info["forgets"],
        json!({ "ticks": 14, "seconds": 28 * 86_400, "tick_seconds": 2 * 86_400 }),
    );
    let goes = (0..).zip(place.expiring("seen.koel")).filter(|age| age.1 > 0);
    assert_eq!(goes.map(|age| age.0).collect::<Vec<u64>>(), [2, 9, 14]);
    let first = info["forgets"]["expiring"][0]["in_seconds"].as_u64().expect("seconds");
    assert!(first <= 2 * 86_400, "{first}");
    let text = place.ok("info seen.koel", "");
    assert!(text.text().contains("forgets    lines after 28d, or up to 2.0 d later\n"));
    assert_eq!(text.text().matches("1 in ").count(), 3, "{}", text.text());
}

#[test]
fn a_state_remembers_its_period_and_other_periods_are_refused() {
    let place = Place::new();
    place.row("dedup --state seen.koel --forget-after 28d", "a\nb\na\n", 0, "a\nb\n", "");
    place.row("dedup --state seen.koel", "b\nc\n", 0, "c\n", "");
    place.ok("add seen.koel --forget-after 4w", "d\n");
    assert_eq!(place.expiring("seen.koel").iter().sum::<u64>(), 4);
    place.make_state("for-ever.koel");
    let other = "seen.koel: this state forgets lines after 28d";
    let never = "for-ever.koel: this state remembers lines for ever";
    let units = "a number of seconds, minutes, hours, days or weeks";
    place.assert_refused(&[
        ("dedup --state seen.koel --forget-after 12h", other),
        ("{dedup --state for-ever.koel --forget-after 12h,add for-ever.koel --refresh}", never),
        ("dedup --refresh", "use it with --forget-after"),
        ("dedup --forget-after 12", units),
        ("dedup --forget-after 12h --lossless", "cannot be used with"),
        ("dedup --state new.koel --rate 3e-8 --forget-after 1d", "rate"),
    ]);
}

#[test]
fn refreshed_lines_are_remembered_from_then_on_and_saved() {
    let place = Place::new();
    place.make_aged_state("seen.koel", OF_ALL_AGES);
    has(&place.json("dedup -s seen.koel", "c\n"), json!({ "unchanged": true, "known": 3 }));
    assert_eq!(place.expiring("seen.koel")[2], 1, "seen first");
    let refreshed = place.json("dedup --refresh -s seen.koel", "c\n");
    has(&refreshed, json!({ "unchanged": false, "new": 0 }));
    let ages = place.expiring("seen.koel");
    assert_eq!((ages[2], ages[9], ages[14]), (0, 1, 2));
    // A second time in the same tick, which changes nothing, and by another command.
    place.ok("add --refresh seen.koel", "c\nd\n");
    let ages = place.expiring("seen.koel");
    assert_eq!((ages[2], ages[9], ages[14]), (0, 0, 3));
}

#[test]
fn a_clock_that_goes_backwards_makes_nothing_disappear() {
    let place = Place::new();
    // Saved when the clock was ten days ahead.
    place.make_aged_state("seen.koel", [(7, "a"), (-5, "b")]);
    let said = "ahead of this machine's clock";
    place.row("dedup --state seen.koel", "a\nb\nc\n", 0, "c\n", said);
    let window = Window::of_seconds(28 * 86_400);
    let file = SnapshotFile::open(place.path("seen.koel")).expect("a state");
    assert!(file.info().present_tick >= Some(window.number_now() + 4), "its time does not go back");
    assert_eq!(place.known("seen.koel", b"a\nb\nc\n"), b"a\nb\nc\n");
}

#[test]
fn ticks_of_another_program_are_not_meddled_with() {
    let place = Place::new();
    let builder = ConcurrentCuckooFilter::builder().capacity(10).hasher(StableHash::with_seed(7));
    let filter = builder.remembers(14).growing().build().expect("a filter");
    filter.insert("a").expect("memory");
    filter.save(place.path("no-numbers.koel")).expect("a state");
    filter.tick_to(29_720_000);
    filter.tick();
    filter.save(place.path("minutes.koel")).expect("a state");
    for state in ["no-numbers.koel", "minutes.koel"] {
        let words = format!("{{dedup --state,add,forget}} {state}");
        place.assert_refused(&[(&words, "which another program counts")]);
        assert_eq!(place.known(state, b"a\nb\n"), b"a\n");
        let info = place.ok(&format!("info {state}"), "");
        assert!(info.text().contains("after 14 ticks of another program"), "{}", info.text());
    }
}

#[test]
fn a_stream_is_deduplicated_over_a_while() {
    let place = Place::new();
    // What is seen first, what is seen last, and what is remembered for longer than this test takes.
    let mut all = ["1s", "1s --refresh", "1d"]
        .map(|period| place.start(&format!("dedup --quiet --forget-after {period}")));
    for running in &mut all {
        running.feed(b"a\na\nb\n");
        assert_eq!(running.next(4), b"a\nb\n");
    }
    // Ticks are the clock's seconds, and a line goes when a whole one has passed after its own.
    let came = Window::now();
    wait_until("the second after the next", || Window::now() >= came + 2);
    let fed: [(&[u8], &[u8]); 3] = [(b"a\na\n", b"a\n"), (b"a\na\n", b"a\n"), (b"a\nc\n", b"c\n")];
    for (mut running, (lines, new)) in all.into_iter().zip(fed) {
        running.feed(lines);
        assert_eq!(running.next(2), new);
        running.passes(b"end\n");
        running.end();
    }
}

#[test]
fn lines_that_were_not_written_are_new_again() {
    let place = Place::new();
    place.make_aged_state("seen.koel", OF_ALL_AGES);
    let lines = b"a\nx\nc\ny\nz\n";
    place.row("dedup --limit 2 --refresh --state seen.koel", lines, 0, "a\nx\n", "");
    place.row("dedup --state seen.koel", lines, 0, "y\nz\n", "");
}
