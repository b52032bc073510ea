//! Loading allocates no more than the filter, a hundredth more, and some megabytes, whatever the
//! file claims to need. Of files that are what they claim, it allocates as little as the
//! documentation says. A loader of pieces allocates no more than three times what was pushed.

use crate::common::{LAYOUTS, bytes_of, rounds};
use crate::file::{self, FilterFile, word};
use crate::runner::{Test, tests};
use crate::{MOST, forget_most, most, now};
use koel::{ConcurrentCuckooFilter, StableHash};
use std::sync::atomic::Ordering::Relaxed;

pub const TESTS: &[Test] = &tests![loading_takes_no_more_than_the_file_whatever_it_claims];

type Filter = ConcurrentCuckooFilter<StableHash>;

const HASH: StableHash = StableHash::with_seed(7);

/// Returns how many bytes loading may take beyond 101 % of the file. They cover a block for each
/// thread and a directory of 2^20 entries.
fn some() -> usize {
    (12 + std::thread::available_parallelism().map_or(1, usize::from)) << 20
}

/// Returns the peak of the resident memory of this process since [`forget_peak`], or 0 on a system
/// that does not report it.
fn peak() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<usize>().ok());
    kib.map_or(0, |kib| kib << 10)
}

fn forget_peak() {
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

/// What loading has taken.
struct Taken {
    by_file: usize,
    by_stream: usize,
    /// In a stream. It depends on the kernel's huge pages and on what the allocator keeps.
    resident: usize,
    /// Whether the bytes could be loaded.
    loads: bool,
}

/// Loads the bytes from a file and from a stream.
fn taken(bytes: &[u8]) -> Taken {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("filter");
    std::fs::write(&path, bytes).expect("a file");
    let (by_file, loads) = most(|| Filter::load(&path).is_ok());
    forget_peak();
    let before = peak();
    let (by_stream, reads) = most(|| Filter::read_from(bytes).is_ok());
    let resident = peak().saturating_sub(before);
    assert_eq!(loads, reads);
    let [file, of_file, of_stream, in_memory] =
        [bytes.len(), by_file, by_stream, resident].map(|bytes| bytes.div_ceil(1 << 10));
    if loads {
        println!("{file} KiB: load took {of_file}, read_from {of_stream} ({in_memory} resident)");
    }
    Taken { by_file, by_stream, resident, loads }
}

/// Checks that neither way takes more memory than it may (in a stream, up to half of the shards of a fixed filter wait for
/// their table), and returns whether the bytes could be loaded.
#[track_caller]
fn takes_little(bytes: &[u8]) -> bool {
    let taken = taken(bytes);
    let limit = bytes.len() + bytes.len() / 100 + some();
    assert!(taken.by_file <= limit, "load took {} for {} bytes", taken.by_file, bytes.len());
    let grows = bytes[8 * word::GROWS..].first() == Some(&1);
    let limit = if grows { limit } else { limit + bytes.len() / 2 };
    let by_stream = taken.by_stream.max(taken.resident);
    assert!(by_stream <= limit, "read_from took {by_stream} for {} bytes", bytes.len());
    taken.loads
}

fn growing(capacity: usize) -> Filter {
    let builder = ConcurrentCuckooFilter::builder().capacity(capacity).hasher(HASH);
    builder.false_positive_rate(0.005).growing().build().expect("a filter")
}

fn pieces_of(filter: &Filter) -> Vec<Vec<u8>> {
    let pieces = filter.pieces(1 << 20).map(|piece| piece.expect("memory").as_bytes().to_vec());
    pieces.collect()
}

/// What a loader may allocate beyond three times what was pushed: a huge page, a piece as it is
/// validated, and some.
const SLACK: usize = 4 << 20;

/// Pushes all pieces and finishes the filter. After each step, the loader may not have allocated more than it may for the
/// pieces pushed so far, and nothing is left in the end. Returns whether there is a filter.
#[track_caller]
fn pushes_take_little(pieces: &[Vec<u8>]) -> bool {
    let start = forget_most();
    forget_peak();
    let (mut pushed, resident) = (0, peak());
    let mut loader = Filter::loader();
    for piece in pieces {
        let result = loader.push(piece);
        pushed += piece.len();
        let most = MOST.load(Relaxed) - start;
        assert!(most <= 3 * pushed + SLACK, "{most} for {pushed} bytes");
        if result.is_err() {
            drop((loader, result));
            assert_eq!(now(), start);
            return false;
        }
    }
    let filter = loader.finish();
    let most = MOST.load(Relaxed) - start;
    let resident = peak().saturating_sub(resident);
    assert!(most <= 3 * pushed + SLACK, "{most} for {pushed} bytes");
    assert!(resident <= 2 * pushed + SLACK, "{resident} for {pushed} bytes");
    filter.is_ok()
}

/// Loads files in which one number of the header, or the depth of all blocks, is wrong: powers of two, and the largest
/// values.
fn false_claims(filter: &Filter) {
    let right = FilterFile::cut(&bytes_of(filter));
    let claims = (0..64).step_by(rounds(7, 1)).map(|bit| 1 << bit);
    let claims: Vec<u64> = claims.chain([20, 31, u64::MAX / 3, u64::MAX]).collect();
    let take_little = |file: FilterFile| {
        let bytes = file.sealed().bytes();
        takes_little(&bytes);
        // A file is a piece, too.
        pushes_take_little(&[bytes]);
    };
    for claim in claims {
        for at in word::GROWS..=word::STATE {
            let mut file = right.clone();
            file.header[at] = claim;
            take_little(file);
        }
        for at in [word::SUM, word::DEPTH, word::ITEMS] {
            let mut file = right.clone();
            file.blocks.iter_mut().for_each(|block| block[at] = claim);
            take_little(file);
        }
    }
}

/// Returns a file with the smallest possible shards, so that the bookkeeping is largest.
fn small_shards() -> Vec<u8> {
    let mut file = FilterFile::cut(&bytes_of(&LAYOUTS[4].filter_with(1_000, HASH)));
    file.header[word::BUCKETS] = 4_096;
    file.header[word::NEAR] = 512;
    file.header[word::ROOTS] = 1_000;
    let mut block = vec![0; file::BLOCK_HEAD + 4_096 + file::TIME];
    block[9] = 1;
    block[word::ITEMS] = 1;
    file.blocks = vec![block; 1_000];
    file.sealed().bytes()
}

/// Returns a file with blocks as deep as possible, so that their directory is largest.
fn deep_shards() -> Vec<u8> {
    let mut file = FilterFile::cut(&bytes_of(&growing(1)));
    let depths = (1..=16).chain(std::iter::repeat_n(17, 2));
    let mut blocks: Vec<u64> = depths.collect();
    // 64 directory entries are allowed per block, so the first half is cut into small parts.
    blocks.splice(0..1, std::iter::repeat_n(12, 2_048));
    file.blocks = vec![file.blocks[0].clone(); blocks.len()];
    file.blocks.iter_mut().zip(blocks).for_each(|(block, depth)| block[word::DEPTH] = depth);
    file.sealed().bytes()
}

/// Loads a file that a filter has written, and checks that loading takes no more beyond the filter than `load` and
/// `read_from` say: a buffer for each thread; and in a stream a shard or two, and a 32nd of a growing filter or half of
/// a fixed one.
fn takes_what_is_said(filter: &Filter) {
    let bytes = bytes_of(filter);
    let file = FilterFile::cut(&bytes);
    let (length, block) = (bytes.len(), 8 * file.blocks[0].len());
    // What is known of each shard, and what is there once.
    let others = length / 50 + (16 << 10);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = (1 + length / (4 << 20)).min(cores);
    let buffers = (threads * block).max((length / 16).min(threads << 20));
    let most_by_file = length + buffers + others;
    let huge_page = if length >= 16 << 20 { 2 << 20 } else { 0 };
    let part = if file.grows() { length / 32 + huge_page } else { length / 2 };
    let most_by_stream = length + part + 2 * block + others;
    let Taken { by_file, by_stream, loads, .. } = taken(&bytes);
    assert!(loads && by_file <= most_by_file, "{by_file}, not {most_by_file} for {length}");
    assert!(by_stream <= most_by_stream, "{by_stream}, not {most_by_stream} for {length}");
}

fn loading_takes_no_more_than_the_file_whatever_it_claims() {
    false_claims(&LAYOUTS[3].filter_with(60, HASH));
    false_claims(&growing(1));

    // Of the last of a short run, a growing filter has some shards more than take 16 MiB.
    let sizes =
        [1, 10_000, 50_000, 500_000, 7_700_000, 1_500_000, 2_000_000, 6_000_000, 20_000_000];
    for size in sizes.into_iter().take(rounds(5, 9)) {
        takes_what_is_said(&LAYOUTS[4].filter_with(size, HASH));
        takes_what_is_said(&growing(size));
    }

    // What is checked takes much more than loading may take in addition.
    let large = || {
        let large = LAYOUTS[4].filter_with(rounds(12_000_000, 32_000_000), HASH);
        (0..100_000u64).for_each(|item| large.insert(&item).expect("room"));
        large
    };
    for make in [&large as &dyn Fn() -> Filter, &|| growing(rounds(12_000_000, 30_000_000))] {
        let large = make();
        let (bytes, pieces) = (bytes_of(&large), pieces_of(&large));
        drop(large);
        assert!(pushes_take_little(&pieces));
        drop(pieces);
        assert!(bytes.len() > rounds(20, 64) << 20);
        assert!(takes_little(&bytes));
        assert!(!takes_little(&bytes[..bytes.len() - 9]));
    }

    assert!(takes_little(&small_shards()));
    assert!(takes_little(&deep_shards()));
}
