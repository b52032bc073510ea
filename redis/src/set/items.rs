//! What is done to the items of a set.

use crate::set::{Body, Set, filter, filter_of};
use koel::{AnyCuckooFilter, Full, StableHash};

/// Why two sets cannot be merged.
pub enum Apart {
    Seed,
    Half,
    Kind,
    Koel(String),
}

impl Set {
    /// Whether a set of fixed size has as many items as it was made for.
    fn is_full(&self) -> bool {
        !self.about.grows() && self.len() as u64 >= self.about.capacity
    }

    /// The filter, into which a few items go now if that is what there is. `None` for half a set, or if
    /// there is no memory for a filter.
    fn filter(&mut self) -> Option<&AnyCuckooFilter<StableHash>> {
        if let Body::Few(few) = &self.body {
            let filter = filter_of(&self.about, few).ok()?;
            self.body = Body::Filter(Box::new(filter));
        }
        match &self.body {
            Body::Filter(filter) => Some(filter),
            _ => None,
        }
    }

    /// Adds a copy of the item, and returns whether there was room.
    pub fn add(&mut self, hash: u64) -> bool {
        if self.is_full() {
            return false;
        }
        if let Body::Few(few) = &mut self.body
            && few.takes(hash)
        {
            few.add(hash);
            return true;
        }
        self.filter()
            .is_some_and(|filter| filter!(filter, filter => filter.insert_hash(hash)).is_ok())
    }

    /// Adds the item if it is not there, and returns whether it was not, or `None` if there was no room.
    pub fn add_if_absent(&mut self, hash: u64) -> Option<bool> {
        if self.contains(hash) {
            return Some(false);
        }
        if self.is_full() {
            return None;
        }
        match &mut self.body {
            Body::Few(few) if few.takes(hash) => {
                few.add(hash);
                Some(true)
            }
            _ => filter!(self.filter()?, filter => filter.insert_hash_if_absent(hash)).ok(),
        }
    }

    /// Adds a copy of each item, and tells for each whether there was room.
    pub fn add_many(&mut self, hashes: &[u64], answers: &mut [bool]) {
        let room = (self.about.capacity as usize).saturating_sub(self.len());
        let (Body::Filter(filter), true) = (&self.body, self.about.grows() || room >= hashes.len())
        else {
            return hashes.iter().zip(answers).for_each(|(hash, answer)| *answer = self.add(*hash));
        };
        batches(
            hashes,
            answers,
            Ok(()),
            |hashes, answers: &mut [Result<(), Full>]| {
                filter!(&**filter, filter => filter.insert_hash_many_into(hashes, answers));
            },
            |answer| answer.is_ok(),
        );
    }

    /// Adds each item that is not there, and tells for each whether it was not, or `None` if there was no
    /// room.
    pub fn add_many_if_absent(&mut self, hashes: &[u64], answers: &mut [Option<bool>]) {
        let room = (self.about.capacity as usize).saturating_sub(self.len());
        let (Body::Filter(filter), true) = (&self.body, self.about.grows() || room >= hashes.len())
        else {
            let each = hashes.iter().zip(answers);
            return each.for_each(|(hash, answer)| *answer = self.add_if_absent(*hash));
        };
        batches(
            hashes,
            answers,
            Ok(false),
            |hashes, answers: &mut [Result<bool, Full>]| {
                filter!(&**filter, filter => filter.insert_hash_if_absent_many_into(hashes, answers));
            },
            |answer| answer.ok(),
        );
    }

    #[inline]
    pub fn contains(&self, hash: u64) -> bool {
        match &self.body {
            Body::Filter(filter) => filter!(&**filter, filter => filter.contains_hash(hash)),
            Body::Few(few) => few.contains(hash),
            Body::Half(_) => false,
        }
    }

    pub fn contains_many(&self, hashes: &[u64], answers: &mut [bool]) {
        match &self.body {
            Body::Filter(filter) => {
                filter!(&**filter, filter => filter.contains_hash_many_into(hashes, answers));
            }
            _ => {
                let each = hashes.iter().zip(answers);
                each.for_each(|(hash, answer)| *answer = self.contains(*hash));
            }
        }
    }

    pub fn count(&self, hash: u64) -> usize {
        match &self.body {
            Body::Filter(filter) => filter!(&**filter, filter => filter.count_hash(hash)),
            Body::Few(few) => few.count(hash),
            Body::Half(_) => 0,
        }
    }

    /// Removes a copy of the item, and returns whether there was one.
    pub fn remove(&mut self, hash: u64) -> bool {
        let removed = match &mut self.body {
            Body::Filter(filter) => filter!(&**filter, filter => filter.remove_hash(hash)),
            Body::Few(few) => few.remove(hash),
            Body::Half(_) => false,
        };
        self.about.deleted += u64::from(removed);
        removed
    }

    /// Adds what the other set has, and returns how many items that were.
    pub fn merge(&mut self, other: &Set) -> Result<usize, Apart> {
        if self.is_half() || other.is_half() {
            return Err(Apart::Half);
        }
        if self.about.hasher != other.about.hasher {
            return Err(Apart::Seed);
        }
        if let Body::Few(few) = &other.body {
            let added = few.hashes().iter().map(|hash| self.add_if_absent(*hash));
            let added: Option<Vec<bool>> = added.collect();
            let added =
                added.ok_or_else(|| Apart::Koel("there is no room for all items".into()))?;
            return Ok(added.iter().filter(|new| **new).count());
        }
        let Body::Filter(other) = &other.body else { return Err(Apart::Half) };
        let Some(own) = self.filter() else { return Err(Apart::Koel("no memory".into())) };
        let added = match (own, &**other) {
            (AnyCuckooFilter::Fixed(own), AnyCuckooFilter::Fixed(other)) => own.union(other),
            (AnyCuckooFilter::Growing(own), AnyCuckooFilter::Growing(other)) => own.union(other),
            _ => return Err(Apart::Kind),
        };
        added.map_err(|error| Apart::Koel(error.to_string()))
    }
}

/// The items that are passed to a filter at once, with answers on the stack.
const BATCH: usize = 128;

/// Passes items to a filter in batches, and answers in the words of a set.
fn batches<A: Copy, B>(
    hashes: &[u64],
    answers: &mut [B],
    unanswered: A,
    mut act: impl FnMut(&[u64], &mut [A]),
    answer: impl Fn(A) -> B,
) {
    for (hashes, answers) in hashes.chunks(BATCH).zip(answers.chunks_mut(BATCH)) {
        let mut batch = [unanswered; BATCH];
        act(hashes, &mut batch[..hashes.len()]);
        answers.iter_mut().zip(batch).for_each(|(to, from)| *to = answer(from));
    }
}
