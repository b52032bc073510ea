//! The words of the command line.

use std::error::Error;
use std::path::PathBuf;
use tempfile::TempDir;

pub type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// The part of the command line that no question has taken out yet.
pub struct Arguments {
    words: Vec<String>,
    /// Whether everything runs once, on tiny tables, so that it takes seconds.
    pub test: bool,
}

impl Arguments {
    pub fn new(words: impl Iterator<Item = String>) -> Self {
        let mut arguments = Arguments { words: words.collect(), test: false };
        arguments.test = arguments.flag("--test");
        arguments
    }

    pub fn flag(&mut self, name: &str) -> bool {
        let before = self.words.len();
        self.words.retain(|word| word != name);
        self.words.len() < before
    }

    pub fn value(&mut self, name: &str) -> Result<Option<String>> {
        let Some(at) = self.words.iter().position(|word| word == name) else { return Ok(None) };
        let mut taken = self.words.drain(at..self.words.len().min(at + 2)).skip(1);
        Ok(Some(taken.next().ok_or(format!("{name} needs a value"))?))
    }

    /// Returns a number from 1 to `most`: the given, the usual, or that of a tiny run.
    pub fn number(&mut self, name: &str, most: u64, usual: [u64; 2]) -> Result<u64> {
        Ok(self.numbers(name, most, usual.map(|number| vec![number]))?[0])
    }

    /// Returns a list of such numbers, in ascending order.
    pub fn numbers(&mut self, name: &str, most: u64, usual: [Vec<u64>; 2]) -> Result<Vec<u64>> {
        let [usual, tiny] = usual;
        let Some(list) = self.value(name)? else { return Ok(if self.test { tiny } else { usual }) };
        let number = |text: &str| text.trim().parse().ok().filter(|it| (1..=most).contains(it));
        let numbers: Option<Vec<u64>> = list.split(',').map(number).collect();
        let mut numbers = numbers.ok_or(format!("{name} {list}: numbers from 1 to {most}"))?;
        numbers.sort_unstable();
        numbers.dedup();
        Ok(numbers)
    }

    /// Returns the folder for the results of a bench, and makes it. It is below that of the committed ones, a scratch
    /// folder for a tiny run, or the one that `--out` names.
    pub fn out(&mut self, bench: &str) -> Result<PathBuf> {
        let usual = match self.test {
            true => std::env::temp_dir().join("koel-bench"),
            false => PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("results"),
        };
        let out = self.value("--out")?.map_or(usual, PathBuf::from).join(bench);
        std::fs::create_dir_all(&out).map_err(|error| format!("{}: {error}", out.display()))?;
        Ok(out)
    }

    /// Makes a folder that goes at the end, on the disk that is measured: in the present folder, or in the one that
    /// `--folder` names.
    pub fn scratch(&mut self) -> Result<TempDir> {
        Ok(tempfile::tempdir_in(self.value("--folder")?.unwrap_or(".".into()))?)
    }

    /// Returns the first of the parts that is asked for, or an empty text if none is.
    pub fn part<'a>(&mut self, known: &[&'a str]) -> &'a str {
        known.iter().copied().find(|part| self.flag(part)).unwrap_or_default()
    }

    /// Returns the words that no question has asked for.
    pub fn rest(self) -> Vec<String> {
        self.words
    }

    /// Fails if there are words that no question has asked for.
    pub fn end(self) -> Result<()> {
        match self.words.first() {
            None => Ok(()),
            Some(word) => Err(format!("unknown word {word}; `koel-bench --help` lists all").into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> Arguments {
        Arguments::new(line.split_whitespace().map(String::from))
    }

    #[test]
    fn questions_take_their_words() {
        let mut line = of("--sizes 32,2,2 ticks --test --reps 5");
        assert_eq!(line.numbers("--sizes", 100, [vec![], vec![]]).unwrap(), [2, 32]);
        assert_eq!(line.part(&["draw", "ticks"]), "ticks");
        assert_eq!(line.number("--reps", 9, [7, 1]).unwrap(), 5);
        assert_eq!(line.number("--to", 9, [7, 1]).unwrap(), 1);
        assert!(line.test && line.end().is_ok());
        for line in ["--reps", "--reps 0", "--reps 2,,3", "--reps 2x", "--reps -1", "--reps 99"] {
            assert!(of(line).number("--reps", 9, [7, 1]).is_err(), "{line}");
        }
        assert!(of("--frobnicate").end().is_err());
    }
}
