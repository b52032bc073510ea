//! Files of filters that forget: what was saved expires as if it had never left memory.

use crate::common::{
    Hashes, Interrupted, SplitMix, bytes_of, layouts, prehashed, rounds, with_rate,
};
use crate::file::FilterFile;
use crate::process::Place;
use crate::snapshots::copies;
use crate::{Filter, builder, dump, place};
use koel::{Prehashed, SnapshotFile, StableHash};

/// A filter with this rate, or a higher one if none can keep it beside the stamps: fixed, of several shards, or growing.
fn filter(grows: bool, capacity: usize, rate: f64, ticks: u32) -> Filter {
    let builder = match grows {
        true => builder(100).growing().expected_growth(4.0),
        false => builder(capacity),
    };
    with_rate(builder.remembers(ticks), rate).build().expect("a filter")
}

/// Items of all ages, each with its own hash.
fn fill(filter: &Filter, ticks: u32, each: u64) {
    for tick in 0..2 * u64::from(ticks) + 3 {
        filter.tick_to(1_000 + tick);
        filter.put(&(0..each).map(|item| hash_of(tick, item)).collect::<Vec<_>>());
    }
}

fn hash_of(tick: u64, item: u64) -> u64 {
    SplitMix(tick << 32 | item).next()
}

/// Lookups in the file give the answers of the filter that was loaded, in which no tick has passed.
fn answers_as(opened: &SnapshotFile<StableHash>, loaded: &Filter, hashes: &[u64]) {
    for hash in hashes {
        let item = Prehashed(*hash);
        assert_eq!(opened.contains(&item).expect("undamaged"), loaded.contains(&item));
        assert_eq!(opened.count(&item).expect("undamaged"), loaded.count(&item));
    }
}

fn in_pieces(filter: &Filter) -> Filter {
    crate::pieces::loaded(&dump(filter, 1 << 16, |_| ()))
}

/// These bytes in a file, and the filters that are loaded from it and from a stream.
fn both_ways(bytes: &[u8]) -> (Place, [Filter; 2]) {
    let place = place();
    std::fs::write(&place.path, bytes).expect("a file");
    let loaded = Filter::load(&place.path).expect("a file");
    (place, [loaded, Filter::read_from(bytes).expect("a file")])
}

#[test]
fn a_loaded_filter_ticks_on() {
    let cases = rounds(&[6][..], &[1, 6, 7, 30, 62]).iter().flat_map(|ticks| {
        let many = rounds(10_000, 60_000) / u64::from(ticks + 1);
        [(*ticks, 3), (*ticks, many)]
    });
    let cases = cases.flat_map(|(ticks, each)| [(false, ticks, each), (true, ticks, each)]);
    for (layout, (grows, ticks, each)) in
        layouts().iter().flat_map(|layout| cases.clone().map(move |case| (layout, case)))
    {
        let filter = filter(grows, 200_000, layout.rate, ticks);
        fill(&filter, ticks, each);
        let file = bytes_of(&filter);
        let (place, [by_file, _]) = both_ways(&file);
        let opened = SnapshotFile::open(&place.path).expect("a file");
        let asked: Vec<u64> = (0..20).map(|tick| hash_of(tick, tick % each)).collect();
        let found = filter.contains_many(&prehashed(&asked));
        assert_eq!(opened.contains_many(&prehashed(&asked)).expect("undamaged"), found);
        answers_as(&opened, &by_file, &asked);
        for copy in copies(&filter) {
            assert!(bytes_of(&copy) == file, "a copy is written as other bytes");
            let original = Filter::read_from(&file[..]).expect("a file");
            for _ in 0..=ticks + 1 {
                assert_eq!(copy.present_tick(), original.present_tick());
                assert_eq!(copy.expiring(), original.expiring());
                assert_eq!(copy.len(), original.len());
                let next = copy.present_tick().expect("a number") + 1;
                assert_eq!((copy.tick_to(next), original.tick_to(next)), (1, 1));
            }
            assert!(copy.is_empty() && original.is_empty());
        }
    }
}

#[test]
fn a_filter_without_numbers_is_loaded_without() {
    let filter = filter(false, 100, 0.001, 6);
    for item in 0..20 {
        filter.insert(&item).expect("room");
        filter.tick();
    }
    let again = Filter::read_from(&bytes_of(&filter)[..]).expect("a file");
    assert_eq!((again.present_tick(), again.len()), (None, 6));
    again.tick();
    assert!(!again.contains(&14) && again.contains(&15));
}

/// Ticks do not wait for a file to be written. What is loaded is of the time of the last shard: an item is
/// in it exactly if it was within its window then.
fn ticks_pass_while_written(grows: bool, rate: f64, step: u64) {
    let filter = filter(grows, 2_000_000, rate, 14);
    fill(&filter, 14, 30_000);
    let begun = filter.present_tick().expect("a number");
    // Ticks pass, and items come, whenever something is written.
    let mut next = 0;
    let mut writer = Interrupted(Vec::new(), || {
        filter.tick_to(filter.present_tick().expect("a number") + step);
        filter.insert(&Prehashed(hash_of(1 << 20, next))).expect("room");
        next += 1;
    });
    filter.write_to(&mut writer).expect("memory");
    let file = writer.0;
    let cut = FilterFile::cut(&file);
    cut.check();
    let written = cut.blocks.len() as u64;
    assert!(written > 2, "only {written} shards");
    let (place, copies) = both_ways(&file);
    let opened = SnapshotFile::open(&place.path).expect("a file");
    let told = (opened.info().remembers, opened.info().present_tick);
    assert_eq!(told, (Some(14), copies[0].present_tick()));
    // A tick has passed after the header, and after each block before the last one.
    let time = begun + step * written;
    assert!(bytes_of(&copies[0]) == bytes_of(&copies[1]));
    for copy in &copies {
        assert_eq!(copy.present_tick(), Some(time));
        let first = time.saturating_sub(14 + 1_000).min(40);
        let (mut all, mut asked, mut found) = (0, Vec::new(), Vec::new());
        for tick in first..2 * 14 + 3 {
            for item in 0..30_000 {
                assert!(copy.contains(&Prehashed(hash_of(tick, item))), "{tick} at {time}");
                all += 1;
            }
            asked.push(hash_of(tick, 1));
            found.push(true);
        }
        // Those that came while it was written are in it or not.
        assert!((all..=all + written as usize).contains(&copy.len()), "{} of {all}", copy.len());
        let gone = (0..first).map(|tick| hash_of(tick, 7));
        asked.extend(gone.clone());
        found.extend(gone.map(|hash| copy.contains(&Prehashed(hash))));
        assert_eq!(opened.contains_many(&prehashed(&asked)).expect("undamaged"), found);
        answers_as(&opened, copy, &asked);
        for _ in 0..15 {
            copy.tick();
        }
        assert!(copy.is_empty());
    }
}

#[test]
fn ticks_pass_while_a_file_is_written() {
    for layout in layouts().iter().filter(|layout| layout.rate > 1e-7) {
        for step in [1, 100] {
            ticks_pass_while_written(false, layout.rate, step);
            ticks_pass_while_written(true, layout.rate, step);
        }
    }
}

/// The same for pieces, which a server asks for from time to time.
#[test]
fn ticks_pass_between_pieces() {
    for grows in [false, true] {
        let filter = filter(grows, 3_000_000, 0.001, 14);
        fill(&filter, 14, 20_000);
        let all = filter.pieces(0).count();
        let pieces = dump(&filter, 0, |pieces| {
            if pieces <= 5 && pieces < all {
                filter.tick();
            }
        });
        assert!(pieces.len() > 2);
        let copy = crate::pieces::loaded(&pieces);
        assert_eq!((copy.len(), copy.present_tick()), (filter.len(), filter.present_tick()));
        assert_eq!(copy.expiring(), filter.expiring());
        assert!(bytes_of(&copy) == bytes_of(&filter), "a copy is written as other bytes");
    }
}

/// A file may say that any number of ticks have passed. What is saved later can be loaded, too, although ticks pass
/// while it is written.
#[test]
fn a_filter_goes_on_after_any_number_of_ticks() {
    let cases = [(false, 2_000), (true, 30_000), (true, 3)].into_iter();
    let all = [1 << 63, u64::MAX - 1, u64::MAX];
    for ((grows, each), elapsed) in cases.flat_map(|case| all.map(|elapsed| (case, elapsed))) {
        let filter = filter(grows, 100_000, 0.001, 6);
        fill(&filter, 6, each);
        let mut file = FilterFile::cut(&bytes_of(&filter));
        let time = file.time_at(&file.blocks[0]);
        file.blocks.iter_mut().for_each(|block| block[time + 1] = elapsed);
        let forged = file.sealed().bytes();
        let (_, [by_file, by_stream]) = both_ways(&forged);
        let gathered = in_pieces(&by_stream);
        for filter in [by_file, by_stream, gathered] {
            // A whole tick may join shards, which ends a dump.
            let pieces = dump(&filter, 0, |_| {
                assert!(filter.begin_tick());
                filter.tick_in_parts(usize::MAX);
            });
            crate::pieces::loaded(&pieces);
            let file = bytes_of(&filter);
            let again = Filter::read_from(&file[..]).expect("a file");
            assert_eq!((again.len(), again.present_tick()), (filter.len(), filter.present_tick()));
        }
    }
}

/// A filter with void lanes that forgets, after it was saved in the middle of a tick: what expires goes, and what stays
/// is there.
#[test]
fn void_lanes_expire() {
    let filter = filter(true, 100, 0.4, 2);
    let items = SplitMix(42).take(rounds(800_000, 2_000_000));
    // Of items that this filter cannot tell apart, it takes some copies only.
    items.iter().for_each(|item| _ = filter.insert(&Prehashed(*item)));
    let written = bytes_of(&filter);
    let file = FilterFile::cut(&written);
    file.check();
    assert!(file.blocks.iter().map(|block| file.void_lanes(block)).sum::<i64>() > 1_000);
    let copies = copies(&filter);
    for copy in copies.iter().chain([&filter]) {
        assert_eq!(copy.expiring(), filter.expiring());
    }
    for copy in copies.iter().chain([&filter]) {
        copy.tick();
        items.iter().step_by(2).for_each(|item| assert!(copy.refresh(&Prehashed(*item))));
        copy.tick();
        copy.tick();
        // All of the refreshed items are there.
        assert!(items.iter().step_by(2).all(|item| copy.contains(&Prehashed(*item))));
        assert!(copy.begin_tick());
        let in_a_tick = Filter::read_from(&bytes_of(copy)[..]).expect("a file");
        copy.tick_in_parts(usize::MAX);
        for empty in [copy, &in_a_tick] {
            assert_eq!((empty.len(), empty.is_empty()), (0, true));
            assert_eq!(empty.false_positive_rate(), 0.0);
        }
    }
}
