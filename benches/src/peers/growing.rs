//! Sets that begin small and grow 1,024-fold, on one thread: their speed and errors at each doubling, and their memory
//! in between. The filters are set up with the false-positive rate of koel's 16-bit fingerprints before the first
//! split: 0.024 %.

use super::report::{Grown, Held};
use super::sets::hash_of;
use super::sets::{Autoscale, CHAIN_OF_16_BITS, DashSet, KOEL, KeyHasher, Koel, Peer, Sequential};
use crate::kit::figures::{median, rate};
use crate::kit::memory::{self, Watch};
use std::time::{Duration, Instant};

/// A set that begins small and grows, used by one thread. It refuses no key.
trait Growing: Sized {
    /// Whether the set grows. If not, it is built again for each number of items.
    const GROWS: bool = true;
    /// Builds a set with room for this many items at first.
    fn build(first: u64) -> Self;
    fn insert(&mut self, key: u64);
    fn contains(&self, key: u64) -> bool;
    /// Returns the bytes that the set touches, if it allocates more than that.
    fn says_it_holds(&self) -> Option<usize> {
        None
    }
}

/// A filter that is built for the right number of items, as if it had been known beforehand.
type Foreseen = Koel<false>;

impl<P: Peer> Growing for P {
    const GROWS: bool = P::GROWS;

    fn build(first: u64) -> Self {
        Peer::build(first)
    }

    #[inline]
    fn insert(&mut self, key: u64) {
        assert!(Peer::insert(self, key), "room was promised");
    }

    #[inline]
    fn contains(&self, key: u64) -> bool {
        Peer::contains(self, key)
    }

    fn says_it_holds(&self) -> Option<usize> {
        Peer::says_it_holds(self)
    }
}

/// A chain of tables. Each is twice as large as the one before, and has one more bit per item, so that all of them
/// together keep the rate. It cannot take hashes.
type Scalable = scalable_cuckoo_filter::ScalableCuckooFilter<u64, KeyHasher>;

impl Growing for Scalable {
    fn build(first: u64) -> Self {
        let builder = scalable_cuckoo_filter::ScalableCuckooFilterBuilder::new();
        let builder = builder.initial_capacity(first as usize).hasher(KeyHasher::default());
        builder.false_positive_probability(CHAIN_OF_16_BITS).finish()
    }

    #[inline]
    fn insert(&mut self, key: u64) {
        Scalable::insert(self, &key);
    }

    #[inline]
    fn contains(&self, key: u64) -> bool {
        Scalable::contains(self, &key)
    }
}

/// A chain of tables, too.
impl Growing for Autoscale {
    fn build(first: u64) -> Self {
        Sequential::build(first)
    }

    #[inline]
    fn insert(&mut self, key: u64) {
        self.add_hash(hash_of(key));
    }

    #[inline]
    fn contains(&self, key: u64) -> bool {
        self.contains_hash(hash_of(key))
    }
}

/// A set that grows, without its type, so that different ones fit one list.
pub struct Entry {
    pub name: &'static str,
    /// Measures the set at each doubling.
    pub run: fn(&Steps) -> Vec<Grown>,
    /// Measures the bytes that the set holds at many numbers of items.
    pub held: fn(&'static str, &Steps) -> Vec<Held>,
}

pub fn all() -> [Entry; 5] {
    fn entry<G: Growing>(name: &'static str) -> Entry {
        Entry { name, run: run::<G>, held: held::<G> }
    }
    [
        entry::<Koel<true>>(KOEL),
        entry::<Foreseen>("koel made for n items"),
        entry::<Scalable>("scalable_cuckoo_filter"),
        entry::<Autoscale>("autoscale_cuckoo_filter"),
        entry::<DashSet>("DashSet"),
    ]
}

/// The numbers of items that a run goes through, and its lookups and keys.
pub struct Steps {
    pub first: u64,
    pub last: u64,
    /// The least number of lookups in a measurement.
    pub lookups: u64,
    /// The first key. Each repetition has its own keys.
    pub first_key: u64,
}

/// The number of times per doubling that memory is measured.
const SAMPLES: u64 = 32;
/// The same for sets that are built again each time.
const SAMPLES_OF_FORESEEN: u64 = 8;
/// Keys from here on are in no set.
const ABSENT: u64 = 1 << 40;

impl Steps {
    pub fn to(power: u32, test: bool, repetition: u64) -> Steps {
        let (first, last) = (1 << (power - 10), 1 << power);
        let lookups = if test { 1 << 16 } else { 1 << 21 };
        Steps { first, last, lookups, first_key: repetition << 48 }
    }

    fn doublings(&self) -> impl Iterator<Item = u64> {
        let last = self.last;
        std::iter::successors(Some(self.first), |items| Some(2 * items))
            .take_while(move |&items| items <= last)
    }
}

fn run<G: Growing>(steps: &Steps) -> Vec<Grown> {
    let (mut set, mut filled, mut time) = (G::build(steps.first), 0, Duration::ZERO);
    let mut rows = Vec::new();
    for items in steps.doublings() {
        let start = Instant::now();
        if !G::GROWS {
            (set, filled, time) = (G::build(items), 0, Duration::ZERO);
        }
        (filled..items).for_each(|key| set.insert(steps.first_key + key));
        filled = items;
        time += start.elapsed();

        let rounds = steps.lookups.div_ceil(items);
        let mut lost = 0;
        let start = Instant::now();
        for _ in 0..rounds {
            lost += (0..items).filter(|key| !set.contains(steps.first_key + key)).count() as u64;
        }
        let hit = rate(rounds * items, start.elapsed());
        // Other keys at each doubling: otherwise a key that is a false positive could stay one.
        let other = steps.first_key + ABSENT + items;
        let start = Instant::now();
        let found = (0..steps.lookups).filter(|key| set.contains(other + key)).count();
        let miss = rate(steps.lookups, start.elapsed());
        let false_positive_rate = found as f64 / steps.lookups as f64;
        let (peer, fill, bytes) = (String::new(), rate(items, time), 0);
        rows.push(Grown { peer, items, fill, hit, miss, false_positive_rate, bytes, lost });
    }
    rows
}

/// Measures the bytes that a set holds, including itself, at many numbers of items.
///
/// A thread of its own does so: others keep parts of sets that they have looked into, and would free them meanwhile.
fn held<G: Growing>(name: &'static str, steps: &Steps) -> Vec<Held> {
    std::thread::scope(|scope| {
        scope
            .spawn(|| held_by_this_thread::<G>(name, steps))
            .join()
            .expect("sets hold what they say")
    })
}

fn held_by_this_thread<G: Growing>(name: &str, steps: &Steps) -> Vec<Held> {
    let per_doubling = if G::GROWS { SAMPLES } else { SAMPLES_OF_FORESEEN };
    let between = |items: u64| {
        let fraction = move |at| (at as f64 / per_doubling as f64).exp2();
        (0..per_doubling).map(move |at| (items as f64 * fraction(at)).round() as u64)
    };
    let numbers = steps.doublings().flat_map(between).filter(|&items| items <= steps.last);
    let numbers: Vec<u64> = numbers.collect();
    let mut held = Vec::with_capacity(numbers.len());
    let watch = Watch::start();
    let (mut set, mut filled) = (G::build(steps.first), 0);
    for items in numbers {
        if !G::GROWS {
            drop(set);
            (set, filled) = (G::build(items), 0);
        }
        (filled..items).for_each(|key| set.insert(steps.first_key + key));
        filled = items;
        let bytes = watch.held() + size_of::<G>();
        held.push((items, memory::touched(bytes, set.says_it_holds()) as u64));
    }
    drop(watch);
    held.into_iter().map(|(items, bytes)| Held { peer: name.into(), items, bytes }).collect()
}

/// Summarises the repetitions of a peer in rows, with medians of the rates, and all errors.
pub fn rows(name: &str, runs: &[Vec<Grown>], held: &[Held]) -> Vec<Grown> {
    let row = |at: usize| {
        let of = |figure: fn(&Grown) -> f64| median(runs.iter().map(|run| figure(&run[at])));
        let items = runs[0][at].items;
        let rates = runs.iter().map(|run| run[at].false_positive_rate);
        Grown {
            peer: name.into(),
            items,
            fill: of(|one| one.fill),
            hit: of(|one| one.hit),
            miss: of(|one| one.miss),
            false_positive_rate: rates.sum::<f64>() / runs.len() as f64,
            bytes: held.iter().find(|held| held.items == items).map_or(0, |held| held.bytes),
            lost: runs.iter().map(|run| run[at].lost).sum(),
        }
    };
    (0..runs[0].len()).map(row).collect()
}
