//! Figures: of rounds, as medians, and in CSV files.

use super::arguments::Result;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt::Display;
use std::fs;
use std::path::Path;
use std::time::Duration;

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
