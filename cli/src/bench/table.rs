//! The results as a text table.

use super::timing::median;
use super::workloads::{GROUPS, Samples, Workload};
use std::fmt::Write;

/// The results: medians of the samples.
pub struct Figures<'a> {
    /// In ascending order.
    pub threads: &'a [u64],
    pub samples: &'a Samples,
}

/// The width of the first column, which names the workloads.
const NAMES: usize = 16;

impl Figures<'_> {
    /// Returns the median throughput in million operations a second.
    pub fn of(&self, workload: Workload, threads: u64) -> f64 {
        median(self.samples.rates.get(&(workload, threads)).into_iter().flatten().copied())
    }

    /// Formats a table with a row for each workload and a column for each number of threads, and
    /// the speedup of the most threads over the fewest.
    pub fn table(&self) -> String {
        let mut columns: Vec<String> = self.threads.iter().map(|&n| count(n, "thread")).collect();
        let ends = self.threads.first().zip(self.threads.last()).filter(|(one, most)| one < most);
        if let Some((one, most)) = ends {
            columns.push(format!("{} : {one}", count(*most, "thread")));
        }
        let mut text = String::new();
        row(&mut text, "", &columns, &columns);
        for (group, workloads) in GROUPS {
            row(&mut text, group, &[], &columns);
            for &workload in workloads {
                let rates = self.threads.iter().map(|&threads| self.of(workload, threads));
                let mut cells: Vec<String> = rates.map(|rate| format!("{rate:.1}")).collect();
                if let Some((&one, &most)) = ends {
                    let ratio = self.of(workload, most) / self.of(workload, one);
                    cells.push(format!("{ratio:.2}"));
                }
                row(&mut text, &format!("  {}", workload.name()), &cells, &columns);
            }
        }
        text
    }
}

/// Appends a row, whose cells are aligned to the right of their columns.
fn row(text: &mut String, name: &str, cells: &[String], columns: &[String]) {
    let mut line = format!("{name:NAMES$}");
    for (cell, column) in cells.iter().zip(columns) {
        let width = column.len() + 3;
        write!(line, "{cell:>width$}").expect("a string takes all");
    }
    text.push_str(line.trim_end());
    text.push('\n');
}

/// Formats a number with a noun, in singular or plural.
pub fn count(number: u64, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A table in which each thread adds the same throughput.
    fn table(threads: &[u64]) -> String {
        let mut samples = Samples::default();
        for &workload in GROUPS.iter().flat_map(|(_, workloads)| *workloads) {
            for &threads in threads {
                let rate = 10.0 * threads as f64;
                samples.rates.insert((workload, threads), vec![1.0, rate, 1_000.0]);
            }
        }
        Figures { threads, samples: &samples }.table()
    }

    #[test]
    fn columns_end_together() {
        let table = table(&[1, 2, 16]);
        let lines: Vec<&str> = table.lines().collect();
        assert_eq!(
            lines[0],
            "                   1 thread   2 threads   16 threads   16 threads : 1"
        );
        assert_eq!(lines[1], "One by one");
        assert_eq!(
            lines[2],
            "  insert, new          10.0        20.0        160.0            16.00"
        );
        assert!(
            lines[2..].iter().all(|line| !line.starts_with("  ") || line.len() == lines[0].len())
        );
    }

    #[test]
    fn one_number_of_threads_has_no_ratio() {
        let table = table(&[4]);
        assert!(table.starts_with("                   4 threads\nOne by one\n"), "{table}");
        assert!(!table.contains(':') || table.matches(':').count() == 1, "{table}");
    }
}
