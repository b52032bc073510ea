//! Lookups in a file give the answers of the loaded filter, or an error.

use crate::common::{bytes_of, layouts, rounds, together};
use crate::damage::{HEADER, forgetful};
use crate::file::{ENTRY_WORDS, FilterFile, TIME, word};
#[cfg(target_os = "linux")]
use crate::process::{again, task};
use crate::{Filter, HASH, builder, grown, place, with_items};
use koel::SnapshotErrorKind::{Damaged, Incomplete, NotFound};
use koel::{Prehashed, SnapshotFile, SnapshotInfo, StableHash};
use std::fs::{self, File};
use std::hash::BuildHasher;
use std::path::Path;

type Opened = SnapshotFile<StableHash>;

/// Whether lookups read a mapping.
#[cfg(target_os = "linux")]
const MAPS: bool = cfg!(all(unix, target_pointer_width = "64"));

fn agrees(filter: &Filter, path: &Path) {
    filter.save(path).expect("a file");
    agrees_opened(filter, &Opened::open(path).expect("a file"));
    let file = Opened::open(path).expect("a file");
    assert_eq!(file.contains_at_once(&0u64), None);
    file.check().expect("an undamaged file");
    assert_eq!(file.contains_at_once(&0u64), Some(filter.contains(&0u64)));
}

fn agrees_opened(filter: &Filter, file: &Opened) {
    let mut hashes: Vec<Prehashed> =
        (0..rounds(20_000, 40_000u64)).map(|item| filter.hash_of(&item)).collect();
    // The first and the last shard too.
    hashes.extend([0, 1, u64::MAX, u64::MAX - 1].map(Prehashed));
    let expected = filter.contains_many(&hashes);
    assert_eq!(file.contains_many(&hashes).expect("answers"), expected);
    for item in 0..rounds(500, 5_000u64) {
        let item = item * 40;
        assert_eq!(file.contains(&item).expect("an answer"), filter.contains(&item));
        assert_eq!(file.count(&item).expect("an answer"), filter.count(&item));
        let found = file.contains_at_once(&item);
        assert!(found.is_none_or(|found| found == filter.contains(&item)));
    }
    assert_eq!(file.info().stats.items, filter.len());
    assert!(file.size_in_bytes() < 2_048 + 112 * file.info().stats.shards);
    let loaded = file.load().expect("the filter").stats();
    assert_eq!(loaded.items, filter.len());
    let (rate, now) = (file.info().stats.false_positive_rate, loaded.false_positive_rate);
    // Of one shard that has grown, it is exact.
    let off = if filter.grows() && filter.shards() == 1 { 1e-9 } else { 0.3 };
    assert!((rate - now).abs() <= off * now, "told {rate:e}, is {now:e}");
}

#[test]
fn a_file_answers_like_the_filter_that_it_holds() {
    let place = place();
    let path = &place.path;
    for layout in layouts() {
        for items in [0, 1, 20_000] {
            let filter = with_items(layout.filter_with(items.max(30), HASH), items as u64);
            // More copies of one item, as far as there is room.
            (0..items.min(3)).for_each(|_| _ = filter.insert(&0u64));
            agrees(&filter, path);
        }
    }
    let many = rounds(60_000, 300_000);
    for (items, rate) in [(0, 1e-3), (20_000, 1e-3), (many, 1e-3), (many, 1e-7)] {
        agrees(&grown(items, rate), path);
    }
    // Many roots, of which some have been split.
    let filter = builder(rounds(100_000, 300_000)).growing().build().expect("a filter");
    let items = 0u64..;
    for item in items.take_while(|_| filter.stats().splits < 5) {
        filter.insert(&item).expect("memory");
    }
    agrees(&filter, path);
}

#[test]
fn a_lookup_reads_only_the_shard_that_it_needs() {
    let place = place();
    let path = &place.path;
    grown(rounds(30_000, 60_000), 1e-3).save(path).expect("a file");
    let file = FilterFile::cut(&fs::read(path).expect("the file"));
    let shard = 8 * file.shard_words();
    let all: Vec<u64> = (0..rounds(1_000, 4_000u64)).map(|item| HASH.hash_one(item)).collect();
    let mut spared = 0;
    for spare in 0..file.blocks.len() {
        let mut bytes = file.bytes();
        for other in (0..file.blocks.len()).filter(|other| *other != spare) {
            bytes[file.shard_at(other) + shard / 2] ^= 1;
        }
        fs::write(path, &bytes).expect("a file");
        let opened = SnapshotFile::open(path).expect("what it is read from is whole");
        for hash in &all {
            match opened.contains(&Prehashed(*hash)) {
                Ok(found) => {
                    assert!(found);
                    spared += 1;
                }
                Err(error) => {
                    assert_eq!(error.kind(), Damaged);
                    let at = error.offset().expect("an offset") as usize;
                    let number = (at - HEADER) / shard;
                    assert!(at == file.shard_at(number) && number != spare);
                }
            }
        }
    }
    assert_eq!(spared, all.len(), "each item is in one shard");
}

/// A file of which these items are found absent would be believed. It is refused when it is opened.
fn is_not_believed(bytes: &[u8], items: &[u64], what: &str) {
    let place = place();
    fs::write(&place.path, bytes).expect("a file");
    match Opened::open(&place.path) {
        Err(error) => assert_eq!(error.kind(), Damaged, "{what}: {error}"),
        Ok(file) => {
            let absent = items.iter().filter(|item| matches!(file.contains(*item), Ok(false)));
            panic!("{what} is believed: {} items are absent", absent.count());
        }
    }
}

/// The time of the last block decides about the items of all others, which have no error of their own.
#[test]
fn no_flipped_bit_of_a_time_makes_an_item_absent() {
    let place = place();
    let path = &place.path;
    for filter in forgetful() {
        let whole = bytes_of(&filter);
        let all: Vec<u64> = (0..60_000).filter(|item| filter.contains(item)).collect();
        let cut = FilterFile::cut(&whole);
        let end = cut.entry_at(cut.blocks.len() - 1) + 8 * ENTRY_WORDS;
        for bit in (0..8 * 8 * TIME).step_by(rounds(5, 1)) {
            let mut bytes = whole.clone();
            bytes[end - 8 * TIME + bit / 8] ^= 1 << (bit % 8);
            is_not_believed(&bytes, &all, &format!("bit {bit} of the time"));
            fs::write(path, &bytes).expect("a file");
            let told = SnapshotInfo::read(path).map(|info| info.present_tick);
            assert_eq!(told.expect_err("a damaged tick").kind(), Damaged, "bit {bit}");
        }
    }
}

/// Blocks whose depths are exchanged cover all hashes as well.
#[test]
fn depths_that_fit_each_other_are_not_believed_for_that() {
    let filter = builder(30_000).growing().build().expect("a filter");
    let items = (0u64..).take_while(|item| {
        filter.insert(item).expect("memory");
        filter.stats().splits < 1
    });
    let items: Vec<u64> = items.collect();
    let mut file = FilterFile::cut(&bytes_of(&filter));
    let depths: Vec<u64> = file.depths().map(u64::from).collect();
    let mut reversed = depths.clone();
    reversed.reverse();
    assert!(depths.len() == 3 && depths != reversed, "{depths:?}");
    file.blocks.iter_mut().zip(reversed).for_each(|(block, depth)| block[word::DEPTH] = depth);
    is_not_believed(&file.bytes(), &items, "that depths are exchanged");
}

/// Only the index can tell, which was read when the file was opened.
#[test]
fn a_shard_of_another_file_is_refused() {
    let place = place();
    let path = &place.path;
    let (filter, other) = (grown(10_000, 1e-3), grown(9_000, 1e-3));
    let (bytes, others) = (bytes_of(&filter), bytes_of(&other));
    assert_eq!(bytes.len(), others.len());
    fs::write(path, &bytes).expect("a file");
    let opened = SnapshotFile::open(path).expect("a file");
    let index = FilterFile::cut(&bytes).index_at();
    let mixed = [&bytes[..HEADER], &others[HEADER..index], &bytes[index..]].concat();
    fs::write(path, mixed).expect("the same file with other contents");
    let again = SnapshotFile::open(path).expect("an index that is whole");
    for file in [opened.contains(&1u64), again.contains(&1u64)] {
        assert_eq!(file.expect_err("another shard").kind(), Damaged);
    }
    fs::write(path, &bytes[..9_000]).expect("the same file, cut off");
    assert_eq!(opened.contains(&1u64).expect_err("a short file").kind(), Incomplete);
}

#[test]
fn a_file_that_was_replaced_or_removed_answers_as_it_was() {
    let place = place();
    let path = &place.path;
    let filter = grown(1_000, 1e-6);
    filter.save(path).expect("a file");
    let open = || Opened::open(path).expect("a file");
    let (asked, fresh) = (open(), open());
    assert!(asked.contains(&999u64).expect("an answer"));
    grown(0, 1e-6).save(path).expect("a file");
    assert!(!open().contains(&999u64).expect("an answer"));
    fs::remove_file(path).expect("the file");
    for file in [asked, fresh] {
        assert!(file.contains(&999u64).expect("an answer"));
        assert_eq!(file.load().expect("the filter").stats().items, 1_000);
    }
    assert_eq!(Opened::open(path).expect_err("no file").kind(), NotFound);
}

/// A shard is read as a whole and validated when a lookup first leads to it, and not again.
#[test]
fn a_shard_is_checked_once() {
    let place = place();
    let path = &place.path;
    let bytes = bytes_of(&grown(3_000, 1e-3));
    let cut = FilterFile::cut(&bytes);
    let mut other = bytes.clone();
    (0..cut.blocks.len()).for_each(|it| other[cut.shard_at(it) + 16] ^= 1);
    fs::write(path, &bytes).expect("a file");
    let file = Opened::open(path).expect("a file");
    assert!(file.contains(&7u64).expect("an answer"));
    fs::write(path, &other).expect("the same file with other contents");
    assert!(file.contains(&7u64).expect("an answer"));
    let again = Opened::open(path).expect("an index that is whole");
    assert_eq!(again.contains(&7u64).expect_err("other contents").kind(), Damaged);
}

/// What is said of `cp` and of a shell's `>`.
#[cfg(target_os = "linux")]
#[test]
fn a_mapped_file_that_gets_shorter_kills_the_process() {
    use std::os::unix::process::ExitStatusExt;
    let place = place();
    let path = &place.path;
    fs::write(path, bytes_of(&grown(1_000, 1e-3))).expect("a file");
    let mut child = again("lookups::in_a_file_that_gets_shorter", &[path.to_str().expect("UTF-8")]);
    let output = child.output().expect("this program");
    assert_eq!(output.status.signal(), MAPS.then_some(7), "{output:?}");
}

#[cfg(target_os = "linux")]
#[test]
#[ignore = "the child of a test"]
fn in_a_file_that_gets_shorter() {
    let Some(task) = task() else { return };
    let file = Opened::open(&task[0]).expect("a file");
    assert!(file.contains(&1u64).expect("an answer"));
    File::create(&task[0]).expect("an empty file");
    let _ = file.contains(&1u64);
}

#[test]
fn threads_share_a_file() {
    let place = place();
    let path = &place.path;
    let filter = grown(rounds(60_000, 300_000), 1e-3);
    filter.save(path).expect("a file");
    let hashes: Vec<Prehashed> =
        (0..rounds(20_000, 100_000u64)).map(|item| filter.hash_of(&(7 * item))).collect();
    let expected = filter.contains_many(&hashes);
    let file = Opened::open(path).expect("a file");
    together(4, |thread| {
        if thread % 2 == 0 {
            assert!(file.contains_many(&hashes).expect("answers") == expected);
        }
        for (hash, expected) in hashes.iter().zip(&expected).skip(thread).step_by(3) {
            assert_eq!(file.contains(hash).expect("an answer"), *expected);
        }
    });
}
