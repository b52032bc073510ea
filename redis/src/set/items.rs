//! What is done to the items of a set.

use crate::set::errors::MergeError;
use crate::set::spec::Filter;
use crate::set::{Body, Set, filter_of};
use koel::{Full, FullKind, Prehashed, UnionErrorKind};

/// What became of an item: whether it was added, or why there was no room for it.
pub type Answer = Result<bool, FullKind>;

/// # Adding items
///
/// The set then takes no more than `most` bytes, unless it took more before. An item that is refused changes nothing.
impl Set {
    /// Does this to the filter. A few items go into one before, which is kept only if this succeeds: a command
    /// that is refused is not replicated, so it must change nothing.
    fn in_filter<T>(
        &mut self,
        most: usize,
        act: impl FnOnce(&Filter) -> Result<T, Full>,
    ) -> Result<T, FullKind> {
        let most = of_body(most);
        match &self.body {
            Body::Half(_) => Err(FullKind::NoRoomNearby),
            Body::Filter(filter) => limited(filter, most, act).map_err(|full| full.kind()),
            Body::Few(few) => {
                if self.spec.plan().is_ok_and(|plan| plan.initial_bytes > most) {
                    return Err(FullKind::LimitReached);
                }
                let filter = filter_of(&self.spec, few).ok_or(FullKind::NoMemory)?;
                let done = limited(&filter, most, act).map_err(|full| full.kind())?;
                self.body = Body::of(filter);
                Ok(done)
            }
        }
    }

    /// Adds a copy of the item.
    pub fn add(&mut self, hash: Prehashed, most: usize) -> Answer {
        match &mut self.body {
            Body::Few(few) if few.takes(hash) => few.add(hash, of_body(most))?,
            _ => self.in_filter(most, |filter| filter.insert(&hash))?,
        }
        Ok(true)
    }

    /// Adds the item if it is not there, and returns whether it was not.
    pub fn add_if_absent(&mut self, hash: Prehashed, most: usize) -> Answer {
        match &mut self.body {
            Body::Few(few) if few.contains(hash) => Ok(false),
            Body::Few(few) if few.takes(hash) => few.add(hash, of_body(most)).map(|()| true),
            _ => self.in_filter(most, |filter| filter.insert_if_absent(&hash)),
        }
    }

    /// Adds a copy of each item.
    pub fn add_many(&mut self, hashes: &[Prehashed], most: usize, answers: &mut [Answer]) {
        self.in_batches((hashes, answers), most, Set::add, |filter, hashes, answers| {
            let added = filter.insert_many(hashes).into_iter().zip(answers);
            added.for_each(|(from, to)| *to = from.map(|()| true).map_err(|full| full.kind()));
        });
    }

    /// Adds each item that is not there, and tells for each whether it was not.
    pub fn add_many_if_absent(
        &mut self,
        hashes: &[Prehashed],
        most: usize,
        answers: &mut [Answer],
    ) {
        self.in_batches((hashes, answers), most, Set::add_if_absent, |filter, hashes, answers| {
            let added = filter.insert_if_absent_many(hashes).into_iter().zip(answers);
            added.for_each(|(from, to)| *to = from.map_err(|full| full.kind()));
        });
    }

    /// Adds items to a filter all at once, or to a few items one by one.
    fn in_batches(
        &mut self,
        (hashes, answers): (&[Prehashed], &mut [Answer]),
        most: usize,
        one: impl Fn(&mut Self, Prehashed, usize) -> Answer,
        many: impl Fn(&Filter, &[Prehashed], &mut [Answer]),
    ) {
        if let Some(filter) = self.filter() {
            return limited(filter, of_body(most), |filter| many(filter, hashes, answers));
        }
        let each = hashes.iter().zip(answers);
        each.for_each(|(hash, answer)| *answer = one(self, *hash, most));
    }
}

/// What is left for the body of a set that may take `most` bytes.
pub fn of_body(most: usize) -> usize {
    if most == usize::MAX { most } else { most.saturating_sub(size_of::<Set>()) }
}

/// Does this to a filter that takes no more than `most` bytes meanwhile. The limit ends here: it would be a part of the
/// filter's chunks, and differ on replicas.
pub fn limited<T>(filter: &Filter, most: usize, act: impl FnOnce(&Filter) -> T) -> T {
    if most == usize::MAX {
        return act(filter);
    }
    filter.set_max_bytes(most);
    let done = act(filter);
    filter.set_max_bytes(usize::MAX);
    done
}

impl Set {
    #[inline]
    pub fn contains(&self, hash: Prehashed) -> bool {
        match &self.body {
            Body::Filter(filter) => filter.contains(&hash),
            Body::Few(few) => few.contains(hash),
            Body::Half(_) => false,
        }
    }

    pub fn contains_many(&self, hashes: &[Prehashed], answers: &mut [bool]) {
        match &self.body {
            Body::Filter(filter) => answers.copy_from_slice(&filter.contains_many(hashes)),
            _ => {
                let each = hashes.iter().zip(answers);
                each.for_each(|(hash, answer)| *answer = self.contains(*hash));
            }
        }
    }

    pub fn count(&self, hash: Prehashed) -> usize {
        match &self.body {
            Body::Filter(filter) => filter.count(&hash),
            Body::Few(few) => few.count(hash),
            Body::Half(_) => 0,
        }
    }

    /// Removes a copy of the item, and returns whether there was one.
    pub fn remove(&mut self, hash: Prehashed) -> bool {
        let removed = match &mut self.body {
            Body::Filter(filter) => filter.remove(&hash),
            Body::Few(few) => few.remove(hash),
            Body::Half(_) => false,
        };
        self.spec.deleted += u64::from(removed);
        removed
    }

    /// Tells why the other set cannot be taken over, if it cannot.
    pub fn check_alike(&self, other: &Set) -> Result<(), MergeError> {
        if self.is_half() || other.is_half() {
            return Err(MergeError::HALF);
        }
        if self.spec.hasher != other.spec.hasher {
            return Err(MergeError::SEED);
        }
        match (&self.body, &other.body) {
            (Body::Filter(own), Body::Filter(other)) => {
                own.check_union(other).map_err(|error| MergeError::of(&error))
            }
            // A few items can be taken over by any set. Those of this set become a filter, which is checked then.
            _ => Ok(()),
        }
    }

    /// Returns a copy that has what the other sets have, too. It takes no more than `most` bytes, unless this set takes
    /// more. The sets are [alike](Self::check_alike).
    pub fn merged(&self, others: &[&Set], most: usize) -> Result<Set, MergeError> {
        self.finish_tick();
        others.iter().for_each(|other| other.finish_tick());
        let mut merged = self.try_clone_within(most).ok_or(MergeError::NO_MEMORY)?;
        others.iter().try_for_each(|other| merged.merge_one(other, most))?;
        match merged.bytes() <= most.max(self.bytes()) {
            true => Ok(merged),
            false => Err(MergeError::TOO_LARGE),
        }
    }

    fn merge_one(&mut self, other: &Set, most: usize) -> Result<(), MergeError> {
        let other = match &other.body {
            Body::Half(_) => return Err(MergeError::HALF),
            Body::Filter(other) => other,
            Body::Few(few) => {
                let mut hashes = few.hashes().iter();
                let added = hashes.try_for_each(|hash| self.add_if_absent(*hash, most).map(drop));
                return added.map_err(MergeError::of_full);
            }
        };
        if let Body::Few(_) = &self.body {
            // Into a filter of its own.
            self.in_filter(most, |_| Ok(())).map_err(MergeError::of_full)?;
        }
        let own = self.filter().ok_or(MergeError::HALF)?;
        let added = limited(own, of_body(most), |filter| filter.union(other));
        added.map(drop).map_err(|error| match error.kind() {
            UnionErrorKind::Full { reason, .. } => MergeError::of_full(reason),
            _ => MergeError::of(&error),
        })
    }
}
