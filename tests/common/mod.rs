//! What the tests share: the layouts, hashers that are the same each time, random numbers, threads
//! that begin together, and how long a run takes.

// Every test file is a crate of its own and uses a part of this.
#![allow(dead_code)]

mod rounds;

pub use rounds::rounds;

use koel::{ConcurrentCuckooFilter, Stats};
use std::collections::HashSet;
use std::hash::{BuildHasher, Hasher};
use std::panic::resume_unwind;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Barrier, Mutex, MutexGuard, PoisonError};
use std::thread::{scope, spawn};
use std::time::Duration;

pub type Filter<S = Fixed> = ConcurrentCuckooFilter<S>;

/// A way to cut the 64-bit buckets, and a false-positive rate that chooses it.
#[derive(Debug)]
pub struct Layout {
    pub bits: u32,
    pub rate: f64,
}

pub const LAYOUTS: [Layout; 7] = [
    Layout { bits: 8, rate: 0.065 },
    Layout { bits: 9, rate: 0.03 },
    Layout { bits: 10, rate: 0.012 },
    Layout { bits: 12, rate: 0.0025 },
    Layout { bits: 16, rate: 0.000_12 },
    Layout { bits: 21, rate: 3e-6 },
    Layout { bits: 32, rate: 1e-9 },
];

impl Layout {
    pub fn filter(&self, capacity: usize) -> Filter {
        self.filter_with(capacity, Fixed { key: 0 })
    }

    pub fn filter_with<S>(&self, capacity: usize, hasher: S) -> Filter<S> {
        let filter = ConcurrentCuckooFilter::builder()
            .capacity(capacity)
            .false_positive_rate(self.rate)
            .hasher(hasher)
            .build()
            .expect("a filter for this capacity and rate");
        let stats = filter.stats();
        assert_eq!(stats.fingerprint_bits(), self.bits, "{self:?} is not what the rate chose");
        assert_eq!(stats.slots_per_bucket(), self.slots());
        filter
    }

    /// Fingerprints in a bucket.
    pub fn slots(&self) -> usize {
        (64 / self.bits) as usize
    }

    /// Whether some thousand items can be trusted to have no false positives among them.
    pub fn is_exact(&self) -> bool {
        self.bits >= 21
    }
}

/// The false-positive rate that theory expects of a table with this load.
pub fn expected_rate(stats: &Stats, load: f64) -> f64 {
    let fingerprints = 2f64.powi(stats.fingerprint_bits() as i32) - 1.0;
    let compared = 2.0 * stats.slots_per_bucket() as f64 * load;
    -(compared * (-1.0 / fingerprints).ln_1p()).exp_m1()
}

/// What the filter says about each hash; two tables that differ hardly agree on many.
pub fn answers<S>(filter: &Filter<S>, hashes: impl IntoIterator<Item = u64>) -> Vec<usize> {
    hashes.into_iter().map(|hash| filter.count_hash(hash)).collect()
}

/// Inserts new hashes until one is refused; returns those that went in, and the refused one.
pub fn fill_to_refusal<S>(filter: &Filter<S>, random: &mut SplitMix) -> (Vec<u64>, u64) {
    let mut inserted = Vec::new();
    loop {
        let hash = random.next();
        if filter.insert_hash(hash).is_err() {
            return (inserted, hash);
        }
        inserted.push(hash);
    }
}

/// Runs the work in so many threads, each with its number, and lets them all begin at once.
pub fn together(threads: usize, work: impl Fn(usize) + Sync) {
    let begin = Barrier::new(threads);
    scope(|scope| {
        for thread in 0..threads {
            let (begin, work) = (&begin, &work);
            scope.spawn(move || {
                begin.wait();
                work(thread);
            });
        }
    });
}

/// Holds up the other tests of the file that ask for the same: threads that share their processors
/// with those of other tests seldom meet.
pub fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs the work in a thread of its own, and fails if it takes much longer than it ever should, as
/// it does when it waits for something that will not come.
pub fn in_time(work: impl FnOnce() + Send + 'static) {
    let (end, ended) = channel();
    let worker = spawn(move || {
        // Dropped at the end, and by a panic as well.
        let _end: Sender<()> = end;
        work();
    });
    let waited = ended.recv_timeout(Duration::from_secs(300));
    assert_ne!(waited, Err(RecvTimeoutError::Timeout), "this does not come to an end");
    if let Err(panic) = worker.join() {
        resume_unwind(panic);
    }
}

/// Random numbers that do not repeat in 2^64.
#[derive(Clone, Debug)]
pub struct SplitMix(pub u64);

impl SplitMix {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mix(self.0)
    }

    pub fn below(&mut self, end: usize) -> usize {
        ((u128::from(self.next()) * end as u128) >> 64) as usize
    }

    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }

    /// So many numbers, all different.
    pub fn take(&mut self, count: usize) -> Vec<u64> {
        let numbers: Vec<u64> = (0..count).map(|_| self.next()).collect();
        debug_assert_eq!(numbers.iter().collect::<HashSet<_>>().len(), count);
        numbers
    }
}

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// A decent hasher with a key that the test chooses.
#[derive(Clone, Copy, Debug)]
pub struct Fixed {
    pub key: u64,
}

pub struct FixedHasher(u64);

impl BuildHasher for Fixed {
    type Hasher = FixedHasher;

    fn build_hasher(&self) -> FixedHasher {
        FixedHasher(mix(self.key.wrapping_add(0x9E37_79B9_7F4A_7C15)))
    }
}

impl Hasher for FixedHasher {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
        self.write_u64(bytes.len() as u64);
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = mix(self.0.rotate_left(29) ^ word);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// The worst hasher there is: a number is its own hash.
#[derive(Clone, Copy, Debug)]
pub struct Identity;

pub struct IdentityHasher(u64);

impl BuildHasher for Identity {
    type Hasher = IdentityHasher;

    fn build_hasher(&self) -> IdentityHasher {
        IdentityHasher(0)
    }
}

impl Hasher for IdentityHasher {
    fn write(&mut self, _: &[u8]) {
        panic!("only a u64 is its own hash");
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = word;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
