//! Checks the answers of a filter. The first wrong answer ends the bench.
//!
//! A filter may take an item for another one at its false-positive rate. Everything else is exact:
//! an inserted item is found, and the number of items equals the number of inserts that returned
//! `true`.

use koel::Full;
use std::ops::Add;

/// The answers that a thread received, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Answers {
    /// Items that were inserted or removed.
    pub changed: u64,
    /// Inserts that were refused.
    pub refused: u64,
    /// Lookups of inserted items that returned `false`.
    pub lost: u64,
    /// Lookups of absent items, and how many of them returned `true`.
    pub absent: u64,
    pub mistaken: u64,
}

impl Add for Answers {
    type Output = Answers;

    fn add(self, other: Answers) -> Answers {
        Answers {
            changed: self.changed + other.changed,
            refused: self.refused + other.refused,
            lost: self.lost + other.lost,
            absent: self.absent + other.absent,
            mistaken: self.mistaken + other.mistaken,
        }
    }
}

impl Answers {
    #[inline]
    pub fn inserted(&mut self, outcome: Result<bool, Full>) {
        match outcome {
            Ok(new) => self.changed += u64::from(new),
            Err(_) => self.refused += 1,
        }
    }
}

/// The expected answers. The number of changes may fall short by as many as the rate explains.
#[derive(Clone, Copy)]
pub struct Expected {
    pub changes: u64,
    /// Lookups of items whose fingerprint may have been removed with another item.
    pub shared: u64,
    /// The false-positive rate.
    pub rate: f64,
    /// The number of items in the end.
    pub held: u64,
}

impl Expected {
    /// Returns what is expected of lookups alone.
    pub fn lookups(rate: f64, held: u64) -> Self {
        Expected { changes: 0, shared: 0, rate, held }
    }

    /// Checks the answers, and that the filter has `held` items now.
    pub fn check(&self, answers: Answers, held: u64) -> Result<(), String> {
        let Answers { changed, refused, lost, absent, mistaken } = answers;
        if refused > 0 {
            return Err(format!("inserts that were refused: {refused}"));
        }
        if lost > self.tolerated(self.shared) {
            return Err(format!("inserted items that were not found: {lost}"));
        }
        if mistaken > self.tolerated(absent) {
            return Err(format!("absent items that were found: {mistaken} of {absent}"));
        }
        let short = self.changes.saturating_sub(changed);
        if changed > self.changes || short > self.tolerated(self.changes) {
            return Err(format!(
                "items inserted or removed: {changed} instead of {}",
                self.changes
            ));
        }
        if held != self.held {
            return Err(format!("items in the filter: {held} instead of {}", self.held));
        }
        Ok(())
    }

    /// Three times the expected number, plus ten: more is not chance.
    fn tolerated(&self, of: u64) -> u64 {
        if of == 0 { 0 } else { (3.0 * self.rate * of as f64) as u64 + 10 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILL: Expected = Expected { changes: 1_000_000, shared: 0, rate: 1e-4, held: 999_950 };

    #[test]
    fn the_rate_explains_a_few_items() {
        let answers = Answers { changed: 999_950, ..Answers::default() };
        assert_eq!(FILL.check(answers, 999_950), Ok(()));
        let looked = Answers { absent: 1_000_000, mistaken: 150, ..Answers::default() };
        assert_eq!(Expected::lookups(1e-4, 7).check(looked, 7), Ok(()));
    }

    #[test]
    fn what_it_does_not_explain_is_an_error() {
        let right = Answers { changed: 999_950, ..Answers::default() };
        for (wrong, held, says) in [
            (Answers { refused: 1, ..right }, 999_950, "inserts that were refused: 1"),
            (Answers { lost: 1, ..right }, 999_950, "inserted items that were not found: 1"),
            (
                Answers { absent: 1_000, mistaken: 11, ..right },
                999_950,
                "absent items that were found: 11 of 1000",
            ),
            (
                Answers { changed: 999_000, ..right },
                999_950,
                "items inserted or removed: 999000 instead of 1000000",
            ),
            (
                Answers { changed: 1_000_001, ..right },
                999_950,
                "items inserted or removed: 1000001 instead of 1000000",
            ),
            (right, 999_949, "items in the filter: 999949 instead of 999950"),
        ] {
            let error = FILL.check(wrong, held).unwrap_err();
            assert_eq!(error, says);
        }
    }
}
