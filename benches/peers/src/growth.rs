//! Sets that begin small and grow 1,024-fold, on one thread: their speed and errors at each
//! doubling, and their memory in between.

use crate::csv::{Grown, Held};
use crate::memory::{self, Watch};
use crate::peer::Growing;
use crate::timing::median;
use std::time::{Duration, Instant};

/// The numbers of items that a run goes through, and its lookups and keys.
pub struct Steps {
    pub first: u64,
    pub last: u64,
    /// The least number of lookups in a measurement.
    pub lookups: u64,
    /// The first key. Each repetition has its own keys.
    pub first_key: u64,
}

/// The figures of one repetition at one number of items.
pub struct Measured {
    items: u64,
    /// The rate of the whole fill, from the first item on.
    fill: f64,
    hit: f64,
    miss: f64,
    absent: u64,
    false_positives: u64,
    lost: u64,
}

/// The number of times per doubling that memory is measured.
const SAMPLES: u64 = 32;
/// The same for sets that are built again each time.
const SAMPLES_OF_FORESEEN: u64 = 8;
/// Keys from here on are in no set.
const ABSENT: u64 = 1 << 40;

impl Steps {
    pub fn to(power: u32, test: bool, repetition: u64) -> Steps {
        Steps {
            first: 1 << (power - 10),
            last: 1 << power,
            lookups: if test { 1 << 16 } else { 1 << 21 },
            first_key: repetition << 48,
        }
    }

    fn doublings(&self) -> impl Iterator<Item = u64> {
        let last = self.last;
        std::iter::successors(Some(self.first), |items| Some(2 * items))
            .take_while(move |&items| items <= last)
    }
}

pub fn run<G: Growing>(steps: &Steps) -> Vec<Measured> {
    let mut grown = (G::build(steps.first), 0, Duration::ZERO);
    steps.doublings().map(|items| measure(&mut grown, steps, items)).collect()
}

/// Fills the set up to this number of items, and looks up all of them and as many absent keys as
/// `steps` says.
fn measure<G: Growing>(
    (set, filled, time): &mut (G, u64, Duration),
    steps: &Steps,
    items: u64,
) -> Measured {
    let start = Instant::now();
    if !G::GROWS {
        (*set, *filled, *time) = (G::build(items), 0, Duration::ZERO);
    }
    (*filled..items).for_each(|key| set.insert(steps.first_key + key));
    *filled = items;
    *time += start.elapsed();

    let rounds = steps.lookups.div_ceil(items);
    let start = Instant::now();
    let mut lost = 0;
    for _ in 0..rounds {
        lost += (0..items).filter(|key| !set.contains(steps.first_key + key)).count() as u64;
    }
    let hit = start.elapsed();

    let absent = steps.lookups;
    // Other keys at each doubling: otherwise a key that is a false positive could stay one.
    let other = steps.first_key + ABSENT + items;
    let start = Instant::now();
    let false_positives = (0..absent).filter(|key| set.contains(other + key)).count() as u64;
    let miss = start.elapsed();

    let rate = |operations: u64, time: Duration| operations as f64 / time.as_secs_f64() / 1e6;
    Measured {
        items,
        fill: rate(items, *time),
        hit: rate(rounds * items, hit),
        miss: rate(absent, miss),
        absent,
        false_positives,
        lost,
    }
}

/// Measures the bytes that a set holds, including itself, at many numbers of items.
///
/// A thread of its own does so: others keep parts of sets that they have looked into, and would free them meanwhile.
pub fn held<G: Growing>(steps: &Steps) -> Vec<Held> {
    std::thread::scope(|scope| {
        let measured = scope.spawn(|| held_by_this_thread::<G>(steps)).join();
        measured.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn held_by_this_thread<G: Growing>(steps: &Steps) -> Vec<Held> {
    let per_doubling = if G::GROWS { SAMPLES } else { SAMPLES_OF_FORESEEN };
    let between = |items: u64| {
        let fraction = move |at| (at as f64 / per_doubling as f64).exp2();
        (0..per_doubling).map(move |at| (items as f64 * fraction(at)).round() as u64)
    };
    let numbers = steps.doublings().flat_map(between).filter(|&items| items <= steps.last);
    let numbers: Vec<u64> = numbers.collect();
    let mut held = Vec::with_capacity(numbers.len());
    let name = G::NAME;
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
        held.push((items, memory::touched(bytes, set.says_it_holds())));
    }
    drop(watch);
    let row = |(items, bytes)| Held { peer: name.into(), items, bytes: bytes as u64 };
    held.into_iter().map(row).collect()
}

/// Summarises the repetitions of a peer in rows, with medians of the rates and sums of the errors.
pub fn rows(name: &str, runs: &[Vec<Measured>], held: &[Held]) -> Vec<Grown> {
    let row = |at: usize| {
        let of = |figure: fn(&Measured) -> f64| median(runs.iter().map(|run| figure(&run[at])));
        let sum = |count: fn(&Measured) -> u64| runs.iter().map(|run| count(&run[at])).sum::<u64>();
        let items = runs[0][at].items;
        let bytes = held.iter().find(|held| held.items == items).map_or(0, |held| held.bytes);
        Grown {
            peer: name.into(),
            items,
            fill: of(|one| one.fill),
            hit: of(|one| one.hit),
            miss: of(|one| one.miss),
            false_positive_rate: sum(|one| one.false_positives) as f64
                / sum(|one| one.absent) as f64,
            bytes,
            lost: sum(|one| one.lost),
        }
    };
    (0..runs[0].len()).map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    /// Forgets every hundredth key.
    struct Forgetful(HashSet<u64>);

    impl Growing for Forgetful {
        const NAME: &str = "forgetful";

        fn build(_: u64) -> Self {
            Forgetful(HashSet::new())
        }

        fn insert(&mut self, key: u64) {
            if key % 100 != 99 {
                self.0.insert(key);
            }
        }

        fn contains(&self, key: u64) -> bool {
            self.0.contains(&key)
        }
    }

    #[test]
    fn what_is_lost_is_counted() {
        let steps = Steps { first: 100, last: 400, lookups: 100, first_key: 0 };
        let rows = rows("forgetful", &[run::<Forgetful>(&steps)], &[]);
        let lost: Vec<_> = rows.iter().map(|row| (row.items, row.lost)).collect();
        assert_eq!(lost, [(100, 1), (200, 2), (400, 4)]);
    }
}
