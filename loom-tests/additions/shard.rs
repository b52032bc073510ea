//! What mutants of a shard do in more than a line.

use crate::layout::bucket::Words;
use crate::layout::geometry::{Bucket, Place};
use crate::shard::Shard;
use crate::shard::kick::Outcome;
use crate::shard::Lease;
use crate::sync::additions::alone;
use crate::table::stripe::Two;
use crate::shard::Copied;

impl<'a, L: Lease<'a>> Shard<L> {
    /// Reads the words of a bucket without its lock.
    fn read_unlocked(self, bucket: Bucket) -> Words {
        self.read_rest(bucket, self.read(bucket))
    }

    /// Locks the stripes of an item, for a caller that may go on to split its shard.
    pub fn lock_before_split(self, place: Place) -> Result<Two<'a>, L::Lapsed> {
        let both = [self.stripe(place.first), self.stripe(place.second)];
        let locked = self.table.stripes.lock_two(both);
        alone(|| self.check()).map(|()| locked)
    }

    /// Looks into one bucket after the other, each with its own version.
    pub(super) fn look_at_one_by_one(self, place: Place) -> Option<bool> {
        for bucket in [place.first, place.second] {
            let seen = self.table.stripes.see(self.stripe(bucket));
            if !self.lanes().matching(self.read(bucket), place.fp).is_empty() {
                return Some(true);
            }
            if !seen.still_holds() {
                return None;
            }
        }
        Some(false)
    }

    /// Looks once, but checks before instead of after it whether the shard has been split.
    pub(super) fn look_too_late(self, place: Place) -> Option<bool> {
        let is_whole = self.check().is_ok();
        let seen = self.see(place);
        let heads = [place.first, place.second].map(|bucket| self.read(bucket));
        (seen.still_hold() && is_whole).then(|| self.has_match(heads, || self.both_tails(place), place.fp))
    }

    /// Makes the moves of a path with one lock at a time.
    pub(super) fn write_hand_over_hand(
        self,
        words: &[(Bucket, Words)],
    ) -> Result<Outcome, L::Lapsed> {
        for &(bucket, words) in words.iter().rev() {
            let locked = self.lock_one(bucket)?;
            let stripes = self.stripes::<1>([bucket]);
            let _moving = self.write_section(&locked, &stripes);
            self.write(&locked, bucket, words);
        }
        let (end, _) = *words.last().expect("a path has an end");
        self.add_items(&self.lock_one(end)?, end, 1);
        Ok(Outcome::Placed)
    }

    pub(super) fn insert_if_absent_under_one_lock(self, place: Place) -> Option<bool> {
        let [first, second] = [place.first, place.second].map(|it| self.read_unlocked(it));
        let (bucket, _) = self.emptier_of(place, first.heads, second.heads);
        let locked = self.lock_one(bucket).ok()?;
        if self.has_match([first.heads, second.heads], || [first.tails, second.tails], place.fp) {
            return Some(false);
        }
        self.fill_locked(&locked, bucket, place.fp).then_some(true)
    }

    pub(super) fn remove_under_one_lock(self, place: Place) -> Result<bool, L::Lapsed> {
        for bucket in [place.first, place.second] {
            let words = self.read_unlocked(bucket);
            if let Some(lane) = self.matching(words, place.fp).first() {
                let locked = self.lock_one(bucket)?;
                self.write(&locked, bucket, self.lanes().without_whole(words, lane));
                self.add_items(&locked, bucket, -1);
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Copies the shard with one lock at a time.
    pub(super) fn copy_one_by_one(self, to: &mut [u64]) -> Result<Copied, L::Lapsed> {
        for (word, copy) in (self.word(Bucket(0))..).zip(to) {
            let locked = self.lock_one(Bucket((word - self.base) as u32))?;
            *copy = self.table.read_locked(&locked, word);
        }
        Ok(Copied { items: self.all_items(), time: None })
    }

    pub(super) fn copy_unlocked(self, to: &mut [u64]) -> Result<Copied, L::Lapsed> {
        for (word, copy) in (self.word(Bucket(0))..).zip(to) {
            *copy = self.table.read(word);
        }
        Ok(Copied { items: self.all_items(), time: None })
    }
}
