//! Sets that begin small and grow 1,024-fold, on one thread: their speed and errors at each doubling, and their memory
//! in between; and koel alone to far more items. The filters are set up with the false-positive rate of koel's 16-bit
//! fingerprints before the first split: 0.024 %.

use crate::kit::ABSENT;
use crate::kit::arguments::{Arguments, Result};
use crate::kit::figures::{Figures, counted, rate};
use crate::kit::memory::{Watch, touched};
use crate::peers::sets::{Koel, Peer, aleph, autoscale, dash_set, scalable};
use koel::ConcurrentCuckooFilter;
use std::cell::RefCell;
use std::time::{Duration, Instant};

/// A kind of set without its type, so that different ones fit one list: it goes through the steps.
type Kind = Box<dyn Fn(&Steps, &mut Figures)>;

fn kinds() -> [Kind; 6] {
    [
        kind("koel", true, |_| Koel::growing(1)),
        kind("koel made for n items", false, Koel::fixed),
        kind("scalable_cuckoo_filter", true, |items| RefCell::new(scalable(items))),
        kind("autoscale_cuckoo_filter", true, |items| RefCell::new(autoscale(items))),
        kind("aleph-filter", true, |items| RefCell::new(aleph(items))),
        kind("DashSet", true, dash_set),
    ]
}

/// A set that is built with room for a number of items. If it does not grow, it is built again for each number of
/// items, as if that had been known beforehand.
fn kind<P: Peer + 'static>(name: &'static str, grows: bool, build: fn(u64) -> P) -> Kind {
    Box::new(move |steps, figures| steps.measure(name, grows, build, figures))
}

pub fn run(mut arguments: Arguments) -> Result<()> {
    let (out, test) = (arguments.out("growth")?, arguments.test);
    let to = arguments.numbers("--to", 32, [vec![22, 27], vec![16]])?;
    let to: Vec<u32> = to.into_iter().map(|power| power.max(11) as u32).collect();
    let (first, last) = (to[0], to[to.len() - 1]);
    let reps = arguments.number("--reps", 10_000, [3, 1])?;
    let part = arguments.part(&["sets", "errors"]);
    arguments.end()?;
    for (bench, kinds, power, reps) in
        [("growth", &kinds()[..], first, reps), ("errors", &kinds()[..2], last, 1)]
    {
        let name = if bench == "growth" { "sets" } else { bench };
        if ["", name].contains(&part) {
            let figures = measure(bench, kinds, (power, reps), test);
            figures.write(&out.join(name).with_extension("csv"))?;
        }
    }
    Ok(())
}

fn measure(bench: &'static str, kinds: &[Kind], (power, reps): (u32, u64), test: bool) -> Figures {
    let mut figures = Figures::new(bench);
    // The first builder of a process allocates its random seeds, which are of no filter.
    drop(ConcurrentCuckooFilter::builder());
    for rep in 0..reps {
        eprint!("\rto 2^{power}, repetition {}", rep + 1);
        kinds.iter().for_each(|kind| kind(&Steps::to(power, test, rep), &mut figures));
    }
    eprintln!();
    figures
}

/// The numbers of items that a run goes through, and its lookups and keys.
struct Steps {
    /// The last number is two to this power, and the first one a 1,024th of that.
    power: u32,
    /// The least number of lookups in a measurement.
    lookups: u64,
    /// The first key. Each repetition has its own keys.
    first_key: u64,
}

impl Steps {
    fn to(power: u32, test: bool, repetition: u64) -> Steps {
        let lookups = if test { 1 << 16 } else { 1 << 21 };
        Steps { power, lookups, first_key: repetition << 48 }
    }

    /// Returns so many numbers of items per doubling.
    fn numbers(&self, per_doubling: u32) -> impl Iterator<Item = u64> {
        let powers = (self.power - 10) * per_doubling..=self.power * per_doubling;
        powers.map(move |power| (f64::from(power) / f64::from(per_doubling)).exp2().round() as u64)
    }

    /// Fills a set step by step. Notes the bytes that it holds, including itself, at 32 numbers of items per doubling,
    /// and its speed and errors at each doubling. A set that is built again each time holds its bytes from the start, so
    /// that it is filled at each doubling only.
    fn measure<P: Peer>(
        &self,
        name: &str,
        grows: bool,
        build: fn(u64) -> P,
        figures: &mut Figures,
    ) {
        let (mut set, mut filled, mut bytes, mut time) = (None, 0, 0, Duration::ZERO);
        for items in self.numbers(if grows { 32 } else { 8 }) {
            if !grows {
                (set, filled, bytes, time) = (None, 0, 0, Duration::ZERO);
            }
            let (watch, start) = (Watch::start(), Instant::now());
            let set = set
                .get_or_insert_with(|| build(if grows { 1 << (self.power - 10) } else { items }));
            if grows || items.is_power_of_two() {
                let insert = |key| assert!(set.insert(self.first_key + key), "room was promised");
                (filled..items).for_each(insert);
            }
            (filled, time) = (items, time + start.elapsed());
            bytes += watch.held();
            drop(watch);
            let touched = touched((bytes + size_of::<P>() as i64) as usize, set.says_it_holds());
            let at = items.to_string();
            let mut note = |what, unit, figure| _ = figures.note(name, what, &at, unit, figure);
            note("bytes", "bytes", touched as f64);
            if !items.is_power_of_two() {
                continue;
            }
            let rounds = self.lookups.div_ceil(items);
            let start = Instant::now();
            let is_lost = |key: &u64| !set.contains(self.first_key + key);
            let lost: u64 = (0..rounds).map(|_| (0..items).filter(is_lost).count() as u64).sum();
            let hit = rate(rounds * items, start.elapsed());
            // Other keys at each doubling: otherwise a key that is a false positive could stay one.
            let other = self.first_key + ABSENT + items;
            let (miss, found) = counted(self.lookups, |key| set.contains(other + key));
            for (what, figure) in [("fill", rate(items, time)), ("hit", hit), ("miss", miss)] {
                note(what, "M/s", figure);
            }
            note("false positives", "share", found as f64 / self.lookups as f64);
            note("lost", "items", lost as f64);
            if let Some(told) = set.told() {
                note("told", "share", told);
                // As far as chance leaves it alone.
                let expected = told * self.lookups as f64;
                let is_wrong =
                    (found as f64 - expected).abs() > 0.1 * expected + 8.0 * expected.sqrt() + 2.0;
                note("wrong", "rates", f64::from(u8::from(is_wrong)));
            }
        }
    }
}
