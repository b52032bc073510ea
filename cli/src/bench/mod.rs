//! `koel bench`: measures the filter's throughput on this machine, by number of threads and kind of
//! work.
//!
//! A round runs all workloads with each number of threads. Several rounds spread the effects of
//! other programs over all results, which are medians. Reading order: `sizing` → `workloads` →
//! `answers` and `timing`, then `table` and `plot`.

mod answers;
mod picture;
mod plot;
mod sizing;
mod table;
mod timing;
mod workloads;

use crate::arguments::tools::Bench;
use crate::failure::Failure;
use crate::lines::output::Sink;
use indicatif::{BinaryBytes, HumanCount, ProgressBar, ProgressStyle};
use picture::Picture;
use sizing::Table;
use std::time::{Duration, Instant};
use table::{Figures, count};
use workloads::{BATCH, Run, Samples};

/// The number of rounds: three, unless one takes very long, and up to five as long as all of them
/// do not take too long. All times are per number of threads.
const MIN_ROUNDS: u32 = 3;
const VERY_LONG: Duration = Duration::from_secs(8);
const ROUNDS: u32 = 5;
const LONG: Duration = Duration::from_secs(10);
/// Small tables take little time, so more rounds are affordable.
const MORE_ROUNDS: u32 = 25;
const SHORT: Duration = Duration::from_millis(500);

/// Measures, prints the table, and writes the plot to its file.
pub fn run(bench: &Bench) -> Result<(), Failure> {
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u64);
    let threads = numbers_of_threads(&bench.threads, cores);
    let most = threads.last().copied().unwrap_or(1);
    let too_many = || format!("cannot start {most} threads; use fewer --threads");
    timing::can_run(most).map_err(|error| Failure::of(too_many(), &error))?;
    let picture = bench.svg.as_deref().map(Picture::at).transpose()?;
    let table = Table::of(bench.size).map_err(Failure::new)?;

    let mut samples = Samples::default();
    let rounds = measure(&table, &threads, cores, &mut samples).map_err(Failure::new)?;
    let figures = Figures { threads: &threads, samples: &samples };
    let about = about(&table, rounds);
    let text = format!("{about}\n\n{}\n{}", figures.table(), notes(&samples));
    // The plot is written even if the table could not be.
    let printed = Sink::standard().and_then(|mut output| output.print(&text));
    if let Some(picture) = picture {
        picture.write(&plot::svg(&figures, &about))?;
    }
    printed
}

/// Returns the thread counts asked for, sorted, or else the default up to all cores.
fn numbers_of_threads(asked: &[usize], cores: u64) -> Vec<u64> {
    let mut threads: Vec<u64> = asked.iter().map(|&threads| threads as u64).collect();
    threads.sort_unstable();
    threads.dedup();
    if threads.is_empty() { timing::thread_counts(cores) } else { threads }
}

/// Runs rounds until there are enough, and returns their number.
fn measure(
    table: &Table,
    threads: &[u64],
    cores: u64,
    samples: &mut Samples,
) -> Result<u32, String> {
    let in_a_round = threads.len() * workloads::COUNT;
    let bar = progress_bar(in_a_round);
    let start = Instant::now();
    let spent = || start.elapsed() / threads.len().max(1) as u32;
    let mut rounds = 0;
    while goes_on(rounds, spent()) {
        for &threads in threads {
            let done = || bar.inc(1);
            let samples = &mut *samples;
            Run { items: table.items, threads, cores, samples, done: &done }.measure()?;
        }
        rounds += 1;
        bar.set_length(u64::from(foreseen(rounds, spent())) * in_a_round as u64);
    }
    bar.finish_and_clear();
    Ok(rounds)
}

/// Creates a progress bar, which is drawn only if standard error is a terminal.
fn progress_bar(in_a_round: usize) -> ProgressBar {
    let style = ProgressStyle::with_template("measuring {bar:30} about {eta} left");
    let bar = ProgressBar::new(u64::from(MIN_ROUNDS) * in_a_round as u64);
    bar.with_style(style.unwrap_or(ProgressStyle::default_bar()))
}

/// Returns `true` if another round follows after `rounds` rounds that took `spent`.
fn goes_on(rounds: u32, spent: Duration) -> bool {
    match rounds {
        0 => true,
        1..MIN_ROUNDS => spent / rounds <= VERY_LONG,
        MIN_ROUNDS..ROUNDS => spent + spent / rounds <= LONG,
        ROUNDS..MORE_ROUNDS => spent < SHORT,
        _ => false,
    }
}

/// Estimates the total number of rounds.
fn foreseen(rounds: u32, spent: Duration) -> u32 {
    (rounds..).find(|&then| !goes_on(then, spent / rounds * then)).unwrap_or(rounds)
}

/// Describes the machine and the table.
fn about(table: &Table, rounds: u32) -> String {
    let stats = &table.stats;
    format!(
        "{}. Million operations a second, {}.\n\
         A table of {}: {} items of {} bits, {:.1} % of its slots.",
        timing::machine(),
        if rounds == 1 { "measured once".into() } else { format!("medians of {rounds}") },
        BinaryBytes(stats.size_in_bytes as u64),
        HumanCount(table.items),
        stats.fingerprint_bits,
        100.0 * table.items as f64 / stats.slots as f64
    )
}

/// Explains the table.
fn notes(samples: &Samples) -> String {
    let mut text = format!(
        "insert is insert_if_absent, of new items until the table is full, or of known items.\n\
         mix is 9 lookups, half of them hits, to 1 insert. A batch has {} items.\n\
         The growing filter starts at 64 KiB. Keys are integers; hashing is included.\n",
        HumanCount(BATCH)
    );
    let Samples { of_several, short_of_cores, .. } = samples;
    if *short_of_cores > 0 {
        text += &format!(
            "Other programs used some of the cores in {short_of_cores} of {} on several threads.\n",
            count(*of_several, "measurement")
        );
    }
    text + "On a shared machine, results vary.\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_measured_once_each_and_in_order() {
        assert_eq!(numbers_of_threads(&[4, 1, 4], 2), [1, 4]);
        assert_eq!(numbers_of_threads(&[], 6), [1, 2, 4, 6]);
    }

    #[test]
    fn rounds_end() {
        let seconds = Duration::from_secs_f64;
        assert!(goes_on(0, seconds(1_000.0)));
        assert!(!goes_on(1, seconds(9.0)) && goes_on(2, seconds(15.0)));
        assert!(!goes_on(3, seconds(8.0)) && goes_on(3, seconds(7.0)));
        assert!(goes_on(5, seconds(0.3)) && !goes_on(5, seconds(0.7)));
        assert!(!goes_on(25, seconds(0.0)));
        assert_eq!(foreseen(1, seconds(3.0)), 3);
        assert_eq!(foreseen(1, seconds(60.0)), 1);
        assert_eq!(foreseen(2, seconds(0.1)), 10);
    }
}
