//! Batches, item by item in their order, with the memory of those to come under way.
//!
//! Each item waits in a window while its two buckets and its version are fetched, and is then looked
//! up as if it had come alone. So a batch answers as a loop would, at the speed at which the memory
//! delivers and not at that at which it responds.

use crate::ConcurrentCuckooFilter;
use crate::geometry::Place;
use crate::shard::Shard;
use arrayvec::ArrayVec;

/// The items that are on their way at once. Half as many leave the memory idle in part; twice as
/// many gain nothing more, and small batches lose.
const AHEAD: usize = 32;

impl<S> ConcurrentCuckooFilter<S> {
    /// Visits the places of these hashes, in their order.
    #[inline]
    pub(crate) fn for_each_ahead<'a>(
        &'a self,
        mut hashes: impl Iterator<Item = u64>,
        mut visit: impl FnMut(Shard<'a>, Place),
    ) {
        let fetch = |hash| {
            let (shard, place) = self.locate(hash);
            shard.prefetch(place);
            (shard, place)
        };
        let mut window: ArrayVec<_, AHEAD> = hashes.by_ref().take(AHEAD).map(fetch).collect();
        let mut oldest = 0;
        for hash in hashes {
            let (shard, place) = std::mem::replace(&mut window[oldest], fetch(hash));
            oldest = (oldest + 1) % AHEAD;
            visit(shard, place);
        }
        window.rotate_left(oldest);
        window.into_iter().for_each(|(shard, place)| visit(shard, place));
    }

    pub(crate) fn contains_each(&self, hashes: impl Iterator<Item = u64>, found: &mut [bool]) {
        let mut found = found.iter_mut();
        self.for_each_ahead(hashes, |shard, place| {
            if let Some(found) = found.next() {
                *found = shard.contains(place);
            }
        });
    }

    /// x
    pub fn contains_hash_many(&self, hashes: &[u64]) -> Vec<bool> {
        let mut found = vec![false; hashes.len()];
        self.contains_each(hashes.iter().copied(), &mut found);
        found
    }
}
