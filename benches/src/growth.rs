//! Sets that begin small and grow 1,024-fold, on one thread: their speed and errors at each doubling, and their memory
//! in between. The filters are set up with the false-positive rate of koel's 16-bit fingerprints before the first
//! split: 0.024 %.
//!
//! And [`speed`]: koel, as it grows, beside a filter of fixed size with as many buckets and the same items, in its
//! fullest and its emptiest state. Both are filled from the first item on, and begin with fresh memory. They alternate,
//! and ratios are medians over repetitions.

use crate::kit::arguments::{Arguments, Result};
use crate::kit::figures::{Rounds, Table, counted, median, publish, rate, read_csv, write_csv};
use crate::kit::machine::about;
use crate::kit::memory::{Watch, touched};
use crate::kit::{ABSENT, BATCH};
use crate::peers::sets::{Koel, Peer, autoscale, dash_set, scalable};
use koel::{ConcurrentCuckooFilter, Prehashed};
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::time::{Duration, Instant};

const KOEL: &str = "koel";
const FORESEEN: &str = "koel made for n items";

/// The figures of a set that has grown to this many items. Rates are in million operations a second. The rate of the
/// fill is measured from the first item on.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Grown {
    peer: String,
    items: u64,
    fill: f64,
    hit: f64,
    miss: f64,
    false_positive_rate: f64,
    /// The rate that the set reports, if it does.
    told: Option<f64>,
    lost: u64,
}

impl Grown {
    /// Returns whether nothing is lost, and the rate among so many absent keys is what the set reports, as far as
    /// chance leaves it alone.
    fn is_right(&self, absent: u64) -> bool {
        let close = |told: f64| {
            let deviation = (told / absent as f64).sqrt();
            (self.false_positive_rate - told).abs() <= 0.1 * told + 8.0 * deviation + 1e-6
        };
        self.lost == 0 && self.told.is_none_or(close)
    }
}

/// The bytes that a set holds when it contains this many items.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Held {
    peer: String,
    items: u64,
    bytes: u64,
}

/// A kind of set without its type, so that different ones fit one list: it goes through the steps.
type Kind = Box<dyn Fn(&Steps) -> (Vec<Grown>, Vec<Held>)>;

fn kinds() -> [Kind; 5] {
    [
        kind(KOEL, true, Koel::growing),
        kind(FORESEEN, false, Koel::fixed),
        kind("scalable_cuckoo_filter", true, |items| RefCell::new(scalable(items))),
        kind("autoscale_cuckoo_filter", true, |items| RefCell::new(autoscale(items))),
        kind("DashSet", true, dash_set),
    ]
}

/// A set that is built with room for a number of items. If it does not grow, it is built again for each number of
/// items, as if that had been known beforehand.
fn kind<P: Peer + 'static>(name: &'static str, grows: bool, build: fn(u64) -> P) -> Kind {
    Box::new(move |steps| steps.measure(name, grows, build))
}

pub fn run(mut arguments: Arguments) -> Result<()> {
    let (out, test) = (arguments.out("growth")?, arguments.test);
    let to = arguments.number("--to", 32, [22, 16])?.max(11) as u32;
    let reps = arguments.number("--reps", 10_000, [3, 1])?;
    let part = arguments.part(&["sets", "speed", "table"]);
    arguments.end()?;
    if ["speed", ""].contains(&part) {
        publish(&out.join("speed.txt"), &format!("{}\n{}", about(), speed(to, reps)))?;
    }
    if part == "speed" {
        return Ok(());
    }
    let [sets, held] = ["sets.csv", "memory.csv"].map(|name| out.join(name));
    if part != "table" {
        let rows = measure(to, (test, reps));
        write_csv(&sets, &about(), &rows.0)?;
        write_csv(&held, "", &rows.1)?;
    }
    let ((note, grown), (_, held)) = (read_csv(&sets)?, read_csv(&held)?);
    publish(&out.join("sets.txt"), &text(&note, &grown, &held))?;
    let absent = reps * Steps::to(to, test, 0).lookups;
    match grown.iter().find(|row| row.peer.starts_with(KOEL) && !row.is_right(absent)) {
        Some(wrong) => Err(format!("wrong answers: {wrong:?}").into()),
        None => Ok(()),
    }
}

fn measure(power: u32, (test, reps): (bool, u64)) -> (Vec<Grown>, Vec<Held>) {
    let (mut rounds, mut memory) = (Rounds::new(), Vec::new());
    for rep in 0..reps {
        eprint!("\rto 2^{power}, repetition {}", rep + 1);
        for kind in kinds() {
            let (grown, held) = kind(&Steps::to(power, test, rep));
            grown.into_iter().for_each(|row| rounds.note((row.peer.clone(), row.items), row));
            memory.extend(held.into_iter().filter(|_| rep == 0));
        }
    }
    eprintln!();
    (rounds.0.iter().map(|(_, rows)| medians(rows)).collect(), memory)
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
    ) -> (Vec<Grown>, Vec<Held>) {
        let (mut grown, mut held) = (Vec::new(), Vec::new());
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
            let peer = || name.to_string();
            let touched = touched((bytes + size_of::<P>() as i64) as usize, set.says_it_holds());
            held.push(Held { peer: peer(), items, bytes: touched as u64 });
            if !items.is_power_of_two() {
                continue;
            }
            let rounds = self.lookups.div_ceil(items);
            let start = Instant::now();
            let is_lost = |key: &u64| !set.contains(self.first_key + key);
            let lost = (0..rounds).map(|_| (0..items).filter(is_lost).count() as u64).sum();
            let hit = rate(rounds * items, start.elapsed());
            // Other keys at each doubling: otherwise a key that is a false positive could stay one.
            let other = self.first_key + ABSENT + items;
            let (miss, found) = counted(self.lookups, |key| set.contains(other + key));
            grown.push(Grown {
                peer: peer(),
                items,
                fill: rate(items, time),
                hit,
                miss,
                false_positive_rate: found as f64 / self.lookups as f64,
                told: set.told(),
                lost,
            });
        }
        (grown, held)
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

/// Returns the report, which begins with a note on the run.
fn text(note: &str, grown: &[Grown], held: &[Held]) -> String {
    let mut text = format!(
        "{note}\nSets that grow, on one thread. Million operations a second, medians; the fill is that of all items so \
         far.\n"
    );
    for rows in grown.chunk_by(|a, b| a.peer == b.peer) {
        let columns = ["fill", "hit", "miss", "false positives", "as told", "bytes/item", "lost"];
        let mut table = Table::new(&rows[0].peer, &columns);
        for row in rows {
            let percent = |rate: f64| format!("{:.4} %", 100.0 * rate);
            let held = held.iter().find(|it| it.peer == row.peer && it.items == row.items);
            let bytes = held.map_or(0, |held| held.bytes) as f64 / row.items as f64;
            let rates = [row.fill, row.hit, row.miss].map(|rate| format!("{rate:.1}"));
            let others = [
                percent(row.false_positive_rate),
                row.told.map_or(String::new(), percent),
                format!("{bytes:.2}"),
                row.lost.to_string(),
            ];
            table.row(row.items, rates.into_iter().chain(others));
        }
        text += &format!("\n{table}");
    }
    text + &beside_fixed(held)
}

/// Compares the memory of koel, as it grows, with that of a filter that is made for as many items.
fn beside_fixed(held: &[Held]) -> String {
    let ratio = |fixed: &Held| {
        let same = |held: &&Held| held.peer == KOEL && held.items == fixed.items;
        Some(held.iter().find(same)?.bytes as f64 / fixed.bytes as f64)
    };
    let large = held.iter().filter(|held| held.peer == FORESEEN && held.items >= 1 << 19);
    let ratios: Vec<f64> = large.filter_map(ratio).collect();
    let worst = ratios.iter().copied().fold(0.0, f64::max);
    let mean = ratios.iter().sum::<f64>() / ratios.len() as f64;
    format!(
        "\nmemory of koel : {FORESEEN}, from 2^19 on: at most {worst:.2}, {mean:.2} on average\n"
    )
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

/// Compares filters of about a million items, and of this power of two, and tells the memory of filters of ten items.
fn speed(power: u32, reps: u64) -> String {
    let grows = Filter::builder().capacity(10).growing().build().expect("memory").size_in_bytes();
    let fixed = Filter::with_capacity(10).size_in_bytes();
    let few = format!("  made for ten items: {grows} bytes if it grows, {fixed} if not\n");
    let powers = [20.min(power - 1), power];
    let sizes = powers.into_iter().flat_map(|power| [(1 << power) / 10 * 9, 1 << power]);
    sizes.map(|items| compare(items, reps)).fold(few, |text, table| text + &table)
}

fn compare(items: u64, reps: u64) -> String {
    let mut rates = Rounds::new();
    let mut pair = None;
    for _ in 0..if items > 1 << 24 { 1 } else { reps } {
        drop(pair.take());
        let mut fill = |is_grown, make: &dyn Fn() -> Filter| {
            let start = Instant::now();
            let filter = make();
            (0..items).for_each(|key| filter.insert(&Prehashed(key)).expect("room"));
            rates.note(("the whole fill", is_grown), rate(items, start.elapsed()));
            filter
        };
        let grown = fill(true, &growing);
        let slots = grown.stats().slots as f64;
        let fixed = fill(false, &|| Filter::with_capacity((slots * 0.93) as usize));
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
            for (filter, is_grown) in [(&grown, true), (&fixed, false)] {
                let start = Instant::now();
                let found: u64 = (0..rounds).map(|_| look_up(filter, keys, in_batches)).sum();
                rates.note((name, is_grown), rate(looks, start.elapsed()));
                let most_absent = looks / 250;
                let is_right = if keys[0].0 == 0 { found == looks } else { found <= most_absent };
                assert!(is_right, "{name}: {found} of {looks} were found");
            }
        }
    }
    let mib = |filter: &Filter| filter.size_in_bytes() as f64 / 1_048_576.0;
    let title = format!("{items} items, load {:.2}, M/s", grown.stats().load());
    let columns = [
        &*format!("{:.1} MiB", mib(&grown)),
        &format!("fixed, {:.1} MiB", mib(&fixed)),
        "grown : fixed",
    ];
    let mut table = Table::new(title, &columns);
    for (name, _) in rates.0.iter().map(|(name, _)| name).filter(|name| name.1) {
        let [grown, fixed] = [true, false].map(|is_grown| rates.median(&(*name, is_grown)));
        let ratio = rates.ratio(&(*name, true), &(*name, false));
        table.figures(name, 2, [grown, fixed, ratio]);
    }
    format!("\n{table}")
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
