//! The time at which a block was copied, in a filter that forgets, and how blocks from different times are combined.
//!
//! Ticks do not wait while a file is written, so each block has the time of its copy. No block was copied before the
//! previous one, and a loaded filter continues from the time of the last block. By then, the items of earlier blocks
//! have become older, and some have expired.

use crate::layout::bucket::{Lanes, Words};
use crate::layout::stamps::Moment;
use crate::table::ticking::Time;

/// The number of words of a time.
pub const TIME_WORDS: usize = 3;

/// A bit of the first of these words, above the stamp: ticks have numbers.
const HAS_NUMBER: u64 = 1 << 8;

/// Returns the words of this time.
pub fn words_of(lanes: Lanes, Time { tick, elapsed, number }: Time) -> [u64; TIME_WORDS] {
    let flag = if number.is_some() { HAS_NUMBER } else { 0 };
    [tick & lanes.most_stamps() | flag, elapsed, number.unwrap_or(0)]
}

/// Parses the words of a time. `Err` is the index of the first word that is wrong.
pub fn time_in(lanes: Lanes, words: [u64; TIME_WORDS]) -> Result<Time, usize> {
    let [first, elapsed, number] = words;
    let (tick, has_number) = (first & !HAS_NUMBER, first & HAS_NUMBER != 0);
    if tick > lanes.most_stamps() {
        return Err(0);
    }
    if number != 0 && !has_number {
        return Err(2);
    }
    Ok(Time { tick, elapsed, number: has_number.then_some(number) })
}

/// Returns the time from which a loaded filter continues. The counts of passed ticks are only compared within one file,
/// so the filter may begin with any count. A file may contain a count that would soon overflow, so that a later block
/// of a file of this filter would seem to be from an earlier time. So the highest bit is cleared, which leaves half of
/// all numbers.
pub fn from_here(time: Time) -> Time {
    Time { elapsed: time.elapsed & (u64::MAX >> 1), ..time }
}

/// Checks the times of blocks, one after the other.
#[derive(Clone, Debug, Default)]
pub struct Times {
    last: Option<Time>,
}

impl Times {
    /// Adds the time of the next block. Returns `None` if the block cannot follow the last one: it has a lower count of
    /// ticks, or the same count with another tick.
    pub fn add(&mut self, time: Option<Time>) -> Option<()> {
        if let (Some(last), Some(time)) = (self.last, time) {
            let is_same = last.elapsed == time.elapsed && last.tick == time.tick;
            if last.elapsed >= time.elapsed && !is_same {
                return None;
            }
        }
        self.last = time;
        Some(())
    }

    pub fn last(&self) -> Option<Time> {
        self.last
    }
}

/// How much older items have become.
#[derive(Clone, Copy, Debug)]
pub struct AgeShift {
    /// The moment at which the items were copied, and the present moment.
    then: Moment,
    now: Moment,
    ticks: u64,
}

/// Returns how much older a block is at the last time. `None` if it was copied at that time.
pub fn age_shift(time: Option<Time>, last: Option<Time>) -> Option<AgeShift> {
    let (time, last) = time.zip(last)?;
    let ticks = last.elapsed.saturating_sub(time.elapsed);
    let [then, now] = [time, last].map(|time| Moment::of_tick(time.tick));
    (ticks > 0).then_some(AgeShift { then, now, ticks })
}

impl AgeShift {
    /// Returns the present age of lanes that were `age` ticks old, unless they have expired.
    fn age(self, lanes: Lanes, age: u64) -> Option<u64> {
        let age = age.saturating_add(self.ticks);
        (age <= lanes.remembers().into()).then_some(age)
    }

    /// Makes the items of these buckets older, and removes those that have expired.
    pub fn make_older(self, lanes: Lanes, words: &mut [u64]) {
        for bucket in words.chunks_exact_mut(lanes.words()) {
            let old = Words { heads: bucket[0], tails: bucket.get(1).copied().unwrap_or(0) };
            let new = lanes.taken(old.heads).fold(old, |new, lane| {
                match self.age(lanes, lanes.age(old, lane, self.then)) {
                    Some(age) => lanes.with_age(new, lane, age, self.now),
                    None => lanes.without_whole(new, lane),
                }
            });
            bucket[0] = new.heads;
            bucket.iter_mut().skip(1).for_each(|tails| *tails = new.tails);
        }
    }
}
