//! The two orders in which a batch is processed: its own, or part by part.
//!
//! In its own order, the items of a batch go through a [window](crate::filter::batch::ahead), so that
//! dozens of memory accesses overlap. A batch of writes to a table that does not fit the caches is
//! processed part by part. A *part* is a shard, or several adjacent shards. The items are taken in
//! rounds. Each round is sorted by part, stably, and then each part of the table comes into the
//! cache once and takes all its items.
//!
//! Items of different shards do not affect each other. So either way the results, and the table afterwards, are exactly
//! those of a loop, with two exceptions, both in a growing filter. Its shards share its memory, so when memory runs
//! out, a batch may see other items refused than a loop would. And they share the number of items that are left to
//! remove, so when that reaches zero, another removal may be the one that comes too late. No lock is held for longer
//! than by an operation on a single item.

use crate::backend::shards::{Located, Shards};
use crate::error::Full;
use crate::filter::batch::ahead::for_each_ahead;
use crate::key::Prehashed;
use crate::layout::SMALL;
use crate::layout::geometry::Mixed;
use crate::layout::roots::Parts;

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

/// An operation, as a type. A function that is passed is not always inlined, and the place of an item then
/// goes through memory.
pub trait Operation: Copy {
    type Answer;

    fn at<'a, S: Shards>(self, shards: &'a S, at: Located<'a, S>) -> Self::Answer;
}

macro_rules! operations {
    ($($name:ident: $operation:ident -> $answer:ty;)*) => {
        $(
            #[derive(Clone, Copy)]
            pub struct $name;

            impl Operation for $name {
                type Answer = $answer;

                #[inline(always)]
                fn at<'a, S: Shards>(self, shards: &'a S, at: Located<'a, S>) -> $answer {
                    shards.$operation(at)
                }
            }
        )*
    };
}

operations! {
    Contains: contains -> bool;
    Insert: insert -> Result<(), Full>;
    InsertIfAbsent: insert_if_absent -> Result<bool, Full>;
    Remove: remove -> bool;
    Refresh: refresh -> bool;
    InsertOrRefresh: insert_or_refresh -> Result<bool, Full>;
}

/// Processes a batch in this way.
macro_rules! batch {
    ($backend:expr, $way:ident, $type:ident, $hashes:expr, $answers:expr) => {
        $crate::backend::on_shards!($backend, shards => $way(shards, $hashes, $answers, bulk::$type))
    };
}
pub(crate) use batch;

/// Processes a batch in its order.
#[inline]
pub fn in_order<S: Shards, O: Operation>(
    shards: &S,
    hashes: &[Prehashed],
    answers: &mut [O::Answer],
    operation: O,
) {
    let items = hashes.iter().map(|hash| Mixed::of(hash.0)).zip(answers);
    // So few items are done before their first prefetch would be.
    let few = if shards.bucket_count() <= CACHED_BUCKETS { 16 } else { 4 };
    if hashes.len() < few {
        items.for_each(|(hash, answer)| *answer = operation.at(shards, shards.locate(hash)));
        return;
    }
    let ahead = items.map(|(hash, answer)| (shards.fetch(hash), answer));
    for_each_ahead(ahead, |(ahead, answer)| *answer = operation.at(shards, shards.fetched(ahead)));
}

/// Processes a batch of writes in whichever order is faster.
pub fn write<S: Shards, O: Operation>(
    shards: &S,
    hashes: &[Prehashed],
    answers: &mut [O::Answer],
    operation: O,
) {
    let cached = shards.bucket_count() <= CACHED_BUCKETS && !SMALL;
    let may_be_sorted = !cached && hashes.len() >= SORTED_PER_PART;
    let parts = may_be_sorted.then(|| shards.parts());
    let enough = |parts: &Parts| hashes.len().min(ROUND) / SORTED_PER_PART >= parts.count();
    let Some(parts) = parts.filter(enough) else {
        if shards.is_ticking() {
            hashes.iter().for_each(|hash| shards.sweep_for(Mixed::of(hash.0)));
        }
        return in_order(shards, hashes, answers, operation);
    };
    for (hashes, answers) in hashes.chunks(ROUND).zip(answers.chunks_mut(ROUND)) {
        let sorted = Sorted::new(parts, hashes);
        for part in 0..parts.count() {
            act_on(shards, sorted.of_part(part), operation, |item, answer| {
                answers[item.index as usize] = answer;
            });
        }
    }
}

/// Does this to the items of one part.
#[inline]
pub fn act_on<S: Shards, O: Operation>(
    shards: &S,
    items: &[Item],
    operation: O,
    mut answer: impl FnMut(Item, O::Answer),
) {
    if shards.is_ticking() {
        items.iter().for_each(|item| shards.sweep_for(item.hash()));
    }
    let ahead = items.iter().map(|&item| (item, shards.fetch(item.hash())));
    for_each_ahead(ahead, |(item, ahead)| {
        answer(item, operation.at(shards, shards.fetched(ahead)));
    });
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
    pub fn new(parts: Parts, hashes: &[Prehashed]) -> Self {
        let mut ends = vec![0; parts.count()];
        for hash in hashes {
            ends[parts.of(Mixed::of(hash.0))] += 1;
        }
        // First the start of each part. Placing an item moves it on, so that it becomes the end.
        let mut sum = 0;
        for end in &mut ends {
            sum += std::mem::replace(end, sum);
        }
        let mut items = vec![Item::NONE; hashes.len()];
        for (index, hash) in hashes.iter().enumerate() {
            let hash = Mixed::of(hash.0);
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
