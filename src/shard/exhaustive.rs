//! Making room by any number of moves, in a shard that no other thread uses.
//!
//! A search for room gives up after some hundred buckets. So whether a nearly full table takes an item depends on the
//! order in which the items came, and changes that are made again in another order might not all fit. Here the search
//! goes on until every bucket that moves can reach has been seen. If the items fit in any order, they fit: an item that
//! has no room in a table to which an arrangement of all items exists has a path of moves to an empty lane.

use crate::layout::bucket::Lane;
use crate::layout::geometry::{Bucket, Place};
use crate::shard::{Lease, Shard};
use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};

impl<'a, L: Lease<'a>> Shard<L> {
    /// Adds a copy of an item, by however many moves. Returns whether there is room. No other thread has the filter.
    pub(crate) fn insert_exhaustively(self, place: Place) -> Result<bool, L::Lapsed> {
        let locked = self.lock_all()?;
        let lanes = self.lanes();
        // For each bucket that was reached, the item that would move there: its bucket, and its lane.
        let mut reached: HashMap<u32, Option<(Bucket, Lane)>> = HashMap::new();
        let mut next = VecDeque::from([place.first, place.second]);
        reached.extend([place.first, place.second].map(|bucket| (bucket.0, None)));
        let end = loop {
            let Some(bucket) = next.pop_front() else { return Ok(false) };
            let words = self.read_locked(&locked, bucket);
            if !lanes.empty(words.heads).is_empty() {
                break bucket;
            }
            for lane in lanes.taken(words.heads) {
                let Some(fp) = lanes.get_whole(words, lane) else { continue };
                let other = self.alternate(bucket, fp);
                if let Entry::Vacant(entry) = reached.entry(other.0) {
                    entry.insert(Some((bucket, lane)));
                    next.push_back(other);
                }
            }
        };
        let mut to = end;
        while let Some(Some((from, lane))) = reached.get(&to.0) {
            let (there, words) = (self.read_locked(&locked, to), self.read_locked(&locked, *from));
            let (Some(fp), Some(empty)) =
                (lanes.get_whole(words, *lane), lanes.empty(there.heads).first())
            else {
                return Ok(false);
            };
            self.write(&locked, to, lanes.with_whole(there, empty, fp));
            self.write(&locked, *from, lanes.without_whole(words, *lane));
            to = *from;
        }
        Ok(self.fill_locked(&locked, to, place.fp))
    }
}
