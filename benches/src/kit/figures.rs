//! Figures: what each round measures of a set, and the CSV file of all of them. `benches/draw.py` makes the tables and
//! the pictures, and `benches/kit.py` writes the same form for the benches in Python.

use super::arguments::Result;
use super::machine::about;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// Returns the median of the values, or NaN if there are none.
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        n => (values[(n - 1) / 2] + values[n / 2]) / 2.0,
    }
}

/// Returns million operations a second.
pub fn rate(operations: u64, time: Duration) -> f64 {
    operations as f64 / time.as_secs_f64() / 1e6
}

/// Calls `act` with each item, from 0 on. Returns the rate, and the number of answers that were yes.
pub fn counted(items: u64, mut act: impl FnMut(u64) -> bool) -> (f64, u64) {
    let start = Instant::now();
    let count = (0..items).filter(|&item| act(item)).count() as u64;
    (rate(items, start.elapsed()), count)
}

/// A figure of a set at a place, which is what the figure depends on: a size, a number of items. Each round adds one.
pub struct Row {
    set: String,
    what: String,
    at: String,
    unit: &'static str,
    rounds: Vec<f64>,
    pub note: &'static str,
}

/// What koel must not do in any round, behind the name of a workload or alone.
const FAULTS: [&str; 6] =
    ["lost", "lost after the fill", "missed", "refused", "two winners", "wrong"];

/// The figures of a run of a bench, in the order of the first round.
pub struct Figures {
    bench: &'static str,
    /// What is said of the whole run, by names.
    about: Vec<(&'static str, String)>,
    rows: Vec<Row>,
}

impl Figures {
    pub fn new(bench: &'static str) -> Self {
        Figures { bench, about: vec![("run", about().into())], rows: Vec::new() }
    }

    /// Notes words on the whole run.
    pub fn say(&mut self, what: &'static str, words: String) {
        self.about.push((what, words));
    }

    /// Notes a figure of a round.
    pub fn note(
        &mut self,
        set: &str,
        what: &str,
        at: &str,
        unit: &'static str,
        figure: f64,
    ) -> &mut Row {
        let is_this = |row: &Row| row.what == what && row.set == set && row.at == at;
        let index = self.rows.iter().position(is_this).unwrap_or_else(|| {
            let [set, what, at] = [set, what, at].map(String::from);
            self.rows.push(Row { set, what, at, unit, rounds: Vec::new(), note: "" });
            self.rows.len() - 1
        });
        self.rows[index].rounds.push(figure);
        &mut self.rows[index]
    }

    /// Fails if koel has a fault.
    fn check(&self) -> Result<()> {
        let mut faults = self.rows.iter().filter(|row| {
            let is_fault = row.what.rsplit(": ").next().is_some_and(|it| FAULTS.contains(&it));
            is_fault && row.set.starts_with("koel") && row.rounds.iter().any(|count| *count > 0.0)
        });
        faults.next().map_or(Ok(()), |Row { set, what, at, rounds, .. }| {
            Err(format!("{set} has faults: {what} at {at}: {rounds:?}").into())
        })
    }

    /// Writes the rows, and has the tables printed and the pictures drawn, if there is Python. Then fails if koel has a
    /// fault.
    pub fn write(&self, path: &Path) -> Result<()> {
        let failed = |error| format!("{}: {error}", path.display());
        let mut csv = csv::Writer::from_path(path).map_err(failed)?;
        let columns =
            ["bench", "set", "what", "at", "value", "least", "most", "rounds", "unit", "note"];
        csv.write_record(columns)?;
        for (what, words) in &self.about {
            csv.write_record([self.bench, "", what, "", "", "", "", "", "", words])?;
        }
        for Row { set, what, at, unit, rounds, note } in &self.rows {
            let least = rounds.iter().copied().fold(f64::INFINITY, f64::min);
            let most = rounds.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let [value, least, most] =
                [median(rounds.iter().copied()), least, most].map(|figure| figure.to_string());
            let count = rounds.len().to_string();
            csv.write_record([
                self.bench, set, what, at, &value, &least, &most, &count, unit, note,
            ])?;
        }
        csv.flush()?;
        drop(csv);
        let python = std::env::var_os("KOEL_PYTHON").unwrap_or("python3".into());
        let mut draw = Command::new(python);
        draw.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/draw.py")).arg("--print").arg(path);
        if !draw.status().is_ok_and(|status| status.success()) {
            eprintln!("no tables; the figures are in {}", path.display());
        }
        self.check()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_lies_in_the_middle() {
        assert_eq!(median([3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median([4.0, 1.0, 2.0, 3.0]), 2.5);
        assert!(median([]).is_nan());
    }

    #[test]
    fn a_fault_of_koel_fails_the_bench() {
        let mut figures = Figures::new("test");
        for (set, what, count) in [
            ("koel, synced", "lost", 0.0),
            ("redis", "lost", 9.0),
            ("koel, synced", "taken", 4.0),
            ("koel, synced", "hit: lost", 0.0),
        ] {
            figures.note(set, what, "", "items", count);
        }
        assert!(figures.check().is_ok());
        figures.note("koel, synced", "hit: lost", "", "items", 3.0);
        let said = figures.check().unwrap_err().to_string();
        assert_eq!(said, "koel, synced has faults: hit: lost at : [0.0, 3.0]");
    }
}
