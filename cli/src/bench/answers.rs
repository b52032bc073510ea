//! Whether a filter's answers were right. A bench of wrong answers is worth nothing, so the first one
//! ends it.
//!
//! koel may take an item for another at its rate. Everything else is certain: what was inserted is
//! found, and as many are in as were said to be new.

use koel::Full;
use std::ops::Add;

/// What a thread was answered.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Answers {
    /// Items that were said to be new, or to have been removed.
    pub changed: u64,
    /// Inserts for which there was no room.
    pub refused: u64,
    /// Lookups of items that were in and were not found.
    pub lost: u64,
    /// Lookups of items that were not in, and how many were found.
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

/// What is expected: so many changes, with as many short of that as the rate explains.
#[derive(Clone, Copy)]
pub struct Expected {
    pub changes: u64,
    /// Lookups of items that may have lost their fingerprint to another that was removed.
    pub shared: u64,
    /// At which the filter takes one item for another.
    pub rate: f64,
    /// How many items there have to be in the end, if the changes were right.
    pub held: u64,
}

impl Expected {
    /// Nothing but what is found, or not.
    pub fn lookups(rate: f64, held: u64) -> Self {
        Expected { changes: 0, shared: 0, rate, held }
    }

    /// What is wrong with the answers, if there are `held` items now.
    pub fn check(&self, answers: Answers, held: u64) -> Result<(), String> {
        let Answers { changed, refused, lost, absent, mistaken } = answers;
        if refused > 0 {
            return Err(format!("items that found no room, or no memory for more: {refused}"));
        }
        if lost > self.tolerated(self.shared) {
            return Err(format!("items that are in and were not found: {lost}"));
        }
        if mistaken > self.tolerated(absent) {
            return Err(format!("items that are not in and were found: {mistaken} of {absent}"));
        }
        let short = self.changes.saturating_sub(changed);
        if changed > self.changes || short > self.tolerated(self.changes) {
            return Err(format!("items that went in or out: {changed} of {}", self.changes));
        }
        if held != self.held {
            return Err(format!("items that are in: {held}, and should be {}", self.held));
        }
        Ok(())
    }

    /// Three times as many as are to be expected: chance does not get that far.
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
            (
                Answers { refused: 1, ..right },
                999_950,
                "items that found no room, or no memory for more: 1",
            ),
            (Answers { lost: 1, ..right }, 999_950, "items that are in and were not found: 1"),
            (
                Answers { absent: 1_000, mistaken: 11, ..right },
                999_950,
                "items that are not in and were found: 11 of 1000",
            ),
            (
                Answers { changed: 999_000, ..right },
                999_950,
                "items that went in or out: 999000 of 1000000",
            ),
            (
                Answers { changed: 1_000_001, ..right },
                999_950,
                "items that went in or out: 1000001 of 1000000",
            ),
            (right, 999_949, "items that are in: 999949, and should be 999950"),
        ] {
            let error = FILL.check(wrong, held).unwrap_err();
            assert_eq!(error, says);
        }
    }
}
