//! Time: for how long a set remembers items, and how it forgets them.
//!
//! A filter counts ticks and has no clock. The number of its present tick is made as `koel dedup
//! --forget-after` makes it, so states of the command can be loaded and go on.
//!
//! # What replicas do
//!
//! A primary lets time pass, and tells its replicas: an item may go where another one expired, so all tables have
//! to forget at the same moment of their histories. A tick passes as a whole, in one command. If half of it could
//! be saved, a replica that loads the file would have to go on from exactly there.

use crate::set::{Body, Set, filter};
use koel::AnyCuckooFilter;
use koel_state::window::Window;

impl Set {
    /// For how long it remembers items, or `None` if for ever, or if another program counts its ticks.
    pub fn window(&self) -> Option<Window> {
        let Body::Filter(filter) = &self.body else { return None };
        filter!(&**filter, filter => Window::of_ticks(filter.remembers()?, filter.present_tick()))
    }

    /// The number of its present tick.
    pub fn present_tick(&self) -> Option<u64> {
        let Body::Filter(filter) = &self.body else { return None };
        filter!(&**filter, filter => filter.present_tick())
    }

    /// Lets ticks pass until the present one has this number.
    pub fn pass_time(&self, number: u64) {
        if let Body::Filter(filter) = &self.body {
            filter!(&**filter, filter => filter.tick_to(number));
        }
    }
}
