//! How a batch is gone through: in its order, or shard by shard.
//!
//! In its order, the items go through a [window](crate::ahead), so that the memory works on dozens
//! of them at once. A batch of writes to a table that does not fit the caches goes shard by shard: a
//! round of its items is sorted by their shards, each shard's in their order, and then shard after
//! shard comes into the cache and takes all of its items.
//!
//! Items of different shards have nothing to do with each other. So either way a batch answers, and
//! leaves the table, exactly as a loop would. No lock is held for longer than by a single item.

use crate::ahead::for_each_ahead;
use crate::geometry::{Mixed, Place};
use crate::shard::Shard;
use crate::sync::SMALL;
use crate::table::Table;

/// Items that are sorted at once, by one thread: enough to meet every line of a 1 MiB shard, and
/// little enough to stay in the caches themselves.
pub const ROUND: usize = if SMALL { 2 } else { 1 << 19 };

/// How many items of a batch are hashed at once: half of them at most, so that their hashes, and
/// what it takes to sort these, are less than 12 bytes for each item of the batch.
pub fn round_of_items(items: usize, most: usize) -> usize {
    items.div_ceil(2).clamp(1, most)
}

/// Up to here, a table is taken to fit the cache of a core, give or take a little.
const CACHED_BUCKETS: usize = (4 << 20) / size_of::<u64>();

/// Items of each shard from which on sorting pays, where it pays at all.
pub const SORTED_PER_SHARD: usize = if SMALL { 1 } else { 256 };

/// Goes through a batch in its order.
#[inline]
pub fn in_order<'a, A>(
    table: &'a Table,
    hashes: &[u64],
    answers: &mut [A],
    act: impl Fn(Shard<'a>, Place) -> A,
) {
    let locate = |(&hash, answer)| {
        let (index, place) = table.geometry().locate(hash);
        (Shard::new(table, index), place, answer)
    };
    let items = hashes.iter().zip(answers).map(locate);
    // A few items are done with before the first fetch would be.
    let few = if table.buckets() <= CACHED_BUCKETS { 16 } else { 4 };
    if hashes.len() < few {
        items.for_each(|(shard, place, answer)| *answer = act(shard, place));
        return;
    }
    let fetched = items.inspect(|(shard, place, _)| shard.prefetch(*place));
    for_each_ahead(fetched, |(shard, place, answer)| *answer = act(shard, place));
}

/// Goes through a batch in whichever way is faster for writes.
pub fn write<'a, A: Copy>(
    table: &'a Table,
    hashes: &[u64],
    answers: &mut [A],
    act: impl Fn(Shard<'a>, Place) -> A,
) {
    let enough = table.geometry().shards() * SORTED_PER_SHARD;
    if table.buckets() <= CACHED_BUCKETS && !SMALL || hashes.len().min(ROUND) < enough {
        return in_order(table, hashes, answers, act);
    }
    for (hashes, answers) in hashes.chunks(ROUND).zip(answers.chunks_mut(ROUND)) {
        let sorted = Sorted::new(table, hashes);
        for shard in 0..table.geometry().shards() {
            let items = sorted.of_shard(shard);
            act_on(table, shard, items, |item, place, shard| {
                answers[item.index as usize] = act(shard, place);
            });
        }
    }
}

/// Visits items of one shard.
#[inline]
pub fn act_on<'a>(
    table: &'a Table,
    shard: usize,
    items: &[Item],
    mut act: impl FnMut(Item, Place, Shard<'a>),
) {
    let shard = Shard::new(table, shard);
    let fetched = items.iter().map(|&item| {
        let place = table.geometry().place_of(item.hash());
        shard.prefetch(place);
        (item, place)
    });
    for_each_ahead(fetched, |(item, place)| act(item, place, shard));
}

/// One of a round's items: 12 bytes.
#[derive(Clone, Copy)]
pub struct Item {
    hash: [u32; 2],
    /// Which one of the round.
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

/// The items of a round, by their shards, each shard's in the order of the batch.
pub struct Sorted {
    items: Vec<Item>,
    /// Where the items of each shard end.
    ends: Vec<u32>,
}

impl Sorted {
    pub fn new(table: &Table, hashes: &[u64]) -> Self {
        let geometry = table.geometry();
        let mut ends = vec![0; geometry.shards()];
        for &hash in hashes {
            ends[geometry.shard_of(Mixed::of(hash))] += 1;
        }
        // Where each shard's begin, which becomes where they end as they come.
        let mut sum = 0;
        for end in &mut ends {
            sum += std::mem::replace(end, sum);
        }
        let mut items = vec![Item::NONE; hashes.len()];
        for (index, &hash) in hashes.iter().enumerate() {
            let hash = Mixed::of(hash);
            let at = &mut ends[geometry.shard_of(hash)];
            items[*at as usize] = Item::new(hash, index);
            *at += 1;
        }
        Sorted { items, ends }
    }

    pub fn of_shard(&self, shard: usize) -> &[Item] {
        let start = if shard == 0 { 0 } else { self.ends[shard - 1] };
        &self.items[start as usize..self.ends[shard] as usize]
    }
}
