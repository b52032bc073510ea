//! The search for room: which items would have to move so that one more fits?
//!
//! Breadth first from the two buckets of the newcomer, along the alternates of the items that are
//! in the way, to the nearest bucket with an empty lane. It takes no lock and writes nothing, so
//! what it finds may be out of date before it returns; [`kick`](crate::kick) checks it again under
//! the locks. The same table always gives the same path. It looks at [`MOST_NODES`] buckets at
//! most and allocates nothing.

use crate::bucket::Lane;
use crate::geometry::{Bucket, Place};
use crate::shard::Shard;
use arrayvec::ArrayVec;

/// Buckets looked at before a search gives up.
const MOST_NODES: usize = if cfg!(loom) { 16 } else { 1_024 };

/// The most items that are moved for one newcomer.
pub const MOST_MOVES: usize = if cfg!(loom) { 3 } else { 14 };

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

struct Node {
    bucket: Bucket,
    /// The index of the node whose item would move here, and that item's lane. Roots have none.
    parent: u16,
    lane: Option<Lane>,
    moves: u8,
}

/// The shortest way to make room for `place`, if there is one within reach.
pub fn find(shard: &Shard<'_>, place: &Place) -> Option<Path> {
    let geometry = shard.geometry();
    let lanes = geometry.lanes();
    let mut nodes = ArrayVec::<Node, MOST_NODES>::new();
    for bucket in [place.first, place.second] {
        nodes.push(Node { bucket, parent: 0, lane: None, moves: 0 });
    }

    let mut next = 0;
    while let Some(&Node { bucket, parent, lane: arrived_by, moves }) = nodes.get(next) {
        let word = shard.read(bucket);
        if !lanes.empty(word).is_empty() {
            return Some(path_to(&nodes, next));
        }
        let back = arrived_by.map(|_| nodes[parent as usize].bucket);
        if (moves as usize) < MOST_MOVES {
            for lane in lanes.taken(word) {
                let Some(fp) = lanes.get(word, lane) else { continue };
                let bucket = geometry.alternate(bucket, fp);
                // Back where we came from there is no room; nor is there news behind a second
                // item with the same fingerprint, and a bucket may be full of those.
                let seen = lanes.holding(word, fp).first() != Some(lane);
                if Some(bucket) == back || seen {
                    continue;
                }
                let node = Node { bucket, parent: next as u16, lane: Some(lane), moves: moves + 1 };
                if nodes.try_push(node).is_err() {
                    break;
                }
            }
        }
        next += 1;
    }
    None
}

fn path_to(nodes: &[Node], last: usize) -> Path {
    let mut steps = ArrayVec::new();
    let mut node = &nodes[last];
    while let Some(lane) = node.lane {
        node = &nodes[node.parent as usize];
        steps.push(Step { bucket: node.bucket, lane });
    }
    steps.reverse();
    Path { steps, end: nodes[last].bucket }
}
