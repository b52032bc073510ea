//! What is done to the items of a set.

use crate::set::about::Filter;
use crate::set::count::Count;
use crate::set::errors::Apart;
use crate::set::{Body, Counted, Set, filter_of};
use koel::{Full, Prehashed, UnionErrorKind};

impl Set {
    /// For how many items there is room in a set of fixed size. One that grows makes room.
    fn room(&self) -> u64 {
        match &self.body {
            Body::Filter(counted) => counted.count.as_ref().map_or(u64::MAX, |count| {
                self.about.capacity.saturating_sub(count.items(counted.filter.present_tick()))
            }),
            _ => u64::MAX,
        }
    }

    /// Does this to the filter. A few items go into one before, which is kept only if this succeeds: a command
    /// that is refused is not replicated, so it must change nothing.
    fn in_filter<T>(&mut self, act: impl FnOnce(&Filter) -> Result<T, Full>) -> Option<T> {
        match &self.body {
            Body::Half(_) => None,
            Body::Filter(counted) => act(&counted.filter).ok(),
            Body::Few(few) => {
                let filter = filter_of(&self.about, few)?;
                let done = act(&filter).ok()?;
                self.body = Body::of(filter);
                Some(done)
            }
        }
    }

    /// Adds a copy of the item, and returns whether there was room.
    pub fn add(&mut self, hash: Prehashed) -> bool {
        if self.room() == 0 {
            return false;
        }
        let added = match &mut self.body {
            Body::Few(few) if few.takes(hash) => {
                few.add(hash);
                true
            }
            _ => self.in_filter(|filter| filter.insert(&hash)).is_some(),
        };
        self.count_added(added.into());
        added
    }

    /// Adds the item if it is not there, and returns whether it was not, or `None` if there was no room.
    pub fn add_if_absent(&mut self, hash: Prehashed) -> Option<bool> {
        if self.room() == 0 {
            // A count excludes items that have expired.
            return (self.count(hash) > 0).then_some(false);
        }
        let added = match &mut self.body {
            Body::Few(few) if few.contains(hash) => Some(false),
            Body::Few(few) if few.takes(hash) => {
                few.add(hash);
                Some(true)
            }
            _ => self.in_filter(|filter| filter.insert_if_absent(&hash)),
        };
        self.count_added((added == Some(true)).into());
        added
    }

    /// Counts so many items that were added to a set of fixed size.
    #[inline]
    fn count_added(&mut self, added: u64) {
        if let Body::Filter(counted) = &mut self.body
            && let Some(count) = &mut counted.count
        {
            count.add(added, counted.filter.present_tick());
        }
    }

    /// Adds a copy of each item: `Some(true)`, or `None` if there was no room.
    pub fn add_many(&mut self, hashes: &[Prehashed], answers: &mut [Option<bool>]) {
        self.in_batches(
            (hashes, answers),
            |set, hash| set.add(hash).then_some(true),
            |filter, hashes, answers| {
                let added = filter.insert_many(hashes);
                answers
                    .iter_mut()
                    .zip(added)
                    .for_each(|(to, from)| *to = from.is_ok().then_some(true));
            },
        );
    }

    /// Adds each item that is not there, and tells for each whether it was not, or `None` if there was no
    /// room.
    pub fn add_many_if_absent(&mut self, hashes: &[Prehashed], answers: &mut [Option<bool>]) {
        self.in_batches((hashes, answers), Set::add_if_absent, |filter, hashes, answers| {
            let added = filter.insert_if_absent_many(hashes);
            answers.iter_mut().zip(added).for_each(|(to, from)| *to = from.ok());
        });
    }

    /// Adds items to a filter that has room for all of them at once, or else one by one.
    fn in_batches(
        &mut self,
        (hashes, answers): (&[Prehashed], &mut [Option<bool>]),
        one: impl Fn(&mut Self, Prehashed) -> Option<bool>,
        many: impl Fn(&Filter, &[Prehashed], &mut [Option<bool>]),
    ) {
        let (Body::Filter(counted), true) = (&self.body, self.room() >= hashes.len() as u64) else {
            let each = hashes.iter().zip(answers);
            return each.for_each(|(hash, answer)| *answer = one(self, *hash));
        };
        many(&counted.filter, hashes, answers);
        self.count_added(answers.iter().filter(|added| **added == Some(true)).count() as u64);
    }

    #[inline]
    pub fn contains(&self, hash: Prehashed) -> bool {
        match &self.body {
            Body::Filter(counted) => counted.filter.contains(&hash),
            Body::Few(few) => few.contains(hash),
            Body::Half(_) => false,
        }
    }

    pub fn contains_many(&self, hashes: &[Prehashed], answers: &mut [bool]) {
        match &self.body {
            Body::Filter(counted) => answers.copy_from_slice(&counted.filter.contains_many(hashes)),
            _ => {
                let each = hashes.iter().zip(answers);
                each.for_each(|(hash, answer)| *answer = self.contains(*hash));
            }
        }
    }

    pub fn count(&self, hash: Prehashed) -> usize {
        match &self.body {
            Body::Filter(counted) => counted.filter.count(&hash),
            Body::Few(few) => few.count(hash),
            Body::Half(_) => 0,
        }
    }

    /// Removes a copy of the item, and returns whether there was one.
    pub fn remove(&mut self, hash: Prehashed) -> bool {
        let removed = match &mut self.body {
            Body::Filter(counted) => {
                let Counted { filter, count } = &mut **counted;
                // Asked before it is gone.
                let age = count.as_ref().and_then(|_| filter.age(&hash));
                let removed = filter.remove(&hash);
                if let Some(count) = count.as_mut().filter(|_| removed) {
                    count.remove(age, filter.present_tick());
                }
                removed
            }
            Body::Few(few) => few.remove(hash),
            Body::Half(_) => false,
        };
        self.about.deleted += u64::from(removed);
        removed
    }

    /// Tells why the other set cannot be taken over, if it cannot.
    pub fn check_alike(&self, other: &Set) -> Result<(), Apart> {
        if self.is_half() || other.is_half() {
            return Err(Apart::HALF);
        }
        if self.about.hasher != other.about.hasher {
            return Err(Apart::SEED);
        }
        let other = match &other.body {
            Body::Filter(other) => &other.filter,
            // A few items can be taken over by any set.
            _ => return Ok(()),
        };
        let checked = match &self.body {
            Body::Filter(own) => own.filter.check_union(other),
            _ => {
                let own = self.about.build().map_err(|_| Apart::NO_MEMORY)?;
                own.check_union(other)
            }
        };
        checked.map_err(|error| Apart::of(&error))
    }

    /// Adds what the other sets have, which are [alike](Self::check_alike). A set of fixed size has changed only
    /// if all of it was added and it has no more items than fit; one that grows may have a part of it
    /// after an error.
    pub fn merge(&mut self, others: &[&Set]) -> Result<(), Apart> {
        self.finish_tick();
        others.iter().for_each(|other| other.finish_tick());
        if self.about.grows() {
            return others.iter().try_for_each(|other| self.merge_one(other));
        }
        let mut merged = self.try_clone().ok_or(Apart::NO_MEMORY)?;
        others.iter().try_for_each(|other| merged.merge_one(other))?;
        if merged.len() as u64 > self.about.capacity {
            return Err(Apart::TOO_MANY);
        }
        *self = merged;
        Ok(())
    }

    fn merge_one(&mut self, other: &Set) -> Result<(), Apart> {
        let other = match &other.body {
            Body::Half(_) => return Err(Apart::HALF),
            Body::Filter(other) => other,
            Body::Few(few) => {
                let added = few.hashes().iter().all(|hash| self.add_if_absent(*hash).is_some());
                let no_room = || match self.about.grows() {
                    true => Apart::NO_ROOM,
                    false => Apart::TOO_MANY,
                };
                return added.then_some(()).ok_or_else(no_room);
            }
        };
        if let Body::Few(few) = &self.body {
            let filter = filter_of(&self.about, few);
            self.body = Body::of(filter.ok_or(Apart::NO_MEMORY)?);
        }
        let Body::Filter(own) = &mut self.body else { return Err(Apart::HALF) };
        let added = own.filter.union(&other.filter);
        // It may have made items younger.
        own.count.iter_mut().for_each(|count| *count = Count::of(&own.filter));
        added.map(drop).map_err(|error| match error.kind() {
            UnionErrorKind::Full { .. } if !self.about.grows() => Apart::TOO_MANY,
            _ => Apart::of(&error),
        })
    }
}
