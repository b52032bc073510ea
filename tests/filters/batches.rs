//! A batch gives the same answers as a loop and leaves the same filter: whatever its size, in order
//! or shard by shard, on one thread or several. It also keeps its promises while other threads read
//! and write.

use crate::common::{
    Filter, Fixed, LAYOUTS, Layout, SplitMix, answers, layouts, prehashed, rounds, together,
    watched,
};
use koel::{ConcurrentCuckooFilter, Full};
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::hash::{Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// Sizes around the thresholds at which a batch is processed differently.
const SIZES: [usize; 14] = [0, 1, 2, 3, 4, 5, 15, 16, 17, 31, 32, 33, 65, 1_000];

/// Returns a filter with more than 4 MiB of buckets, so that large batches of writes are processed
/// shard by shard.
fn large(layout: &Layout) -> Filter {
    layout.filter((4 << 20) * layout.slots() / 8)
}

fn pool(threads: usize) -> ThreadPool {
    ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool")
}

/// Returns `size` hashes. About a fourth of them come more than once.
fn batch(random: &mut SplitMix, size: usize) -> Vec<u64> {
    (0..size).map(|_| random.below(2 * size) as u64).collect()
}

/// The answers to all operations of a [`Life`].
#[derive(Debug, PartialEq)]
struct Answers {
    inserted: Vec<Result<(), Full>>,
    added: Vec<Result<bool, Full>>,
    found: Vec<bool>,
    removed: Vec<bool>,
    in_the_end: Vec<usize>,
}

/// The operations on a filter: four batches of hashes, to insert, to insert if absent, to look up
/// and to remove.
struct Life {
    insert: Vec<u64>,
    add: Vec<u64>,
    look: Vec<u64>,
    remove: Vec<u64>,
}

impl Life {
    fn of(random: &mut SplitMix, size: usize) -> Self {
        let insert = batch(random, size);
        // The ranges of `insert` and `add` overlap by half, so some items are present already. A
        // third of the hashes to look up, and half of those to remove, were never inserted.
        let add: Vec<u64> = batch(random, size).iter().map(|hash| hash + size as u64).collect();
        let mut look: Vec<u64> = insert.iter().chain(&add).copied().collect();
        look.extend((0..size).map(|_| random.next()));
        random.shuffle(&mut look);
        let remove = insert.iter().copied().chain(insert.iter().map(|hash| !hash)).collect();
        Life { insert, add, look, remove }
    }

    fn one_by_one(&self, filter: &Filter) -> Answers {
        let each = |hashes: &[u64]| prehashed(hashes).into_iter();
        Answers {
            inserted: each(&self.insert).map(|hash| filter.insert(&hash)).collect(),
            added: each(&self.add).map(|hash| filter.insert_if_absent(&hash)).collect(),
            found: each(&self.look).map(|hash| filter.contains(&hash)).collect(),
            removed: each(&self.remove).map(|hash| filter.remove(&hash)).collect(),
            in_the_end: answers(filter, self.look.iter().copied()),
        }
    }

    fn in_batches(&self, filter: &Filter) -> Answers {
        Answers {
            inserted: filter.insert_many(&prehashed(&self.insert)),
            added: filter.insert_if_absent_many(&prehashed(&self.add)),
            found: filter.contains_many(&prehashed(&self.look)),
            removed: filter.remove_many(&prehashed(&self.remove)),
            in_the_end: answers(filter, self.look.iter().copied()),
        }
    }

    fn in_parallel(&self, filter: &Filter) -> Answers {
        Answers {
            inserted: filter.par_insert_many(&prehashed(&self.insert)),
            added: filter.par_insert_if_absent_many(&prehashed(&self.add)),
            found: filter.par_contains_many(&prehashed(&self.look)),
            removed: filter.par_remove_many(&prehashed(&self.remove)),
            in_the_end: answers(filter, self.look.iter().copied()),
        }
    }
}

#[test]
fn a_batch_of_any_size_answers_as_a_loop() {
    let mut random = SplitMix(1);
    for layout in layouts() {
        for size in SIZES {
            let life = Life::of(&mut random, size);
            // The last filter is too small for the batches.
            for capacity in [10 * size, 2 * size, size / 2] {
                let filter = || layout.filter(capacity);
                let expected = life.one_by_one(&filter());
                for answers in [life.in_batches(&filter()), life.in_parallel(&filter())] {
                    assert_eq!(answers, expected, "{layout:?}, {size} of {capacity}");
                }
            }
        }
    }
}

/// Each item of several streams is new in one of them, once.
#[test]
fn a_stream_passes_on_each_item_the_first_time() {
    let filter = LAYOUTS[6].filter(30_000);
    let stream = |thread: u64| (0..60_000u64).map(move |n| (n * 7 + thread) % 30_000);
    let all = Mutex::new(Vec::new());
    together(2, |thread| {
        let mut added = Vec::new();
        filter.extend_if_absent(stream(thread as u64), |item, new| {
            if new.expect("room") {
                added.push(item);
            }
        });
        all.lock().expect("a lock").extend(added);
    });
    let mut all = all.into_inner().expect("a lock");
    all.sort_unstable();
    assert!(all.into_iter().eq(0..30_000));
}

/// In a filter that splits shards meanwhile.
#[test]
fn a_batch_answers_as_a_loop_while_the_filter_grows() {
    let builder = ConcurrentCuckooFilter::builder().capacity(100).hasher(Fixed { key: 0 });
    let builder = builder.growing().false_positive_rate(0.0015);
    let [one, many] = [(); 2].map(|()| builder.clone().build().expect("a small filter"));
    let life = Life::of(&mut SplitMix(5), rounds(60_000, 200_000));
    assert!(life.in_batches(&many) == life.one_by_one(&one), "{}", many.stats());
    assert!(many.stats().splits > 0 && many.stats() == one.stats());
}

/// The answers are those of a loop, in the order of the stream, also when the filter is full.
#[test]
fn a_stream_answers_as_a_loop() {
    for layout in layouts() {
        let items = || (0..5_000u64).chain(1_000..1_100);
        let one_by_one = layout.filter(1_000);
        let mut expected = items().map(|item| (item, one_by_one.insert_if_absent(&item)));
        let filter = layout.filter(1_000);
        filter.extend_if_absent(items(), |item, added| {
            assert_eq!(Some((item, added)), expected.next(), "{layout:?}");
        });
        assert_eq!(expected.next(), None);
    }
}

#[test]
fn a_batch_that_goes_shard_by_shard_answers_as_a_loop() {
    let pools: Vec<ThreadPool> = rounds(&[3][..], &[2, 3]).iter().map(|n| pool(*n)).collect();
    for layout in layouts() {
        let capacity = large(layout).capacity();
        // Less than one round, and several rounds with more items than fit. In a short run, the items
        // fit, and only one layout has several rounds.
        let several = rounds(300_000, capacity * 60 / 100);
        let has_several = layout.words == 2 || rounds(false, true);
        for size in [capacity / 50].into_iter().chain(has_several.then_some(several)) {
            let life = Life::of(&mut SplitMix(size as u64), size);
            let expected = life.one_by_one(&large(layout));
            assert!(life.in_batches(&large(layout)) == expected, "{layout:?}, {size}");
            for pool in &pools {
                let answers = pool.install(|| life.in_parallel(&large(layout)));
                let threads = pool.current_num_threads();
                assert!(answers == expected, "{layout:?}, {size}, {threads} threads");
            }
        }
    }
}

#[test]
fn a_batch_of_items_answers_as_a_loop() {
    let urls: Vec<String> =
        (0..rounds(20_000, 40_000)).map(|page| format!("https://a.example/{page}")).collect();
    let layout = &LAYOUTS[6];
    // Both copies of an item need its two buckets, so this takes a filter with much room.
    let [one, many, par] = [(); 3].map(|()| layout.filter(300_000));
    let added: Vec<_> = urls.iter().map(|url| one.insert_if_absent(url)).collect();
    assert_eq!(many.insert_if_absent_many(&urls), added);
    assert_eq!(par.par_insert_if_absent_many(&urls), added);
    let inserted: Vec<_> = urls.iter().map(|url| one.insert(url)).collect();
    assert!(inserted.iter().all(Result::is_ok));
    assert_eq!(many.insert_many(&urls), inserted);
    assert_eq!(par.par_insert_many(&urls), inserted);
    for filter in [&one, &many, &par] {
        assert!(urls.iter().all(|url| filter.count(url) == 2));
        assert!(filter.contains_many(&urls).iter().all(|found| *found));
        assert!(filter.par_contains_many(&urls).iter().all(|found| *found));
    }
    assert!(many.remove_many(&urls).iter().all(|removed| *removed));
    assert!(par.par_remove_many(&urls).iter().all(|removed| *removed));
    assert_eq!((many.len(), par.len()), (urls.len(), urls.len()));
}

/// The threads add the same items, in batches of different sizes. Each item has one winner.
#[test]
fn exactly_one_of_the_racing_batches_adds_an_item() {
    for layout in layouts().iter().filter(|layout| layout.is_exact()) {
        let hashes: Vec<u64> = (0..rounds(100_000, 400_000)).collect();
        for filter in [layout.filter(hashes.len() * 9 / 8), large(layout)] {
            let winners: Vec<_> = hashes.iter().map(|_| AtomicBool::new(false)).collect();
            together(4, |thread| {
                let mut own = hashes.clone();
                SplitMix(thread as u64).shuffle(&mut own);
                let size = [own.len(), 50_000, 1_000, 7][thread];
                for batch in own.chunks(size) {
                    let added = filter.insert_if_absent_many(&prehashed(batch));
                    for (&hash, added) in batch.iter().zip(added) {
                        let won = added.expect("there is room");
                        let before = won && winners[hash as usize].swap(true, Ordering::Relaxed);
                        assert!(!before, "two winners for {hash}");
                    }
                }
            });
            let won = winners.iter().filter(|won| won.load(Ordering::Relaxed)).count();
            assert!(won == filter.len() && won + 10 > hashes.len(), "{won} winners");
        }
    }
}

/// One thread inserts and removes batches at a high load factor. The items that stay are found all
/// the time, in batches and one by one.
#[test]
fn items_that_stay_are_found_while_batches_come_and_go() {
    for layout in layouts() {
        let large = rounds(false, true).then(|| large(layout));
        for filter in [layout.filter(rounds(20_000, 60_000))].into_iter().chain(large) {
            let capacity = filter.capacity() as u64;
            let stays: Vec<u64> = (0..capacity * 8 / 10).collect();
            assert!(filter.insert_many(&prehashed(&stays)).iter().all(Result::is_ok));
            watched(&filter, &stays, 1, |_| {
                let comes: Vec<u64> = (capacity..capacity * 112 / 100).collect();
                for _ in 0..2 {
                    let inserted = filter.insert_many(&prehashed(&comes));
                    let went_in = comes.iter().zip(&inserted).filter(|(_, put)| put.is_ok());
                    let goes: Vec<u64> = went_in.map(|(&hash, _)| hash).collect();
                    assert!(filter.remove_many(&prehashed(&goes)).iter().all(|gone| *gone));
                }
            });
            assert_eq!(filter.len(), stays.len(), "{layout:?}");
        }
    }
}

/// An item whose hash panics if its number is 4711.
struct Bomb(u32);

impl Hash for Bomb {
    fn hash<H: Hasher>(&self, state: &mut H) {
        if self.0 == 4_711 {
            resume_unwind(Box::new("the hash panicked"));
        }
        state.write_u32(self.0);
    }
}

#[test]
fn a_panic_in_the_middle_of_a_batch_locks_nothing() {
    type Operation = fn(&Filter, &[Bomb]);
    let operations: [Operation; 8] = [
        |filter, items| _ = filter.insert_many(items),
        |filter, items| _ = filter.insert_if_absent_many(items),
        |filter, items| _ = filter.contains_many(items),
        |filter, items| _ = filter.remove_many(items),
        |filter, items| _ = filter.par_insert_many(items),
        |filter, items| _ = filter.par_insert_if_absent_many(items),
        |filter, items| _ = filter.par_contains_many(items),
        |filter, items| _ = filter.par_remove_many(items),
    ];
    let items: Vec<Bomb> = (0..50_000).map(Bomb).collect();
    let harmless: Vec<u32> = (0..50_000).collect();
    for operation in operations {
        let filter = LAYOUTS[4].filter(200_000);
        assert!(catch_unwind(AssertUnwindSafe(|| operation(&filter, &items))).is_err());
        assert!(filter.len() <= items.len());
        let before = filter.len();
        assert!(filter.par_insert_many(&harmless).iter().all(Result::is_ok));
        assert!(filter.contains_many(&harmless).iter().all(|found| *found));
        assert_eq!(filter.len(), before + harmless.len());
        filter.clear();
        assert!(filter.is_empty());
    }
}
