//! koel and a reader that was written from the specification alone agree on which parts are right: on every file of a
//! corpus, and on copies of them in which one number is another one, whose checksums are right nevertheless. What is
//! right has what it claims, and can be used.

use crate::common::{SplitMix, bytes_of, rounds};
use crate::damage::Way;
use crate::damaged_files::use_it;
use crate::file::{BLOCK_HEAD, END_WORDS, FilterFile, HEADER_WORDS, TIME, word};
use crate::{Filter, builder, load, with_items};
use koel::SnapshotErrorKind;
use std::collections::BTreeMap;
use std::path::Path;

/// The kinds of errors that tell of a part.
const OF_CONTENT: [SnapshotErrorKind; 6] = [
    SnapshotErrorKind::UnsupportedVersion,
    SnapshotErrorKind::WrongHasher,
    SnapshotErrorKind::Damaged,
    SnapshotErrorKind::Incomplete,
    SnapshotErrorKind::OutOfOrder,
    SnapshotErrorKind::NotASnapshot,
];

/// What koel makes of a part: what is wrong with it, if anything is. Too little memory for it is neither.
fn by_koel(bytes: &[u8]) -> Option<Result<Filter, String>> {
    let mut rest = bytes;
    match Filter::read_from(&mut rest) {
        Ok(filter) if rest.is_empty() => Some(Ok(filter)),
        Ok(_) => Some(Err("something follows it".into())),
        Err(error) if error.kind() == SnapshotErrorKind::OutOfMemory => None,
        Err(error) => {
            assert!(OF_CONTENT.contains(&error.kind()), "{error}");
            Some(Err(error.to_string()))
        }
    }
}

/// A filter that was accepted can be used, and has what the part claims.
fn is_as_claimed(filter: Filter, bytes: &[u8]) {
    let [claimed, written] = [bytes, &bytes_of(&filter)[..]].map(FilterFile::cut);
    let again = load(&written.bytes()).expect("a filter that was just written");
    assert!(bytes_of(&again) == written.bytes());
    // One that is mostly empty shrinks. The number of a state is that of each save.
    if claimed.blocks.len() == written.blocks.len() {
        for at in (word::GROWS..HEADER_WORDS - 1).filter(|at| *at != word::STATE) {
            assert_eq!(claimed.header[at], written.header[at], "word {at}");
        }
    }
    use_it(filter, false);
}

/// The same by the specification: a part that has all of a filter.
fn by_specification(bytes: &[u8]) -> Result<(), String> {
    FilterFile::read(bytes)?.judge_whole()
}

/// Counts the copies that are right, and those that are not.
#[derive(Debug, Default)]
struct Copies {
    /// Only one of so many is judged, because they are large.
    one_of: usize,
    made: usize,
    right: usize,
    /// By what is wrong, as the specification's reader says it.
    wrong: BTreeMap<String, usize>,
}

impl Copies {
    /// Judges the next one, however large it is.
    fn judge_this_one(&mut self) {
        self.made = self.made.next_multiple_of(self.one_of.max(1)) + self.one_of.max(1) - 1;
    }

    #[track_caller]
    fn judge(&mut self, bytes: impl FnOnce() -> Vec<u8>) {
        self.made += 1;
        if !self.made.is_multiple_of(self.one_of.max(1)) {
            return;
        }
        let bytes = bytes();
        let Some(koel) = by_koel(&bytes) else { return };
        // Larger ones take long.
        let is_watched = bytes.len() < 10_000 || self.made.is_multiple_of(16 * self.one_of.max(1));
        if is_watched {
            // In turns, since each is written to a disk.
            let way = [Way::File, Way::Check][self.made / 16 % 2];
            assert_eq!(way.error(&bytes).is_some(), koel.is_err(), "{way:?}: {koel:?}");
        }
        let koel = koel.map(|filter| {
            if is_watched {
                is_as_claimed(filter, &bytes);
            }
        });
        let specification = by_specification(&bytes);
        assert_eq!(koel.is_ok(), specification.is_ok(), "{koel:?}, {specification:?}");
        match specification {
            Ok(()) => self.right += 1,
            Err(what) => *self.wrong.entry(what).or_default() += 1,
        }
    }

    /// Judges a copy of this part that is changed so.
    #[track_caller]
    fn judge_changed(&mut self, part: &FilterFile, change: impl FnOnce(FilterFile) -> FilterFile) {
        self.judge(|| change(part.clone()).bytes());
    }
}

/// Numbers in place of this one: nearly the same, small, large, and with one bit changed.
fn others(right: u64, random: &mut SplitMix) -> Vec<u64> {
    let near = [right.wrapping_sub(1), right.wrapping_add(1), right.wrapping_mul(2), right / 2];
    let small = [0, 1, 2, 3, random.next() % 64, random.next() % 513];
    let large = [
        right ^ 1 << (random.next() % 64),
        1 << 40,
        1 << (random.next() % 64),
        random.next(),
        u64::MAX,
        1 << 63,
    ];
    let all = near.into_iter().chain(small).chain(large);
    all.filter(|other| *other != right).step_by(rounds(2, 1)).collect()
}

fn judge_copies(part: &FilterFile, copies: &mut Copies, random: &mut SplitMix) {
    for at in 1..HEADER_WORDS - 1 {
        for other in others(part.header[at], random) {
            copies.judge_changed(part, |mut copy| {
                copy.header[at] = other;
                copy.with_sums()
            });
        }
    }
    for number in [0, part.blocks.len() - 1] {
        let block = &part.blocks[number];
        let last = block.len();
        let inside = BLOCK_HEAD..last - TIME;
        let some = (0..rounds(20, 100))
            .map(|_| inside.start + random.next() as usize % inside.len().max(1));
        let words: Vec<usize> =
            (0..BLOCK_HEAD).chain(some).chain(last.saturating_sub(70)..last).collect();
        for at in words.into_iter().filter(|at| *at < last) {
            for other in others(block[at], random) {
                // As a number that others follow from, and as one that they do not.
                for follow in [FilterFile::with_sums, FilterFile::sealed] {
                    copies.judge_changed(part, |mut copy| {
                        copy.blocks[number][at] = other;
                        // A checksum of a shard, or what has one.
                        if at == word::SUM { copy.with_index_sum() } else { follow(copy) }
                    });
                }
            }
        }
        copies.judge_changed(part, |mut copy| {
            copy.blocks.insert(number, copy.blocks[number].clone());
            copy.sealed()
        });
        copies.judge_changed(part, |mut copy| {
            copy.blocks.remove(number);
            copy.sealed()
        });
        if block.len() > BLOCK_HEAD + TIME {
            copies.judge_changed(part, |mut copy| {
                copy.blocks[number].remove(BLOCK_HEAD);
                copy.sealed()
            });
        }
    }
    // One time with another stamp, without a number or with a flag that is none, and later than the next one.
    type Change = fn(u64) -> u64;
    let changes: [(_, Change); 5] = [
        (0, |stamp| stamp ^ 1),
        (0, |stamp| stamp ^ 1 << 8),
        (0, |stamp| stamp ^ 1 << 9),
        (1, |elapsed| elapsed.wrapping_add(1)),
        (2, |number| number ^ 1),
    ];
    for (word, change) in changes {
        copies.judge_this_one();
        copies.judge_changed(part, |mut copy| {
            let at = copy.time_at(&copy.blocks[0]) + word;
            copy.blocks[0][at] = change(copy.blocks[0][at]);
            copy.sealed()
        });
    }
    for at in 0..part.mark.len() {
        copies.judge_changed(part, |mut copy| {
            copy.mark[at] ^= 1;
            copy.sealed()
        });
    }
    for at in 0..END_WORDS - 1 {
        for other in others(part.end[at], random) {
            copies.judge_changed(part, |mut copy| {
                copy.end[at] = other;
                copy.with_index_sum()
            });
        }
    }
    let bytes = part.bytes();
    for _ in 0..rounds(20, 200) {
        let at = random.next() as usize % bytes.len();
        let bit = 1 << (random.next() % 8);
        copies.judge(|| bytes[..at].to_vec());
        copies.judge(|| {
            let mut copy = bytes.clone();
            copy[at] ^= bit;
            copy
        });
    }
    copies.judge(|| [&bytes[..], &[0]].concat());
}

/// Files in this folder of the repository.
fn files_in(folder: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let files = std::fs::read_dir(folder).expect("a folder");
    let mut paths: Vec<_> = files.map(|file| file.expect("a file").path()).collect();
    paths.sort();
    paths.iter().map(|path| std::fs::read(path).expect("a file")).collect()
}

/// The file of a filter, and the only piece of it.
fn both(filter: &Filter) -> [Vec<u8>; 2] {
    [bytes_of(filter), filter.piece_at(0, usize::MAX).expect("memory").as_bytes().to_vec()]
}

#[test]
fn koel_refuses_what_the_specification_refuses_and_nothing_else() {
    let (mut copies, mut random) = (Copies::default(), SplitMix(1));
    let golden = files_in("tests/golden");
    let [fixed, growing] = [builder(20), builder(20).growing()]
        .map(|builder| with_items(builder.build().expect("a filter"), 20));
    let small = both(&fixed).into_iter().chain(both(&growing));
    for bytes in golden.into_iter().chain(small) {
        copies.one_of = 1;
        copies.judge(|| bytes.clone());
        copies.one_of = if bytes.len() > 50_000 { rounds(101, 6) } else { rounds(2, 1) };
        let times = rounds(1, 2);
        let part = FilterFile::read(&bytes).expect("a file");
        (0..times).for_each(|_| judge_copies(&part, &mut copies, &mut random));
    }
    copies.one_of = 1;
    // What a fuzzer found worth keeping: files of a smaller geometry, and what is none.
    files_in("fuzz/corpus/snapshot").into_iter().for_each(|bytes| copies.judge(|| bytes));
    assert!(copies.right > 1_000, "{copies:?}");
    // Every rule of the specification is broken by some copy.
    assert!(
        copies.wrong.len() >= 30 && copies.wrong.values().all(|count| *count > 0),
        "{copies:?}"
    );
    println!("{} right, {:#?}", copies.right, copies.wrong);
}
