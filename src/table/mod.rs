//! The memory of a filter: its buckets, and the stripes that guard them.
//!
//! The buckets of a [`Table`] are in one array, shard after shard, and so are its stripes, since each shard is a whole
//! number of stripes, or the only shard. All indices are indices into the whole table; a caller that works in one shard
//! adds the index of the shard's first bucket. The two words of a [wide](crate::layout::bucket) bucket are adjacent.

pub(crate) mod lock;
#[cfg(any(loom, all(unix, feature = "durable")))]
pub(crate) mod locked;
pub(crate) mod memory;
pub(crate) mod stripe;
pub(crate) mod ticking;

use crate::layout::bucket::Fingerprint;
use crate::layout::geometry::{Geometry, STRIPE_BUCKETS, Spot};
use crate::layout::shrinking::GROWING_BUCKETS;
use crate::sync::{AtomicU64, Ordering, read_owned};
use crate::table::memory::{TableWords, give_back, prefetch, words_mut, zeroed};
use crate::table::stripe::{Locks, SeenVersion, Stripes};
use crate::table::ticking::Ticking;
use std::ops::Range;
use std::panic::RefUnwindSafe;

pub(crate) struct Table {
    pub geometry: Geometry,
    words: TableWords,
    pub stripes: Stripes,
    /// The time, in a fixed filter that forgets. Boxed, so that no field of the table itself ever changes, and the
    /// compiler need not reload fields.
    ticking: Option<Box<Ticking>>,
}

/// As many words as a shard of a growing filter has buckets: all its words, or half of them if its buckets are wide.
/// The compiler knows this size, so an index into a shard needs no bounds check.
pub(crate) type ShardWords = [AtomicU64; GROWING_BUCKETS as usize];

/// The versions of such a shard.
pub(crate) type ShardVersions = [AtomicU64; (GROWING_BUCKETS / STRIPE_BUCKETS) as usize];

#[inline]
pub(crate) fn load(word: &AtomicU64) -> u64 {
    word.load(Ordering::Acquire)
}

/// Its locks are not poisoned by panics, and no word is ever half written.
impl RefUnwindSafe for Table {}

impl Table {
    /// Allocates an empty table. The error is the number of bytes that could not be allocated.
    pub(crate) fn new(geometry: Geometry) -> Result<Self, usize> {
        Self::with(geometry, false)
    }

    /// Allocates an empty table that will be filled soon. If its words fill pages, huge or small, they are placed there
    /// and written at once.
    pub(crate) fn needed_soon(geometry: Geometry) -> Result<Self, usize> {
        Self::with(geometry, true)
    }

    fn with(geometry: Geometry, soon: bool) -> Result<Self, usize> {
        let segments = geometry.shards() * geometry.stripes() as usize;
        let words = geometry.shards() * geometry.words();
        let bytes = Self::bytes(&geometry);
        // The words first: if the system refuses them, no memory has been written yet.
        let words = zeroed(words, soon).ok_or(bytes)?;
        let stripes = Stripes::new(segments).ok_or(bytes)?;
        Ok(Table { geometry, words, stripes, ticking: None })
    }

    /// Makes this the table of a fixed filter. If the filter forgets, the table keeps the time.
    pub(crate) fn of_fixed_filter(self) -> Self {
        let lanes = self.geometry.lanes();
        let ticking = lanes.forgets().then(|| Box::new(Ticking::new(lanes.remembers())));
        Table { ticking, ..self }
    }

    #[inline]
    pub(crate) fn ticking(&self) -> Option<&Ticking> {
        self.ticking.as_deref()
    }

    pub(crate) fn buckets(&self) -> usize {
        self.geometry.shards() * self.geometry.buckets() as usize
    }

    /// Returns the heap memory of a table of this geometry, in bytes.
    pub(crate) fn bytes(geometry: &Geometry) -> usize {
        let of_one =
            geometry.words() * size_of::<u64>() + Stripes::bytes(geometry.stripes() as usize);
        // A file may tell of more than memory has.
        geometry.shards().saturating_mul(of_one)
    }

    /// Returns the memory held beside `self`, in bytes.
    pub(crate) fn heap_bytes(&self) -> usize {
        Self::bytes(&self.geometry) + self.ticking().map_or(0, size_of_val)
    }

    #[inline]
    pub(crate) fn stripe_of(bucket: usize) -> usize {
        bucket / STRIPE_BUCKETS as usize
    }

    #[inline]
    pub(crate) fn is_wide(&self) -> bool {
        self.geometry.lanes().is_wide()
    }

    // Lookups in a fixed filter.

    /// Prefetches the two buckets of a spot.
    #[inline(always)]
    pub(crate) fn request(&self, (first, second, _): Spot, is_wide: bool) {
        for bucket in [first, second] {
            self.words.get(bucket << u32::from(is_wide)).into_iter().for_each(prefetch);
        }
    }

    /// Looks once for an item in narrow buckets, without a lock. Returns `None` if an item that was not found may have
    /// been moving.
    ///
    /// A [hit needs no version](mod@crate::guide::kick#how-does-a-lookup-stay-right-while-an-item-moves). If both words
    /// of a miss are the same after the version was read, the item is not in them either. The version is that of the
    /// bucket that is [read last](mod@crate::guide::sweep#is-a-lookup-right).
    #[inline(always)]
    pub(crate) fn look(&self, (first, second, fp): Spot) -> Option<bool> {
        let (one, other) = (&self.words[first], &self.words[second]);
        let peeked = [load(one), load(other)];
        if self.geometry.lanes().either_matches(peeked, fp) {
            return Some(true);
        }
        let seen = self.stripes.see(Self::stripe_of(second));
        let words = [load(one), load(other)];
        (words == peeked && seen.still_holds()).then_some(false)
    }

    /// Looks once for an item in wide buckets. Their two words are not of one moment, so a hit needs a version, too.
    #[inline(always)]
    pub(crate) fn look_wide(&self, (first, second, fp): Spot) -> Option<bool> {
        let (buckets, lanes) = (self.words.as_chunks().0, self.geometry.lanes());
        let (one, other) = (&buckets[first], &buckets[second]);
        if lanes.forgets() {
            return self.look_wide_forgetting(first, second, fp);
        }
        let seen = self.stripes.see(Self::stripe_of(second));
        let found = self.either_matches([one, other], fp);
        seen.still_holds().then_some(found)
    }

    /// Does the same where items expire, with [the versions of both stripes](mod@crate::guide::sweep#is-a-lookup-right).
    #[inline(never)]
    fn look_wide_forgetting(&self, first: usize, second: usize, fp: Fingerprint) -> Option<bool> {
        let buckets = self.words.as_chunks().0;
        let seen = [second, first].map(|bucket| self.stripes.see(Self::stripe_of(bucket)));
        let found = self.either_matches([&buckets[first], &buckets[second]], fp);
        seen.into_iter().all(SeenVersion::still_holds).then_some(found)
    }

    /// Whether a lane of either wide bucket holds `fp`. First words are read before second ones.
    #[inline(always)]
    fn either_matches(&self, buckets: [&[AtomicU64; 2]; 2], fp: Fingerprint) -> bool {
        let heads = buckets.map(|[heads, _]| load(heads));
        let tails = buckets.map(|[_, tails]| load(tails));
        self.geometry.lanes().either_matches_whole(heads, tails, fp)
    }

    // Words. The stripe of a word is that of its bucket.

    /// Returns all words of a table that no other thread has.
    pub(crate) fn words_mut(&mut self) -> &mut [u64] {
        words_mut(&mut self.words)
    }

    #[inline]
    pub(crate) fn word(&self, word: usize) -> &AtomicU64 {
        &self.words[word]
    }

    #[inline]
    pub(crate) fn read(&self, word: usize) -> u64 {
        load(&self.words[word])
    }

    /// Makes all words of a shard zero. The caller holds all its locks.
    pub(crate) fn erase(&self, shard: usize) {
        let words = self.geometry.words();
        let all = &self.words[shard * words..(shard + 1) * words];
        // Release: pairs with the loads of a lookup. One that reads such a zero sees the entry of the join, too.
        all.iter().for_each(|word| word.store(0, Ordering::Release));
    }

    /// Gives the memory of these shards back to the system. Returns the number of bytes that it took. All words are
    /// zero, and no other thread writes to them.
    pub(crate) fn give_back(&self, shards: Range<usize>) -> usize {
        let words = self.geometry.words();
        give_back(&self.words[shards.start * words..shards.end * words])
    }

    /// Returns the words and versions of the growing filter's shard that begins at this bucket, if the table has all of
    /// them.
    pub(crate) fn parts_of_shard(&self, base: usize) -> Option<(&[ShardWords], &ShardVersions)> {
        let each = self.geometry.lanes().words();
        let words = self.words.get(base * each..)?.as_chunks().0.get(..each)?;
        let versions = self.stripes.versions_from(Self::stripe_of(base))?;
        Some((words, versions.first_chunk()?))
    }

    fn stripe_of_word(&self, word: usize) -> usize {
        Self::stripe_of(word / self.geometry.lanes().words())
    }

    #[inline]
    pub(crate) fn read_locked(&self, locked: &impl Locks, word: usize) -> u64 {
        debug_assert!(locked.include(&self.stripes, self.stripe_of_word(word)));
        read_owned(&self.words[word])
    }

    /// Calls `replace` with copies of these words, up to `N` at a time, so that the compiler can process several at
    /// once. Stores the copies if it returns that it has changed them, the last word first. All words are of one
    /// stripe.
    #[inline]
    pub(crate) fn replace<const N: usize>(
        &self,
        locked: &impl Locks,
        range: Range<usize>,
        mut replace: impl FnMut(&mut [u64]) -> bool,
    ) {
        debug_assert!(locked.include(&self.stripes, self.stripe_of_word(range.start)));
        let mut copies = [0; N];
        for words in self.words[range].chunks(N) {
            let copies = &mut copies[..words.len().min(N)];
            for (copy, word) in copies.iter_mut().zip(words) {
                *copy = read_owned(word);
            }
            // A page that is never written takes no memory.
            if replace(copies) {
                for (copy, word) in copies.iter().zip(words).rev() {
                    word.store(*copy, Ordering::Release);
                }
            }
        }
    }

    #[inline]
    pub(crate) fn write(&self, locked: &impl Locks, word: usize, value: u64) {
        debug_assert!(locked.include(&self.stripes, self.stripe_of_word(word)));
        self.words[word].store(value, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::bucket::Lanes;

    #[test]
    fn words_are_replaced_in_pieces_where_something_changes() {
        let table = Table::new(Geometry::new(Lanes::of_bits(16), 1, 300)).expect("memory");
        let locked = table.stripes.lock(0);
        (0..300).for_each(|word| table.write(&locked, word, word as u64));
        let mut next = 0;
        table.replace::<128>(&locked, 0..300, |words| {
            for word in &mut *words {
                assert_eq!(*word, next);
                (next, *word) = (next + 1, *word + 1_000);
            }
            words.len() == 128 && next == 256
        });
        assert_eq!(next, 300);
        let expected = |word| if (128..256).contains(&word) { word + 1_000 } else { word };
        assert!((0..300).all(|word| table.read(word) == expected(word as u64)));
    }
}
