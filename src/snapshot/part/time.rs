//! The time at which a block was copied, in a filter that forgets, and what to do with blocks that were
//! copied at other times.
//!
//! Ticks do not wait for a file to be written. So each block says when it was copied. A later block was not
//! copied earlier, and the filter goes on from the time of the last one: what is in earlier blocks has become
//! older meanwhile, and some of it has expired.

use crate::layout::bucket::{Lanes, Words};
use crate::layout::stamps::Moment;
use crate::layout::stamps::by_stamp::ByStamp;
use crate::table::ticking::Time;

/// The words that tell the time.
pub const TIME_WORDS: usize = 3;

/// In the first of these words, above the stamp: ticks have numbers.
const HAS_NUMBER: u64 = 1 << 8;

/// Returns the words that tell this time.
pub fn words_of(lanes: Lanes, Time { tick, elapsed, number }: Time) -> [u64; TIME_WORDS] {
    let flag = if number.is_some() { HAS_NUMBER } else { 0 };
    [tick & lanes.most_stamps() | flag, elapsed, number.unwrap_or(0)]
}

/// Parses the words that tell a time. `Err` is the index of the first that is wrong.
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

/// The time from which a filter goes on. Only the blocks of one file are compared by how many ticks had passed, so it
/// may begin at any number. A file may give one after which the count would go round, and a later block of a file of
/// this filter would seem to be of an earlier time. So half of all numbers are left.
pub fn from_here(time: Time) -> Time {
    Time { elapsed: time.elapsed & (u64::MAX >> 1), ..time }
}

/// Checks the times of blocks, one after the other.
#[derive(Clone, Debug, Default)]
pub struct Times {
    last: Option<Time>,
}

impl Times {
    /// Adds the time of the next block. `None` if it is before that of the last one.
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

/// How much older something has become.
#[derive(Clone, Copy, Debug)]
pub struct AgeShift {
    /// The moments at which it was copied, and at which it is now.
    then: Moment,
    now: Moment,
    ticks: u64,
}

/// Returns how much older a block is at the last time. `None` if it is of this time.
pub fn lag(time: Option<Time>, last: Option<Time>) -> Option<AgeShift> {
    let (time, last) = time.zip(last)?;
    let ticks = last.elapsed.saturating_sub(time.elapsed);
    let [then, now] = [time, last].map(|time| Moment::of_tick(time.tick));
    (ticks > 0).then_some(AgeShift { then, now, ticks })
}

impl AgeShift {
    /// The age now of lanes that were so old, unless they have expired.
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

    /// The balance of a growing filter's shard, whose lanes have become older.
    pub fn of_balance(self, lanes: Lanes, balance: &ByStamp) -> ByStamp {
        let mut older = ByStamp::default();
        for age in 0..=u64::from(lanes.remembers()) {
            if let Some(now) = self.age(lanes, age) {
                let of_age = balance.figures()[lanes.stamp_of_age(age, self.then)];
                older.add(lanes.stamp_of_age(now, self.now), of_age);
            }
        }
        older
    }
}
