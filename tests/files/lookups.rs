//! Lookups in a file give the answers of the loaded filter, or an error.

use crate::common::{bytes_of, layouts, rounds, together};
use crate::damage::HEADER;
use crate::file::FilterFile;
#[cfg(target_os = "linux")]
use crate::process::{again, task};
use crate::{Filter, HASH, builder, grown, place, with_items};
use koel::SnapshotErrorKind::{Damaged, Incomplete, NotFound};
use koel::{Prehashed, SnapshotFile, StableHash};
use std::fs::{self, File};
use std::hash::BuildHasher;
use std::path::Path;

type Opened = SnapshotFile<StableHash>;

/// Whether lookups read a mapping.
#[cfg(target_os = "linux")]
const MAPS: bool = cfg!(all(unix, target_pointer_width = "64"));

fn agrees(filter: &Filter, path: &Path) {
    filter.save(path).expect("a file");
    let file = Opened::open(path).expect("a file");
    assert_eq!(file.contains_at_once(&0u64), None);
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
    file.check().expect("an undamaged file");
    assert_eq!(file.contains_at_once(&0u64), Some(filter.contains(&0u64)));
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
    let (items, roots) = (0u64.., filter.shards());
    for item in items.take_while(|_| filter.shards() < roots + 5) {
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

/// A shard is read as a whole and validated when a lookup first leads to it, and not again. Only the index can tell that
/// it is of another file, which was read when the file was opened.
#[test]
fn a_shard_is_checked_once() {
    let place = place();
    let path = &place.path;
    let (bytes, others) = (bytes_of(&grown(10_000, 1e-3)), bytes_of(&grown(9_000, 1e-3)));
    assert_eq!(bytes.len(), others.len());
    let index = FilterFile::cut(&bytes).index_at();
    let mixed = [&bytes[..HEADER], &others[HEADER..index], &bytes[index..]].concat();
    let open = |contents: &[u8]| {
        fs::write(path, contents).expect("a file");
        Opened::open(path).expect("an index that is whole")
    };
    let kind = |file: &Opened| file.contains(&1u64).expect_err("other contents").kind();
    let [asked, fresh, cut] = [(); 3].map(|()| open(&bytes));
    assert!(asked.contains(&1u64).expect("an answer"));
    let again = open(&mixed);
    assert!(asked.contains(&1u64).expect("an answer"));
    assert_eq!([&fresh, &again].map(kind), [Damaged; 2]);
    fs::write(path, &bytes[..9_000]).expect("the same file, cut off");
    assert_eq!(kind(&cut), Incomplete);
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
