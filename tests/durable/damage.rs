//! A journal of which a power failure took a part, or that is damaged.

use crate::common::{SplitMix, rounds};
use koel::{
    ConcurrentCuckooFilter, DurableErrorKind, DurableFilter, DurableOptions, SnapshotFile,
    StableHash, SyncPolicy,
};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

type Builder = koel::Builder<StableHash>;

fn builder() -> Builder {
    let builder = ConcurrentCuckooFilter::builder().hasher(StableHash::with_seed(7));
    builder.false_positive_rate(1e-7).capacity(1_000).growing()
}

fn open(path: &Path) -> Result<DurableFilter, koel::DurableError> {
    DurableFilter::open_with(path, DurableOptions::default().sync(SyncPolicy::Never), builder())
}

/// The only journal in a folder.
fn journal(folder: &Path) -> PathBuf {
    let entries =
        fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("a name").path());
    let journals = entries.filter(|path| path.to_string_lossy().contains(".journal."));
    let journals: Vec<_> = journals.collect();
    assert_eq!(journals.len(), 1, "{journals:?}");
    journals[0].clone()
}

/// Returns the state, the name of the journal beside it, and the journal.
fn state_and_journal(folder: &Path) -> (Vec<u8>, String, Vec<u8>) {
    let (state, journal) = (folder.join("seen.koel"), journal(folder));
    let name = journal.file_name().expect("a name").to_str().expect("text").to_string();
    (fs::read(state).expect("a file"), name, fs::read(journal).expect("a file"))
}

/// Puts a state and a journal where they can be opened.
fn placed(state: &[u8], name: &str, journal: &[u8]) -> tempfile::TempDir {
    let folder =
        tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a folder");
    fs::write(folder.path().join("seen.koel"), state).expect("a file");
    fs::write(folder.path().join(name), journal).expect("a file");
    folder
}

/// All files in a folder but the lock, by their names.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries =
        fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("a name").path());
    let name = |path: &Path| path.file_name().expect("a name").to_str().expect("text").to_string();
    let entries = entries.filter(|path| path.is_file());
    let files = entries.map(|path| (name(&path), fs::read(&path).expect("a file")));
    files.filter(|(name, _)| !name.ends_with("claim")).collect()
}

#[test]
fn a_power_failure_takes_nothing_that_was_synced_and_brings_nothing() {
    let mut random = SplitMix(3);
    for round in 0..rounds(12, 240) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("seen.koel");
        let seen = open(&path).expect("a filter");
        // Of some sizes: parts of a page, pages, and chunks.
        let count = [20, 3_000, 30_000][round % 3] + random.next() % 100;
        for item in 0..count {
            assert!(seen.insert_if_absent(&item).expect("room"));
        }
        for item in (0..count).step_by(5) {
            assert!(seen.remove(&item).expect("a change"));
        }
        seen.sync().expect("a sync");
        let synced = files(folder.path());
        for item in count..count * 2 {
            assert!(seen.insert_if_absent(&item).expect("room"));
            if item % 3 == 0 {
                assert!(seen.remove(&item).expect("a change"));
            }
            if item % 7 == 0 && !(item - count).is_multiple_of(5) {
                assert!(seen.remove(&(item - count)).expect("a change"));
            }
            // An item that came before and went before, comes and goes once more.
            if item % 11 == 0 && (item - count).is_multiple_of(5) {
                let again = item - count;
                assert!(seen.insert_if_absent(&again).expect("room"));
            }
        }
        // An item that was there goes, and comes again. It is never there twice.
        let back = |item: &u64| {
            (item + count).is_multiple_of(7) && !item.is_multiple_of(5) && item.is_multiple_of(2)
        };
        for item in (0..count).filter(back) {
            assert!(seen.insert_if_absent(&item).expect("room"));
        }
        for again in (0..count).filter(|again| (again + count).is_multiple_of(11) && again % 5 == 0)
        {
            assert!(seen.remove(&again).expect("a change"));
        }
        let written = files(folder.path());
        let after = tempfile::tempdir().expect("a folder");
        for (name, written) in written {
            let mut left = synced.get(&name).cloned().unwrap_or_default();
            left.resize(written.len(), 0);
            // The header of a journal is synced before anything is recorded in it.
            left[..64].copy_from_slice(&written[..64]);
            let odds = random.next() % 11;
            for (old, new) in left.chunks_mut(512).zip(written.chunks(512)).skip(1) {
                if random.next() % 10 < odds {
                    old.copy_from_slice(new);
                }
            }
            fs::write(after.path().join(name), left).expect("a file");
        }
        let path = after.path().join("seen.koel");
        let mut added_later = 4 * count..4 * count;
        for opened in 0..4 {
            let seen = open(&path).expect("a filter");
            // What was added since the failure is there, whatever is lost of what came before.
            assert!(
                added_later.clone().all(|item| seen.contains(&item)),
                "round {round}, {opened}"
            );
            for item in added_later.end..added_later.end + 300 {
                assert!(seen.insert_if_absent(&item).expect("room"));
            }
            added_later.end += 300;
            let told = format!("round {round}, {count} items, opened {opened}");
            for item in 0..count {
                let removed_later = (item + count).is_multiple_of(7) && item % 5 != 0;
                let came_again = (item + count).is_multiple_of(11) && item % 5 == 0;
                if !removed_later && !came_again {
                    assert_eq!(seen.contains(&item), item % 5 != 0, "{told}: {item}");
                }
                assert!(seen.count(&item) <= 1, "{told}: {item} is there twice");
            }
            assert!((2 * count..3 * count).all(|item| !seen.contains(&item)), "{told}");
            // What is there may be removed, and takes nothing else with it.
            let there = (0..2 * count).filter(|item| seen.contains(item)).count() as u64;
            let later = added_later.end - added_later.start;
            assert_eq!(there + later, seen.len() as u64, "{told}");
        }
    }
}

#[test]
fn a_damaged_journal_is_refused_or_counts_up_to_the_damage() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("seen.koel");
    let seen = open(&path).expect("a filter");
    for item in 0..60u64 {
        assert!(seen.insert_if_absent(&item).expect("room"));
    }
    assert!((0..10u64).all(|item| seen.remove(&item).expect("a change")));
    drop(seen);
    let (state, name, right) = state_and_journal(folder.path());
    // Up to the first record that is still blank: each bit of a byte that is not zero, and one of those that are. A
    // short run takes a bit of some bytes that are not zero.
    let end = right.iter().rposition(|byte| *byte != 0).expect("records") + 17;
    let mut lost = [0; 2];
    let mut damaged = [0; 2];
    let bits = (0..end).flat_map(|at| (0..9).map(move |bit| (at, bit)));
    let bits = bits.filter(|(at, bit)| {
        let (is_used, is_one) = (right[*at] != 0, *bit == at % 8);
        rounds(is_used && at % 37 == 0 && (is_one || *bit == 8), is_used || is_one)
    });
    for (at, bit) in bits {
        // For the ninth, the file ends here.
        let cut = bit == 8;
        let mut bytes = right.clone();
        match cut {
            true => bytes.truncate(at),
            false => bytes[at] ^= 1 << bit,
        }
        damaged[usize::from(cut)] += 1;
        let place = placed(&state, &name, &bytes);
        let seen = match open(&place.path().join("seen.koel")) {
            Ok(seen) => seen,
            Err(error) => {
                assert!(at < 64, "{at}: {error}");
                assert_eq!(error.kind(), DurableErrorKind::Journal);
                continue;
            }
        };
        // A damaged record takes those of its stream behind it, and is counted with them.
        if right[at] != 0 {
            assert_eq!(seen.lost_changes() > 0, !cut, "{at}");
        }
        assert!((60..1_000u64).all(|item| !seen.contains(&item)));
        let there = (0..60u64).filter(|item| seen.contains(item)).count();
        let is_short = there != 50;
        assert!(!is_short || cut || seen.lost_changes() > 0, "{at}: lost in silence");
        lost[usize::from(cut)] += usize::from(is_short);
    }
    assert!(lost.iter().all(|lost| *lost > 0), "{lost:?}");
    let [flipped, cut] = damaged;
    println!(
        "checked: {flipped} journals with one bit flipped, {cut} that were cut off: 0 items that nobody added, 0 \
         bits that took a change in silence"
    );
}

/// Whether it is damaged or blank, what comes after it is counted.
#[test]
fn what_is_lost_is_counted() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("seen.koel");
    let seen = open(&path).expect("a filter");
    // One item that comes and goes is in one stream.
    for _ in 0..50 {
        assert!(seen.insert_if_absent(&1u64).expect("room"));
        assert!(seen.remove(&1u64).expect("a change"));
    }
    drop(seen);
    let (state, name, right) = state_and_journal(folder.path());
    for (blank, lost) in [(16..32, 9), (0..0, 0)] {
        let mut bytes = right.clone();
        let place = (4 << 10) + 16 * 90;
        bytes[place..][blank].fill(0);
        let place = placed(&state, &name, &bytes);
        let seen = open(&place.path().join("seen.koel")).expect("a filter");
        // The one that is blank is gone without a trace.
        assert_eq!(seen.lost_changes(), lost);
    }
    // The last makes the code of an addition that of the beginning of a chunk.
    for (record, byte, bit, lost) in [(91, 8, 0x40, 10), (91, 15, 0x40, 10), (99, 8, 4, 2)] {
        let mut bytes = right.clone();
        bytes[(4 << 10) + 16 * record + byte] ^= bit;
        let place = placed(&state, &name, &bytes);
        let seen = open(&place.path().join("seen.koel")).expect("a filter");
        assert_eq!(seen.lost_changes(), lost, "{record} {byte}");
    }
}

/// A disk that writes a sector to another place has a right record there, of the right journal.
#[test]
fn a_record_at_another_place_is_not_taken_for_a_change() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("seen.koel");
    let seen = open(&path).expect("a filter");
    for _ in 0..20 {
        assert!(seen.insert_if_absent(&1u64).expect("room"));
        assert!(seen.remove(&1u64).expect("a change"));
    }
    drop(seen);
    let (state, name, right) = state_and_journal(folder.path());
    let end = right.iter().rposition(|byte| *byte != 0).expect("records") / 16 * 16 + 16;
    let removed = end - 16;
    // The last addition once more, behind the last record or in the place of the last removal.
    for place in [end, removed] {
        let mut bytes = right.clone();
        bytes.copy_within(removed - 16..removed, place);
        let placed = placed(&state, &name, &bytes);
        let seen = open(&placed.path().join("seen.koel")).expect("a filter");
        assert_eq!(seen.lost_changes(), 1, "{place}");
        assert_eq!(seen.count(&1u64), usize::from(place == removed), "{place}");
    }
}

/// Where a journal has grown, a disk may have what an earlier journal of the same filter had there.
#[test]
fn a_record_of_an_earlier_journal_is_not_taken_for_a_change() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("seen.koel");
    let seen = open(&path).expect("a filter");
    for item in 0..50u64 {
        assert!(seen.insert_if_absent(&item).expect("room"));
    }
    let earlier = fs::read(journal(folder.path())).expect("a file");
    seen.clear().expect("a change");
    seen.checkpoint().expect("a checkpoint");
    assert!(seen.insert_if_absent(&1_000u64).expect("room"));
    drop(seen);
    let (state, name, mut bytes) = state_and_journal(folder.path());
    let end = bytes.iter().rposition(|byte| *byte != 0).expect("a record");
    let stale = end.next_multiple_of(4 << 10)..bytes.len().min(earlier.len());
    assert!(earlier[stale.clone()].iter().any(|byte| *byte != 0));
    bytes[stale.clone()].copy_from_slice(&earlier[stale]);
    let placed = placed(&state, &name, &bytes);
    let seen = open(&placed.path().join("seen.koel")).expect("a filter");
    assert!(seen.contains(&1_000u64));
    assert!((0..50u64).all(|item| !seen.contains(&item)));
}

#[test]
fn a_journal_of_another_state_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("seen.koel");
    let seen = open(&path).expect("a filter");
    assert!(seen.insert_if_absent(&1u64).expect("room"));
    drop(seen);
    let other = builder().build().expect("a filter");
    other.insert(&2u64).expect("room");
    fs::remove_file(&path).expect("a file");
    other.write_to(File::create(&path).expect("a file")).expect("a state");
    assert_eq!(open(&path).expect_err("another state").kind(), DurableErrorKind::OtherState);
    fs::remove_file(&path).expect("a file");
    let error = open(&path).expect_err("a journal without its state");
    assert_eq!(error.kind(), DurableErrorKind::OtherState);
    assert_eq!(error.path(), Some(&*journal(folder.path()).canonicalize().expect("a file")));
}

#[test]
fn a_journal_that_has_lost_its_header_is_not_taken_for_an_empty_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("seen.koel");
    let seen = open(&path).expect("a filter");
    assert!(seen.insert_if_absent(&1u64).expect("room"));
    drop(seen);
    let journal = journal(folder.path());
    let whole = fs::read(&journal).expect("a file");
    fs::write(&journal, [&[0; 512], &whole[512..]].concat()).expect("a file");
    assert_eq!(open(&path).expect_err("no header").kind(), DurableErrorKind::Journal);
    // Nothing has been recorded in one that is nothing but zeros.
    fs::write(&journal, vec![0; whole.len()]).expect("a file");
    assert!(!open(&path).expect("a filter").contains(&1u64));
}

/// Beside a journal, a copy of it that is older or newer is not taken for the journal in silence.
#[test]
fn two_copies_of_a_journal_with_changes_are_refused_and_both_stay() {
    for (number, blank) in [(2, false), (0, false), (2, true), (0, true)] {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("seen.koel");
        let seen = open(&path).expect("a filter");
        let own = journal(folder.path());
        if !blank {
            assert!(seen.insert_if_absent(&0u64).expect("room"));
        }
        let copy = folder.path().join(format!("seen.koel.journal.{number}"));
        fs::copy(&own, &copy).expect("a file");
        for item in 1..100u64 {
            assert!(seen.insert_if_absent(&item).expect("room"));
        }
        drop(seen);
        // A journal without a header is not removed either.
        let without = folder.path().join("seen.koel.journal.7");
        File::create(&without).expect("a file");
        let before = files(folder.path());
        match open(&path) {
            Ok(seen) => {
                assert!(blank && !without.exists(), "{number}");
                assert!((1..100u64).all(|item| seen.contains(&item)), "{number}");
            }
            Err(error) => {
                assert!(!blank, "{number}: {error}");
                assert_eq!(error.kind(), DurableErrorKind::CopiedJournal);
                for journal in [&own, &copy] {
                    let journal = journal.canonicalize().expect("a file");
                    assert!(error.to_string().contains(journal.to_str().expect("text")), "{error}");
                }
                assert!(files(folder.path()) == before, "{number}");
                // As the error says.
                fs::remove_file(&copy).expect("a file");
                let seen = open(&path).expect("a filter");
                assert!((0..100u64).all(|item| seen.contains(&item)), "{number}");
            }
        }
    }
}

/// Both are empty at first, with the same seed, so their states differ in nothing but what they are called.
#[test]
fn a_journal_of_a_filter_that_was_made_alike_is_refused() {
    for opened in 1..4 {
        let folder = tempfile::tempdir().expect("a folder");
        let [one, other] = ["one.koel", "other.koel"].map(|name| folder.path().join(name));
        for _ in 1..opened {
            drop(open(&one).expect("a filter"));
            open(&other).expect("a filter").close().expect("a state");
        }
        let seen = open(&one).expect("a filter");
        assert!(seen.insert_if_absent(&1u64).expect("room"));
        drop((seen, open(&other).expect("a filter")));
        let of_one = folder.path().join("one.koel.journal.1");
        let of_other = folder.path().join("other.koel.journal.1");
        fs::copy(&of_one, &of_other).expect("a file");
        let error = open(&other).expect_err("a journal of another state");
        assert_eq!(error.kind(), DurableErrorKind::OtherState, "{opened}");
        assert!(of_other.exists());
        // A state that is copied with its journals is the same state.
        let copied = folder.path().join("copied.koel");
        fs::copy(&one, &copied).expect("a file");
        fs::copy(&of_one, folder.path().join("copied.koel.journal.1")).expect("a file");
        assert!(open(&copied).expect("a filter").contains(&1u64));
        assert!(open(&one).expect("a filter").contains(&1u64));
        // It is a file of a filter as any other.
        let alone = SnapshotFile::open(&other).expect("a file");
        assert!(alone.load().expect("a filter").is_empty());
    }
}
