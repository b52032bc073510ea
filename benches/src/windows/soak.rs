//! A long run: four threads add and look up keys of a window and let ticks pass, all at the same time.

use super::sets::{RATE, WINDOW, absent, key};
use crate::kit::arguments::Result;
use foldhash::quality::FixedState;
use koel::ConcurrentCuckooFilter;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Instant;

type Filter = ConcurrentCuckooFilter<FixedState>;

const THREADS: u64 = 4;
const WINDOWS: u64 = 200;
const OPERATIONS: u64 = 1_000_000_000;
/// Figures are taken at the ends of this many parts of the run.
const PARTS: u64 = 20;

#[derive(Default)]
struct Counts {
    missed: u64,
    found_absent: u64,
    absent: u64,
    found_old: u64,
    old: u64,
}

/// Runs, and returns what happened. It is an error if a key of its window was missed.
pub fn soak(test: bool) -> Result<String> {
    let operations = if test { OPERATIONS / 500 } else { OPERATIONS };
    let ticks = WINDOWS * WINDOW;
    // Of four operations, one adds a key, two look up a key of the window, and one another key.
    let keys = operations / 4 / ticks / THREADS;
    let builder = ConcurrentCuckooFilter::builder().capacity(1_000).false_positive_rate(RATE);
    let builder = builder.hasher(FixedState::default()).remembers(WINDOW as u32);
    let most = (THREADS * keys * WINDOW) as f64 / 1_000.0;
    let filter = builder.growing().expected_growth(most.max(1.0)).build().expect("memory");
    // The tick that each thread is in. None is more than one ahead of another.
    let at: [AtomicU64; THREADS as usize] = Default::default();
    let mut text = format!(
        "{operations} operations of {THREADS} threads over {WINDOWS} windows of {WINDOW} ticks, {} new \
         keys a tick.\n\nwindows       keys   bytes    bits a key of the window   told rate\n",
        THREADS * keys
    );
    let start = Instant::now();
    let counts: Vec<(Counts, String)> = std::thread::scope(|scope| {
        let work = |thread: u64| {
            let (filter, at) = (&filter, &at);
            move || {
                let (mut counts, mut text) = (Counts::default(), String::new());
                for tick in 0..ticks {
                    filter.tick_to(tick);
                    at[thread as usize].store(tick, SeqCst);
                    while at.iter().any(|other| other.load(SeqCst) + 1 < tick) {
                        std::thread::yield_now();
                    }
                    round(filter, thread, tick, keys, &mut counts);
                    if thread == 0 && (tick + 1).is_multiple_of(ticks / PARTS) {
                        let (stats, bytes) = (filter.stats(), filter.size_in_bytes());
                        let _ = writeln!(
                            text,
                            "{:7}{:11}{bytes:10}{:13.1}{:24.5} %",
                            (tick + 1) / WINDOW,
                            stats.items,
                            8.0 * bytes as f64 / (THREADS * keys * WINDOW) as f64,
                            100.0 * stats.false_positive_rate
                        );
                    }
                }
                at[thread as usize].store(u64::MAX - 1, SeqCst);
                (counts, text)
            }
        };
        let threads: Vec<_> = (0..THREADS).map(|thread| scope.spawn(work(thread))).collect();
        threads.into_iter().map(|thread| thread.join().expect("no thread panics")).collect()
    });
    let took = start.elapsed().as_secs_f64();
    let sum = |count: fn(&Counts) -> u64| counts.iter().map(|(one, _)| count(one)).sum::<u64>();
    text += &counts[0].1;
    let percent = |found: u64, of: u64| 100.0 * found as f64 / of.max(1) as f64;
    let missed = sum(|one| one.missed);
    let _ = writeln!(
        text,
        "\n{missed} keys of their window were missed. Of keys that were never added, {:.5} % were found, and \
         of those that had expired {:.5} %.\n{took:.0} s, {:.1} million operations a second.",
        percent(sum(|one| one.found_absent), sum(|one| one.absent)),
        percent(sum(|one| one.found_old), sum(|one| one.old)),
        operations as f64 / took / 1e6
    );
    if missed == 0 { Ok(text) } else { Err(text.into()) }
}

/// Adds the keys of a thread in one tick, and looks up three others for each of them.
fn round(filter: &Filter, thread: u64, tick: u64, keys: u64, counts: &mut Counts) {
    let mut random = (thread << 32 | tick).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = move |below: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        ((u128::from(random) * u128::from(below)) >> 64) as u64
    };
    let own = |item: u64| thread * keys + item;
    for item in 0..keys {
        // What seems to be there already is what it was taken for from now on, and stays as long.
        let is_new = filter.insert_or_refresh(&key(tick, own(item))).expect("memory");
        counts.absent += 1;
        counts.found_absent += u64::from(!is_new);
        // Another thread may be one tick ahead, so the oldest tick of the window is left out.
        for _ in 0..2 {
            let came = tick - next(tick.min(WINDOW - 2) + 1);
            let below = if came == tick { item + 1 } else { keys };
            counts.missed += u64::from(!filter.contains(&key(came, own(next(below)))));
        }
        // As many as were never added, and as many that have gone.
        if item % 2 == 0 || tick < WINDOW + 3 {
            counts.absent += 1;
            counts.found_absent += u64::from(filter.contains(&absent(tick << 32 | own(item))));
        } else {
            counts.old += 1;
            let gone = key(tick - WINDOW - 3, own(next(keys)));
            counts.found_old += u64::from(filter.contains(&gone));
        }
    }
}
