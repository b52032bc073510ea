//! A batch gives the same answers as a loop and leaves the same filter: whatever its size, in order
//! or shard by shard, on one thread or several. It also keeps its promises while other threads read
//! and write.

use crate::common::{
    Filter, Fixed, Layout, SplitMix, answers, layouts, prehashed, rounds, together,
};
use koel::{ConcurrentCuckooFilter, Full};
use rayon::{ThreadPool, ThreadPoolBuilder};
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

    /// Those that are added are items of a stream, whose answers come in its order.
    fn in_streams(&self, filter: &Filter) -> Answers {
        let inserted = filter.insert_many(&prehashed(&self.insert));
        let (mut stream, mut added) = (prehashed(&self.add).into_iter(), Vec::new());
        filter.extend_if_absent(prehashed(&self.add), |item, answer| {
            assert_eq!(Some(item), stream.next());
            added.push(answer);
        });
        Answers {
            inserted,
            added,
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
                for way in [Life::in_batches, Life::in_streams, Life::in_parallel] {
                    assert_eq!(way(&life, &filter()), expected, "{layout:?}, {size} of {capacity}");
                }
            }
        }
    }
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
