//! Shared by the tests: the layouts, deterministic hashers, random numbers, threads that start at
//! the same time, and the choice between short and long runs.

// Each test program uses only a part of this.
#![allow(dead_code)]

pub mod rounds;

pub use rounds::rounds;

use koel::{Builder, ConcurrentCuckooFilter, PersistentHasher, Prehashed, Stats};
use std::collections::HashSet;
use std::hash::{BuildHasher, Hasher};
use std::io::{self, Write};
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Barrier, Mutex, MutexGuard, PoisonError};
use std::thread::{scope, spawn};
use std::time::Duration;

pub type Filter<S = Fixed> = ConcurrentCuckooFilter<S>;

/// A fingerprint size, and a false-positive rate that selects it.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    pub bits: u32,
    pub rate: f64,
    /// The number of words in a bucket.
    pub words: usize,
}

pub const LAYOUTS: [Layout; 11] = [
    Layout { bits: 8, rate: 0.065, words: 1 },
    Layout { bits: 9, rate: 0.03, words: 1 },
    Layout { bits: 10, rate: 0.012, words: 1 },
    Layout { bits: 12, rate: 0.0025, words: 1 },
    Layout { bits: 16, rate: 0.000_12, words: 1 },
    Layout { bits: 21, rate: 3e-6, words: 1 },
    Layout { bits: 32, rate: 1e-9, words: 1 },
    Layout { bits: 18, rate: 6e-5, words: 2 },
    Layout { bits: 32, rate: 2e-9, words: 2 },
    Layout { bits: 20, rate: 1.2e-5, words: 2 },
    Layout { bits: 24, rate: 6e-7, words: 2 },
];

/// The same for filters that grow, whose fingerprints lose bits: rates that select them if no growth is expected.
pub const GROWING: [Layout; 11] = {
    let rates = [0.13, 0.06, 0.025, 0.005, 2.5e-4, 6e-6, 2e-9, 1.2e-4, 4e-9, 2.3e-5, 1.3e-6];
    let mut layouts = LAYOUTS;
    let mut at = 0;
    while at < layouts.len() {
        layouts[at].rate = rates[at];
        at += 1;
    }
    layouts
};

/// A vague layout of one word and an exact one of two words.
const FEW_LAYOUTS: [Layout; 2] = [LAYOUTS[3], LAYOUTS[8]];

/// The layouts of a test: in a short run, two stand for all.
pub fn layouts() -> &'static [Layout] {
    rounds(&FEW_LAYOUTS, &LAYOUTS)
}

/// The same of [`GROWING`].
pub fn growing_layouts() -> &'static [Layout] {
    const FEW: [Layout; 2] = [GROWING[3], GROWING[7]];
    rounds(&FEW, &GROWING)
}

/// Returns the builder of a filter with this rate, or with the lowest one that it can have if that is higher.
pub fn with_rate<S: Clone>(builder: Builder<S>, rate: f64) -> Builder<S> {
    let asked = builder.clone().false_positive_rate(rate);
    match asked.plan() {
        Ok(_) => asked,
        Err(error) => builder.false_positive_rate(error.least_rate().expect("no other error")),
    }
}

impl Layout {
    pub fn filter(&self, capacity: usize) -> Filter {
        self.filter_with(capacity, Fixed { key: 0 })
    }

    pub fn filter_with<S: BuildHasher>(&self, capacity: usize, hasher: S) -> Filter<S> {
        let filter = ConcurrentCuckooFilter::builder()
            .capacity(capacity)
            .false_positive_rate(self.rate)
            .hasher(hasher)
            .build()
            .expect("a filter for this capacity and rate");
        let stats = filter.stats();
        assert_eq!(stats.fingerprint_bits, self.bits, "the rate did not select {self:?}");
        assert_eq!(stats.slots_per_bucket, self.slots());
        filter
    }

    /// Returns the builder of a filter that grows, if this is one of [`GROWING`].
    pub fn growing(&self, capacity: usize) -> Builder<Fixed> {
        let builder = ConcurrentCuckooFilter::builder().capacity(capacity).growing();
        builder.false_positive_rate(self.rate).expected_growth(1.0).hasher(Fixed { key: 0 })
    }

    /// Returns the number of slots in a bucket.
    pub fn slots(&self) -> usize {
        // A lane of a wide bucket has half of its bits in each word.
        64 / (self.bits as usize / self.words)
    }

    /// Returns whether a few thousand items reliably have no false positives among them.
    pub fn is_exact(&self) -> bool {
        self.bits >= 21
    }

    /// Returns whether a hundred thousand lookups of absent items find some of them.
    pub fn is_vague(&self) -> bool {
        self.bits <= 18
    }
}

/// Returns the number of values that a fingerprint can have.
pub fn fingerprints(stats: &Stats) -> f64 {
    let bits = stats.fingerprint_bits;
    match stats.slots_per_bucket as u32 * bits {
        ..=64 => f64::from(bits).exp2() - 1.0,
        // The half in the first of two words is never zero.
        _ => (f64::from(bits / 2).exp2() - 1.0) * f64::from(bits / 2).exp2(),
    }
}

/// Returns the false-positive rate that theory predicts for a table with this load.
pub fn expected_rate(stats: &Stats, load: f64) -> f64 {
    let fingerprints = fingerprints(stats);
    let compared = 2.0 * stats.slots_per_bucket as f64 * load;
    -(compared * (-1.0 / fingerprints).ln_1p()).exp_m1()
}

/// Returns the count of each hash. For many hashes, two different tables hardly ever agree.
pub fn answers<S: BuildHasher>(
    filter: &Filter<S>,
    hashes: impl IntoIterator<Item = u64>,
) -> Vec<usize> {
    hashes.into_iter().map(|hash| filter.count(&Prehashed(hash))).collect()
}

/// Inserts new hashes until one is refused. Returns the inserted hashes and the refused one.
pub fn fill_to_refusal<S: BuildHasher>(
    filter: &Filter<S>,
    random: &mut SplitMix,
) -> (Vec<u64>, u64) {
    let mut inserted = Vec::new();
    loop {
        let hash = random.next();
        if filter.insert(&Prehashed(hash)).is_err() {
            return (inserted, hash);
        }
        inserted.push(hash);
    }
}

/// What tests do to a filter with each hash of a list.
pub trait Hashes {
    /// Inserts all, and panics if one is refused.
    fn put(&self, hashes: &[u64]);

    /// Removes all, and panics if one is absent.
    fn take(&self, hashes: &[u64]);

    /// Returns how many are found.
    fn found(&self, hashes: &[u64]) -> usize;

    fn has(&self, hashes: &[u64]) -> bool {
        self.found(hashes) == hashes.len()
    }

    /// Inserts those that are not refused, and returns them.
    fn put_some(&self, hashes: &[u64]) -> Vec<u64>;
}

impl<S: BuildHasher> Hashes for Filter<S> {
    #[track_caller]
    fn put(&self, hashes: &[u64]) {
        hashes.iter().for_each(|hash| self.insert(&Prehashed(*hash)).expect("room"));
    }

    #[track_caller]
    fn take(&self, hashes: &[u64]) {
        hashes.iter().for_each(|hash| assert!(self.remove(&Prehashed(*hash)), "one is absent"));
    }

    fn found(&self, hashes: &[u64]) -> usize {
        hashes.iter().filter(|hash| self.contains(&Prehashed(**hash))).count()
    }

    fn put_some(&self, hashes: &[u64]) -> Vec<u64> {
        hashes.iter().copied().filter(|hash| self.insert(&Prehashed(*hash)).is_ok()).collect()
    }
}

/// Returns the bytes of the filter's file.
pub fn bytes_of<S: PersistentHasher>(filter: &Filter<S>) -> Vec<u8> {
    let mut bytes = Vec::new();
    let report = filter.write_to(&mut bytes).expect("memory");
    assert_eq!(report.bytes, bytes.len() as u64);
    bytes
}

/// Keeps what is written, and does something after each write.
pub struct Interrupted<F>(pub Vec<u8>, pub F);

impl<F: FnMut()> Write for Interrupted<F> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.extend(bytes);
        self.1();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Raises a flag when it is dropped, also by a panic, so that other threads do not wait for ever.
pub struct Raise<'a>(pub &'a AtomicBool);

impl Drop for Raise<'_> {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}

/// Runs the work in `threads` threads, passes each its number, and returns their results. Two others look for the pinned
/// items until then: each is found and counted, and is not new.
pub fn watched<S: BuildHasher + Sync, T: Send>(
    filter: &Filter<S>,
    pinned: &[u64],
    threads: usize,
    work: impl Fn(usize) -> T + Sync,
) -> Vec<T> {
    let (done, items) = (AtomicBool::new(false), prehashed(pinned));
    let watch = || {
        while !done.load(SeqCst) {
            for (at, item) in items.iter().enumerate() {
                assert!(filter.contains(item), "a pinned item is absent");
                if at % 16 == 0 {
                    assert!(filter.count(item) >= 1, "a pinned item is not counted");
                    assert_eq!(filter.insert_if_absent(item), Ok(false), "a pinned item is new");
                }
            }
            assert!(filter.contains_many(&items).iter().all(|found| *found), "one is absent");
        }
    };
    scope(|scope| {
        let (watch, work) = (&watch, &work);
        (0..2).for_each(|_| _ = scope.spawn(watch));
        let threads: Vec<_> = (0..threads).map(|n| scope.spawn(move || work(n))).collect();
        let _done = Raise(&done);
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    })
}

/// Saves the filter and returns the loaded copy.
pub fn loaded(filter: &Filter) -> Filter {
    let mut file = Vec::new();
    let report = filter.write_to(&mut file).expect("memory");
    let loaded = Filter::read_from(&file[..]).expect("a saved filter can be loaded");
    assert_eq!(loaded.len(), report.items, "the loaded filter has other items");
    // One that is mostly empty shrinks.
    assert!(loaded.stats().shards <= report.shards);
    loaded
}

/// Runs the work in `threads` threads, which start at the same time, and passes each its number.
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

/// Lets threads insert the same items in the same order, so that they race for each of them: a thread that is ahead
/// waits for memory and locks, and the others catch up. No item may have two winners. One that the filter takes for
/// another has none, unless all can be told apart. Returns the number of items that were refused.
pub fn race<S: BuildHasher + Sync>(
    filter: &Filter<S>,
    hashes: &[u64],
    threads: usize,
    is_exact: bool,
) -> usize {
    filter.clear();
    let winners: Vec<AtomicU32> = hashes.iter().map(|_| AtomicU32::new(0)).collect();
    let refused: Vec<AtomicBool> = hashes.iter().map(|_| false.into()).collect();
    together(threads, |_| {
        for (at, hash) in hashes.iter().enumerate() {
            match filter.insert_if_absent(&Prehashed(*hash)) {
                Ok(won) => {
                    winners[at].fetch_add(won.into(), SeqCst);
                    assert!(filter.contains(&Prehashed(*hash)), "an inserted item is absent");
                }
                Err(_) => refused[at].store(true, SeqCst),
            }
        }
    });
    let what = format!("{filter:?}, {threads} threads");
    let winners: Vec<u32> = winners.into_iter().map(AtomicU32::into_inner).collect();
    let refused: Vec<bool> = refused.into_iter().map(AtomicBool::into_inner).collect();
    assert!(winners.iter().all(|winners| *winners <= 1), "two winners of one item: {what}");
    assert_eq!(filter.len(), winners.iter().sum::<u32>() as usize, "{what}");
    for (at, hash) in hashes.iter().enumerate() {
        let found = filter.contains(&Prehashed(*hash));
        assert!(found || winners[at] == 0, "a winner's item is absent: {what}");
        // A split may take away what an item was taken for.
        let is_lost = !found && !refused[at] && !filter.grows();
        assert!(!is_lost, "an item was neither inserted nor refused: {what}");
        assert!(winners[at] == 1 || refused[at] || !is_exact, "an item has no winner: {what}");
    }
    refused.into_iter().filter(|refused| *refused).count()
}

/// Returns a lock that lets only one test of the program run at a time. The threads of a test
/// rarely run simultaneously if they share the processors with other tests.
pub fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs the work in a thread of its own, and fails if it takes much longer than it ever should, for
/// example because of a deadlock.
pub fn in_time(work: impl FnOnce() + Send + 'static) {
    let (end, ended) = channel();
    let worker = spawn(move || {
        // Dropped at the end, also by a panic.
        let _end: Sender<()> = end;
        work();
    });
    let waited = ended.recv_timeout(Duration::from_secs(300));
    assert_ne!(waited, Err(RecvTimeoutError::Timeout), "the work has not finished in time");
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

    /// The same as a remainder.
    pub fn less_than(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }

    /// Returns `count` different numbers.
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

/// The constant of [`mixed`].
pub const M: u64 = 0xA750_FAA4_14DC_2D91;

/// Mixes a hash like `Mixed::of` in `src/layout/geometry.rs`.
pub fn mixed(hash: u64) -> u64 {
    let fold = |x| {
        let product = u128::from(x) * u128::from(M);
        product as u64 ^ (product >> 64) as u64
    };
    fold(fold(hash))
}

/// A good hasher with a key that the test chooses.
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

impl PersistentHasher for Fixed {
    const NAME: &'static str = "that of the tests";

    fn seed(&self) -> u128 {
        self.key.into()
    }

    fn from_seed(seed: u128) -> Option<Self> {
        Some(Fixed { key: seed.try_into().ok()? })
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

/// These hashes as keys.
pub fn prehashed(hashes: &[u64]) -> Vec<Prehashed> {
    hashes.iter().map(|hash| Prehashed(*hash)).collect()
}
