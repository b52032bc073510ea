//! A state of many shards: few lines are looked up in its file, many in memory, and damage is told in
//! either case where an answer would depend on it.

use crate::common::*;
use std::fs;

/// The bytes of a shard in the file: its buckets have two words.
const BLOCK: usize = 8 * (2 * 8_192 + 4);

/// A state that is not loaded at once.
fn place_with_a_large_state() -> Place {
    let place = Place::new();
    let ran = place.koel_on("add --rate 1e-7 large.koel", &numbered(0..600_000));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(place.read("large.koel").len() > 16 * BLOCK);
    place
}

#[test]
fn few_lines_and_many_have_the_same_answers() {
    let place = place_with_a_large_state();
    let (before, new) = (numbered(0..100_000), numbered(1_000_000..1_100_000));
    assert_eq!(place.koel_on("query large.koel", &numbered(7..9)).stdout, numbered(7..9));
    assert_eq!(place.koel_on("query large.koel", &numbered(1_000_000..1_000_001)).code, Some(1));
    assert!(place.koel_on("query large.koel", &before).stdout == before);
    let mixed = [new, before.clone()].concat();
    // One of the new lines may be taken for a seen one.
    let seen = place.koel_on("query large.koel", &mixed).stdout;
    assert!(seen.ends_with(&before) && seen.len() < before.len() + 5 * b"1000000\n".len());
}

#[test]
fn damage_is_told_where_an_answer_would_depend_on_it() {
    let place = place_with_a_large_state();
    let whole = place.read("large.koel");
    let (block, count) = (BLOCK, (whole.len() - 264) / BLOCK);
    let mut damaged = whole.clone();
    for number in (0..count).filter(|number| number % 2 == 0) {
        damaged[208 + number * block + block / 2] ^= 1;
    }
    place.write("damaged.koel", damaged);
    let (mut answered, mut refused) = (0, 0);
    for number in 0..30 {
        let line = numbered(number..number + 1);
        let ran = place.koel_on("query damaged.koel", &line);
        match ran.code {
            Some(0) => {
                answered += 1;
                assert_eq!(ran.stdout, line);
            }
            code => {
                refused += 1;
                assert_eq!((code, &ran.stdout[..]), (Some(2), &b""[..]), "{}", ran.stderr);
                let why = "damaged.koel: it is damaged at byte";
                assert!(ran.stderr.contains(why), "{}", ran.stderr);
            }
        }
    }
    assert!(answered > 3 && refused > 3, "{answered} answered, {refused} refused");
    let ran = place.koel_on("query damaged.koel", &numbered(0..100_000));
    assert_eq!((ran.code, ran.stdout.len()), (Some(2), 0), "{}", ran.stderr);
}

#[test]
fn a_state_that_is_replaced_meanwhile_answers_as_it_was() {
    let place = place_with_a_large_state();
    place.koel_on("add --rate 1e-7 other.koel", &numbered(0..10));
    // A line at a time: each is answered before the next is there.
    let mut going = place.start("query --quiet large.koel");
    let (first, rest) = (numbered(0..1), numbered(100..60_000));
    going.feed(&first);
    assert_eq!(going.next(first.len()), first);
    fs::rename(place.path("other.koel"), place.path("large.koel")).unwrap();
    let answers = collect(going.stdout.take().unwrap());
    going.feed(&rest);
    drop(going.stdin.take());
    assert!(answers.join().unwrap() == rest);
    let (status, stderr) = going.wait();
    assert!(status.success(), "{stderr}");
}
