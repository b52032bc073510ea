//! Filters that forget: what is within its window is found, and what is beyond it is not.

mod clock;
mod growing;
mod numbers;
mod parts;

use crate::common::{LAYOUTS, SplitMix, layouts, rounds, together, with_rate};
use koel::{ConcurrentCuckooFilter, FullKind, Prehashed};
use std::collections::BTreeMap;
use std::ops::Range;

type Filter = ConcurrentCuckooFilter<crate::common::Fixed>;

const WINDOWS: [u32; 8] = [1, 2, 3, 6, 7, 14, 30, 62];

/// A filter with this rate, or a higher one if none can keep it beside the stamps.
fn filter(capacity: usize, rate: f64, ticks: u32) -> Filter {
    let builder = ConcurrentCuckooFilter::builder().capacity(capacity).remembers(ticks);
    let builder = builder.hasher(crate::common::Fixed { key: 3 });
    with_rate(builder, rate).build().expect("a filter")
}

/// The ticks in which the copies of each item came.
#[derive(Default)]
struct Map {
    stamps: BTreeMap<u64, Vec<u64>>,
    now: u64,
    ticks: u64,
}

impl Map {
    fn expire(&mut self) {
        let (now, ticks) = (self.now, self.ticks);
        self.stamps.retain(|_, stamps| {
            stamps.retain(|stamp| stamp + ticks >= now);
            !stamps.is_empty()
        });
    }

    fn insert(&mut self, item: u64) {
        self.stamps.entry(item).or_default().push(self.now);
    }

    fn refresh(&mut self, item: u64) -> bool {
        let stamps = self.stamps.get_mut(&item);
        stamps.is_some_and(|stamps| {
            stamps.fill(self.now);
            true
        })
    }

    /// Removes the oldest copy.
    fn remove(&mut self, item: u64) {
        if let Some(stamps) = self.stamps.get_mut(&item) {
            let oldest = (0..stamps.len()).min_by_key(|at| stamps[*at]).expect("a copy");
            stamps.swap_remove(oldest);
            if stamps.is_empty() {
                self.stamps.remove(&item);
            }
        }
    }

    /// The age of the oldest copy.
    fn age(&self, item: u64) -> Option<u64> {
        self.stamps.get(&item)?.iter().min().map(|oldest| self.now - oldest)
    }

    /// How many copies expire with each of the next ticks.
    fn expiring(&self) -> Vec<usize> {
        let mut expiring = vec![0; self.ticks as usize + 1];
        let left = |stamp: &u64| (stamp + self.ticks - self.now) as usize;
        self.stamps.values().flatten().for_each(|stamp| expiring[left(stamp)] += 1);
        expiring
    }
}

/// Does the same to a filter and to a map. An exact filter has to agree with the map in everything. A
/// vague one takes some items for others, and what it then does not insert is not in the map either.
fn agree(
    filter: &ConcurrentCuckooFilter<crate::common::Fixed>,
    capacity: usize,
    ticks: u32,
    is_exact: bool,
    steps: usize,
) {
    let mut random = SplitMix(u64::from(ticks));
    let mut map = Map { ticks: ticks.into(), ..Map::default() };
    let items = capacity as u64 * 3 / 8;
    let in_a_tick = capacity / 2 / (ticks as usize + 1);
    let most_copies = filter.stats().slots_per_bucket.min(3);
    let mut last_looked_at = None;
    for step in 0..steps {
        let item = random.next() % items;
        match random.below(8) {
            0 if map.stamps.get(&item).is_none_or(|stamps| stamps.len() < most_copies) => {
                match filter.insert(&item) {
                    Ok(()) => map.insert(item),
                    // Of an item that a vague filter takes for others, it has more copies.
                    Err(full) => {
                        assert_eq!((full.kind(), is_exact), (FullKind::TooManyCopies, false));
                        assert!(filter.count(&item) >= most_copies);
                    }
                }
            }
            0..4 => {
                let added = filter.insert_if_absent(&item).expect("room");
                assert!(!(added && map.stamps.contains_key(&item)), "an item was lost");
                assert!(!is_exact || added != map.stamps.contains_key(&item));
                if added {
                    map.insert(item);
                }
            }
            4 => {
                let added = filter.insert_or_refresh(&item).expect("room");
                assert_eq!(added, !map.refresh(item) && (added || is_exact));
                if added {
                    map.insert(item);
                }
            }
            5 => {
                let was_there = filter.refresh(&item);
                assert_eq!(was_there, map.refresh(item) || was_there && !is_exact);
            }
            6 if map.stamps.contains_key(&item) => {
                let age = filter.age(&item).expect("an item was lost");
                assert!(!is_exact || map.age(item) == Some(age), "{age}");
                // Once in a tick, since this looks at all items.
                let is_next = last_looked_at.replace(map.now) != Some(map.now);
                let before = is_next.then(|| filter.expiring().to_vec());
                assert!(filter.remove(&item), "an item was lost");
                map.remove(item);
                if let Some(mut expected) = before {
                    expected[ticks as usize - age as usize] -= 1;
                    assert_eq!(filter.expiring(), expected, "one of another age went");
                }
            }
            _ => {
                let stamps = map.stamps.get(&item);
                assert!(filter.contains(&item) || stamps.is_none(), "an item was lost");
                if is_exact {
                    assert_eq!(filter.count(&item), stamps.map_or(0, Vec::len));
                    assert_eq!(filter.age(&item), map.age(item));
                }
            }
        }
        if step % in_a_tick == in_a_tick - 1 {
            filter.tick();
            map.now += 1;
            map.expire();
            if is_exact {
                assert_eq!(filter.expiring(), map.expiring(), "after {} ticks", map.now);
                assert_eq!(filter.len(), filter.expiring().iter().sum());
            }
            for item in map.stamps.keys() {
                assert!(filter.contains(item), "an item within its window is lost");
            }
        }
    }
    // All goes in the end, and no lane is left over.
    for _ in 0..=ticks {
        filter.tick();
    }
    assert_eq!((filter.len(), filter.stats().items), (0, 0));
    let found = (0..items).filter(|item| filter.contains(item)).count();
    assert_eq!(found, 0, "items beyond their window are found");
}

#[test]
fn a_filter_agrees_with_a_map_of_time_stamps() {
    for layout in layouts() {
        for ticks in rounds(&WINDOWS[3..5], &WINDOWS[..]) {
            // Copies of one item, and items like it, take up to half of the room of two buckets: small
            // buckets have to be half empty then.
            let filter = filter(8_000, layout.rate, *ticks);
            // With 20 bits that are compared, few of three thousand items are like another.
            let is_exact = filter.stats().false_positive_rate_at_capacity < 1e-7;
            agree(&filter, 8_000, *ticks, is_exact, rounds(30_000, 120_000));
        }
    }
}

#[test]
fn a_filter_of_several_shards_agrees_with_a_map_of_time_stamps() {
    for layout in rounds(&LAYOUTS[10..], &LAYOUTS[4..]) {
        let filter = filter(1_000_000, layout.rate, 6);
        agree(&filter, 1_000_000, 6, false, rounds(500_000, 4_000_000));
    }
}

/// The items that came in each tick.
type Came = Vec<Range<u64>>;

/// Lets so many new items come in each tick. The filter has those of one window, and tells what expires with each tick.
fn stream(
    filter: &Filter,
    ticks: u32,
    came: &mut Came,
    counts: impl Iterator<Item = u64>,
    step: usize,
) {
    for count in counts {
        let begin = came.last().map_or(0, |items| items.end);
        came.push(begin..begin + count);
        (begin..begin + count).for_each(|item| filter.insert(&item).expect("room for a window"));
        let window = ticks as usize + 1;
        let within = &came[came.len().saturating_sub(window)..];
        let mut expected = vec![0; window - within.len()];
        expected.extend(within.iter().map(|items| (items.end - items.start) as usize));
        assert_eq!(filter.expiring(), expected, "in tick {}", came.len());
        assert_eq!(filter.len(), expected.iter().sum());
        assert!(within.iter().cloned().flatten().step_by(step).all(|item| filter.contains(&item)));
        filter.tick();
    }
}

/// Its rate is what it says.
fn errs_as_it_says(filter: &Filter) {
    let absent = 1 << 40..(1 << 40) + 200_000u64;
    let found = absent.filter(|item| filter.contains(item)).count() as f64;
    let expected = 200_000.0 * filter.stats().false_positive_rate;
    assert!(found <= expected + 5.0 * expected.sqrt() + 5.0, "{found} of {expected}");
}

/// A full window all the time: inserts kick.
#[test]
fn a_steady_stream_neither_fills_the_filter_nor_raises_its_rate() {
    for layout in layouts().iter().filter(|layout| layout.rate > 1e-4) {
        for ticks in rounds([6, 14], [1, 30]) {
            let (filter, window) = (filter(70_000, layout.rate, ticks), u64::from(ticks) + 1);
            let counts = (0..3 * window).map(|_| 70_000 / window);
            stream(&filter, ticks, &mut Came::new(), counts, 7);
            errs_as_it_says(&filter);
        }
    }
}

/// Fixed and growing, with few items and many.
#[test]
fn numbered_ticks_are_made_up_for() {
    for (layout, items) in layouts().iter().flat_map(|it| [(it, 1), (it, 10), (it, 100_000u64)]) {
        for filter in [filter(200_000, layout.rate, 7), growing::growing(100, layout.rate, 7)] {
            let insert = |name: &str| {
                (0..items).for_each(|item| filter.insert(&(name, item)).expect("room"));
            };
            let is_there = |name: &str| (0..items).all(|item| filter.contains(&(name, item)));
            let is_gone =
                |name: &str| !is_there(name) && (items > 10 || !filter.contains(&(name, 0)));
            assert_eq!(filter.present_tick(), None);
            insert("before");
            // The first number only names the present tick.
            assert_eq!(filter.tick_to(1_000_000), 0);
            assert!(is_there("before") && filter.present_tick() == Some(1_000_000));
            assert_eq!((filter.tick_to(1_000_003), filter.present_tick()), (3, Some(1_000_003)));
            insert("later");
            for earlier in [0, 1_000_000, 1_000_003] {
                assert_eq!(filter.tick_to(earlier), 0);
            }
            assert!(is_there("before") && is_there("later"));
            assert_eq!(filter.tick_to(1_000_008), 5);
            assert!(is_gone("before") && is_there("later") && filter.len() as u64 == items);
            filter.tick();
            assert_eq!(filter.present_tick(), Some(1_000_009));
            // Seven are still in the window, eight are not; then any number empties the filter at once.
            insert("last");
            assert_eq!(filter.tick_to(1_000_016), 7);
            assert!(is_there("last") && filter.len() as u64 == items);
            assert_eq!(filter.tick_to(u64::MAX), u64::MAX - 1_000_016);
            assert!(filter.is_empty() && is_gone("last"));
            // And it goes on as before.
            insert("again");
            assert_eq!(filter.tick_to(u64::MAX), 0);
            for ticks in 0..=7 {
                assert_eq!(filter.len() as u64, items, "after {ticks} ticks");
                filter.tick();
            }
            assert!(filter.is_empty());
        }
    }
}

/// (`parts.rs` compares what such filters have.)
#[test]
fn a_tick_in_parts_is_a_tick() {
    let [whole, parts] = [(); 2].map(|()| filter(300_000, 1e-3, 2));
    for filter in [&whole, &parts] {
        (0..90_000u64).for_each(|item| filter.insert(&item).expect("room"));
    }
    whole.tick();
    assert!(parts.begin_tick() && !parts.begin_tick());
    let turns = (1..).take_while(|_| !parts.tick_in_parts(7)).count() + 1;
    assert!(turns >= parts.stats().segments / 7 && parts.tick_in_parts(0), "nothing is left to do");
    // One that was begun is finished by the next.
    assert!(parts.begin_tick());
    [&parts, &whole, &whole].into_iter().for_each(Filter::tick);
    assert_eq!((parts.len(), whole.len()), (0, 0));

    // By their numbers, one after the other; and all at once that nothing outlives.
    for numbered in [&whole, &parts] {
        assert_eq!(numbered.tick_to(100), 0);
        numbered.insert("the last").expect("room");
    }
    assert_eq!((whole.tick_to(102), parts.begin_tick_to(102)), (2, 1));
    assert!(!parts.tick_in_parts(1) && parts.begin_tick_to(102) == 0, "it is passing");
    while !parts.tick_in_parts(7) {}
    assert_eq!((parts.present_tick(), parts.begin_tick_to(102)), (Some(101), 1));
    while !parts.tick_in_parts(7) {}
    assert_eq!((parts.begin_tick_to(102), parts.begin_tick_to(99)), (0, 0));
    assert_eq!((parts.len(), whole.len()), (1, 1));
    assert_eq!(parts.begin_tick_to(1_000_000), 999_898);
    while !parts.tick_in_parts(7) {}
    assert!(parts.is_empty() && parts.present_tick() == Some(1_000_000));
}

#[test]
fn ticks_on_many_threads_and_batches_are_those_on_one() {
    let (one, many) = (filter(200_000, 1e-3, 3), filter(200_000, 1e-3, 3));
    for tick in 0..12u64 {
        let items: Vec<u64> = (tick * 30_000..tick * 30_000 + 45_000).collect();
        let expected: Vec<_> = items.iter().map(|item| one.insert_or_refresh(item)).collect();
        assert_eq!(many.insert_or_refresh_many(&items), expected);
        let older: Vec<u64> = items.iter().map(|item| item.wrapping_sub(60_000)).collect();
        let expected: Vec<bool> = older.iter().map(|item| one.refresh(item)).collect();
        let hashes: Vec<Prehashed> = older.iter().map(|item| many.hash_of(item)).collect();
        assert_eq!(many.refresh_many(&hashes), expected);
        one.tick();
        assert!(many.begin_tick());
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| while !many.tick_in_parts(7) {});
            }
        });
        assert_eq!(one.len(), many.len());
    }
}

#[test]
fn a_filter_that_remembers_for_ever_does_not_tick() {
    let filter = LAYOUTS[4].filter(1_000);
    filter.insert("an item").expect("room");
    filter.tick();
    assert_eq!((filter.tick_to(100), filter.present_tick()), (0, None));
    assert!(!filter.begin_tick() && filter.tick_in_parts(1));
    assert!(filter.expiring().is_empty() && filter.age("an item").is_none());
    assert!(filter.refresh("an item") && !filter.refresh("another"));
    assert_eq!(filter.insert_or_refresh("an item"), Ok(false));
    assert_eq!(filter.len(), 1);
    let growing = ConcurrentCuckooFilter::builder().capacity(10).growing().build().expect("memory");
    let mut inserted = 0;
    for item in 0..30_000 {
        inserted += usize::from(growing.insert_or_refresh(&item).expect("room"));
        assert!(growing.refresh(&item));
    }
    growing.tick();
    assert_eq!(growing.len(), inserted);
    // The others seemed to be present: two or three, at the rate of 0.00012.
    assert!((29_970..=30_000).contains(&inserted), "{inserted}");
}

#[test]
fn of_threads_that_make_up_for_ticks_one_does_the_work() {
    let filter = filter(100_000, 1e-3, 5);
    filter.tick_to(0);
    let passed = std::sync::atomic::AtomicU64::new(0);
    together(4, |thread| {
        for number in 1..=200u64 {
            let item = number << 8 | thread as u64;
            let before = filter.present_tick().expect("a number");
            assert_eq!(filter.insert_if_absent(&item), Ok(true), "a false positive");
            passed.fetch_add(filter.tick_to(number), std::sync::atomic::Ordering::Relaxed);
            let is_found = filter.contains(&item);
            // The others may have gone on until it expired.
            assert!(is_found || filter.present_tick() > Some(before + 5));
        }
    });
    assert_eq!((passed.into_inner(), filter.present_tick()), (200, Some(200)));
    filter.tick_to(300);
    assert!(filter.is_empty());
}
