//! Sets that remember what was seen lately: koel and what people use instead. A window has seven ticks.
//!
//! A stream of new keys goes through each set: what does it hold, for how long, and how fast is it?

mod sets;

use crate::kit::arguments::{Arguments, Result};
use crate::kit::figures::{Figures, counted};
use crate::kit::memory::Watch;
use crate::kit::scattered;
use sets::{Forgetful, Rotated, Stamps, WINDOW, absent, key};
use std::collections::HashSet;
use std::ops::Range;
use std::time::Instant;

/// A set without its type, so that different ones fit one list: its name, whether the picture has it, and what lets a
/// stream go through a new one.
type Entry = (&'static str, bool, Box<dyn Fn(&Stream, &mut Figures)>);

fn entry<P: Forgetful + 'static>(name: &'static str, is_drawn: bool, build: fn(u64) -> P) -> Entry {
    (name, is_drawn, Box::new(move |stream, figures| stream.pass(name, build, figures)))
}

fn entries() -> [Entry; 8] {
    [
        entry("koel", false, sets::fixed),
        entry("koel, growing", true, sets::growing),
        entry("koel, keys removed one by one", false, sets::removed_by_key),
        entry("fastbloom, 2 rotated", true, |keys| Rotated::new(2, WINDOW, keys)),
        entry("fastbloom, 3 rotated", true, |keys| Rotated::new(3, WINDOW.div_ceil(2), keys)),
        entry("fastbloom, 8 rotated", true, |keys| Rotated::new(8, 1, keys)),
        entry("cuckoo-clock", false, sets::cuckoo_clock),
        entry("DashMap of time stamps", true, Stamps::new),
    ]
}

pub fn run(mut arguments: Arguments) -> Result<()> {
    let (out, test) = (arguments.out("windows")?, arguments.test);
    let keys = if test { 10_000 } else { 500_000 };
    let part = arguments.part(&["burst"]);
    arguments.end()?;
    if part.is_empty() {
        steady(keys, test).write(&out.join("figures.csv"))?;
    }
    burst(keys).write(&out.join("window.csv"))
}

/// Goes through twenty windows, with a burst in the tenth.
fn burst(keys: u64) -> Figures {
    let stream = Stream { keys: keys / 10, ticks: 20 * WINDOW, burst: 9 * WINDOW..10 * WINDOW };
    let mut figures = Figures::new("burst");
    for (_, _, pass) in entries().iter().filter(|entry| entry.1) {
        pass(&stream, &mut figures);
    }
    figures
}

/// Goes through a steady stream several times, with all sets in turns.
fn steady(keys: u64, test: bool) -> Figures {
    let stream = Stream { keys, ticks: 6 * WINDOW, burst: 0..0 };
    let mut figures = Figures::new("windows");
    figures.say(
        "stream",
        format!(
            "A stream of {keys} new keys a tick, which are to be remembered for {WINDOW} ticks."
        ),
    );
    for repetition in 0..if test { 1 } else { 3 } {
        for (name, _, pass) in entries() {
            eprint!("\rrepetition {}: {name:40}", repetition + 1);
            pass(&stream, &mut figures);
        }
    }
    eprintln!();
    figures
}

/// A stream of keys.
struct Stream {
    /// The keys of an ordinary tick.
    keys: u64,
    ticks: u64,
    /// The ticks of a burst, with [`BURST`] times as many keys.
    burst: Range<u64>,
}

/// How many times as many keys a tick of a burst has.
const BURST: u64 = 10;

/// The keys that are looked up, of each tick and of those that were never put.
const SAMPLE: u64 = 1 << 10;
const ABSENT: u64 = 1 << 18;

/// The last ticks, in which speed is measured.
const MEASURED: u64 = 5;
/// The lookups for each key of a tick: enough for the set to be in the caches as far as it fits.
const LOOKUPS: u64 = 6;

impl Stream {
    fn keys_of(&self, tick: u64) -> u64 {
        if self.burst.contains(&tick) { BURST * self.keys } else { self.keys }
    }

    /// Puts all keys of the stream into a set, and looks at it at the end of each tick. What it holds and answers is noted
    /// of each tick, if there is a burst, or else of the second half of the stream; how fast it is, of the last ticks of a
    /// steady stream.
    fn pass<P: Forgetful>(&self, name: &str, build: fn(u64) -> P, figures: &mut Figures) {
        let mut note =
            |what, at: &str, unit, figure| _ = figures.note(name, what, at, unit, figure);
        let is_steady = self.burst.is_empty();
        // Keys that seemed to be there when they came, and so were not added.
        let mut mistaken = HashSet::with_capacity(1 << 16);
        // For each tick, the last one at whose end most of its keys were there.
        let mut there = vec![0; self.ticks as usize];
        // Of each tick: the keys of the window, the bytes, and how many absent keys were found.
        let mut moments = Vec::with_capacity(self.ticks as usize);
        let (mut asked, mut missed) = (0, 0);
        let absent_keys = ABSENT.min(8 * self.keys);
        let watch = Watch::start();
        let mut set = build(self.keys);
        for tick in 0..self.ticks {
            let is_measured = is_steady && tick + MEASURED >= self.ticks;
            let (put, _) = counted(self.keys_of(tick), |item| {
                set.claim(key(tick, item)) != Some(false) || mistaken.insert(key(tick, item))
            });
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
            let window = tick.saturating_sub(WINDOW - 1)..=tick;
            let items: u64 = window.map(|tick| self.keys_of(tick)).sum();
            let bytes = set.says_it_holds().unwrap_or(watch.held() as usize + size_of::<P>());
            let found = (0..absent_keys).filter(|&item| set.contains(absent(item))).count();
            moments.push((items as f64, bytes as f64, found as f64));
            if is_measured {
                // Keys of the last six ticks, in an order that is none.
                let lookups = LOOKUPS * self.keys;
                let old = |item: u64| {
                    let at = scattered(item);
                    key(tick - at % (WINDOW - 1), at / 8 % self.keys)
                };
                let other = |item| absent(tick << 32 | scattered(item));
                let (hit, found) = counted(lookups, |item| set.contains(old(item)));
                let (miss, wrong) = counted(lookups, |item| set.contains(other(item)));
                assert!(found * 100 >= 99 * lookups && wrong * 100 <= lookups, "wrong answers");
                for (what, figure) in [("put", put), ("hit", hit), ("miss", miss)] {
                    note(what, "", "M/s", figure);
                }
            }
            let start = Instant::now();
            set.tick(tick + 1, self.keys);
            if is_measured {
                note("tick", "", "ms", 1e3 * start.elapsed().as_secs_f64());
            }
        }
        if !is_steady {
            for (tick, (items, bytes, found)) in moments.into_iter().enumerate() {
                let at = tick.to_string();
                note("items", &at, "items", items);
                note("bytes", &at, "bytes", bytes);
                note("false positives", &at, "share", found / absent_keys as f64);
            }
            return;
        }
        let late = &moments[moments.len() / 2..];
        late.iter().for_each(|(items, bytes, _)| note("bits", "", "bits", 8.0 * bytes / items));
        let found = late.iter().map(|moment| moment.2).sum::<f64>();
        note("found", "", "share", found / (absent_keys * late.len() as u64) as f64);
        note("missed", "", "share", missed as f64 / asked as f64);
        for came in 0..self.ticks.saturating_sub(4 * WINDOW) {
            // It may have come at the begin or at the end of its tick.
            let stay = (there[came as usize] - came) as f64;
            note("stay", "", "ticks", stay);
            note("stay", "", "ticks", stay + 1.0);
        }
    }
}
