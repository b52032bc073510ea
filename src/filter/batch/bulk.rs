//! The two orders in which a batch is processed: its own, or part by part.
//!
//! In its own order, the items of a batch go through a [window](crate::filter::batch::ahead), so that
//! dozens of memory accesses overlap. A batch of writes to a table that does not fit the caches is
//! processed part by part. A *part* is a shard, or several adjacent shards. The items are taken in
//! rounds. Each round is sorted by part, stably, and then each part of the table comes into the
//! cache once and takes all its items.
//!
//! Items of different shards do not affect each other. So either way the results, and the table
//! afterwards, are exactly those of a loop, with two exceptions, both in a growing filter. Its shards
//! share its memory, so when memory runs out, a batch may see other items refused than a loop
//! would. And they share the number of items that are left to remove, so when that reaches zero,
//! another removal may be the one that comes too late. No lock is held for longer than by an operation on a single item.

use crate::filter::batch::ahead::for_each_ahead;
use crate::layout::geometry::Mixed;
use crate::layout::roots::Parts;
use crate::layout::{SMALL, either};
use crate::room::shards::{Operation, Shards};
use crate::room::{Act, Room, Stage, perform};
use crate::rule::rule;

/// The number of items that one thread sorts at once: enough to touch every cache line of a 1 MiB
/// shard, and few enough to stay in the caches themselves.
pub const ROUND: usize = if SMALL { 2 } else { 1 << 19 };

/// The number of items of a batch that are hashed at once. It is at most half of the batch, so that
/// hashes and sorting take less than 12 bytes for each item of the batch.
pub fn round_of_items(items: usize, most: usize) -> usize {
    items.div_ceil(2).clamp(1, most)
}

/// The most buckets of a table that is assumed to fit, more or less, the cache of a core.
const CACHED_BUCKETS: usize = (4 << 20) / size_of::<u64>();

/// The number of items in each part from which sorting pays, for tables that are not cached.
pub const SORTED_PER_PART: usize = if SMALL { 1 } else { 256 };

/// Processes a batch in its order, wherever the items are.
#[inline]
pub fn in_order<A: Act, R: Room>(room: &R, hashes: &[u64], answers: &mut [A::Answer]) {
    match room.stage() {
        Stage::Shards(shards) => in_order_in::<A, _>(shards, hashes, answers),
        Stage::List(_) => one_by_one::<A, R>(room, hashes, answers),
    }
}

/// Processes a batch of writes in whichever order is faster, wherever the items are.
pub fn write<A: Act, R: Room>(room: &R, hashes: &[u64], answers: &mut [A::Answer]) {
    match room.stage() {
        Stage::Shards(shards) => write_in::<A, _>(shards, hashes, answers),
        Stage::List(_) => one_by_one::<A, R>(room, hashes, answers),
    }
}

/// Begins a batch in a list, and continues in shards if the items come into these meanwhile.
#[inline(never)]
fn one_by_one<A: Act, R: Room>(room: &R, hashes: &[u64], answers: &mut [A::Answer]) {
    for (number, hash) in hashes.iter().enumerate() {
        if let Stage::Shards(shards) = room.stage() {
            return write_in::<A, _>(shards, &hashes[number..], &mut answers[number..]);
        }
        answers[number] = perform::<A, R>(room, Mixed::of(*hash));
    }
}

/// Processes a batch in its order.
#[inline]
fn in_order_in<O: Operation, S: Shards>(shards: &S, hashes: &[u64], answers: &mut [O::Answer]) {
    if O::IN_TIME && shards.is_ticking() {
        hashes.iter().for_each(|hash| shards.sweep_for(Mixed::of(*hash)));
    }
    either!(shards.is_wide(), WIDE => in_order_of::<WIDE, O, S>(shards, hashes, answers))
}

#[inline]
fn in_order_of<const WIDE: bool, O: Operation, S: Shards>(
    shards: &S,
    hashes: &[u64],
    answers: &mut [O::Answer],
) {
    let items = hashes.iter().map(|&hash| Mixed::of(hash)).zip(answers);
    // So few items are done before their first prefetch would be.
    let few = if shards.buckets() <= CACHED_BUCKETS { 16 } else { 4 };
    if hashes.len() < few {
        items.for_each(|(hash, answer)| *answer = O::at(shards, shards.locate::<WIDE>(hash)));
        return;
    }
    let ahead = items.map(|(hash, answer)| (shards.fetch::<WIDE>(hash), answer));
    for_each_ahead(ahead, |(ahead, answer)| *answer = O::at(shards, shards.fetched(ahead)));
}

/// Processes a batch of writes in whichever order is faster.
pub fn write_in<O: Operation, S: Shards>(shards: &S, hashes: &[u64], answers: &mut [O::Answer]) {
    let cached = shards.buckets() <= CACHED_BUCKETS && !SMALL;
    if cached || hashes.len() < SORTED_PER_PART {
        return in_order_in::<O, S>(shards, hashes, answers);
    }
    let parts = shards.parts();
    if hashes.len().min(ROUND) / SORTED_PER_PART < parts.count() {
        return in_order_in::<O, S>(shards, hashes, answers);
    }
    for (hashes, answers) in hashes.chunks(ROUND).zip(answers.chunks_mut(ROUND)) {
        let sorted = Sorted::new(parts, hashes);
        for part in 0..parts.count() {
            act_on::<O, S>(shards, sorted.of_part(part), |item, answer| {
                answers[item.index as usize] = answer;
            });
        }
    }
}

/// Does this to the items of one part.
#[inline]
pub fn act_on<O: Operation, S: Shards>(
    shards: &S,
    items: &[Item],
    answer: impl FnMut(Item, O::Answer),
) {
    if O::IN_TIME && shards.is_ticking() {
        items.iter().for_each(|item| shards.sweep_for(item.hash()));
    }
    either!(shards.is_wide(), WIDE => act_on_of::<WIDE, O, S>(shards, items, answer))
}

#[inline]
fn act_on_of<const WIDE: bool, O: Operation, S: Shards>(
    shards: &S,
    items: &[Item],
    mut answer: impl FnMut(Item, O::Answer),
) {
    let ahead = items.iter().map(|&item| (item, shards.fetch::<WIDE>(item.hash())));
    for_each_ahead(ahead, |(item, ahead)| {
        rule!("a_batch_looks_first_and_inserts_then", (), {
            return answer(item, look_then_insert::<WIDE, O, S>(shards, ahead));
        });
        answer(item, O::at(shards, shards.fetched(ahead)));
    });
}

/// The mistake of a batch that looks for an item and then inserts it, for the [rule](crate::rule) against that.
#[cfg(loom)]
fn look_then_insert<'a, const WIDE: bool, O: Operation, S: Shards>(
    shards: &'a S,
    ahead: S::Ahead<'a, WIDE>,
) -> O::Answer {
    use crate::room::shards::{Contains, Insert, Remove};
    let at = shards.fetched(ahead);
    let is_there = Contains::at::<WIDE, S>(shards, at);
    Insert::at::<WIDE, S>(shards, at).expect("there is room");
    let answer = O::at(shards, at);
    let _ = is_there && !Remove::at::<WIDE, S>(shards, at);
    answer
}

/// One item of a round. It has 12 bytes, because the hash is split in two halves.
#[derive(Clone, Copy)]
pub struct Item {
    hash: [u32; 2],
    /// The item's index in the round.
    pub index: u32,
}

impl Item {
    const NONE: Item = Item { hash: [0, 0], index: 0 };

    #[inline]
    fn new(Mixed(hash): Mixed, index: usize) -> Self {
        Item { hash: [hash as u32, (hash >> 32) as u32], index: index as u32 }
    }

    #[inline]
    fn hash(self) -> Mixed {
        Mixed(u64::from(self.hash[0]) | u64::from(self.hash[1]) << 32)
    }
}

/// The items of a round, sorted by part, and within a part in the order of the batch.
pub struct Sorted {
    items: Vec<Item>,
    /// The end of each part's items.
    ends: Vec<u32>,
}

impl Sorted {
    pub fn new(parts: Parts, hashes: &[u64]) -> Self {
        let mut ends = vec![0; parts.count()];
        for &hash in hashes {
            ends[parts.of(Mixed::of(hash))] += 1;
        }
        // First the start of each part. Placing an item moves it on, so that it becomes the end.
        let mut sum = 0;
        for end in &mut ends {
            sum += std::mem::replace(end, sum);
        }
        let mut items = vec![Item::NONE; hashes.len()];
        for (index, &hash) in hashes.iter().enumerate() {
            let hash = Mixed::of(hash);
            let at = &mut ends[parts.of(hash)];
            items[*at as usize] = Item::new(hash, index);
            *at += 1;
        }
        Sorted { items, ends }
    }

    pub fn of_part(&self, part: usize) -> &[Item] {
        let start = if part == 0 { 0 } else { self.ends[part - 1] };
        &self.items[start as usize..self.ends[part] as usize]
    }
}
