//! Threads use one filter in every way, for as long as they are told to.
//!
//! All items come from lists that do not change, and at this rate no two of them are one to the filter. So every answer
//! is known, however long it lasts.

use crate::common::rounds::number;
use crate::common::{Filter, Fixed, SplitMix, alone, rounds, together};
use koel::{ConcurrentCuckooFilter, Prehashed};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

/// Ticks for which items are remembered.
const WINDOW: u32 = 3;
const PINNED: usize = 5_000;
/// Items that a thread adds and removes again, in a burst.
const BURST: usize = 60_000;
/// Items that two threads race for, between two checks.
const RACES: usize = 1_000;
const THREADS: usize = 7;

#[derive(Clone, Copy, Debug)]
struct Kind {
    grows: bool,
    forgets: bool,
    rate: f64,
}

impl Kind {
    fn of(number: u32) -> Kind {
        let (grows, forgets) = (number & 2 == 2, number & 4 == 4);
        // Of each pair, one has one word in a bucket, and the other has two.
        let rates = match (grows, forgets) {
            (false, false) => [1e-9, 2e-9],
            (false, true) | (true, false) => [1e-8, 1e-7],
            (true, true) => [1e-7, 1e-6],
        };
        Kind { grows, forgets, rate: rates[number as usize & 1] }
    }

    fn filter(self) -> Filter {
        let builder = ConcurrentCuckooFilter::builder().hasher(Fixed { key: 0 });
        let builder = builder.false_positive_rate(self.rate);
        let builder = match self.grows {
            true => builder.capacity(PINNED).growing().expected_growth(32.0),
            false => builder.capacity(PINNED + 2 * BURST + RACES),
        };
        let builder = if self.forgets { builder.remembers(WINDOW) } else { builder };
        builder.build().expect("a filter")
    }
}

/// What the threads of a filter share, and what they have done.
struct Soak {
    kind: Kind,
    filter: Filter,
    end: Instant,
    is_over: AtomicBool,
    /// How often each watcher has gone through all pinned items.
    rounds: [AtomicU64; 2],
    /// Lookups, changes, races, and ticks and calls of `shrink`.
    done: [AtomicU64; 4],
    /// The most shards that a burst has split.
    splits: AtomicU64,
}

impl Soak {
    fn watch(&self, watcher: usize, pinned: &[Prehashed]) {
        while !self.is_over.load(SeqCst) {
            for (at, item) in pinned.iter().enumerate() {
                assert!(self.filter.contains(item), "{:?}: a pinned item is absent", self.kind);
                if at % 64 == 0 {
                    assert_eq!(self.filter.count(item), 1, "{:?}", self.kind);
                    assert_eq!(self.filter.insert_if_absent(item), Ok(false), "{:?}", self.kind);
                }
                if self.kind.forgets {
                    assert!(self.filter.refresh(item), "{:?}: a pinned item is absent", self.kind);
                }
            }
            assert!(self.filter.contains_many(pinned).into_iter().all(|found| found));
            self.rounds[watcher].fetch_add(1, SeqCst);
            self.done[0].fetch_add(2 * pinned.len() as u64, SeqCst);
        }
    }

    /// Two threads fill the filter, so that it splits shards if it grows, and empty it again. Then one gives memory
    /// back, so that the shards are joined.
    fn burst(&self, items: &[Prehashed], both: &Barrier, is_last: &AtomicBool) {
        let found =
            |found: bool| assert!(found || self.kind.forgets, "{:?}: it is gone", self.kind);
        while !is_last.load(SeqCst) {
            let (single, batch) = items.split_at(items.len() / 2);
            single.iter().for_each(|item| self.filter.insert(item).expect("room"));
            self.filter.insert_many(batch).into_iter().for_each(|done| done.expect("room"));
            self.splits.fetch_max(self.filter.stats().splits as u64, SeqCst);
            self.filter.remove_many(single).into_iter().for_each(found);
            batch.iter().for_each(|item| found(self.filter.remove(item)));
            self.done[1].fetch_add(2 * items.len() as u64, SeqCst);
            if both.wait().is_leader() {
                self.filter.shrink();
                is_last.store(self.is_over.load(SeqCst), SeqCst);
            }
            both.wait();
        }
    }

    /// Two threads go through the same items. Each has one winner, and is removed once.
    fn race(&self, items: &[Prehashed], counts: &[AtomicU32], both: &Barrier) {
        loop {
            for (item, count) in items.iter().zip(counts) {
                let won = self.filter.insert_if_absent(item).expect("room");
                count.fetch_add(won.into(), SeqCst);
            }
            both.wait();
            for (item, count) in items.iter().zip(counts) {
                let wins = count.load(SeqCst) & 0xFF;
                // Those that expire meanwhile are new again.
                let is_right = wins == 1 || self.kind.forgets && wins == 2;
                assert!(is_right, "{:?}: {wins} winners", self.kind);
                count.fetch_add(u32::from(self.filter.remove(item)) << 8, SeqCst);
            }
            // One of the two looks, and says whether to go on.
            if both.wait().is_leader() {
                for count in counts {
                    let removals = count.swap(0, SeqCst) >> 8;
                    let is_right = removals == 1 || self.kind.forgets && removals == 0;
                    assert!(is_right, "{:?}: removed {removals} times", self.kind);
                }
                self.done[2].fetch_add(counts.len() as u64, SeqCst);
                if Instant::now() > self.end {
                    self.is_over.store(true, SeqCst);
                }
            }
            both.wait();
            if self.is_over.load(SeqCst) {
                return;
            }
        }
    }

    /// Lets ticks pass, each after the watchers have refreshed all pinned items, and gives back memory.
    fn turn(&self) {
        let rounds = || self.rounds.each_ref().map(|rounds| rounds.load(SeqCst));
        let mut last = rounds();
        while !self.is_over.load(SeqCst) {
            std::thread::sleep(Duration::from_millis(1));
            if !rounds().iter().zip(last).all(|(now, last)| *now >= last + 2) {
                continue;
            }
            last = rounds();
            match self.kind.forgets {
                true => self.filter.tick(),
                false => _ = self.filter.shrink(),
            }
            self.done[3].fetch_add(1, SeqCst);
        }
    }
}

#[test]
fn every_answer_is_right_for_as_long_as_it_lasts() {
    let _alone = alone();
    let seconds = number("KOEL_SECONDS").unwrap_or(rounds(2, 240));
    let mut random = SplitMix(77);
    let mut items = |count| random.take(count).into_iter().map(Prehashed).collect::<Vec<_>>();
    let (pinned, raced) = (items(PINNED), items(RACES));
    let bursts = [BURST, BURST].map(&mut items);
    let mut all = [0; 4];
    for number in 0..8 {
        let kind = Kind::of(number);
        let soak = Soak {
            kind,
            filter: kind.filter(),
            end: Instant::now() + Duration::from_millis(seconds * 1_000 / 8),
            is_over: AtomicBool::new(false),
            rounds: Default::default(),
            done: Default::default(),
            splits: AtomicU64::new(0),
        };
        pinned.iter().for_each(|item| soak.filter.insert(item).expect("room"));
        let counts: Vec<AtomicU32> = raced.iter().map(|_| AtomicU32::new(0)).collect();
        let (both, other_two, is_last) = (Barrier::new(2), Barrier::new(2), AtomicBool::new(false));
        together(THREADS, |thread| match thread {
            0 | 1 => soak.watch(thread, &pinned),
            2 | 3 => soak.burst(&bursts[thread - 2], &other_two, &is_last),
            4 | 5 => soak.race(&raced, &counts, &both),
            _ => soak.turn(),
        });
        assert!(kind.forgets || soak.filter.len() == PINNED, "{kind:?}: {}", soak.filter.len());
        assert!(pinned.iter().all(|item| soak.filter.remove(item)), "{kind:?}");
        let done = soak.done.map(AtomicU64::into_inner);
        let stats = soak.filter.stats();
        let (slots, bits) = (stats.slots_per_bucket, stats.fingerprint_bits);
        let splits = soak.splits.into_inner();
        assert_eq!(splits > 0, kind.grows);
        println!("{kind:?}, {slots} × {bits} bits, {splits} splits a burst: {done:?}");
        all = [0, 1, 2, 3].map(|at| all[at] + done[at]);
    }
    let [lookups, changes, races, turns] = all;
    println!(
        "checked: {lookups} lookups of pinned items beside {changes} changes of others, {races} races for an item, \
         {turns} ticks and shrinks: 0 pinned items missed, 0 items with two winners, 0 removed more often than added"
    );
}
