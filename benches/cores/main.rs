//! What a cache line costs that another core wrote, and what more cores than there are here would give.
//!
//! ```text
//! cargo bench -p koel-benches --bench cores [-- transfer | reckoning]
//! ```
//!
//! *transfer* measures, *reckoning* measures one and two threads and reckons the rest: `cores.md` has
//! the model, and its counts are read from there.

#[path = "../common/mod.rs"]
mod common;
mod measured;
mod model;
mod transfer;

use common::{Filter, median};
use measured::{Measured, Size};
use model::{Design, Model};

const SIZES: [(&str, usize); 2] = [("2 MiB", 2 << 20), ("128 MiB", 128 << 20)];
/// Below this size, each core has the whole table in its caches.
const CACHED: usize = 16 << 20;
const CORES: [u32; 8] = [1, 2, 4, 8, 16, 32, 64, 128];
/// What a transfer in a stream takes if no repetition had both cores: "(one swap of a word)" in
/// `results/ratios.txt`, measured on the same machine when it was quiet, takes 6.9 ns on one thread
/// and 29.2 on two.
const IN_A_STREAM: f64 = 22.4;
const WORKLOADS: [&str; 5] =
    ["lookup, hit", "lookup, miss", "insert, new", "insert_if_absent, new", "mix 9 : 1"];

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let has = |name: &str| args.iter().any(|arg| arg == name);
    let test = has("--test");
    if has("transfer") {
        transfer::print(&transfer::measure(if test { 1 } else { 41 }, test));
    }
    if !has("transfer") || has("reckoning") {
        reckon(test);
    }
}

fn reckon(test: bool) {
    let costs = transfer::measure(if test { 1 } else { 41 }, test);
    transfer::print(&costs);
    let least = |times: &[f64]| times.iter().copied().fold(f64::INFINITY, f64::min);
    let swap = least(&costs.swap);
    let transfer = match costs.in_a_stream.len() {
        ..5 => IN_A_STREAM,
        _ => median(costs.in_a_stream.into_iter()),
    };
    println!("a transfer: {transfer:.1} ns, a swap: {swap:.1} ns; million operations a second");
    for (name, bytes) in SIZES {
        let reps = if bytes < CACHED { 15 } else { 1 };
        let size = match test {
            true => Size { bytes: bytes / 64, reps: 1 },
            false => Size { bytes, reps },
        };
        let fixed = size.measure(Filter::with_capacity);
        rows(name, bytes, "fixed", &fixed, swap, transfer);
        let growing = size.measure(|_| measured::smallest());
        rows(name, bytes, "growing", &growing, swap, transfer);
    }
}

/// A row for each workload: what was measured on two threads, and the reckoning.
fn rows(name: &str, bytes: usize, room: &str, measured: &Measured, swap: f64, transfer: f64) {
    print!("\n{name:9} {room:30} {:>11}", "measured: 2");
    CORES.iter().for_each(|cores| print!(" {cores:>7}"));
    println!();
    for workload in WORKLOADS {
        let designs: &[Design] = match workload {
            _ if room == "growing" => &[Design::Koel],
            "lookup, hit" | "lookup, miss" => &[Design::Koel, Design::Mutexes],
            _ => &[Design::Koel, Design::Mutexes, Design::Swap],
        };
        for &design in designs {
            let model = Model {
                counts: model::counts(&format!("{room}: {workload}")),
                own: measured.nanoseconds(workload, 1),
                swap,
                transfer,
                cached: bytes < CACHED,
                stripes: (bytes / 4096) as f64,
                shards: (bytes >> 16) as f64,
                splits: measured.splits(workload),
                split: measured.split,
                design,
            };
            let two = match design {
                Design::Koel if measured.nanoseconds(workload, 2).is_finite() => {
                    format!("{:.0}", 2_000.0 / measured.nanoseconds(workload, 2))
                }
                _ => String::new(),
            };
            print!("  {:38} {two:>11}", format!("{workload}{}", design.name()));
            CORES.iter().for_each(|&cores| print!(" {:>7.0}", model.throughput(cores)));
            println!();
        }
    }
    if measured.split > 0.0 {
        println!(
            "  a split takes {:.0} µs; {:.1} splits in 100,000 inserts",
            measured.split / 1_000.0,
            1e5 * measured.splits("insert, new")
        );
    }
}
