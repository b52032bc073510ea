//! All measurements, and beside each what the model says.

use crate::machine::Machine;
use crate::measured::{Filter, Measured, Size, smallest};
use crate::model::{Design, Model, counts};
use crate::transfer::{Costs, measure as measure_costs};

/// Tables and their bytes, and how often each is measured.
const SIZES: [(&str, usize, usize); 2] = [("2 MiB", 2 << 20, 15), ("128 MiB", 128 << 20, 3)];
/// What is reckoned beyond the cores that there are.
const BEYOND: [usize; 6] = [4, 8, 16, 32, 64, 128];
pub const WORKLOADS: [&str; 5] =
    ["lookup, hit", "lookup, miss", "insert, new", "insert_if_absent, new", "mix 9 : 1"];

pub struct Report {
    pub costs: Costs,
    pub tables: Vec<Table>,
}

/// A filter of one size.
pub struct Table {
    pub size: &'static str,
    pub kind: &'static str,
    pub rows: Vec<Row>,
    /// Nanoseconds of a split, and splits per insert.
    pub split: f64,
    pub splits: f64,
}

/// A workload, in one design.
pub struct Row {
    pub workload: &'static str,
    pub design: Design,
    pub points: Vec<Point>,
}

/// Million operations a second.
#[derive(Clone, Copy, Debug)]
pub struct Point {
    pub threads: usize,
    /// Nothing for a design that is not built, and where other programs took a processor each time.
    pub measured: Option<f64>,
    /// Nothing where siblings share cores, of which the model knows nothing.
    pub reckoned: Option<f64>,
    /// Whether the parameters of the model come from this measurement.
    pub is_given: bool,
}

impl Point {
    /// What was measured, as a part of what was reckoned, where that is a prediction.
    pub fn ratio(&self) -> Option<f64> {
        Some(self.measured? / self.reckoned?).filter(|_| !self.is_given)
    }
}

pub fn measure(machine: &Machine, test: bool) -> Report {
    eprintln!("transfers between processors, and lines from memory");
    let costs = measure_costs(machine, if test { 1 } else { 21 }, test);
    let mut tables = Vec::new();
    for (name, bytes, reps) in SIZES {
        let size = match test {
            true => Size { bytes: bytes / 64, reps: 1, least: 0 },
            false => Size { bytes, reps, least: 1 << 20 },
        };
        for (kind, grows) in [("fixed", false), ("growing", true)] {
            eprintln!("{name}, {kind}");
            let new = |items| if grows { smallest() } else { Filter::with_capacity(items) };
            let measured = size.measure(machine, &machine.counts(), new);
            let with = |workload| rows(machine, &costs, &measured, (kind, bytes), workload);
            let rows = WORKLOADS.into_iter().flat_map(with).collect();
            let splits = measured.splits("insert, new");
            tables.push(Table { size: name, kind, rows, split: measured.split, splits });
        }
    }
    Report { costs, tables }
}

fn rows(
    machine: &Machine,
    costs: &Costs,
    measured: &Measured,
    (kind, bytes): (&'static str, usize),
    workload: &'static str,
) -> Vec<Row> {
    let (cores, all, here) = (machine.cores(), machine.processors.len(), machine.counts());
    let designs: &[Design] = match workload {
        _ if kind == "growing" => &[Design::Koel],
        "lookup, hit" | "lookup, miss" => &[Design::Koel, Design::Mutexes],
        _ => &[Design::Koel, Design::Mutexes, Design::Swap],
    };
    let counts = counts(&format!("{kind}: {workload}"));
    let cached = bytes < machine.cache_bytes();
    let of_design = |&design: &Design| {
        let reckoned = |threads: usize| {
            let model = Model {
                counts,
                own: measured.nanoseconds(workload, 1)?,
                swap: costs.swap,
                transfers: costs.transfers(machine, threads.min(cores)),
                cached,
                stripes: (bytes / 4096) as f64,
                shards: (bytes >> 16) as f64,
                splits: measured.splits(workload),
                split: measured.split,
                design,
            };
            // The memory cannot give more, as far as it was measured.
            let most = match costs.lines(threads) {
                Some(lines) if !cached => lines / counts.words(),
                _ => f64::INFINITY,
            };
            Some(model.throughput(threads).min(most)).filter(|it| it.is_finite())
        };
        let point = |threads: usize| Point {
            threads,
            measured: measured.throughput(workload, threads).filter(|_| design == Design::Koel),
            reckoned: reckoned(threads).filter(|_| !(cores + 1..=all).contains(&threads)),
            is_given: threads == 1,
        };
        let beyond = BEYOND.into_iter().filter(|threads| *threads > all);
        Row { workload, design, points: here.iter().copied().chain(beyond).map(point).collect() }
    };
    designs.iter().map(of_design).collect()
}
