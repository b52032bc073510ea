//! The machine, and threads that start together, each on a processor of its own.

use super::memory;
use std::fs;
use std::hint::black_box;
use std::ops::Range;
use std::process::Command;
use std::sync::{Barrier, LazyLock};
use std::time::{Duration, Instant};

pub struct Machine {
    model: String,
    /// The processors that this process may use. One of each core comes before the second of any.
    processors: Vec<usize>,
    cores: usize,
}

/// The machine that this process runs on. `main` asks for it before any thread is bound to a processor.
pub static MACHINE: LazyLock<Machine> = LazyLock::new(Machine::here);

impl Machine {
    fn here() -> Machine {
        let about = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model = about.lines().find_map(|it| it.strip_prefix("model name")?.split(':').nth(1));
        let mut processors = allowed("self");
        if processors.is_empty() {
            processors.extend(0..std::thread::available_parallelism().map_or(1, usize::from));
        }
        processors.sort_by_key(|cpu| (sibling(*cpu), *cpu));
        let cores = processors.iter().filter(|cpu| sibling(**cpu) == 0).count();
        Machine { model: model.unwrap_or("an unknown model").trim().into(), processors, cores }
    }

    /// Returns the numbers of threads that are measured: powers of two, and all processors. On one processor, two
    /// threads at least take turns.
    pub fn counts(&self) -> Vec<u64> {
        let most = self.processors.len().max(2) as u64;
        let powers = (0..).map(|power| 1 << power).take_while(|count| *count < most);
        powers.chain([most]).collect()
    }
}

/// Says when and where something is measured. A run of all benches says it once, to each of them.
pub fn about() -> &'static str {
    static ABOUT: LazyLock<String> = LazyLock::new(|| {
        let said = |program: &str, words: &[&str]| {
            let said = Command::new(program).args(words).output();
            said.map_or(String::new(), |said| String::from_utf8_lossy(&said.stdout).trim().into())
        };
        let date = said("date", &["-u", "+%F %R UTC"]);
        let Machine { model, cores, .. } = &*MACHINE;
        let memory = memory::in_proc("meminfo", "MemTotal").unwrap_or(0.0) / f64::from(1 << 30);
        let rustc = said("rustc", &["--version"]);
        let rustc = rustc.split(" (").next().unwrap_or_default();
        let load = load().map(|load| load.to_string()).join(", ");
        let here = format!(
            "{date}, {cores} cores, {model}, {memory:.0} GiB, {rustc}; load average {load}."
        );
        std::env::var("KOEL_BENCH_RUN").unwrap_or(here)
    });
    &ABOUT
}

/// Returns how many threads wanted to run, on average, in the last minute, in five, and in fifteen.
pub fn load() -> [f64; 3] {
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let mut load = load.split(' ').map_while(|number| number.parse().ok());
    [(); 3].map(|()| load.next().unwrap_or(f64::NAN))
}

/// Returns the processors that a thread of this process may use, as far as the system tells.
fn allowed(thread: &str) -> Vec<usize> {
    let about = fs::read_to_string(format!("/proc/{thread}/status")).unwrap_or_default();
    let allowed = about.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    list(allowed.unwrap_or_default())
}

/// Returns which of the processors of its core a processor is.
fn sibling(cpu: usize) -> usize {
    let siblings = format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
    let siblings = list(&fs::read_to_string(siblings).unwrap_or_default());
    siblings.iter().position(|it| *it == cpu).unwrap_or(0)
}

/// Reads a list of numbers and ranges: `0-3,8`.
fn list(text: &str) -> Vec<usize> {
    let ranges = text.trim().split(',').filter_map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        Some(first.parse::<usize>().ok()?..=last.parse().ok()?)
    });
    ranges.flatten().collect()
}

/// Lets the calling thread run on one processor only, if the system allows that.
#[cfg(target_os = "linux")]
fn pin(cpu: usize) {
    const BITS: usize = usize::BITS as usize;
    let mut set = vec![0_usize; cpu / BITS + 1];
    set[cpu / BITS] = 1 << (cpu % BITS);
    // SAFETY: the system reads as many bytes as the set has.
    unsafe { libc::sched_setaffinity(0, size_of_val(&*set), set.as_ptr().cast()) };
}

#[cfg(not(target_os = "linux"))]
fn pin(_: usize) {}

/// Runs `work(thread)` on each of `threads` threads at the same time, each on a processor of its own as far as there
/// are enough. Returns the time from the first start to the last end, and the results.
pub fn timed<T: Send>(threads: u64, work: impl Fn(u64) -> T + Sync) -> (Duration, Vec<T>) {
    let (barrier, processors) = (Barrier::new(threads as usize), &MACHINE.processors);
    let run = |thread: u64| {
        pin(processors[thread as usize % processors.len()]);
        barrier.wait();
        let start = Instant::now();
        let result = work(thread);
        (start, Instant::now(), result)
    };
    let runs: Vec<(Instant, Instant, T)> = std::thread::scope(|scope| {
        let run = &run;
        let spawned: Vec<_> = (0..threads).map(|thread| scope.spawn(move || run(thread))).collect();
        spawned.into_iter().map(|thread| thread.join().expect("no work panics")).collect()
    });
    let first_start = runs.iter().map(|run| run.0).min().expect("a thread");
    let last_end = runs.iter().map(|run| run.1).max().expect("a thread");
    (last_end - first_start, runs.into_iter().map(|run| run.2).collect())
}

/// Returns the share of one thread in `0..n`.
pub fn share(n: u64, threads: u64, thread: u64) -> Range<u64> {
    n * thread / threads..n * (thread + 1) / threads
}

/// Waits until the machine has a free core for each of `threads` threads: until an empty loop takes hardly longer on
/// all of them than on one. Returns `false` if that does not happen within `tries` attempts.
pub fn all_cores(threads: u64, tries: u32) -> bool {
    threads == 1
        || (0..tries).any(|tried| {
            if tried > 0 {
                std::thread::sleep(Duration::from_millis(10));
            }
            let spin = |_| black_box((0..1_500_000_u64).fold(1, |x, i| black_box(x) ^ i));
            let time = |threads| timed(threads, spin).0.as_secs_f64();
            time(1) >= 0.9 * time(threads)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_the_whole() {
        let shares: Vec<u64> = (0..7).flat_map(|thread| share(100, 7, thread)).collect();
        assert_eq!(shares, (0..100).collect::<Vec<u64>>());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn each_thread_has_a_processor_of_its_own() {
        let processors = &MACHINE.processors;
        // The list of the thread, not that of the process.
        let (_, bound) = timed(processors.len() as u64, |_| allowed("thread-self"));
        assert_eq!(bound.concat(), *processors);
    }
}
