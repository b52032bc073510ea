//! A stream of new keys through a set that forgets: what the set holds, for how long, and how fast it is.

use super::sets::{Forgetful, WINDOW, absent, key};
use crate::kit::figures::{Rounds, rate};
use crate::kit::memory::Watch;
use crate::kit::scattered;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::ops::Range;
use std::time::Instant;

/// A stream of keys.
pub struct Stream {
    /// The keys of an ordinary tick.
    pub keys: u64,
    pub ticks: u64,
    /// The ticks of a burst, with [`BURST`] times as many keys.
    pub burst: Range<u64>,
}

/// What a set was at the end of a tick.
#[derive(Serialize, Deserialize)]
pub struct Moment {
    pub peer: String,
    pub tick: u64,
    /// The keys of the window, which have to be there.
    pub items: u64,
    pub bytes: usize,
    pub false_positive_rate: f64,
}

/// What a stream went through, and how fast the set was.
pub struct History {
    pub name: &'static str,
    pub moments: Vec<Moment>,
    /// The least and the greatest number of ticks that a key stayed.
    pub stays: (u64, u64),
    /// The share of sampled keys that were added within the window and not there.
    pub missed: f64,
    pub speeds: Speeds,
}

/// How many times as many keys a tick of a burst has.
pub const BURST: u64 = 10;

/// The keys that are looked up, of each tick and of those that were never put.
const SAMPLE: u64 = 1 << 10;
const ABSENT: u64 = 1 << 18;

impl Stream {
    fn keys_of(&self, tick: u64) -> u64 {
        if self.burst.contains(&tick) { BURST * self.keys } else { self.keys }
    }

    /// Puts all keys of the stream into a set, and looks at it at the end of each tick. Nothing is timed.
    pub fn history<P: Forgetful>(&self, name: &'static str, build: fn(u64) -> P) -> History {
        // Keys that seemed to be there when they came, and so were not added.
        let mut mistaken = HashSet::with_capacity(1 << 16);
        let watch = Watch::start();
        let mut set = build(self.keys);
        let mut moments = Vec::with_capacity(self.ticks as usize);
        // For each tick, the last one at whose end most of its keys were there.
        let mut there = vec![0; self.ticks as usize];
        let (mut asked, mut missed) = (0, 0);
        for tick in 0..self.ticks {
            for item in 0..self.keys_of(tick) {
                if set.claim(key(tick, item)) == Some(false) {
                    mistaken.insert(key(tick, item));
                }
            }
            for came in tick.saturating_sub(4 * WINDOW)..=tick {
                let sample = (0..self.keys_of(came)).step_by(self.keys.div_ceil(SAMPLE) as usize);
                let sample =
                    sample.map(|item| key(came, item)).filter(|key| !mistaken.contains(key));
                let number = sample.clone().count() as u64;
                let found = sample.filter(|&key| set.contains(key)).count() as u64;
                if tick - came <= WINDOW {
                    (asked, missed) = (asked + number, missed + number - found);
                }
                if 2 * found > number {
                    there[came as usize] = tick;
                }
            }
            let others = ABSENT.min(8 * self.keys);
            let false_positives = (0..others).filter(|&item| set.contains(absent(item))).count();
            moments.push(Moment {
                peer: name.into(),
                tick,
                items: (tick.saturating_sub(WINDOW - 1)..=tick)
                    .map(|tick| self.keys_of(tick))
                    .sum(),
                bytes: set.says_it_holds().unwrap_or(watch.held() + size_of::<P>()),
                false_positive_rate: false_positives as f64 / others as f64,
            });
            set.tick(tick + 1, self.keys);
        }
        let known = self.ticks.saturating_sub(4 * WINDOW);
        let stays = || (0..known).map(|came| there[came as usize] - came);
        History {
            name,
            moments,
            stays: (stays().min().unwrap_or(0), stays().max().unwrap_or(0) + 1),
            missed: missed as f64 / asked as f64,
            speeds: Speeds::new(),
        }
    }
}

/// The ticks in which speed is measured, after two windows.
const MEASURED: u64 = 5;
/// The lookups for each key of a tick: enough for the set to be in the caches as far as it fits.
const LOOKUPS: u64 = 6;

/// The figures of a set by name: million operations a second, and the milliseconds of a tick.
pub type Speeds = Rounds<&'static str>;

impl Stream {
    /// Measures the speed of a set that has gone through two windows.
    pub fn speed<P: Forgetful>(&self, build: fn(u64) -> P, speeds: &mut Speeds) {
        let mut set = build(self.keys);
        for tick in 0..2 * WINDOW + MEASURED {
            let is_measured = tick >= 2 * WINDOW;
            let (put, _) = count(self.keys, |item| set.claim(key(tick, item)) != Some(false));
            if is_measured {
                // Keys of the last six ticks, in an order that is none.
                let lookups = LOOKUPS * self.keys;
                let old = |item: u64| {
                    let at = scattered(item);
                    key(tick - at % (WINDOW - 1), at / 8 % self.keys)
                };
                let other = |item| absent(tick << 32 | scattered(item));
                let (hit, found) = count(lookups, |item| set.contains(old(item)));
                let (miss, wrong) = count(lookups, |item| set.contains(other(item)));
                assert!(found * 100 >= 99 * lookups && wrong * 100 <= lookups, "wrong answers");
                for (name, figure) in [("put", put), ("hit", hit), ("miss", miss)] {
                    speeds.note(name, figure);
                }
            }
            let start = Instant::now();
            set.tick(tick + 1, self.keys);
            if is_measured {
                speeds.note("tick", 1e3 * start.elapsed().as_secs_f64());
            }
        }
    }
}

/// Does something with each of so many items. Returns the rate, and how often the answer was yes.
fn count(items: u64, act: impl Fn(u64) -> bool) -> (f64, u64) {
    let start = Instant::now();
    let count = (0..items).filter(|&item| act(item)).count() as u64;
    (rate(items, start.elapsed()), count)
}
