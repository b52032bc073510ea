//! How a batch is gone through: in its order, or part by part.
//!
//! In its order, the items go through a [window](crate::filter::ahead), so that the memory works on dozens
//! of them at once. A batch of writes to a table that does not fit the caches goes part by part: a
//! round of its items is sorted by their parts of the hashes, each part's in their order, and then
//! part after part of the table comes into the cache and takes all of its items. A part is a shard, or
//! several that lie side by side.
//!
//! Items of different shards have nothing to do with each other. So either way a batch answers, and
//! leaves the table, exactly as a loop would. (But for one thing: shards that grow share the memory. When
//! it runs out, a batch may see other items refused than a loop.) No lock is held for longer than by a single item.

use crate::filter::ahead::for_each_ahead;
use crate::layout::SMALL;
use crate::layout::geometry::Mixed;
use crate::room::{Located, Room};

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

/// Items of each part from which on sorting pays, where it pays at all.
pub const SORTED_PER_PART: usize = if SMALL { 1 } else { 256 };

/// Goes through a batch in its order.
#[inline]
pub fn in_order<'a, R: Room, A>(
    room: &'a R,
    hashes: &[u64],
    answers: &mut [A],
    act: impl Fn(&'a R, Located<'a, R>) -> A,
) {
    let items = hashes.iter().map(|&hash| Mixed::of(hash)).zip(answers);
    // A few items are done with before the first fetch would be.
    let few = if room.buckets() <= CACHED_BUCKETS { 16 } else { 4 };
    if hashes.len() < few {
        items.for_each(|(hash, answer)| *answer = act(room, room.locate(hash)));
        return;
    }
    let ahead = items.map(|(hash, answer)| (room.fetch(hash), answer));
    for_each_ahead(ahead, |(ahead, answer)| *answer = act(room, room.fetched(ahead)));
}

/// Goes through a batch in whichever way is faster for writes.
pub fn write<'a, R: Room, A: Copy>(
    room: &'a R,
    hashes: &[u64],
    answers: &mut [A],
    act: impl Fn(&'a R, Located<'a, R>) -> A,
) {
    let cached = room.buckets() <= CACHED_BUCKETS && !SMALL;
    let parts = if cached || hashes.len() < SORTED_PER_PART { usize::MAX } else { room.parts() };
    if hashes.len().min(ROUND) / SORTED_PER_PART < parts {
        return in_order(room, hashes, answers, act);
    }
    for (hashes, answers) in hashes.chunks(ROUND).zip(answers.chunks_mut(ROUND)) {
        let sorted = Sorted::new(parts, hashes);
        for part in 0..parts {
            act_on(room, sorted.of_part(part), |item, at| {
                answers[item.index as usize] = act(room, at);
            });
        }
    }
}

/// Visits items of one part.
#[inline]
pub fn act_on<'a, R: Room>(room: &'a R, items: &[Item], mut act: impl FnMut(Item, Located<'a, R>)) {
    let ahead = items.iter().map(|&item| (item, room.fetch(item.hash())));
    for_each_ahead(ahead, |(item, ahead)| act(item, room.fetched(ahead)));
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

/// The items of a round by their parts of the hashes, each part's in the order of the batch.
pub struct Sorted {
    items: Vec<Item>,
    /// Where the items of each part end.
    ends: Vec<u32>,
}

impl Sorted {
    pub fn new(parts: usize, hashes: &[u64]) -> Self {
        let part_of = |hash: Mixed| hash.scaled(parts).0;
        let mut ends = vec![0; parts];
        for &hash in hashes {
            ends[part_of(Mixed::of(hash))] += 1;
        }
        // Where each part's begin, which becomes where they end as they come.
        let mut sum = 0;
        for end in &mut ends {
            sum += std::mem::replace(end, sum);
        }
        let mut items = vec![Item::NONE; hashes.len()];
        for (index, &hash) in hashes.iter().enumerate() {
            let hash = Mixed::of(hash);
            let at = &mut ends[part_of(hash)];
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
