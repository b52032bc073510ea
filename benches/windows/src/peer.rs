//! The interface of a set that forgets.

use std::time::Duration;

/// The ticks for which an item has to be remembered: a tick may be a day, and this a week.
pub const WINDOW: u64 = 7;

/// The false-positive rate that each peer is built for.
pub const RATE: f64 = 1.2e-4;

/// A set of keys that were seen lately, which threads share.
pub trait Forgetful: Sync + Sized {
    const NAME: &str;
    /// Whether the peer looks at the clock itself. Then a tick takes its time, and has a tenth of the keys.
    const OWN_CLOCK: bool = false;

    /// Builds a set for a stream of this many new keys a tick. A tick takes at least `tick`.
    fn build(keys: u64, tick: Duration) -> Self;

    /// Adds a key unless it is there. Returns whether it was added.
    fn put(&self, key: u64) -> bool;

    fn contains(&self, key: u64) -> bool;

    /// Lets a tick pass.
    fn tick(&mut self);

    /// The bytes that the peer touches, if it allocates more than that.
    fn says_it_holds(&self) -> Option<usize> {
        None
    }
}

/// The key of an item of a tick.
pub fn key(tick: u64, item: u64) -> u64 {
    tick << 32 | item
}

/// The key of an item that is never put.
pub fn absent(item: u64) -> u64 {
    1 << 63 | item
}
