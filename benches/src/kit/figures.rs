//! Figures: of rounds, as medians, in tables, and in CSV files.

use super::arguments::Result;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt::{self, Display};
use std::fs;
use std::path::Path;
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

/// Does something with each of so many items. Returns the rate, and how often the answer was yes.
pub fn counted(items: u64, mut act: impl FnMut(u64) -> bool) -> (f64, u64) {
    let start = Instant::now();
    let count = (0..items).filter(|&item| act(item)).count() as u64;
    (rate(items, start.elapsed()), count)
}

/// What each round adds, by names, in the order of the first round.
pub struct Rounds<K, V = f64>(pub Vec<(K, Vec<V>)>);

impl<K: PartialEq, V> Rounds<K, V> {
    pub fn new() -> Self {
        Rounds(Vec::new())
    }

    pub fn note(&mut self, name: K, figure: V) {
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some((_, all)) => all.push(figure),
            None => self.0.push((name, vec![figure])),
        }
    }

    pub fn all(&self, name: &K) -> &[V] {
        self.0.iter().find(|(known, _)| known == name).map_or(&[][..], |(_, all)| &all[..])
    }
}

impl<K: PartialEq> Rounds<K> {
    pub fn median(&self, name: &K) -> f64 {
        median(self.all(name).iter().copied())
    }

    /// Returns the median of the ratios: both figures of a ratio are of one round.
    pub fn ratio(&self, over: &K, under: &K) -> f64 {
        median(self.all(over).iter().zip(self.all(under)).map(|(over, under)| over / under))
    }
}

/// Rows of cells, of which the first has the headings. The first column is aligned to the left, the others to the
/// right.
pub struct Table(Vec<Vec<String>>);

impl Table {
    pub fn new(title: impl Display, columns: &[&str]) -> Self {
        let mut table = Table(Vec::new());
        table.row(title, columns.iter().map(ToString::to_string));
        table
    }

    pub fn row(&mut self, name: impl Display, cells: impl IntoIterator<Item = String>) {
        self.0.push(std::iter::once(name.to_string()).chain(cells).collect());
    }

    /// Adds a row of figures with so many decimals.
    pub fn figures(
        &mut self,
        name: impl Display,
        decimals: usize,
        figures: impl IntoIterator<Item = f64>,
    ) {
        self.row(name, figures.into_iter().map(|figure| format!("{figure:.decimals$}")));
    }

    /// Returns the table in Markdown, with columns that are aligned in this way.
    pub fn markdown(&self, align: &str) -> String {
        let lines: Vec<String> =
            self.0.iter().map(|row| format!("| {} |\n", row.join(" | "))).collect();
        let columns = format!("{align}|").repeat(self.0[0].len() - 1);
        format!("{}|---|{columns}\n{}", lines[0], lines[1..].concat())
    }
}

impl Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = |column: usize| {
            let cells = self.0.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.0[0].len()).map(width).collect();
        for row in &self.0 {
            write!(f, "  {:1$}", row[0], widths[0])?;
            for (cell, width) in row.iter().zip(&widths).skip(1) {
                write!(f, "  {cell:>width$}")?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

/// Writes rows, below lines that say what they are.
pub fn write_csv(path: &Path, about: &str, rows: &[impl Serialize]) -> Result<()> {
    let about: String = about.lines().map(|line| format!("# {line}\n")).collect();
    let mut text = about.into_bytes();
    let mut csv = csv::Writer::from_writer(&mut text);
    rows.iter().try_for_each(|row| csv.serialize(row))?;
    csv.flush()?;
    drop(csv);
    write(path, text)
}

/// Reads what [`write_csv`] wrote: the lines above the rows, and the rows.
pub fn read_csv<T: DeserializeOwned>(path: &Path) -> Result<(String, Vec<T>)> {
    let failed = |error: &dyn Display| format!("{}: {error}", path.display());
    let text = fs::read_to_string(path).map_err(|error| failed(&error))?;
    let about: Vec<&str> = text.lines().map_while(|line| line.strip_prefix("# ")).collect();
    let csv = csv::ReaderBuilder::new().comment(Some(b'#')).from_reader(text.as_bytes());
    let rows: std::result::Result<_, csv::Error> = csv.into_deserialize().collect();
    Ok((about.join("\n"), rows.map_err(|error| failed(&error))?))
}

pub fn write(path: &Path, text: impl AsRef<[u8]>) -> Result<()> {
    fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()).into())
}

/// Writes a report, and prints it. A reader that closes the pipe has read enough.
pub fn publish(path: &Path, text: &str) -> Result<()> {
    drop(std::io::Write::write_all(&mut std::io::stdout(), text.as_bytes()));
    write(path, text)
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
}
