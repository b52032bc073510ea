//! Loads arbitrary bytes as the file of a filter, and as pieces of one. Either they are refused, or the
//! filter works.
//!
//! Hardly any change to a file gets past its checksums. So each input is tried as it is, and then
//! with more and more of it repaired: see `repair`.
//!
//! ```sh
//! mkdir -p fuzz/found
//! fuzz/run fuzz/found fuzz/corpus/snapshot -max_len=4096
//! ```
#![no_main]

mod file;
mod filters;
mod pieces;
mod repair;

use filters::{Filter, is_as_read, mix, written};
use koel_small::{Prehashed, SnapshotFile, StableHash};
use libfuzzer_sys::fuzz_target;
use repair::Repair;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

fuzz_target!(|input: &[u8]| {
    for (number, bytes) in Repair::all(input).enumerate() {
        // The first is the input as it is.
        let is_sealed = number > 0;
        read(&bytes, is_sealed);
        let _ = Filter::loader().push(&bytes);
    }
});

/// Lookups in the file give the answers of the filter.
fn ask_the_file(filter: &Filter, path: &Path, bytes: &[u8]) {
    let file = open(path);
    let words = bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word));
    let hashes: Vec<Prehashed> = words.chain([0, u64::MAX]).map(Prehashed).collect();
    let answers = file.contains_many(&hashes).expect("a file that was loaded");
    assert_eq!(answers, filter.contains_many(&hashes));
}

fn open(path: &Path) -> SnapshotFile<StableHash> {
    SnapshotFile::open(path).expect("a file that was loaded")
}

/// Reads the bytes from a stream and from a file. Either both are refused, or both give the same
/// filter.
fn read(bytes: &[u8], is_sealed: bool) {
    // A file system in memory, if there is one, is fifty times as fast.
    static PATH: LazyLock<PathBuf> = LazyLock::new(|| {
        let memory = PathBuf::from("/dev/shm");
        let folder = if memory.is_dir() { memory } else { std::env::temp_dir() };
        folder.join(format!("koel-fuzz-{}", std::process::id()))
    });
    let mut stream = bytes;
    let by_stream = Filter::read_from(&mut stream);
    std::fs::write(&*PATH, bytes).expect("a file");
    let by_file = Filter::load(&*PATH);
    assert_eq!(by_file.is_ok(), by_stream.is_ok() && stream.is_empty());
    for error in [by_stream.as_ref().err(), by_file.as_ref().err()].into_iter().flatten() {
        assert!(!error.to_string().is_empty());
        assert!(error.offset().is_none_or(|at| at <= bytes.len() as u64), "{error}");
    }
    if is_sealed {
        pieces::load(bytes, by_file.as_ref().ok());
    }
    if let Ok(filter) = by_stream {
        let length = bytes.len() - stream.len();
        let is_same = is_as_read(&filter, length);
        assert!(!is_same || written(&filter) == bytes[..length]);
        if let Ok(other) = &by_file {
            assert!(written(other) == written(&filter));
            if is_same {
                ask_the_file(&filter, &PATH, bytes);
            }
            assert!(open(&PATH).info().stats.items == filter.len());
        }
        operate(&filter, bytes);
    }
}

/// Runs every operation on the filter, then saves and loads it.
fn operate(filter: &Filter, bytes: &[u8]) {
    let seed = bytes.iter().fold(7, |sum: u64, byte| mix(sum ^ u64::from(*byte)));
    let hashes: Vec<Prehashed> = (0..200).map(|n| Prehashed(mix(seed ^ n))).collect();
    let mut removed = 0;
    for hash in &hashes {
        let count = filter.count(hash);
        assert_eq!(filter.contains(hash), count > 0);
        match hash.0 % 8 {
            0 => removed += usize::from(filter.remove(hash)),
            1 => _ = filter.insert_if_absent(hash),
            _ if filter.insert(hash).is_ok() => assert!(filter.contains(hash)),
            _ => {}
        }
    }
    assert!(removed <= hashes.len());
    assert!(!filter.stats().to_string().is_empty());
    let _ = (filter.len(), filter.size_in_bytes());
    let bytes = written(filter);
    let again = Filter::read_from(&bytes[..]).expect("what was written");
    if is_as_read(&again, bytes.len()) {
        assert!(written(&again) == bytes);
        for hash in &hashes {
            assert_eq!(again.count(hash), filter.count(hash));
        }
    }
    assert_eq!(again.len(), filter.len());
    let items = filter.len();
    filter.shrink();
    assert_eq!(filter.len(), items);
    written(filter);
    // In a filter that remembers for ever, these do nothing.
    filter.tick();
    assert!(written(filter) == written(filter));
    let expiring: usize = filter.expiring().iter().sum();
    assert!(expiring == filter.len() || expiring == 0 || filter.grows());
    filter.clear();
    assert!(filter.is_empty());
    assert!(!hashes.iter().any(|hash| filter.contains(hash)));
    written(filter);
}
