//! Changes of a filter with a journal, beside a checkpoint and beside lookups.
//!
//! The filter is a word for each item: whether it is there. A journal is a word for each item, too: what was recorded
//! of it, two bits a change, the last in the lowest.

use crate::toy::{Model, World};
use koel_under_loom::internals::{AtomicU64, Change, Mixed, STREAMS, Sink, Streams};
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicUsize};

/// The hashes of the items: two of the first stream, which the checkpoint copies one after the other, and one of the
/// second.
const HASHES: [u64; 3] = [1 << 61, 1 << 62, 1 << 63];

/// Where the second shard begins.
const SECOND: u64 = 3 << 60;

type Words = [AtomicU64; 3];

fn words() -> Arc<Words> {
    Arc::new([0; 3].map(AtomicU64::new))
}

fn number(hash: Mixed) -> usize {
    HASHES.iter().position(|own| *own == hash.0).expect("an item")
}

struct Recorder(Arc<Words>);

impl Sink for Recorder {
    type Error = ();

    fn reserve(&mut self, _: usize) -> Result<(), ()> {
        Ok(())
    }

    fn write(&mut self, hash: Mixed, change: Change) {
        let what = if change == Change::Added { ADDED } else { REMOVED };
        // A change of all items is recorded for one that the model looks at, of another stream than the record.
        let word = &self.0[if change == Change::Cleared { 2 } else { number(hash) }];
        word.store(word.load(Relaxed) << 2 | what, Relaxed);
    }
}

const ADDED: u64 = 1;
const REMOVED: u64 = 2;

/// Makes the changes of a journal again.
fn replayed(mut is_in: bool, journal: u64) -> bool {
    for what in (0..32).rev().map(|at| journal >> (2 * at) & 3).filter(|what| *what != 0) {
        assert!(is_in != (what == ADDED), "a change is to be made again on a copy that has it");
        is_in = what == ADDED;
    }
    is_in
}

pub struct Journaled {
    filter: Arc<Words>,
    journals: [Arc<Words>; 3],
    streams: Streams<Recorder>,
    copied: [AtomicBool; 3],
    /// The journal of the present state, and whether that state is the copy.
    state: AtomicUsize,
}

impl World for Journaled {
    fn of_shards(_: usize) -> Self {
        assert_eq!(STREAMS, 2);
        let journals = [words(), words(), words()];
        let streams = Streams::new(|_| Recorder(Arc::clone(&journals[0]))).expect("memory");
        let copied = [false; 3].map(AtomicBool::new);
        Journaled { filter: words(), journals, streams, copied, state: AtomicUsize::new(0) }
    }
}

impl Journaled {
    fn add(&self, item: usize) {
        let hash = Mixed(HASHES[item]);
        let mut held = self.streams.hold(Streams::<Recorder>::index_of(hash));
        held.reserve(1).expect("room");
        self.filter[item].store(1, Release);
        held.write(hash, Change::Added);
    }

    fn remove(&self, item: usize) {
        let hash = Mixed(HASHES[item]);
        let mut held = self.streams.hold(Streams::<Recorder>::index_of(hash));
        self.filter[item].store(0, Release);
        held.write(hash, Change::Removed);
    }

    /// Removes the last item, if it is there, as all others.
    fn clear(&self) {
        let mut held = self.streams.hold_all();
        if self.filter[2].load(Relaxed) == 1 {
            self.filter[2].store(0, Release);
            held[0].write(Mixed(0), Change::Cleared);
        }
    }

    /// Copies these items.
    fn copy(&self, items: &[usize]) {
        for item in items {
            self.copied[*item].store(self.filter[*item].load(Acquire) == 1, Relaxed);
        }
    }

    fn checkpoint(&self, (): &()) {
        self.checkpoint_to(1);
    }

    /// Copies only the first item.
    fn abort_checkpoint(&self) {
        self.streams.begin_cut(|_| Recorder(Arc::clone(&self.journals[1])));
        let second = Some(Mixed(SECOND));
        self.streams.cut(Mixed(0), second, || second);
        self.streams.drop_next();
    }

    fn checkpoint_to(&self, journal: usize) {
        self.streams.begin_cut(|_| Recorder(Arc::clone(&self.journals[journal])));
        let second = Some(Mixed(SECOND));
        self.streams.cut(Mixed(0), second, || {
            self.copy(&[0]);
            second
        });
        self.streams.cut(Mixed(SECOND), None, || {
            self.copy(&[1, 2]);
            None
        });
        // The rename.
        self.state.store(journal, Relaxed);
        self.streams.adopt_next();
    }

    /// What is there after the process was killed now, when no change is being made.
    fn is_made_again(&self, item: usize) {
        let is_in = self.filter[item].load(Relaxed) == 1;
        let journal = self.state.load(Relaxed);
        let state = journal > 0 && self.copied[item].load(Relaxed);
        let again = replayed(state, self.journals[journal][item].load(Relaxed));
        assert!(again == is_in, "{LACKING}");
    }
}

const LACKING: &str = "neither the state nor its journal has a change";

fn add_first(filter: &Journaled, (): &()) {
    filter.add(0);
}

fn is_made_again(item: usize) -> impl Fn(&Journaled, &()) {
    move |filter, ()| filter.is_made_again(item)
}

#[test]
fn a_change_is_in_the_copy_or_in_the_journal_after_it() {
    let add_second: fn(&Journaled, &()) = |filter, ()| filter.add(1);
    for (item, add) in [add_first, add_second].into_iter().enumerate() {
        Model::blocking(10, None).run(|_| (), &[add, Journaled::checkpoint], is_made_again(item));
    }
}

#[test]
fn changes_of_an_item_keep_their_order_across_a_cut() {
    let add_and_remove: fn(&Journaled, &()) = |filter, ()| {
        filter.add(1);
        filter.remove(1);
    };
    let threads = [add_and_remove, Journaled::checkpoint];
    Model::blocking(20, None).run(|_| (), &threads, is_made_again(1));
}

/// The process may be killed at any moment of a checkpoint, also before the new state has taken its place, and in a
/// checkpoint that is given up.
#[test]
fn the_present_state_and_its_journal_have_all_changes_at_each_moment() {
    let looks: fn(&Journaled, &()) = |filter, ()| {
        // With the stream of the item, so that no change is being made.
        let held = filter.streams.hold(0);
        filter.is_made_again(0);
        drop(held);
    };
    let abort: fn(&Journaled, &()) = |filter, ()| filter.abort_checkpoint();
    for checkpoint in [Journaled::checkpoint, abort] {
        let threads = [add_first, checkpoint, looks];
        Model::blocking(20, Some(2)).run(|_| (), &threads, is_made_again(0));
    }
}

#[test]
fn a_checkpoint_after_one_that_was_given_up_has_all_changes() {
    Model::blocking(20, None).run::<Journaled, ()>(
        |_| (),
        &[
            |filter, ()| {
                filter.add(0);
                filter.remove(0);
            },
            |filter, ()| {
                filter.abort_checkpoint();
                filter.checkpoint_to(2);
            },
        ],
        is_made_again(0),
    );
}

#[test]
fn a_change_of_all_items_comes_before_or_after_each_other() {
    Model::blocking(2, None).run::<Journaled, ()>(
        |_| (),
        &[|filter, ()| filter.add(2), |filter, ()| filter.clear()],
        |filter, ()| {
            let is_in = filter.filter[2].load(Relaxed) == 1;
            let journal = filter.journals[0][2].load(Relaxed);
            assert_eq!(replayed(false, journal), is_in, "the journal has another order");
        },
    );
}

#[test]
fn what_a_lookup_has_seen_is_recorded() {
    let look: fn(&Journaled, &()) = |filter, ()| {
        if filter.filter[0].load(Acquire) == 1 {
            if filter.streams.is_busy(Mixed(HASHES[0])) {
                filter.streams.until_free(Mixed(HASHES[0]));
            }
            let is_recorded = filter.journals[0][0].load(Relaxed) == ADDED;
            assert!(is_recorded, "an answer would not survive");
        }
    };
    Model::blocking(3, None).run(|_| (), &[add_first, look], |_, ()| {});
}
