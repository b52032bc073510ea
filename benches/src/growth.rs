//! Sets that begin small and grow 1,024-fold, on one thread: their speed and errors at each doubling, and their memory
//! in between; and koel alone to far more items. The filters are set up with the false-positive rate of koel's 16-bit
//! fingerprints before the first split: 0.024 %.
//!
//! And [`speed`]: koel, as it grows, beside a filter of fixed size with as many buckets and the same items, in its
//! fullest and its emptiest state. Both are filled from the first item on, and begin with fresh memory. They alternate,
//! and ratios are medians over repetitions.

use crate::kit::arguments::{Arguments, Result};
use crate::kit::figures::{Figures, Row, counted, rate};
use crate::kit::memory::{Watch, touched};
use crate::kit::{ABSENT, BATCH};
use crate::peers::sets::{Koel, Peer, aleph, autoscale, dash_set, scalable};
use koel::{ConcurrentCuckooFilter, Prehashed};
use std::cell::RefCell;
use std::time::{Duration, Instant};

const KOEL: &str = "koel";
const FORESEEN: &str = "koel made for n items";

/// A kind of set without its type, so that different ones fit one list: it goes through the steps.
type Kind = Box<dyn Fn(&Steps, &mut Figures)>;

fn kinds() -> [Kind; 6] {
    [
        kind(KOEL, true, |_| Koel::growing(1)),
        kind(FORESEEN, false, Koel::fixed),
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
    let to = arguments.numbers("--to", 32, [vec![22, 24, 27], vec![16]])?;
    let to: Vec<u32> = to.into_iter().map(|power| power.max(11) as u32).collect();
    let (first, last) = (to[0], to[to.len() - 1]);
    let reps = arguments.number("--reps", 10_000, [5, 1])?;
    let part = arguments.part(&["sets", "errors", "speed"]);
    arguments.end()?;
    let mut wrong = None;
    for (bench, name, kinds, power, reps) in [
        ("growth", "sets", &kinds()[..], first, reps),
        ("errors", "errors", &kinds()[..2], last, 1),
    ] {
        if ["", name].contains(&part) {
            let figures = measure(bench, kinds, (power, reps), test);
            figures.write(&out.join(name).with_extension("csv"))?;
            wrong = wrong.or(fault(&figures, Steps::to(power, test, 0).lookups));
        }
    }
    if ["", "speed"].contains(&part) {
        let more = if to.len() > 1 { &to[1..] } else { &to[..] };
        speed(20.min(first - 1), more, reps).write(&out.join("speed.csv"))?;
    }
    wrong.map_or(Ok(()), |wrong| Err(wrong.into()))
}

fn measure(bench: &'static str, kinds: &[Kind], (power, reps): (u32, u64), test: bool) -> Figures {
    let mut figures = Figures::new(bench);
    // The first builder of a process allocates its random seeds, which are of no filter.
    drop(Filter::builder());
    for rep in 0..reps {
        eprint!("\rto 2^{power}, repetition {}", rep + 1);
        kinds.iter().for_each(|kind| kind(&Steps::to(power, test, rep), &mut figures));
    }
    eprintln!();
    figures
}

/// Returns what koel does wrong: it loses an item, or the rate of false positives, with so many lookups a round, is not
/// the one that it reports, as far as chance leaves it alone.
fn fault(figures: &Figures, lookups: u64) -> Option<String> {
    let mean = |rounds: &[f64]| rounds.iter().sum::<f64>() / rounds.len() as f64;
    figures.rows.iter().filter(|row| row.set.starts_with(KOEL)).find_map(|row| {
        let is_right = match &*row.what {
            "lost" => mean(&row.rounds) == 0.0,
            "false positives" => {
                let told = mean(figures.all(&row.set, "told", &row.at));
                let deviation = (told / (lookups * row.rounds.len() as u64) as f64).sqrt();
                (mean(&row.rounds) - told).abs() <= 0.1 * told + 8.0 * deviation + 1e-6
            }
            _ => true,
        };
        let Row { set, what, at, rounds, .. } = row;
        (!is_right).then(|| format!("{set} with {at} items: {what}: {rounds:?}"))
    })
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
    /// or at 8 if it is built again each time, and its speed and errors at each doubling.
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
            let insert = |key| assert!(set.insert(self.first_key + key), "room was promised");
            (filled..items).for_each(insert);
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
            set.told().into_iter().for_each(|told| note("told", "share", told));
            note("lost", "items", lost as f64);
        }
    }
}

type Filter = ConcurrentCuckooFilter;

/// The largest number of lookups in a measurement.
const LOOKUPS: u64 = 1 << 22;

/// A filter of 16-bit fingerprints that begins with room for 2^14 items.
pub fn growing() -> Filter {
    let builder = Filter::builder().capacity(1 << 14).growing();
    let filter = builder.false_positive_rate(0.002).build().expect("memory for the filter");
    assert_eq!(filter.stats().fingerprint_bits, 16);
    filter
}

/// Compares filters at these powers of two, and a little below them, and tells the memory of filters of ten items.
fn speed(first: u32, more: &[u32], reps: u64) -> Figures {
    let mut figures = Figures::new("speed");
    let ten = Filter::builder().capacity(10);
    for (set, builder) in [("grows", ten.clone().growing()), ("fixed", ten)] {
        let bytes = builder.build().expect("memory").size_in_bytes();
        figures.note(set, "bytes", "ten items", "bytes", bytes as f64);
    }
    for power in std::iter::once(&first).chain(more) {
        for items in [(1 << power) / 10 * 9, 1 << power] {
            compare(items, reps, &mut figures);
        }
    }
    figures
}

fn compare(items: u64, reps: u64, figures: &mut Figures) {
    let at = format!("{items} items");
    let mut pair = None;
    for _ in 0..if items > 1 << 24 { reps.min(3) } else { reps } {
        drop(pair.take());
        let mut fill = |set, make: &dyn Fn() -> Filter| {
            let start = Instant::now();
            let filter = make();
            (0..items).for_each(|key| filter.insert(&Prehashed(key)).expect("room"));
            figures.note(set, "the whole fill", &at, "M/s", rate(items, start.elapsed()));
            filter
        };
        let grown = fill("grows", &growing);
        let slots = grown.stats().slots as f64;
        let fixed = fill("fixed", &|| Filter::with_capacity((slots * 0.93) as usize));
        pair = Some((grown, fixed));
    }
    let (grown, fixed) = pair.expect("one fill");

    // All items, or a sample of them, spread over the table.
    let stride = (items / LOOKUPS).max(1) as usize;
    let keys = |from| (0..items).step_by(stride).map(move |key| Prehashed(from + key)).collect();
    let [there, absent]: [Vec<Prehashed>; 2] = [keys(0), keys(ABSENT)];
    // A short list of keys is looked up several times.
    let rounds = (LOOKUPS / there.len() as u64).max(1);
    let looks = rounds * there.len() as u64;
    for (name, keys, in_batches) in [
        ("hits", &there, false),
        ("misses", &absent, false),
        ("hits in batches", &there, true),
        ("misses in batches", &absent, true),
    ] {
        for _ in 0..reps {
            for (set, filter) in [("grows", &grown), ("fixed", &fixed)] {
                let start = Instant::now();
                let found: u64 = (0..rounds).map(|_| look_up(filter, keys, in_batches)).sum();
                figures.note(set, name, &at, "M/s", rate(looks, start.elapsed()));
                let most_absent = looks / 250;
                let is_right = if keys[0].0 == 0 { found == looks } else { found <= most_absent };
                assert!(is_right, "{name}: {found} of {looks} were found");
            }
        }
    }
    for (set, filter) in [("grows", &grown), ("fixed", &fixed)] {
        figures.note(set, "bytes", &at, "bytes", filter.size_in_bytes() as f64);
        figures.note(set, "load", &at, "share", filter.stats().load());
    }
    for what in ["the whole fill", "hits", "misses", "hits in batches", "misses in batches"] {
        figures.ratio(("grows", "fixed"), what, &at);
    }
}

/// Returns the number of keys found.
#[inline]
fn look_up(filter: &Filter, keys: &[Prehashed], in_batches: bool) -> u64 {
    if !in_batches {
        return keys.iter().filter(|key| filter.contains(*key)).count() as u64;
    }
    let batches = keys.chunks(BATCH).flat_map(|batch| filter.contains_many(batch));
    batches.map(u64::from).sum()
}
