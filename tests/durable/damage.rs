//! A journal of which a power failure took a part, or that is damaged.

use crate::common::rounds;
use crate::process::{Place, names};
use crate::{add, builders, has, place, remove, try_open, with_items};
use koel::{DurableError, DurableErrorKind, DurableFilter, SnapshotFile};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

fn open(path: &Path) -> Result<DurableFilter, DurableError> {
    try_open(path, &builders()[2])
}

/// The only journal in a folder.
fn journal(place: &Place) -> PathBuf {
    let names = place.names();
    let journals: Vec<_> = names.iter().filter(|name| name.contains(".journal.")).collect();
    assert_eq!(journals.len(), 1, "{journals:?}");
    place.at(journals[0])
}

/// A state, and the journal beside it.
struct Pair {
    state: Vec<u8>,
    journal: Vec<u8>,
    name: PathBuf,
}

impl Pair {
    /// Closes the filter, and reads what it leaves.
    fn left(seen: DurableFilter, place: &Place) -> Self {
        drop(seen);
        let journal = journal(place);
        let name = journal.file_name().expect("a name").into();
        let read = |path: &Path| fs::read(path).expect("a file");
        Pair { state: read(&place.path), journal: read(&journal), name }
    }

    /// What is left when one item came and went so many times. All of its records are in one stream.
    fn of_one_item(times: u32) -> Self {
        let place = place();
        let seen = open(&place.path).expect("a filter");
        (0..times).for_each(|_| {
            add(&seen, [1]);
            remove(&seen, [1]);
        });
        Self::left(seen, &place)
    }

    /// Opens the state with another journal.
    fn opened(&self, journal: &[u8]) -> Result<DurableFilter, DurableError> {
        let folder =
            tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a folder");
        let path = folder.path().join("seen.koel");
        fs::write(&path, &self.state).expect("a file");
        fs::write(folder.path().join(&self.name), journal).expect("a file");
        open(&path)
    }

    /// The same with a journal that is changed in some way.
    fn changed(&self, change: impl FnOnce(&mut Vec<u8>)) -> DurableFilter {
        let mut journal = self.journal.clone();
        change(&mut journal);
        self.opened(&journal).expect("a filter")
    }

    /// Where the last record ends.
    fn end(&self) -> usize {
        self.journal.iter().rposition(|byte| *byte != 0).expect("records") / 16 * 16 + 16
    }
}

/// All files in a folder but the lock, by their names.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let names = names(folder).into_iter().filter(|name| !name.ends_with("claim"));
    names.map(|name| (name.clone(), fs::read(folder.join(name)).expect("a file"))).collect()
}

#[test]
fn a_damaged_journal_is_refused_or_counts_up_to_the_damage() {
    let place = place();
    let path = &place.path;
    let seen = open(path).expect("a filter");
    add(&seen, 0..60);
    remove(&seen, 0..10);
    let pair = Pair::left(seen, &place);
    // Up to the first record that is still blank: each bit of a byte that is not zero, and one of those that are. A
    // short run takes a bit of some bytes that are not zero.
    let (right, end) = (&pair.journal, pair.end() + 16);
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
        let seen = match pair.opened(&bytes) {
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
    let pair = Pair::of_one_item(50);
    // The last makes the code of an addition that of the beginning of a chunk.
    for (record, byte, bit, lost) in [(91, 8, 0x40, 10), (91, 15, 0x40, 10), (99, 8, 4, 2)] {
        let seen = pair.changed(|bytes| bytes[(4 << 10) + 16 * record + byte] ^= bit);
        assert_eq!(seen.lost_changes(), lost, "{record} {byte}");
    }
    // The one that is blank is gone without a trace.
    let seen = pair.changed(|bytes| bytes[(4 << 10) + 16 * 91..][..16].fill(0));
    assert_eq!(seen.lost_changes(), 9);
}

/// A disk that writes a sector to another place has a right record there, of the right journal.
#[test]
fn a_record_at_another_place_is_not_taken_for_a_change() {
    let pair = Pair::of_one_item(20);
    let (removed, end) = (pair.end() - 16, pair.end());
    // The last addition once more, behind the last record or in the place of the last removal.
    for place in [end, removed] {
        let seen = pair.changed(|bytes| bytes.copy_within(removed - 16..removed, place));
        assert_eq!(seen.lost_changes(), 1, "{place}");
        assert_eq!(seen.count(&1u64), usize::from(place == removed), "{place}");
    }
}

/// Where a journal has grown, a disk may have what an earlier journal of the same filter had there.
#[test]
fn a_record_of_an_earlier_journal_is_not_taken_for_a_change() {
    let place = place();
    let path = &place.path;
    let seen = open(path).expect("a filter");
    add(&seen, 0..50);
    let earlier = fs::read(journal(&place)).expect("a file");
    seen.clear().expect("a change");
    seen.checkpoint().expect("a checkpoint");
    add(&seen, [1_000]);
    let pair = Pair::left(seen, &place);
    let stale = pair.end().next_multiple_of(4 << 10)..pair.journal.len().min(earlier.len());
    assert!(earlier[stale.clone()].iter().any(|byte| *byte != 0));
    let seen = pair.changed(|bytes| bytes[stale.clone()].copy_from_slice(&earlier[stale]));
    assert!(seen.contains(&1_000u64));
    assert!((0..50u64).all(|item| !seen.contains(&item)));
}

#[test]
fn a_journal_of_another_state_is_refused() {
    let place = place();
    let path = &place.path;
    with_items(path, &builders()[2], [1]);
    let other = builders()[2].clone().build().expect("a filter");
    other.insert(&2u64).expect("room");
    fs::remove_file(path).expect("a file");
    other.write_to(File::create(path).expect("a file")).expect("a state");
    assert_eq!(open(path).expect_err("another state").kind(), DurableErrorKind::OtherState);
    fs::remove_file(path).expect("a file");
    let error = open(path).expect_err("a journal without its state");
    assert_eq!(error.kind(), DurableErrorKind::OtherState);
    assert_eq!(error.path(), Some(&*journal(&place).canonicalize().expect("a file")));
}

#[test]
fn a_journal_of_another_version_or_without_a_header_is_refused() {
    let pair = Pair::of_one_item(1);
    let error = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut journal = pair.journal.clone();
        change(&mut journal);
        let error = pair.opened(&journal).expect_err("no journal");
        assert_eq!(error.kind(), DurableErrorKind::Journal);
        error.to_string()
    };
    for version in [0, 1, 3, u64::MAX] {
        let error = error(&|journal| journal[8..16].copy_from_slice(&version.to_le_bytes()));
        assert!(error.contains("the version of koel that wrote it"), "{error}");
    }
    error(&|journal| journal[..512].fill(0));
    // Nothing has been recorded in one that is nothing but zeros.
    assert!(pair.changed(|journal| journal.fill(0)).is_empty());
}

/// Beside a journal, a copy of it that is older or newer is not taken for the journal in silence.
#[test]
fn two_copies_of_a_journal_with_changes_are_refused_and_both_stay() {
    for (number, blank) in [(2, false), (0, false), (2, true), (0, true)] {
        let place = place();
        let path = &place.path;
        let seen = open(path).expect("a filter");
        let own = journal(&place);
        if !blank {
            add(&seen, [0]);
        }
        let copy = place.at(&format!("seen.koel.journal.{number}"));
        fs::copy(&own, &copy).expect("a file");
        add(&seen, 1..100);
        drop(seen);
        // A journal without a header is not removed either.
        let without = place.at("seen.koel.journal.7");
        File::create(&without).expect("a file");
        let before = files(place.folder());
        match open(path) {
            Ok(seen) => {
                assert!(blank && !without.exists(), "{number}");
                assert!(has(&seen, 1..100), "{number}");
            }
            Err(error) => {
                assert!(!blank, "{number}: {error}");
                assert_eq!(error.kind(), DurableErrorKind::CopiedJournal);
                for journal in [&own, &copy] {
                    let journal = journal.canonicalize().expect("a file");
                    assert!(error.to_string().contains(journal.to_str().expect("text")), "{error}");
                }
                assert!(files(place.folder()) == before, "{number}");
                // As the error says.
                fs::remove_file(&copy).expect("a file");
                let seen = open(path).expect("a filter");
                assert!(has(&seen, 0..100), "{number}");
            }
        }
    }
}

/// Both are empty at first, with the same seed, so their states differ in nothing but what they are called.
#[test]
fn a_journal_of_a_filter_that_was_made_alike_is_refused() {
    for opened in 1..4 {
        let place = place();
        let [one, other] = ["one.koel", "other.koel"].map(|name| place.at(name));
        for _ in 1..opened {
            drop(open(&one).expect("a filter"));
            open(&other).expect("a filter").close().expect("a state");
        }
        let seen = open(&one).expect("a filter");
        add(&seen, [1]);
        drop((seen, open(&other).expect("a filter")));
        let of_one = place.at("one.koel.journal.1");
        let of_other = place.at("other.koel.journal.1");
        fs::copy(&of_one, &of_other).expect("a file");
        let error = open(&other).expect_err("a journal of another state");
        assert_eq!(error.kind(), DurableErrorKind::OtherState, "{opened}");
        assert!(of_other.exists());
        // A state that is copied with its journals is the same state.
        let copied = place.at("copied.koel");
        fs::copy(&one, &copied).expect("a file");
        fs::copy(&of_one, place.at("copied.koel.journal.1")).expect("a file");
        assert!(open(&copied).expect("a filter").contains(&1u64));
        assert!(open(&one).expect("a filter").contains(&1u64));
        // It is a file of a filter as any other.
        let alone = SnapshotFile::open(&other).expect("a file");
        assert!(alone.load().expect("a filter").is_empty());
    }
}
