//! Damage × the ways in which a part comes in: each is refused with an error that says what is wrong and where.

use crate::common::{SplitMix, bytes_of, prehashed, rounds};
use crate::file::{BLOCK_HEAD, END_WORDS, FilterFile, HEADER_WORDS, word};
use crate::{Builder, Filter, builder, fixed, grown, place};
use koel::SnapshotErrorKind::{
    self, Damaged, Incomplete, Io, NotAFile, NotASnapshot, NotFound, UnsupportedVersion,
};
use koel::{SnapshotError, SnapshotFile, SnapshotInfo, StableHash};
use std::io::{Seek, Write};
use std::path::Path;

/// The bytes of the header, and of the end.
pub const HEADER: usize = 8 * HEADER_WORDS;
const END: usize = 8 * END_WORDS;

/// The ways in which a part comes in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Way {
    Stream,
    Piece,
    File,
    /// Only the header, the index and the end are read.
    Info,
    Lookup,
    Lookups,
    Check,
}

use Way::{Check, File, Info, Lookup, Lookups, Piece, Stream};

pub const WAYS: [Way; 7] = [Stream, Piece, File, Info, Lookup, Lookups, Check];

impl Way {
    fn is_file(self) -> bool {
        !matches!(self, Stream | Piece)
    }

    /// Reads the bytes, from this path if it is that of a file. All shards are asked for.
    fn read(self, bytes: &[u8], path: &Path) -> Result<(), SnapshotError> {
        let hashes = || prehashed(&SplitMix(77).take(500));
        let open = || SnapshotFile::<StableHash>::open(path);
        match self {
            Stream => Filter::read_from(bytes).map(drop),
            Piece => Filter::loader().push(bytes),
            File => Filter::load(path).map(drop),
            Info => SnapshotInfo::read(path).map(drop),
            Lookup => open().and_then(|file| {
                hashes().iter().try_for_each(|hash| file.contains(hash).map(drop))
            }),
            Lookups => open().and_then(|file| file.contains_many(&hashes()).map(drop)),
            Check => open().and_then(|file| file.check()),
        }
    }

    /// The error of these bytes.
    pub fn error(self, bytes: &[u8]) -> Option<SnapshotError> {
        let place = place();
        let path = &place.path;
        if self.is_file() {
            std::fs::write(path, bytes).expect("a file");
        }
        let error = self.read(bytes, path).err()?;
        assert_eq!(error.path(), self.is_file().then_some(&**path));
        let named = format!("{}: ", path.display());
        assert_eq!(error.to_string().starts_with(&named), self.is_file(), "{error}");
        assert!(error.offset().is_none_or(|at| at <= bytes.len() as u64), "{error}");
        Some(error)
    }

    /// Checks that these bytes are refused, with an error of this kind. Returns its offset.
    #[track_caller]
    pub fn refuses(self, bytes: &[u8], kind: SnapshotErrorKind) -> Option<u64> {
        let error = self.error(bytes).unwrap_or_else(|| panic!("{self:?}: no {kind:?}"));
        assert_eq!(error.kind(), kind, "{self:?}: {error}");
        let at = error.offset();
        assert!(at.is_some() || !matches!(kind, Damaged | Incomplete), "{error}");
        assert!(at.is_none_or(|at| error.to_string().contains(&at.to_string())), "{error}");
        at
    }

    /// The kind of the error if this byte is changed, and where it is found, if the byte is read.
    fn expected(self, file: &FilterFile, at: usize) -> Option<(SnapshotErrorKind, u64)> {
        let (length, index) = (file.bytes().len(), file.index_at());
        let end = length - END;
        Some(match at {
            0..8 => (NotASnapshot, u64::MAX),
            8..16 => (UnsupportedVersion, u64::MAX),
            16..HEADER => (Damaged, 0),
            _ if at < index && self == Info => return None,
            _ if at < index => {
                (Damaged, file.shard_at((at - HEADER) / 8 / file.shard_words()) as u64)
            }
            // In a stream, only the mark tells where the shards of a growing filter end.
            _ if at < file.entry_at(0) && !self.is_file() => (Incomplete, length as u64),
            _ if at < end => (Damaged, index as u64),
            _ if at < end + 8 => (Incomplete, end as u64),
            _ if at < end + 16 => (Incomplete, length as u64),
            _ => (Damaged, index as u64),
        })
    }
}

/// Damages a part in all ways but those that change its meaning, and calls `refuse` for each. It returns the error.
pub fn every_damage(
    bytes: &[u8],
    way: Way,
    step: usize,
    refuse: &mut dyn FnMut(&[u8]) -> Option<SnapshotError>,
) {
    let (file, length) = (FilterFile::cut(bytes), bytes.len());
    let edges = (0..300.min(length)).chain(length.saturating_sub(300)..length);
    let some: Vec<usize> = edges.chain((300..length).step_by(step)).collect();
    let mut bad = bytes.to_vec();
    let flips = some.iter().flat_map(|at| (0..rounds(1, 8)).map(move |bit| (*at, (at + bit) % 8)));
    for (at, bit) in flips.clone() {
        bad[at] ^= 1 << bit;
        let error = refuse(&bad);
        bad[at] ^= 1 << bit;
        let expected = way.expected(&file, at);
        assert_eq!(error.as_ref().map(|error| error.kind()), expected.map(|it| it.0), "byte {at}");
        let (Some((_, place)), Some(error)) = (expected, error) else { continue };
        // In its shard, in its bucket, or at the end that is claimed.
        let found = error.offset().unwrap_or(u64::MAX);
        assert!(found == at as u64 / 8 * 8 || found <= place, "byte {at}: {found}");
    }
    for length in some.iter().copied() {
        let error = refuse(&bytes[..length]).expect("half a part");
        let kind = if length < 8 { NotASnapshot } else { Incomplete };
        assert_eq!(error.kind(), kind, "{length} bytes: {error}");
        assert!(way != Stream || length < 8 || error.offset() == Some(length as u64), "{error}");
    }
    for more in [&[0][..], &[255; 7], &[0; 8], &[255; 48], &bytes[length - END..], bytes] {
        let error = refuse(&[bytes, more].concat());
        let is_refused = (way != Stream).then_some(Incomplete);
        assert_eq!(error.map(|error| error.kind()), is_refused, "{} bytes more", more.len());
    }
    println!("checked: {} states that were cut off: 0 loaded", some.len());
    println!("checked: {} states with one bit flipped: 0 loaded", flips.count());
}

/// Filters that forget, of several shards each: fixed and growing, with narrow and with wide buckets.
pub fn forgetful() -> Vec<Filter> {
    let builders = [
        (1, builder(1).growing().false_positive_rate(1e-2)),
        (2, builder(1).growing().false_positive_rate(1e-6)),
        (1, builder(800_000).false_positive_rate(1e-2)),
        (2, builder(900_000).false_positive_rate(1e-6)),
    ];
    let filled = |(words, builder): (usize, Builder)| {
        let filter = builder.remembers(6).build().expect("a filter");
        for tick in 0..8 {
            filter.tick_to(2_000 + tick);
            (tick..60_000).step_by(8).for_each(|item| filter.insert(&item).expect("room"));
        }
        let file = FilterFile::cut(&bytes_of(&filter));
        assert!(file.words() == words && file.blocks.len() > 1, "{:?}", filter.stats());
        filter
    };
    builders.into_iter().map(filled).collect()
}

fn no_damage_is_believed(way: Way, filter: &Filter, step: usize) {
    let bytes = bytes_of(filter);
    let place = place();
    let path = &place.path;
    let mut file = std::fs::File::create(path).expect("a file");
    every_damage(&bytes, way, step, &mut |bytes| {
        if way.is_file() {
            // A file that is made empty first may go to the disk each time.
            let written = file.rewind().and_then(|()| file.write_all(bytes));
            written.and_then(|()| file.set_len(bytes.len() as u64)).expect("space");
        }
        way.read(bytes, path).err()
    });
    assert!(way.error(&bytes).is_none());
}

#[test]
fn no_way_in_believes_a_damaged_part() {
    for way in WAYS {
        no_damage_is_believed(way, &fixed(50), 1);
        no_damage_is_believed(
            way,
            &grown(50, 0.005),
            rounds(997, if way == Stream { 1 } else { 11 }),
        );
    }
}

#[test]
fn no_lookup_answers_from_a_damaged_file_of_several_shards() {
    for filter in forgetful().iter().chain([&grown(100_000, 0.005)]) {
        let length = bytes_of(filter).len();
        for way in [Lookups, Check] {
            no_damage_is_believed(way, filter, rounds(length / 30, length / 1_000));
        }
    }
}

#[test]
fn what_comes_after_a_stream_is_left_unread() {
    for bytes in [fixed(50), grown(50, 0.005)].map(|filter| bytes_of(&filter)) {
        for more in [1, 7, 8, 48, bytes.len(), 1 << 20] {
            let longer = [&bytes[..], &vec![255; more]].concat();
            let mut rest = &longer[..];
            Filter::read_from(&mut rest).expect("the filter before the rest");
            assert_eq!(rest.len(), more);
        }
    }
}

/// Bytes that are no part of this version.
#[test]
fn foreign_bytes_and_other_versions_are_told_apart() {
    for bytes in [fixed(50), grown(50, 0.005)].map(|filter| bytes_of(&filter)) {
        let with =
            |at: usize, what: &[u8]| [&bytes[..at], what, &bytes[at + what.len()..]].concat();
        let words = bytes.as_chunks::<8>().0;
        let swapped: Vec<u8> = words.iter().flat_map(|w| w.iter().rev().copied()).collect();
        let swapped_behind = [&bytes[..8], &swapped[8..]].concat();
        let later = |version| {
            let mut file = FilterFile::cut(&bytes);
            file.header[1] = version;
            file.sealed().bytes()
        };
        let noise = SplitMix(5).take(10_000);
        let noise: Vec<u8> = noise.iter().flat_map(|n| n.to_le_bytes()).collect();
        let mut cases = vec![
            (swapped, NotASnapshot),
            // What a program that takes it for text makes of its first line.
            ([&bytes[..5], &bytes[6..]].concat(), NotASnapshot),
            (with(0, b"\x09"), NotASnapshot),
            (SnapshotInfo::MAGIC.to_vec(), Incomplete),
            (swapped_behind.clone(), UnsupportedVersion),
            // Also if nothing is wrong with it but the version.
            (later(6), UnsupportedVersion),
        ];
        let foreign = [
            b"",
            &b"koel"[..],
            b"\x89koel",
            b"GIF89a\x01\x00 and more",
            &[0; 1_000],
            &[b' '; 4_096],
        ];
        let foreign = foreign.into_iter().chain([8, 152, 800, 80_000].map(|n| &noise[..n]));
        cases.extend(foreign.map(|bytes| (bytes.to_vec(), NotASnapshot)));
        for version in [0, 1, 2, 3, 4, 6, 256, u64::MAX] {
            cases.push((with(8, &version.to_le_bytes()), UnsupportedVersion));
            cases.push((later(version), UnsupportedVersion));
        }
        for (way, (bytes, kind)) in
            WAYS.iter().flat_map(|way| cases.iter().map(move |it| (way, it)))
        {
            way.refuses(bytes, *kind);
        }
        let said = "it has version 6 of the format, and this version of koel reads only version 5: load it \
                    with the version of koel that saved it, or a later one";
        for way in [Stream, Piece] {
            assert_eq!(way.error(&later(6)).expect("version 6").to_string(), said);
            let error = way.error(&swapped_behind).expect("swapped").to_string();
            assert!(error.ends_with("restore it as it was saved"), "{error}");
        }
    }
}

/// What is at the path is no file. Nothing waits for a pipe.
#[test]
fn what_is_no_file_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let none = folder.path().join("none");
    for way in WAYS.into_iter().filter(|way| way.is_file()) {
        let kind = |path: &Path| way.read(&[], path).expect_err("no file").kind();
        let of_a_folder = if way == File { Io } else { NotAFile };
        assert_eq!((kind(folder.path()), kind(&none)), (of_a_folder, NotFound), "{way:?}");
        #[cfg(unix)]
        if way != File {
            let pipe = folder.path().join("pipe");
            let made = std::process::Command::new("mkfifo").arg(&pipe).status().expect("mkfifo");
            assert!(made.success());
            assert_eq!([kind(&pipe), kind("/dev/null".as_ref())], [NotAFile; 2], "{way:?}");
            std::fs::remove_file(&pipe).expect("the pipe");
        }
    }
}

/// With right checksums.
#[test]
fn a_part_tells_no_impossible_number_of_shards() {
    for bytes in [fixed(50), grown(50, 0.005)].map(|filter| bytes_of(&filter)) {
        let file = FilterFile::cut(&bytes);
        // Two shards, each with a header that tells the number; and with one that tells another.
        let mut two = file.clone();
        two.blocks.push(two.blocks[0].clone());
        let two = two.sealed();
        for (file, shards) in
            [(&file, 0), (&two, 2), (&two, 1), (&file, 1 << 60), (&file, u64::MAX)]
        {
            let mut claim = file.clone();
            claim.header[word::SHARDS] = shards.max(u64::from(file.grows()));
            let claim = claim.with_sums();
            for way in WAYS {
                let kind = way.error(&claim.bytes()).expect("a lie").kind();
                assert!([Damaged, Incomplete].contains(&kind), "{way:?}, {shards}: {kind:?}");
            }
        }
    }
}

/// With right checksums. In a wide bucket, a head that is zero says that its lane is empty, whatever the tail says.
#[test]
fn buckets_that_no_filter_has_are_refused() {
    let file = FilterFile::cut(&bytes_of(&grown(50, 1e-6)));
    assert_eq!(file.words(), 2);
    for tails in (0..64).map(|bit| 1 << bit).chain([u64::MAX, 0x1717_1717_1717_1717]) {
        let mut bad = file.clone();
        let length = bad.buckets_of(&bad.blocks[0]).len();
        for bucket in bad.blocks[0][BLOCK_HEAD..][..length].chunks_mut(2) {
            bucket.copy_from_slice(&[0, tails]);
        }
        let bytes = bad.with_sums().bytes();
        for way in WAYS.into_iter().filter(|way| *way != Info) {
            way.refuses(&bytes, Damaged);
        }
    }
}

/// Of a filter that was split, the last shard, or all others.
#[test]
fn what_lacks_shards_is_refused() {
    let mut file = FilterFile::cut(&bytes_of(&grown(100_000, 0.005)));
    assert!(file.blocks.len() > 2);
    file.blocks.pop();
    let bytes = file.sealed().bytes();
    WAYS.into_iter().for_each(|way| _ = way.refuses(&bytes, Damaged));
    for piece in grown(100_000, 0.005).pieces(0) {
        let piece = piece.expect("memory");
        for way in WAYS.into_iter().filter(|way| *way != Piece) {
            let error = way.error(piece.as_bytes()).expect("a piece of several");
            assert_eq!(error.kind(), Incomplete, "{way:?}");
        }
    }
}
