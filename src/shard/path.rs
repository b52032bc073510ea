//! The search for room: finds items to move so that one more fits.
//!
//! A breadth-first search from the newcomer's two buckets, along the alternates of the items in the way, to the nearest
//! bucket with an empty lane. It takes no lock and writes nothing, so [`kick`](crate::shard::kick) checks its result
//! again under the locks. The same table always yields the same path. The search lists a bounded number of full buckets
//! and looks at the neighbours of each, and it allocates nothing. Usually one move is enough, so [`find_near`] takes
//! the first steps without a list, and only if they find no room does [`find`] run the whole search.
//!
//! # No path visits a bucket twice
//!
//! [`execute`](crate::shard::kick) computes one new word for each bucket of a path, so a bucket that appeared
//! twice would lose an item. [`Path::new`] therefore refuses such a *self-crossing path*, and [`find`] searches again.
//! This cannot go on forever: **in a table that does not change, the search never finds a self-crossing path**, so each
//! one proves that another thread has written meanwhile.
//!
//! Suppose it did: bucket `B` is on the path twice, as the nodes `early` and `late`. Nodes are expanded in the order of
//! the list, so `early` was expanded first.
//!
//! 1. The path ends at `late`. Then `B` has room, and the search would have returned `early`.
//! 2. The path goes on from `late` to a bucket `C`, the alternate of an item in `B`. The expansion of `early` saw the
//!    same item. If `C` has room, the search returned there. If `C` is full, it was listed ahead of `late`'s child:
//!    `early` comes first and is fewer moves deep, so the limits on nodes and moves did not exclude it; and the only
//!    child that is skipped, the bucket from which `early` was reached, is on the list already. The same holds for the
//!    bucket after `C`, and so on to the end of the path: the search found the empty lane there from an earlier node,
//!    and returned that path instead.
//!
//! The list has no set of visited buckets: to look a bucket up costs more than the few buckets that are listed twice.
//!
//! # Walking a path
//!
//! Kicks, unions and the replay of a journal walk a path in the same two steps, under the locks of its buckets:
//! [`words_along`](Shard::words_along) computes the new word of each bucket, and
//! [`store_along`](Shard::store_along) stores these words from the end of the path on. A join looks for places in a copy
//! that no other thread sees, by a random walk without a path: `Whole::place`.

use crate::layout::SMALL;
use crate::layout::bucket::{Fingerprint, Lane, Words};
#[cfg(all(unix, feature = "durable"))]
use crate::layout::geometry::SHARD_STRIPES;
use crate::layout::geometry::{Bucket, Place};
use crate::shard::{Lease, MAX_NODES, Shard};
use crate::table::stripe::{Locks, StripeSet, WriteSection};
use arrayvec::ArrayVec;
#[cfg(all(unix, feature = "durable"))]
use std::collections::{HashMap, VecDeque, hash_map::Entry};

/// The most items that move for one newcomer.
pub(crate) const MAX_MOVES: usize = if SMALL { 3 } else { 14 };

/// One item to move: from here to the bucket of the next step, or to the path's end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub bucket: Bucket,
    pub lane: Lane,
}

pub(crate) type Steps<const MAX: usize = MAX_MOVES> = ArrayVec<Step, MAX>;

/// At most `MAX` items to move, starting in one of the newcomer's buckets, and a bucket that has room.
#[derive(Clone, Debug)]
pub(crate) struct Path<const MAX: usize = MAX_MOVES> {
    steps: Steps<MAX>,
    end: Bucket,
}

impl<const MAX: usize> Path<MAX> {
    /// Returns `None` if a bucket appears twice.
    #[inline]
    pub(crate) fn new(steps: Steps<MAX>, end: Bucket) -> Option<Self> {
        // An item's two buckets differ, so a path of one move never crosses itself.
        let is_simple = steps.len() < 2
            || steps.iter().enumerate().all(|(index, step)| {
                let comes_later = |bucket| steps[index + 1..].iter().any(|it| it.bucket == bucket);
                step.bucket != end && !comes_later(step.bucket)
            });
        is_simple.then_some(Path { steps, end })
    }

    #[inline]
    pub(crate) fn steps(&self) -> &[Step] {
        &self.steps
    }

    #[inline]
    pub(crate) fn end(&self) -> Bucket {
        self.end
    }

    pub(crate) fn buckets(&self) -> impl Iterator<Item = Bucket> {
        self.steps.iter().map(|step| step.bucket).chain([self.end])
    }
}

#[derive(Clone, Copy)]
struct Node {
    bucket: Bucket,
    /// The index of the node whose item would move here; a root's is the other root.
    parent: u16,
    lane: Lane,
    /// The number of items that would have to move to free a lane here; zero for a root.
    moves: u8,
}

/// Finds a path with at most one move that makes room for `place`.
#[inline]
pub(crate) fn find_near<'a, L: Lease<'a>>(shard: Shard<L>, place: Place) -> Option<Path<1>> {
    let lanes = shard.lanes();
    let words = [shard.read(place.first), shard.read(place.second)];
    // Both were full a moment ago, or the item was sent here from another shard.
    let (bucket, word) = shard.emptier_of(place, words[0], words[1]);
    if !lanes.empty(word).is_empty() {
        return Path::new(Steps::new(), bucket);
    }
    for (bucket, word) in [place.first, place.second].into_iter().zip(words) {
        for lane in lanes.taken(word) {
            let Some(fp) = lanes.get(word, lane) else { continue };
            let end = shard.alternate(bucket, fp);
            if !lanes.empty(shard.read(end)).is_empty() {
                return Path::new([Step { bucket, lane }].into(), end);
            }
        }
    }
    None
}

/// Finds the shortest path that makes room for `place`, if there is one within the limits.
pub(crate) fn find<'a, L: Lease<'a>>(shard: Shard<L>, place: Place) -> Option<Path> {
    let mut nodes = ArrayVec::new();
    loop {
        let end = search(shard, place, &mut nodes)?;
        let path = Path::new(steps_to(&nodes, end), end.bucket);
        if path.is_some() {
            return path;
        }
        nodes.clear();
    }
}

/// Returns the node of the nearest bucket that has room.
#[inline]
fn search<'a, L: Lease<'a>>(
    shard: Shard<L>,
    place: Place,
    nodes: &mut ArrayVec<Node, MAX_NODES>,
) -> Option<Node> {
    let lanes = shard.lanes();
    for (bucket, parent) in [(place.first, 1), (place.second, 0)] {
        nodes.push(Node { bucket, parent, lane: Lane::LOWEST, moves: 0 });
    }

    let mut next = 0;
    while let Some(&node) = nodes.get(next) {
        let Node { bucket, parent, moves, .. } = node;
        let word = shard.read(bucket);
        // It was full when it was listed, but other threads may have removed an item since.
        if !lanes.empty(word).is_empty() {
            return Some(node);
        }
        // The bucket from which this node was reached has no room.
        let back = nodes[parent as usize].bucket;
        for lane in lanes.taken(word) {
            let Some(fp) = lanes.get(word, lane) else { continue };
            let node = Node {
                bucket: shard.alternate(bucket, fp),
                parent: next as u16,
                lane,
                moves: moves + 1,
            };
            if !lanes.empty(shard.read(node.bucket)).is_empty() {
                return Some(node);
            }
            if node.bucket != back
                && usize::from(node.moves) < MAX_MOVES
                && nodes.len() < L::MAX_NODES
            {
                // When the list is full, the nodes on it are still expanded.
                let _ = nodes.try_push(node);
            }
        }
        next += 1;
    }
    None
}

#[inline]
fn steps_to(nodes: &[Node], last: Node) -> Steps {
    let mut steps = ArrayVec::new();
    let mut node = last;
    while node.moves > 0 {
        let lane = node.lane;
        node = nodes[node.parent as usize];
        steps.push(Step { bucket: node.bucket, lane });
    }
    steps.reverse();
    steps
}

/// Finds a path of any length, in a shard that no other thread uses: its steps, and its end.
///
/// [`find`] gives up after some hundred buckets, so changes that are made again in another order might not all fit.
/// This search goes on until it has seen every bucket that moves can reach. If the items fit in any order, they fit:
/// while an arrangement of all items exists, an item without room has a path of moves to an empty lane.
#[cfg(all(unix, feature = "durable"))]
pub(crate) fn find_exhaustively<'a, L: Lease<'a>>(
    shard: Shard<L>,
    place: Place,
) -> Option<(Vec<Step>, Bucket)> {
    let lanes = shard.lanes();
    // For each bucket that was reached, the item that would move there.
    let mut reached: HashMap<u32, Option<Step>> = HashMap::new();
    let mut next = VecDeque::from([place.first, place.second]);
    reached.extend(next.iter().map(|bucket| (bucket.0, None)));
    while let Some(bucket) = next.pop_front() {
        let words = shard.read(bucket);
        if !lanes.empty(words).is_empty() {
            let before = |to: Bucket| reached.get(&to.0).copied().flatten();
            let back = std::iter::successors(before(bucket), |step| before(step.bucket));
            let mut steps: Vec<Step> = back.collect();
            steps.reverse();
            return Some((steps, bucket));
        }
        for lane in lanes.taken(words) {
            let Some(fp) = lanes.get(words, lane) else { continue };
            let other = shard.alternate(bucket, fp);
            if let Entry::Vacant(entry) = reached.entry(other.0) {
                entry.insert(Some(Step { bucket, lane }));
                next.push_back(other);
            }
        }
    }
    None
}

impl<'a, L: Lease<'a>> Shard<L> {
    /// Passes the new words of the buckets on a path to `add`, in its order: each item goes on to the next bucket, and
    /// `arriving` takes the lane of the first. Returns `None` if the path is stale.
    #[inline]
    pub(crate) fn words_along(
        self,
        locked: &impl Locks,
        (steps, end): (&[Step], Bucket),
        mut arriving: Fingerprint,
        mut add: impl FnMut((Bucket, Words)),
    ) -> Option<()> {
        let lanes = self.lanes();
        for (index, step) in steps.iter().enumerate() {
            let next = steps.get(index + 1).map_or(end, |next| next.bucket);
            let words = self.read_locked(locked, step.bucket);
            let leaving = lanes.get_whole(words, step.lane)?;
            let goes_on = self.alternate(step.bucket, leaving) == next;
            if !goes_on {
                return None;
            }
            add((step.bucket, lanes.with_whole(words, step.lane, arriving)));
            arriving = leaving;
        }
        let words = self.read_locked(locked, end);
        let lane = lanes.empty(words.heads).first()?;
        add((end, lanes.with_whole(words, lane, arriving)));
        Some(())
    }

    /// Stores the new words of the buckets on a path, beginning at its end. The caller holds the locks of these
    /// stripes. Their versions stay odd until the result is dropped.
    #[inline]
    pub(crate) fn store_along<'l, const MAX: usize>(
        self,
        locked: &'l impl Locks,
        stripes: &'l StripeSet<MAX>,
        words: &[(Bucket, Words)],
    ) -> Option<WriteSection<'l, MAX>>
    where
        'a: 'l,
    {
        // A path of a single store moves no item.
        let moves = words.len() > 1;
        let moving = moves.then(|| self.write_section(locked, stripes));
        for &(bucket, words) in words.iter().rev() {
            self.write(locked, bucket, words);
        }
        moving
    }

    /// Adds a copy of an item, by however many moves. Returns whether there is room. No other thread has the filter.
    #[cfg(all(unix, feature = "durable"))]
    pub(crate) fn insert_exhaustively(self, place: Place) -> Result<bool, L::Lapsed> {
        let locked = self.lock_all()?;
        let mut words = Vec::new();
        let found = find_exhaustively(self, place).and_then(|(steps, end)| {
            let arriving = self.stamped(place.fp);
            self.words_along(&locked, (&steps, end), arriving, |word| words.push(word))?;
            Some(end)
        });
        let Some(end) = found else { return Ok(false) };
        let stripes: StripeSet<SHARD_STRIPES> = self.own_stripes().collect();
        let _moving = self.store_along(&locked, &stripes, &words);
        self.add_items(&locked, end, 1);
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::bucket::Lanes;
    use crate::layout::geometry::Geometry;
    use crate::table::Table;

    /// Tables so small that the tree of nodes is full of cycles, filled until an item is refused.
    #[test]
    fn a_search_of_a_still_table_finds_no_detour() {
        let narrow = [(8, 2), (8, 6), (12, 10), (16, 14), (21, 30), (32, 40), (32, 200)];
        let wide = [(18, 6), (20, 10), (24, 14), (32, 40)];
        let narrow = narrow.map(|(bits, size)| longest_path(Lanes::of_bits(bits), size));
        let wide = wide.map(|(bits, size)| longest_path(Lanes::of_wide(bits), size));
        let longest = narrow.into_iter().chain(wide).max();
        assert!(longest > Some(5), "the longest path has {longest:?} moves");
    }

    fn longest_path(lanes: Lanes, buckets: u32) -> usize {
        let mut longest = 0;
        for seed in 0..200u64 {
            let geometry = Geometry::new(lanes, 1, buckets);
            let table = Table::new(geometry).expect("memory for a small table");
            let shard = Shard::new(&table, 0);
            let mut hashes = (0..).map(|item: u64| item << 20 | seed);
            loop {
                let (_, place) = table.geometry.locate(hashes.next().expect("no end"));
                let mut nodes = ArrayVec::new();
                let near = find_near(shard, place);
                let end = search(shard, place, &mut nodes);
                assert_eq!(near.is_some(), end.is_some_and(|end| end.moves < 2));
                if let Some(end) = end {
                    let path = Path::new(steps_to(&nodes, end), end.bucket).expect("no detour");
                    longest = longest.max(path.steps().len());
                    // Where one of the two buckets has room, no item has to move.
                    if let Some(near) = near.filter(|near| !near.steps().is_empty()) {
                        assert!(path.buckets().eq(near.buckets()), "another path");
                        assert_eq!(path.steps()[0].lane, near.steps()[0].lane);
                    }
                }
                if shard.insert(place).is_err() {
                    break;
                }
            }
        }
        longest
    }
}
