//! Time: for how long a set remembers items, and how it forgets them.
//!
//! A filter counts ticks and has no clock. The number of its present tick is made as `koel dedup
//! --forget-after` makes it, so states of the command can be loaded and go on.
//!
//! # What replicas do
//!
//! A primary lets a tick begin, and tells its replicas: an item may go where another one expired, so all tables have
//! to forget at the same moment of their histories. What expires is erased later, in parts, and nobody has to
//! tell how far that has come: whatever changes a filter does what it would do if the tick had passed when it began.
//! (But for what a growing filter decides by figures of all its items; see `begin_tick` in the crate's docs.)
//! And whatever saves, copies, compares or counts a set ends its tick first. Only lookups can see that something is left
//! to erase.

use crate::set::spec::Filter;
use crate::set::{Set, totals};
use koel::Window;
use std::sync::atomic::Ordering;

/// The segments that a part of a tick visits. It takes less than half a millisecond.
const IN_A_PART: usize = 512;

/// The same where a client waits: less than a tenth of a millisecond.
const IN_A_COMMAND: usize = 64;

impl Set {
    /// For how long it remembers items, or `None` if for ever, or if another program counts its ticks.
    pub fn window(&self) -> Option<Window> {
        self.filter()?.window()
    }

    /// The number of its present tick.
    pub fn present_tick(&self) -> Option<u64> {
        self.filter()?.present_tick()
    }

    /// Begins the tick with this number. If more have been missed, they pass at once.
    pub fn begin_tick(&self, number: u64) {
        let forgets = |filter: &&Filter| filter.remembers().is_some();
        let Some(filter) = self.filter().filter(forgets) else { return };
        while self.present_tick().is_none_or(|present| present < number) {
            self.finish_tick();
            filter.begin_tick_to(number);
            totals::TICKS.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The first part of a tick that begins, which is all of it in a small filter. Returns whether it was.
    pub fn pass_first_part(&self) -> bool {
        self.pass(IN_A_COMMAND)
    }

    /// Goes on with the tick that is passing, and returns whether none is any more.
    pub fn pass_part(&self) -> bool {
        self.pass(IN_A_PART)
    }

    /// Whether a tick is passing.
    pub fn is_ticking(&self) -> bool {
        !self.pass(0)
    }

    pub(super) fn finish_tick(&self) {
        while !self.pass(usize::MAX) {}
    }

    fn pass(&self, most: usize) -> bool {
        self.filter().is_none_or(|filter| filter.tick_in_parts(most))
    }
}
