//! Sets that begin small and grow 1,024-fold, on one thread: their speed and errors at each doubling, and their memory
//! in between. The filters are set up with the false-positive rate of koel's 16-bit fingerprints before the first
//! split: 0.024 %. And koel, as it grows, beside a filter of fixed size, in [`speed`].

mod report;
mod speed;

pub use speed::growing;

use crate::kit::ABSENT;
use crate::kit::arguments::{Arguments, Result};
use crate::kit::figures::{Rounds, median, publish, rate, read_csv, write, write_csv};
use crate::kit::machine::about;
use crate::kit::memory::{self, Watch};
use crate::peers::sets::{Koel, Peer, autoscale, dash_set, scalable};
use report::{FORESEEN, Grown, Held, KOEL};
use std::cell::RefCell;
use std::time::{Duration, Instant};

/// A kind of set, and how it is built with room for a number of items.
struct Kind<P> {
    name: &'static str,
    /// Whether it takes more. If not, it is built again for each number of items, as if that had been known beforehand.
    grows: bool,
    build: fn(u64) -> P,
}

/// A kind of set without its type, so that different ones fit one list.
trait Measured {
    /// Measures the set at each doubling.
    fn grown(&self, steps: &Steps) -> Vec<Grown>;
    /// Measures the bytes that the set holds at many numbers of items.
    fn held(&self, steps: &Steps) -> Vec<Held>;
}

fn kinds() -> [Box<dyn Measured>; 5] {
    fn kind<P: Peer + 'static>(
        name: &'static str,
        grows: bool,
        build: fn(u64) -> P,
    ) -> Box<dyn Measured> {
        Box::new(Kind { name, grows, build })
    }
    [
        kind(KOEL, true, Koel::growing),
        kind(FORESEEN, false, Koel::fixed),
        kind("scalable_cuckoo_filter", true, |items| RefCell::new(scalable(items))),
        kind("autoscale_cuckoo_filter", true, |items| RefCell::new(autoscale(items))),
        kind("DashSet", true, dash_set),
    ]
}

pub fn run(mut arguments: Arguments) -> Result<()> {
    let (out, test) = (arguments.out("growth")?, arguments.test);
    let to = arguments.number("--to", 32, [22, 16])?.max(11) as u32;
    let reps = arguments.number("--reps", 10_000, [3, 1])?;
    let part = arguments.part(&["sets", "speed", "draw"]);
    arguments.end()?;
    if ["speed", ""].contains(&part) {
        publish(&out.join("speed.txt"), &format!("{}\n{}", about(), speed::speed(to, reps)))?;
    }
    if part == "speed" {
        return Ok(());
    }
    let [sets, memory] = ["sets.csv", "memory.csv"].map(|name| out.join(name));
    if part != "draw" {
        let (grown, held) = measure(to, (test, reps));
        write_csv(&sets, &about(), &grown)?;
        write_csv(&memory, "", &held)?;
    }
    let (note, grown) = read_csv(&sets)?;
    let (_, held) = read_csv(&memory)?;
    publish(&out.join("sets.txt"), &report::text(&note, &grown, &held))?;
    write(&out.join("lookups.svg"), report::lookups(&grown))?;
    write(&out.join("memory.svg"), report::memory(&held))?;
    let absent = reps * Steps::to(to, test, 0).lookups;
    match grown.iter().find(|row| row.peer.starts_with(KOEL) && !row.is_right(absent)) {
        Some(wrong) => Err(format!("wrong answers: {wrong:?}").into()),
        None => Ok(()),
    }
}

fn measure(power: u32, (test, reps): (bool, u64)) -> (Vec<Grown>, Vec<Held>) {
    let (kinds, mut rounds) = (kinds(), Rounds::new());
    for rep in 0..reps {
        for kind in &kinds {
            eprint!("\rto 2^{power}, repetition {}", rep + 1);
            for row in kind.grown(&Steps::to(power, test, rep)) {
                rounds.note((row.peer.clone(), row.items), row);
            }
        }
    }
    eprintln!();
    let grown = rounds.0.iter().map(|(_, rows)| medians(rows));
    let held = kinds.iter().flat_map(|kind| kind.held(&Steps::to(power, test, 0)));
    (grown.collect(), held.collect())
}

/// The numbers of items that a run goes through, and its lookups and keys.
struct Steps {
    first: u64,
    last: u64,
    /// The least number of lookups in a measurement.
    lookups: u64,
    /// The first key. Each repetition has its own keys.
    first_key: u64,
}

impl Steps {
    fn to(power: u32, test: bool, repetition: u64) -> Steps {
        let (first, last) = (1 << (power - 10), 1 << power);
        let lookups = if test { 1 << 16 } else { 1 << 21 };
        Steps { first, last, lookups, first_key: repetition << 48 }
    }

    fn doublings(&self) -> impl Iterator<Item = u64> {
        (self.first.ilog2()..=self.last.ilog2()).map(|power| 1 << power)
    }
}

impl<P: Peer> Kind<P> {
    /// Fills a set up to this number of items, after it was built again if it does not grow.
    fn fill(&self, set: &mut P, filled: &mut u64, items: u64, steps: &Steps) {
        if !self.grows {
            (*set, *filled) = ((self.build)(items), 0);
        }
        (*filled..items)
            .for_each(|key| assert!(set.insert(steps.first_key + key), "room was promised"));
        *filled = items;
    }
}

impl<P: Peer> Measured for Kind<P> {
    fn grown(&self, steps: &Steps) -> Vec<Grown> {
        let (mut set, mut filled, mut time) = ((self.build)(steps.first), 0, Duration::ZERO);
        let row = |items: u64| {
            let start = Instant::now();
            self.fill(&mut set, &mut filled, items, steps);
            time = if self.grows { time } else { Duration::ZERO } + start.elapsed();

            let rounds = steps.lookups.div_ceil(items);
            let mut lost = 0;
            let start = Instant::now();
            for _ in 0..rounds {
                lost +=
                    (0..items).filter(|key| !set.contains(steps.first_key + key)).count() as u64;
            }
            let hit = rate(rounds * items, start.elapsed());
            // Other keys at each doubling: otherwise a key that is a false positive could stay one.
            let other = steps.first_key + ABSENT + items;
            let start = Instant::now();
            let found = (0..steps.lookups).filter(|key| set.contains(other + key)).count();
            Grown {
                peer: self.name.into(),
                items,
                fill: rate(items, time),
                hit,
                miss: rate(steps.lookups, start.elapsed()),
                false_positive_rate: found as f64 / steps.lookups as f64,
                told: set.told(),
                lost,
            }
        };
        steps.doublings().map(row).collect()
    }

    /// Measures the bytes that a set holds, including itself, at 32 numbers of items per doubling, or at 8 if it is
    /// built again each time.
    ///
    /// A thread of its own does so: others keep parts of sets that they have looked into, and would free them
    /// meanwhile.
    fn held(&self, steps: &Steps) -> Vec<Held> {
        let per_doubling: u32 = if self.grows { 32 } else { 8 };
        let between = |items: u64| {
            let fraction = move |at| (f64::from(at) / f64::from(per_doubling)).exp2();
            (0..per_doubling).map(move |at| (items as f64 * fraction(at)).round() as u64)
        };
        let numbers = steps.doublings().flat_map(between).filter(|&items| items <= steps.last);
        let mut held: Vec<(u64, usize)> = numbers.map(|items| (items, 0)).collect();
        let count = || {
            let watch = Watch::start();
            let (mut set, mut filled) = ((self.build)(steps.first), 0);
            for (items, bytes) in &mut held {
                self.fill(&mut set, &mut filled, *items, steps);
                *bytes = memory::touched(watch.held() + size_of::<P>(), set.says_it_holds());
            }
        };
        // The handle is kept: to drop it would free memory that is being counted.
        std::thread::scope(|scope| scope.spawn(count).join().expect("sets hold what they say"));
        let row = |(items, bytes)| Held { peer: self.name.into(), items, bytes: bytes as u64 };
        held.into_iter().map(row).collect()
    }
}

/// Summarises the repetitions of a row, with medians of the rates, and all errors.
fn medians(rows: &[Grown]) -> Grown {
    let of = |figure: fn(&Grown) -> f64| median(rows.iter().map(figure));
    Grown {
        fill: of(|row| row.fill),
        hit: of(|row| row.hit),
        miss: of(|row| row.miss),
        false_positive_rate: rows.iter().map(|row| row.false_positive_rate).sum::<f64>()
            / rows.len() as f64,
        lost: rows.iter().map(|row| row.lost).sum(),
        ..rows[0].clone()
    }
}
