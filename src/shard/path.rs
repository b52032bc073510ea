//! The search for room: which items would have to move so that one more fits?
//!
//! Breadth first from the two buckets of the newcomer, along the alternates of the items that are
//! in the way, to the nearest bucket with an empty lane. It takes no lock and writes nothing, so
//! what it finds may be out of date before it returns; [`kick`](crate::shard::kick) checks it again under
//! the locks. The same table always gives the same path. It looks at the
//! neighbours of [`MOST_NODES`] buckets at most, in microseconds, and allocates nothing.

use crate::layout::SMALL;
use crate::layout::bucket::Lane;
use crate::layout::geometry::{Bucket, Place};
use crate::shard::Shard;
use crate::shard::lease::Lease;
use arrayvec::ArrayVec;

/// Full buckets on the list before a search gives up.
pub const MOST_NODES: usize = if SMALL { 16 } else { 512 };

/// The most items that are moved for one newcomer.
pub const MOST_MOVES: usize = if SMALL { 3 } else { 14 };

/// One item on the way: it goes from here to the bucket of the next step, or to the path's end.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    pub bucket: Bucket,
    pub lane: Lane,
}

/// The items to move, from a bucket of the newcomer's on, and the bucket that has room.
#[derive(Clone, Debug)]
pub struct Path {
    pub steps: ArrayVec<Step, MOST_MOVES>,
    pub end: Bucket,
}

#[derive(Clone, Copy)]
struct Node {
    bucket: Bucket,
    /// The index of the node whose item would move here; a root's is the other root.
    parent: u16,
    /// That item's lane.
    lane: Lane,
    /// How many items would have to move for one to get here; a root's is none.
    moves: u8,
}

/// The shortest way to make room for `place`, if there is one within reach.
pub fn find<L: Lease>(shard: Shard<'_, L>, place: Place) -> Option<Path> {
    let mut nodes = ArrayVec::new();
    let end = search(shard, place, &mut nodes)?;
    Some(path_to(&nodes, end))
}

/// The node of the nearest bucket that has room.
#[inline]
fn search<L: Lease>(
    shard: Shard<'_, L>,
    place: Place,
    nodes: &mut ArrayVec<Node, MOST_NODES>,
) -> Option<Node> {
    let lanes = shard.lanes();
    for (bucket, parent) in [(place.first, 1), (place.second, 0)] {
        nodes.push(Node { bucket, parent, lane: Lane::LOWEST, moves: 0 });
    }

    let mut next = 0;
    while let Some(&node) = nodes.get(next) {
        let Node { bucket, parent, moves, .. } = node;
        let word = shard.read(bucket);
        // It was full when it was listed, but others are at work.
        if !lanes.empty(word).is_empty() {
            return Some(node);
        }
        // There is no room where we came from.
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
                && usize::from(node.moves) < MOST_MOVES
                && nodes.len() < L::PATIENCE
            {
                // When the list is full, what is on it is still looked at.
                let _ = nodes.try_push(node);
            }
        }
        next += 1;
    }
    None
}

#[inline]
fn path_to(nodes: &[Node], last: Node) -> Path {
    let mut steps = ArrayVec::new();
    let mut node = last;
    while node.moves > 0 {
        let lane = node.lane;
        node = nodes[node.parent as usize];
        steps.push(Step { bucket: node.bucket, lane });
    }
    steps.reverse();
    Path { steps, end: last.bucket }
}
