//! Pieces of a filter that other threads change between two of them.

use crate::common::{bytes_of, rounds};
use crate::file::{FilterFile, word};
use crate::pieces::{cut, growing, loaded, pieces_of};
use crate::{Filter, builder, dump, place};

#[test]
fn nothing_is_lost_when_shards_are_split_between_two_pieces() {
    for capacity in [1, 50_000] {
        for after in rounds(&[1, 3][..], &[1, 2, 3]) {
            let filter = growing(capacity, 1e-5);
            let items = 100_000u64;
            (0..items).for_each(|item| filter.insert(&item).expect("memory"));
            let before = filter.stats().shards;
            let pieces = dump(&filter, 0, |pieces| {
                if pieces == *after {
                    (items..10 * items).for_each(|item| filter.insert(&item).expect("memory"));
                }
            });
            assert!(filter.stats().shards > 3 * before);
            FilterFile::joined(&cut(&pieces)).check();
            let again = loaded(&pieces);
            assert!((0..items).all(|item| again.contains(&item)));
            // Once: what was removed is not there any more.
            assert!((0..items).all(|item| again.remove(&item)));
            let left = (0..items).filter(|item| again.contains(item)).count();
            assert!(left < items as usize / 1_000, "{left} items are in twice");
            assert!((10 * items..11 * items).all(|item| again.insert(&item).is_ok()));
            assert!((10 * items..11 * items).all(|item| again.contains(&item)));
        }
    }
}

#[test]
fn a_filter_that_is_cleared_between_two_pieces_goes_on() {
    let filter = growing(1, 1e-5);
    (0..200_000u64).for_each(|item| filter.insert(&item).expect("memory"));
    let pieces = dump(&filter, 0, |pieces| {
        if pieces == 2 {
            filter.clear();
            filter.insert(&(1u64 << 50)).expect("memory");
        }
    });
    let again = loaded(&pieces);
    assert!(again.len() < 150_000 && !again.is_empty());
    // Only what was in the first two shards is left, and it can be removed.
    (0..200_000u64).filter(|item| again.contains(item)).for_each(|item| _ = again.remove(&item));
    assert!(again.len() <= 1);
}

#[test]
fn the_last_limit_counts() {
    let filter = growing(1, 1e-5);
    (0..200_000u64).for_each(|item| filter.insert(&item).expect("memory"));
    let bytes = filter.size_in_bytes();
    let pieces = dump(&filter, 0, |pieces| filter.set_max_bytes(2 * bytes + pieces));
    let last = 2 * bytes + pieces.len() - 1;
    let again = loaded(&pieces);
    assert_eq!(again.max_bytes(), last);
    assert_eq!(cut(&pieces)[pieces.len() - 1].header[word::MAX_BYTES], last as u64);
    filter.set_max_bytes(last);
    assert!(bytes_of(&again) == bytes_of(&filter));
}

#[test]
fn a_loaded_filter_stays_below_its_limit_and_uses_it_up() {
    let place = place();
    let path = &place.path;
    // Shards of few items, so that there are many.
    let filter = growing(1, 1e-8);
    let step = 100_000;
    for items in (0..rounds(10, 60)).map(|number| number * step) {
        (items..items + step).for_each(|item: u64| filter.insert(&item).expect("memory"));
        // What a filter takes that has nothing in advance, and the lists of its tables. A new table
        // would have up to five shards of 64 KiB.
        filter.save(path).expect("a file");
        let exact = Filter::load(path).expect("a filter");
        let limit = exact.size_in_bytes() + (96 << 10);
        filter.set_max_bytes(limit);
        let again = loaded(&pieces_of(&filter, 1 << 20));
        assert!(again.size_in_bytes() <= limit, "{} > {limit}", again.size_in_bytes());
        filter.set_max_bytes(usize::MAX);
    }

    let filter = growing(1, 1e-5);
    let limit = rounds(2 << 20, 16 << 20);
    filter.set_max_bytes(limit);
    let full = (0u64..).find(|item| filter.insert(item).is_err()).expect("a limit");
    let again = loaded(&pieces_of(&filter, 1 << 20));
    assert!(again.size_in_bytes() <= limit, "{} > {limit}", again.size_in_bytes());
    // It has no old directories, so it may take some more.
    let more = (full..).find(|item| again.insert(item).is_err()).expect("a limit") - full;
    assert!(more < full / 10, "{more} more than {full}");
    assert!((0..full).all(|item| again.contains(&item)));
}

/// Its many small tables take a little more than one. Where the limit leaves nothing for that, what is above it stays
/// small.
#[test]
fn a_filter_that_was_built_at_its_limit_is_read_close_to_it() {
    let builder = builder(3_000_000).growing();
    let limit = builder.clone().build().expect("memory").size_in_bytes();
    let filter = builder.max_bytes(limit).build().expect("room for the first shards");
    assert!(filter.stats().shards > 100);
    let again = Filter::read_from(&bytes_of(&filter)[..]).expect("a filter");
    let (size, most) = (again.size_in_bytes(), limit + limit / 80);
    assert!(size <= most, "{size} > {most}, with a limit of {limit}");
    assert!(bytes_of(&again) == bytes_of(&filter));
}
