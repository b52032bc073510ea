//! Files of filters that forget: what was saved expires as if it had never left memory.

use crate::common::{SplitMix, layouts, prehashed, rounds, with_rate};
use crate::file::{BLOCK_HEAD, FilterFile, word};
use koel::{ConcurrentCuckooFilter, Prehashed, SnapshotErrorKind, SnapshotFile, StableHash};
use std::io::{self, Write};

type Filter = ConcurrentCuckooFilter<StableHash>;

/// The kinds of filters, with a capacity that needs several shards, or one.
struct Fixed;
struct Growing;

trait Kind {
    const GROWS: bool;

    fn builder(capacity: usize) -> Builder;
}

type Builder = koel::Builder<StableHash>;

fn builder(capacity: usize) -> Builder {
    let builder = ConcurrentCuckooFilter::builder().capacity(capacity);
    builder.hasher(StableHash::with_seed(7))
}

impl Kind for Fixed {
    const GROWS: bool = false;

    fn builder(capacity: usize) -> Builder {
        builder(capacity)
    }
}

impl Kind for Growing {
    const GROWS: bool = true;

    fn builder(_: usize) -> Builder {
        builder(100).growing().expected_growth(4.0)
    }
}

/// A filter with this rate, or a higher one if none can keep it beside the stamps.
fn filter<K: Kind>(capacity: usize, rate: f64, ticks: u32) -> Filter {
    with_rate(K::builder(capacity).remembers(ticks), rate).build().expect("a filter")
}

/// Items of all ages, each with its own hash.
fn fill(filter: &Filter, ticks: u32, each: u64) {
    for tick in 0..2 * u64::from(ticks) + 3 {
        filter.tick_to(1_000 + tick);
        (0..each).for_each(|item| filter.insert(&Prehashed(hash_of(tick, item))).expect("room"));
    }
}

fn hash_of(tick: u64, item: u64) -> u64 {
    SplitMix(tick << 32 | item).next()
}

fn bytes(filter: &Filter) -> Vec<u8> {
    let mut bytes = Vec::new();
    let report = filter.write_to(&mut bytes).expect("memory");
    assert_eq!(report.bytes, bytes.len() as u64);
    bytes
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
    let mut loader = Filter::loader();
    for piece in filter.pieces(1 << 16) {
        loader.push(piece.expect("memory").as_bytes()).expect("the next piece");
    }
    loader.finish().expect("all pieces")
}

/// A file in the folder of this process, which is removed in the end.
struct InFile(std::path::PathBuf);

impl InFile {
    fn of(bytes: &[u8], name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("koel-{name}-{}", std::process::id()));
        std::fs::write(&path, bytes).expect("a file");
        InFile(path)
    }
}

impl Drop for InFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn a_loaded_filter_ticks_on_as<K: Kind>(name: &str) {
    for layout in layouts() {
        for ticks in rounds(&[6][..], &[1, 6, 7, 30, 62]) {
            for each in [3, rounds(10_000, 60_000) / u64::from(ticks + 1)] {
                let filter = filter::<K>(200_000, layout.rate, *ticks);
                fill(&filter, *ticks, each);
                let file = bytes(&filter);
                FilterFile::cut(&file).check();
                let on_disk = InFile::of(&file, name);
                let copies = [
                    Filter::read_from(&file[..]).expect("a file"),
                    Filter::load(&on_disk.0).expect("a file"),
                    filter.try_clone().expect("memory"),
                    in_pieces(&filter),
                ];
                let opened = SnapshotFile::open(&on_disk.0).expect("a file");
                let asked: Vec<u64> = (0..20).map(|tick| hash_of(tick, tick % each)).collect();
                let found: Vec<bool> =
                    asked.iter().map(|it| filter.contains(&Prehashed(*it))).collect();
                assert_eq!(opened.contains_many(&prehashed(&asked)).expect("undamaged"), found);
                answers_as(&opened, &copies[1], &asked);
                for copy in copies {
                    assert!(bytes(&copy) == file, "a copy is written as other bytes");
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
    }
}

#[test]
fn a_loaded_filter_ticks_on() {
    a_loaded_filter_ticks_on_as::<Fixed>("fixed");
}

#[test]
fn a_loaded_filter_that_grew_ticks_on() {
    a_loaded_filter_ticks_on_as::<Growing>("growing");
}

#[test]
fn a_filter_without_numbers_is_loaded_without() {
    let filter = filter::<Fixed>(100, 0.001, 6);
    for item in 0..20 {
        filter.insert(&item).expect("room");
        filter.tick();
    }
    let again = Filter::read_from(&bytes(&filter)[..]).expect("a file");
    assert_eq!((again.present_tick(), again.len()), (None, 6));
    again.tick();
    assert!(!again.contains(&14) && again.contains(&15));
}

/// Lets ticks pass, and items come, whenever something is written.
struct Ticking<'a> {
    filter: &'a Filter,
    bytes: Vec<u8>,
    next: u64,
    /// By how much each tick advances.
    step: u64,
}

impl Write for Ticking<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes.extend(bytes);
        self.filter.tick_to(self.filter.present_tick().expect("a number") + self.step);
        self.filter.insert(&Prehashed(hash_of(1 << 20, self.next))).expect("room");
        self.next += 1;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Ticks do not wait for a file to be written. What is loaded is of the time of the last shard: an item is
/// in it exactly if it was within its window then.
fn ticks_pass_while_a_file_is_written_of<K: Kind>(layout: f64, step: u64) {
    let filter = filter::<K>(2_000_000, layout, 14);
    fill(&filter, 14, 30_000);
    let begun = filter.present_tick().expect("a number");
    let mut writer = Ticking { filter: &filter, bytes: Vec::new(), next: 0, step };
    filter.write_to(&mut writer).expect("memory");
    let file = writer.bytes;
    let cut = FilterFile::cut(&file);
    cut.check();
    let written = cut.blocks.len() as u64;
    assert!(written > 2, "only {written} shards");
    let on_disk = InFile::of(&file, &format!("while-{step}-{}", K::GROWS));
    let copies =
        [Filter::read_from(&file[..]).expect("a file"), Filter::load(&on_disk.0).expect("a file")];
    let opened = SnapshotFile::open(&on_disk.0).expect("a file");
    let told = (opened.info().remembers, opened.info().present_tick);
    assert_eq!(told, (Some(14), copies[0].present_tick()));
    // A tick has passed after the header, and after each block before the last one.
    let time = begun + step * written;
    assert!(bytes(&copies[0]) == bytes(&copies[1]));
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
            ticks_pass_while_a_file_is_written_of::<Fixed>(layout.rate, step);
            ticks_pass_while_a_file_is_written_of::<Growing>(layout.rate, step);
        }
    }
}

/// The same for pieces, which a server asks for from time to time.
fn ticks_pass_between_pieces_of<K: Kind>() {
    let filter = filter::<K>(3_000_000, 0.001, 14);
    fill(&filter, 14, 20_000);
    let (mut loader, mut cursor, mut ticks) = (Filter::loader(), Some(0), 0);
    while let Some(at) = cursor {
        let piece = filter.piece_at(at, 0).expect("memory");
        loader.push(piece.as_bytes()).expect("the next piece");
        cursor = piece.next();
        if cursor.is_some() && ticks < 5 {
            filter.tick();
            ticks += 1;
        }
    }
    let copy: Filter = loader.finish().expect("all pieces");
    assert!(ticks > 1);
    assert_eq!((copy.len(), copy.present_tick()), (filter.len(), filter.present_tick()));
    assert_eq!(copy.expiring(), filter.expiring());
    assert!(bytes(&copy) == bytes(&filter), "a copy is written as other bytes");
}

#[test]
fn ticks_pass_between_pieces() {
    ticks_pass_between_pieces_of::<Fixed>();
    ticks_pass_between_pieces_of::<Growing>();
}

/// Files are written while another thread lets ticks pass.
#[test]
fn a_file_of_a_ticking_filter_is_right() {
    let filter = filter::<Growing>(100, 0.001, 3);
    fill(&filter, 3, 30_000);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..50 {
                filter.tick();
                (0..10_000u64).for_each(|item| {
                    let _ = filter.insert(&item);
                });
            }
        });
        for _ in 0..20 {
            let file = bytes(&filter);
            FilterFile::cut(&file).check();
            Filter::read_from(&file[..]).expect("an undamaged file");
        }
    });
}

fn wrong_times_are_refused_of<K: Kind>(each: u64) {
    let filter = filter::<K>(100_000, 0.001, 6);
    fill(&filter, 6, each);
    let good = FilterFile::cut(&bytes(&filter));
    let refused = |what: &str, change: &dyn Fn(&mut FilterFile)| {
        let mut file = good.clone();
        change(&mut file);
        let bytes = file.sealed().bytes();
        let error = Filter::read_from(&bytes[..]).expect_err(what);
        let kinds = [SnapshotErrorKind::Damaged, SnapshotErrorKind::Incomplete];
        assert!(kinds.contains(&error.kind()), "{what}: {error}");
        let on_disk = InFile::of(&bytes, &format!("wrong-{}-{each}", K::GROWS));
        Filter::load(&on_disk.0).expect_err(what);
        let looked_up = SnapshotFile::open(&on_disk.0).and_then(|file| {
            let hashes: Vec<u64> = (0..10_000).map(|item| hash_of(1, item)).collect();
            file.contains_many(&prehashed(&hashes))
        });
        looked_up.expect_err(what);
    };
    for ticks in [0, 63, 1 << 40] {
        refused("another window", &|file| file.header[word::TICKS] = ticks);
    }
    let time = good.time_at(&good.blocks[0]);
    refused("a stamp that is none", &|file| file.blocks[0][time] = 1 << 8 | 8);
    refused("a flag that is none", &|file| file.blocks[0][time] |= 1 << 9);
    refused("a number of none", &|file| file.blocks[0][time] &= !(1 << 8));
    goes_on_after_any_number_of_ticks(&good);
    // Of seven ticks ago, and a stamp without an item.
    let now = good.blocks[0][time] & 7;
    for lane in [0x1238 | now.wrapping_sub(7) & 7, now.max(1)] {
        refused("a stamp", &|file| {
            let bucket = file.blocks[0][BLOCK_HEAD..].iter().position(|bucket| *bucket == 0);
            let bucket = bucket.expect("an empty bucket") + BLOCK_HEAD;
            file.blocks[0][bucket] = lane;
            file.blocks[0][word::ITEMS] += 1;
        });
    }
    if good.blocks.len() > 1 {
        refused("an earlier time", &|file| file.blocks[0][time + 1] += 1);
        refused("one time with two stamps", &|file| file.blocks[0][time] ^= 1);
    }
}

/// A file may say that any number of ticks have passed. What is saved later can be loaded, too, although ticks pass
/// while it is written.
fn goes_on_after_any_number_of_ticks(good: &FilterFile) {
    for elapsed in [1 << 63, u64::MAX - 1, u64::MAX] {
        let mut file = good.clone();
        let time = file.time_at(&file.blocks[0]);
        file.blocks.iter_mut().for_each(|block| block[time + 1] = elapsed);
        let forged = file.sealed().bytes();
        let on_disk =
            InFile::of(&forged, &format!("elapsed-{}-{}", good.header[word::GROWS], good.items()));
        let streamed = Filter::read_from(&forged[..]).expect("a file");
        let gathered = in_pieces(&streamed);
        for filter in [streamed, Filter::load(&on_disk.0).expect("a file"), gathered] {
            let mut loader = Filter::loader();
            let mut cursor = Some(0);
            while let Some(at) = cursor {
                let piece = filter.piece_at(at, 0).expect("memory");
                loader.push(piece.as_bytes()).expect("the next piece");
                cursor = piece.next();
                // A whole tick may join shards, which ends a dump.
                assert!(filter.begin_tick());
                filter.tick_in_parts(usize::MAX);
            }
            loader.finish().expect("all pieces");
            let file = bytes(&filter);
            let again = Filter::read_from(&file[..]).expect("a file");
            assert_eq!((again.len(), again.present_tick()), (filter.len(), filter.present_tick()));
        }
    }
}

/// A filter with void lanes that forgets, after it was saved in the middle of a tick: what expires goes, and what stays
/// is there.
#[test]
fn void_lanes_expire() {
    let filter = filter::<Growing>(100, 0.4, 2);
    let items = SplitMix(42).take(rounds(800_000, 2_000_000));
    // Of items that this filter cannot tell apart, it takes some copies only.
    items.iter().for_each(|item| _ = filter.insert(&Prehashed(*item)));
    let written = bytes(&filter);
    let file = FilterFile::cut(&written);
    file.check();
    assert!(file.blocks.iter().map(|block| file.void_lanes(block)).sum::<i64>() > 1_000);
    let on_disk = InFile::of(&written, "void");
    let copies = [
        Filter::read_from(&written[..]).expect("a file"),
        Filter::load(&on_disk.0).expect("a file"),
        in_pieces(&filter),
        filter.try_clone().expect("memory"),
    ];
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
        let in_a_tick = Filter::read_from(&bytes(copy)[..]).expect("a file");
        copy.tick_in_parts(usize::MAX);
        for empty in [copy, &in_a_tick] {
            assert_eq!((empty.len(), empty.is_empty()), (0, true));
            assert_eq!(empty.false_positive_rate(), 0.0);
        }
    }
}

#[test]
fn wrong_times_are_refused() {
    wrong_times_are_refused_of::<Fixed>(2_000);
    wrong_times_are_refused_of::<Growing>(30_000);
    wrong_times_are_refused_of::<Growing>(3);
}
