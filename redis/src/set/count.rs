//! How many items a set of fixed size has, and when they expire: counted as they come and go.
//!
//! The filter itself has to add that up, over all its parts. This takes no time, and depends on what was done and
//! on nothing else: what has expired is not counted, however far the tick has come that erases it. So a
//! replica refuses what its primary refuses.

use crate::set::about::Filter;
use std::collections::VecDeque;

#[cfg(test)]
mod tests;

#[cfg(test)]
thread_local! {
    /// How often items were counted one by one.
    pub static COUNTED: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

#[derive(Debug)]
pub struct Count {
    items: u64,
    /// Of these, those that expire with each of the next ticks. Nothing if none do.
    expiring: VecDeque<u64>,
    /// The tick up to which that holds, if it has a number.
    tick: Option<u64>,
}

impl Count {
    /// Counts the items of a filter, of which no tick is passing. If it forgets, this reads all of it.
    pub fn of(filter: &Filter) -> Self {
        #[cfg(test)]
        COUNTED.set(COUNTED.get() + 1);
        Count {
            items: filter.len() as u64,
            expiring: filter.expiring().iter().map(|items| *items as u64).collect(),
            tick: filter.present_tick(),
        }
    }

    /// The same, of a copy of the filter.
    pub fn again(&self) -> Self {
        Count { items: self.items, expiring: self.expiring.clone(), tick: self.tick }
    }

    /// How many ticks have passed until the present one.
    fn passed(&self, present: Option<u64>) -> usize {
        let passed =
            self.tick.zip(present).map_or(0, |(tick, present)| present.saturating_sub(tick));
        usize::try_from(passed).unwrap_or(usize::MAX).min(self.expiring.len())
    }

    /// The number of items in the present tick.
    pub fn items(&self, present: Option<u64>) -> u64 {
        self.items.saturating_sub(self.expiring.iter().take(self.passed(present)).sum())
    }

    /// Counts so many items that come in the present tick.
    pub fn add(&mut self, items: u64, present: Option<u64>) {
        self.pass(present);
        self.items += items;
        if let Some(newest) = self.expiring.back_mut() {
            *newest += items;
        }
    }

    /// Counts an item that goes, after so many ticks.
    pub fn remove(&mut self, age: Option<u64>, present: Option<u64>) {
        self.pass(present);
        self.items = self.items.saturating_sub(1);
        let place = age.and_then(|age| (self.expiring.len() as u64).checked_sub(age + 1));
        if let Some(its) = place.and_then(|place| self.expiring.get_mut(place as usize)) {
            *its = its.saturating_sub(1);
        }
    }

    fn pass(&mut self, present: Option<u64>) {
        let passed = self.passed(present);
        self.items = self.items.saturating_sub(self.expiring.drain(..passed).sum());
        self.expiring.extend(std::iter::repeat_n(0, passed));
        self.tick = present.or(self.tick);
    }
}
