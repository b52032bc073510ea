//! Damaged, foreign and forged files. A file that is not valid is refused with an error that says
//! what is wrong and where. No file causes a panic, not even a forged one with valid checksums.

use crate::common::{
    LAYOUTS, SplitMix, bytes_of, growing_layouts, in_time, layouts, prehashed, rounds,
};
use crate::damage::{HEADER, Way};
use crate::file::{BLOCK_HEAD, FilterFile, HEADER_WORDS, TIME, word};
use crate::{Filter, HASH, fixed, grown, load, place, with_items};
use koel::SnapshotErrorKind::{self, Damaged, Incomplete, Io, NotASnapshot, NotFound, WrongHasher};
use koel::{Prehashed, SnapshotError, SnapshotFile};
use std::path::Path;

fn file_of(filter: &Filter) -> FilterFile {
    FilterFile::cut(&bytes_of(filter))
}

fn read(bytes: &[u8]) -> Result<Filter, SnapshotError> {
    Filter::read_from(bytes)
}

/// Checks that the file is refused by all ways in that read its shards. Returns the offset that a stream tells.
#[track_caller]
fn refused(file: &FilterFile, kind: SnapshotErrorKind) -> u64 {
    let bytes = file.bytes();
    Way::File.refuses(&bytes, kind);
    Way::Check.refuses(&bytes, kind);
    Way::Stream.refuses(&bytes, kind).unwrap_or(u64::MAX)
}

/// Changes a file, and fixes the checksums and the other derived values.
fn changed(file: &FilterFile, change: impl FnOnce(&mut FilterFile)) -> FilterFile {
    let mut changed = file.clone();
    change(&mut changed);
    changed.sealed()
}

/// (`agreement.rs` has any number in the place of each.)
#[test]
fn a_number_that_no_filter_has_is_refused_where_it_is() {
    let hasher: [(usize, u64); 7] = [
        (word::SEED, 8),           // the probes belong to another seed
        (word::SEED + 1, 1),       // more than a 64-bit seed
        (word::PROBES, 0),         // another hash of bytes
        (word::PROBES + 1, 0),     // another hash of items
        (word::NAME, 0),           // an empty name
        (word::NAME + 1, 1),       // a longer name
        (word::NAME + 3, 1 << 63), // a byte after the end of the name
    ];
    for file in [file_of(&fixed(50)), file_of(&grown(50, 0.005))] {
        for (at, value) in hasher {
            refused(&changed(&file, |file| file.header[at] = value), WrongHasher);
        }
        for items in [0, -1, 49, 51, i64::MIN, i64::MAX] {
            let bad = changed(&file, |file| file.blocks[0][word::ITEMS] = items.cast_unsigned());
            assert_eq!(refused(&bad, Damaged), HEADER as u64);
        }
        let other = u64::from_le_bytes(*b"SipHash\0");
        let other = changed(&file, |file| file.header[word::NAME] = other).bytes();
        let text = read(&other).map(drop).expect_err("another hasher").to_string();
        assert!(text.contains("SipHash") && text.contains("XXH3-64"), "{text}");
    }
}

#[test]
fn an_invalid_bucket_is_refused() {
    // One that is at `bucket` in the block of an empty filter, and of which words are these from `at` on.
    let refuse = |file: &FilterFile, bucket: usize, at: usize, words: &[u64]| {
        let bad = changed(file, |file| {
            file.blocks[0][at..][..words.len()].copy_from_slice(words);
            file.blocks[0][word::ITEMS] = 1;
        });
        assert_eq!(refused(&bad, Damaged), (HEADER + 8 * (bucket - BLOCK_HEAD)) as u64);
    };
    for layout in layouts() {
        let file = file_of(&layout.filter_with(60, HASH));
        for bit in file.slots() * file.lane_bits()..64 {
            (5..5 + layout.words).for_each(|at| refuse(&file, 5, at, &[1 << bit]));
        }
        // A tail without a head.
        let lanes = (0..file.slots()).filter(|_| layout.words == 2);
        lanes.for_each(|lane| refuse(&file, 5, 5, &[0, 1 << (lane * file.lane_bits())]));
    }
    let file = file_of(&grown(0, 4e-9));
    assert_eq!(file.words(), 2);
    for bit in (0..file.slots()).map(|lane| lane * file.lane_bits()) {
        // A head without a tail, and the other way round.
        [[1 << bit, 0], [0, 1 << bit]].iter().for_each(|words| refuse(&file, 1_001, 1_001, words));
    }
    let file = file_of(&grown(0, 0.005));
    let window = file.window();
    for lane in 0..file.slots() {
        for fingerprint in [1, 1 << (file.bits() - window - 1)] {
            refuse(&file, 1_000, 1_000, &[fingerprint << window << (lane * file.bits())]);
        }
    }
    refuse(&file, 70, 70, &[1 << 60]);
}

#[test]
fn blocks_have_to_cover_their_roots_exactly() {
    let file = file_of(&grown(0, 0.005));
    let with_depths = |depths: &[u64]| {
        changed(&file, |file| {
            let block = file.blocks[0].clone();
            file.blocks = vec![block; depths.len()];
            file.blocks
                .iter_mut()
                .zip(depths)
                .for_each(|(block, depth)| block[word::DEPTH] = *depth);
        })
    };
    for good in [&[0][..], &[1, 1], &[1, 2, 2], &[3, 3, 2, 2, 2], &[2, 2, 2, 3, 4, 5, 6, 7, 7]] {
        use_it(read(&with_depths(good).bytes()).expect("a whole"), false);
        use_it(load(&with_depths(good).bytes()).expect("a whole"), false);
    }
    for bad in [&[1, 0][..], &[1, 2, 1], &[2, 1, 2], &[2, 1], &[32], &[u64::MAX], &[1 << 32]] {
        let bad = with_depths(bad);
        assert!(refused(&bad, Damaged) < bad.bytes().len() as u64);
    }
    for short in [&[1][..], &[1, 2], &[31], &[2, 2, 2], &[0, 0], &[1, 1, 1], &[1, 1, 0]] {
        let bytes = with_depths(short).bytes();
        assert!(read(&bytes).is_err() && load(&bytes).is_err(), "{short:?}");
    }
    let chain: Vec<u64> = (1..=21).chain([21]).collect();
    refused(&with_depths(&chain), Damaged);
    let fixed = file_of(&fixed(50));
    refused(&changed(&fixed, |file| file.blocks[0][word::DEPTH] = 1), Damaged);
}

/// As those of large files do. Before them, there are zeros.
#[test]
fn shards_may_begin_at_a_huge_page() {
    let place = place();
    let path = &place.path;
    for filter in [fixed(50), grown(50, 0.005)] {
        let mut file = file_of(&filter);
        file.header[word::FIRST] = 1 << 21;
        file.between = vec![0; (1 << 21) / 8 - HEADER_WORDS];
        let file = file.sealed();
        for loaded in [read(&file.bytes()), load(&file.bytes())] {
            assert!(bytes_of(&loaded.expect("a filter")) == bytes_of(&filter));
        }
        std::fs::write(path, file.bytes()).expect("a file");
        let opened = SnapshotFile::open(path).expect("a file");
        assert!((0..50u64).all(|item| opened.contains(&item).expect("an answer")));
        for at in [0, file.between.len() - 1] {
            let mut wrong = file.clone();
            wrong.between[at] = 1 << 63;
            let place = Some(8 * (HEADER_WORDS + at) as u64);
            for way in [Way::Stream, Way::File] {
                assert_eq!(way.refuses(&wrong.bytes(), Damaged), place);
            }
        }
    }
}

/// A program makes a filter of the capacity that a file claims, to compact it, say.
#[test]
fn no_file_claims_a_capacity_that_its_shards_cannot_have() {
    for file in [file_of(&fixed(50)), file_of(&grown(50, 0.005)), file_of(&grown(150_000, 0.005))] {
        let most = file.slots_at_first();
        let claim = |capacity| changed(&file, |file| file.header[word::CAPACITY] = capacity);
        assert_eq!(read(&claim(most).bytes()).expect("a filter").capacity() as u64, most);
        for capacity in [most + 1, 1 << 44, u64::MAX] {
            assert_eq!(refused(&claim(capacity), Damaged), 8 * word::CAPACITY as u64);
        }
    }
}

fn blocks_belong_to_one_file(filter: &Filter) {
    let first = file_of(filter);
    assert!(first.blocks.len() > 2);
    assert!(filter.remove(&1u64));
    filter.insert(&1_000_000_007u64).expect("room");
    let second = file_of(filter);
    for index in 0..first.blocks.len() {
        let mut mixed = first.clone();
        mixed.blocks[index] = second.blocks[index].clone();
        if mixed != first {
            refused(&mixed, Damaged);
        }
    }
    let mut mixed = first.clone();
    mixed.header[word::CAPACITY] += 1;
    mixed.header = mixed.clone().sealed().header;
    let mut swapped = first.clone();
    swapped.blocks.swap(0, 1);
    let mut doubled = first.clone();
    doubled.blocks[1] = first.blocks[0].clone();
    // Their checksums are in the index.
    [mixed, swapped, doubled].iter().for_each(|file| _ = refused(file, Damaged));
    // With the checksums fixed, swapped blocks are a forgery: a different but valid filter.
    let forged = changed(&first, |file| file.blocks.swap(0, 1));
    assert!(read(&forged.bytes()).is_ok() || first.grows());
}

#[test]
fn a_block_of_another_save_is_refused() {
    blocks_belong_to_one_file(&with_items(LAYOUTS[6].filter_with(530_000, HASH), 100_000));
    blocks_belong_to_one_file(&grown(150_000, 0.005));
}

/// Checks that all operations on an accepted filter end without a panic, whatever its contents.
pub fn use_it(filter: Filter, long: bool) {
    let mut random = SplitMix(filter.len() as u64);
    for _ in 0..if long { rounds(20, 500) } else { rounds(10, 100) } {
        let hash = random.next();
        let _ = filter.count(&Prehashed(hash));
        if filter.insert(&Prehashed(hash)).is_ok() {
            assert!(filter.contains(&Prehashed(hash)));
        }
        let _ = filter.insert_if_absent(&Prehashed(random.next()));
        let _ = filter.remove(&Prehashed(random.next()));
    }
    let hashes = random.take(300);
    let _ = filter.insert_many(&prehashed(&hashes));
    let _ = filter.remove_many(&prehashed(&hashes));
    let _ = (filter.stats().to_string(), filter.len(), format!("{filter:?}"));
    if long {
        let bytes = bytes_of(&filter);
        assert!(bytes_of(&read(&bytes).expect("a filter that was just written")) == bytes);
    }
    filter.clear();
    assert!(filter.is_empty());
}

/// Fills all lanes with these numbers, made valid where they are not.
fn crammed(file: &FilterFile, mut lane: impl FnMut() -> u64) -> FilterFile {
    changed(file, |file| {
        let (bits, slots, grows) = (file.bits(), file.slots(), file.grows());
        let (window, of_file) = ((1 << file.window()) - 1, file.clone());
        for block in &mut file.blocks {
            let last = block.len() - TIME;
            for bucket in block[BLOCK_HEAD..last].chunks_mut(of_file.words()) {
                let lanes = (0..slots).map(|_| {
                    let mut lane = lane() & ((1 << bits) - 1);
                    if lane == 0 || grows && lane & window == 0 {
                        lane |= window ^ window >> 1; // void
                    }
                    if of_file.words() == 2 && lane >> of_file.lane_bits() == 0 {
                        lane |= 1 << of_file.lane_bits(); // a head
                    }
                    lane
                });
                bucket.copy_from_slice(&of_file.bucket(lanes));
            }
            let void = of_file.void_lanes(block).cast_unsigned();
            block[word::ITEMS] = of_file.buckets() * u64::from(slots) - void;
        }
    })
}

fn whatever_the_lanes(file: &FilterFile) {
    let mut random = SplitMix(11);
    let kinds: [&mut dyn FnMut() -> u64; 4] =
        [&mut || random.next(), &mut || 1, &mut || u64::MAX, &mut || 0];
    for lane in kinds {
        let crammed = crammed(file, lane);
        let filter = read(&crammed.bytes()).expect("a filter");
        assert_eq!(filter.len() as i64, crammed.items());
        use_it(filter, true);
    }
}

#[test]
fn a_forged_fixed_filter_does_no_harm() {
    in_time(|| {
        for layout in layouts() {
            for capacity in [1, 60, 3_000] {
                whatever_the_lanes(&file_of(&layout.filter_with(capacity, HASH)));
            }
        }
    });
}

#[test]
fn a_forged_growing_filter_does_no_harm() {
    in_time(|| {
        growing_layouts().iter().for_each(|it| whatever_the_lanes(&file_of(&grown(0, it.rate))));
    });
}

#[test]
fn an_error_becomes_one_of_the_system_and_keeps_its_kind_text_and_cause() {
    use std::io;
    let place = place();
    let path = &place.path;
    let load = |path: &Path| -> io::Result<Filter> { Ok(Filter::load(path)?) };
    let bytes = bytes_of(&fixed(50));
    let damaged = [&bytes[..300], &[!bytes[300]], &bytes[301..]].concat();
    for (bytes, kind, expected) in [
        (&b"GIF89a"[..], NotASnapshot, io::ErrorKind::InvalidData),
        (&bytes[..200], Incomplete, io::ErrorKind::InvalidData),
        (&damaged, Damaged, io::ErrorKind::InvalidData),
    ] {
        std::fs::write(path, bytes).expect("a file");
        let error = load(path).expect_err("no filter");
        assert_eq!(error.kind(), expected);
        let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<SnapshotError>());
        assert_eq!(inner.map(SnapshotError::kind), Some(kind));
        assert_eq!(error.to_string(), Filter::load(path).expect_err("no filter").to_string());
    }
    // The system's own kind is the best, and its error stays the source.
    for (path, kind) in [(place.at("none"), NotFound), (place.folder().into(), Io)] {
        let own = Filter::load(&path).expect_err("no file");
        assert_eq!(own.kind(), kind);
        let expected = own.io_error().expect("an error of the system").kind();
        let error = load(&path).expect_err("no file");
        assert_eq!(error.kind(), expected);
        assert!(std::error::Error::source(&error).is_some());
    }
}
