//! What the machine takes: to swap a word, to move a cache line from one processor to another, and to load one from
//! memory.

use crate::crew::{median, share, timed};
use crate::machine::{Distance, Machine};
use std::hint::black_box;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// The parameters of the model, as measured here.
pub struct Costs {
    /// Nanoseconds of a swap of a word that the core has.
    pub swap: f64,
    pub transfers: Vec<Transfer>,
    /// Million random lines that some threads load from memory in a second.
    pub memory: Vec<(usize, f64)>,
}

/// What it costs to move a line, in nanoseconds, between two processors at a distance.
pub struct Transfer {
    pub distance: Distance,
    /// The two take turns with one line: each waits for the other's store.
    pub alone: f64,
    /// The two swap words of a few random lines, as many as a table of 2 MiB has for its locks. Each line is the
    /// other's in half of all cases.
    pub of_locks: f64,
    /// The two load and then swap words of random lines of 2 MiB. The load fetches the line, and the swap takes it away
    /// from the other.
    pub of_words: f64,
}

impl Costs {
    /// What a transfer of a lock's line costs between any two of the first processors, on average, and one of a word's
    /// line.
    pub fn transfers(&self, machine: &Machine, count: usize) -> [f64; 2] {
        let of = |at: usize| self.transfers.iter().find(|it| it.distance as usize == at);
        let all = machine.processors.len();
        if all < 2 {
            return [0.0; 2];
        }
        let parts = machine.distances(count.clamp(2, all));
        let known = parts.iter().enumerate().filter(|(_, part)| **part > 0.0);
        let known = known.filter_map(|(at, part)| Some((part, of(at)?)));
        let (mut costs, mut all) = ([0.0, 0.0], 0.0);
        for (part, transfer) in known {
            costs[0] += part * transfer.of_locks;
            costs[1] += part * transfer.of_words;
            all += part;
        }
        costs.map(|cost| if all > 0.0 { cost / all } else { f64::NAN })
    }

    /// Million lines a second from memory, if that was measured for so many threads.
    pub fn lines(&self, threads: usize) -> Option<f64> {
        self.memory.iter().find(|(count, _)| *count == threads).map(|(_, lines)| *lines)
    }
}

#[repr(align(64))]
struct Line(AtomicU64);

/// The lines of the locks of a table of 2 MiB.
const LOCKS: usize = 64;
/// The lines of 2 MiB, which two processors keep in their caches.
const CACHED: usize = 1 << 15;
/// The lines of 512 MiB, which none does.
const UNCACHED: usize = 1 << 23;

pub fn measure(machine: &Machine, reps: usize, test: bool) -> Costs {
    let rounds = if test { 10_000 } else { 4_000_000 };
    let lines: Vec<Line> = (0..CACHED).map(|_| Line(AtomicU64::new(0))).collect();
    let swaps = (0..reps).map(|_| {
        let line = Line(AtomicU64::new(0));
        let swap = |_| (0..rounds).for_each(|_| _ = black_box(line.0.swap(1, Acquire)));
        timed(machine, &[0], swap).wall / rounds as f64
    });
    let swap = swaps.fold(f64::INFINITY, f64::min);
    let transfers = Distance::ALL.into_iter().filter_map(|distance| {
        let pair = machine.pair(distance)?;
        let alone = (0..reps).map(|_| turns(machine, pair, rounds / 8));
        let alone = alone.fold(f64::INFINITY, f64::min);
        let of_each = |lines: &[Line], swap: fn(&AtomicU64, u64) -> bool| {
            let all = (0..reps).filter_map(|_| stream(machine, pair, lines, rounds, swap));
            median(all)
        };
        // Half of the swaps wait for one.
        let of_locks =
            2.0 * of_each(&lines[..LOCKS], |word, number| word.swap(number, Acquire) == 1);
        // Half of the loads wait for one, and half of the swaps.
        let of_words = of_each(&lines, |word, number| {
            let before = word.load(Relaxed);
            word.compare_exchange(before, number, Acquire, Relaxed).is_ok()
        });
        Some(Transfer { distance, alone, of_locks, of_words })
    });
    let transfers = transfers.collect();
    let memory = memory(machine, reps.min(5), if test { 1 << 12 } else { UNCACHED }, rounds);
    Costs { swap, transfers, memory }
}

/// Nanoseconds of a turn.
fn turns(machine: &Machine, pair: [usize; 2], turns: u64) -> f64 {
    let line = Line(AtomicU64::new(0));
    let time = timed(machine, &pair, |thread| {
        for turn in (thread..turns).step_by(2) {
            let mut tries = 0;
            while line.0.load(Acquire) != turn {
                std::hint::spin_loop();
                tries += 1;
                // The other thread may have no processor just now.
                if tries % 1_000 == 0 {
                    std::thread::yield_now();
                }
            }
            line.0.store(turn + 1, Release);
        }
    });
    time.wall / turns as f64
}

/// How many nanoseconds longer a swap of a word takes when two processors do it, unless another program had one of them.
fn stream(
    machine: &Machine,
    pair: [usize; 2],
    lines: &[Line],
    rounds: u64,
    swap: fn(&AtomicU64, u64) -> bool,
) -> Option<f64> {
    let [one, two] = [&pair[..1], &pair[..]].map(|processors| {
        timed(machine, processors, |thread| {
            for number in 0..rounds {
                let random = mixed(number << 1 | thread);
                black_box(swap(&lines[(random >> 32) as usize % lines.len()].0, number));
            }
        })
    });
    let is_whole = one.had_processors() && two.had_processors();
    is_whole.then(|| ((two.wall - one.wall) / rounds as f64).max(0.0))
}

/// A number that looks random and has nothing to do with those of other threads. (The multiples of a constant would: then
/// the other thread has nearly always been at a line since this one was.)
fn mixed(number: u64) -> u64 {
    let mut mixed = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

/// How many random lines a second some threads load, by their number.
fn memory(machine: &Machine, reps: usize, count: usize, rounds: u64) -> Vec<(usize, f64)> {
    let all: Vec<usize> = (0..machine.processors.len()).collect();
    let most = |threads: usize| {
        let lines = untouched(count);
        // Memory is on the node of the thread that writes it first. So each writes a part.
        timed(machine, &all[..threads], |thread| {
            let own = share(count as u64, threads as u64, thread);
            own.for_each(|at| lines[at as usize][0].store(1, Relaxed));
        });
        let rates = (0..reps).map(|_| {
            let time = timed(machine, &all[..threads], |thread| {
                let mut sum = 0u64;
                for number in 0..rounds {
                    let random =
                        (number << 16 | thread << 1 | 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
                    sum = sum.wrapping_add(lines[(random >> 32) as usize % count][0].load(Relaxed));
                }
                black_box(sum);
            });
            (rounds * threads as u64) as f64 * 1e3 / time.wall
        });
        rates.fold(0.0, f64::max)
    };
    machine.counts().into_iter().map(|threads| (threads, most(threads))).collect()
}

/// The words of lines in huge pages, where the system has them, and of which no memory has been used yet. (For
/// words with a larger alignment, Rust would write the zeros itself.)
fn untouched(count: usize) -> Box<[[AtomicU64; 8]]> {
    // SAFETY: zeros are such words.
    let lines: Box<[[AtomicU64; 8]]> = unsafe { Box::new_zeroed_slice(count).assume_init() };
    #[cfg(target_os = "linux")]
    {
        let (start, bytes) = (lines.as_ptr() as usize, size_of_val(&*lines));
        let first = start.next_multiple_of(4096);
        // SAFETY: the advice changes neither the contents of memory nor access to it.
        unsafe {
            libc::madvise(first as *mut _, bytes.saturating_sub(first - start), libc::MADV_HUGEPAGE)
        };
    }
    lines
}
