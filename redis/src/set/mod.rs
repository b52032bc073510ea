//! What a key has: a set of items, whatever the server.
//!
//! * [`spec`] is what it was made of.
//! * [`few`] has a few items; from there on it is a filter of koel.
//! * [`items`] is what is done to items, [`time`] what makes them expire,
//! * [`moves`] takes the set elsewhere, in [`chunk`]s, of which [`assembly`] makes it again.
//! * [`totals`] has the figures of all sets together.
//! * [`errors`] has the words for all that may go wrong.

pub mod assembly;
pub mod chunk;
pub mod errors;
pub mod few;
pub mod items;
pub mod moves;
pub mod spec;
#[cfg(test)]
mod tests;
pub mod time;
pub mod totals;

use crate::set::assembly::Assembly;
use crate::set::few::Few;
use crate::set::spec::{Filter, FilterSpec};
use koel::{BuildError, Prehashed, Stats};
use std::hash::BuildHasher;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// The set of a key.
pub struct Set {
    spec: FilterSpec,
    body: Body,
}

enum Body {
    Few(Few),
    Filter(Arc<Filter>),
    /// A set that a client is loading, chunk by chunk.
    Half(Box<Assembly>),
}

/// What a part of shrinking has done.
#[derive(Default)]
pub struct Shrunk {
    /// Whether it gave anything back.
    pub has_changed: bool,
    /// The cursor of the next part, unless this was the last.
    pub next: Option<u64>,
}

/// The number of shards in one visit, each of which may be given back, in a tenth of a millisecond or two.
const AT_ONCE: usize = 8;
/// The most visits in one step, which ends with the first visit that gives a shard back.
const MOST_VISITS: usize = 64;

impl Body {
    /// The limit of a filter that was saved elsewhere ends here.
    fn of(filter: Filter) -> Self {
        filter.set_max_bytes(usize::MAX);
        Body::Filter(totals::count(filter))
    }
}

impl Set {
    pub fn new(spec: FilterSpec) -> Result<Self, BuildError> {
        // Also a set of few items has to be able to become a filter.
        spec.plan()?;
        let body = match spec.begins_small() {
            true => Body::Few(Few::default()),
            false => Body::of(spec.build()?),
        };
        Ok(Set { spec, body })
    }

    /// The bytes of a new set of it.
    pub fn bytes_of_new(spec: &FilterSpec) -> Result<usize, BuildError> {
        let filter = spec.plan()?.initial_bytes;
        Ok(size_of::<Self>() + if spec.begins_small() { 0 } else { filter })
    }

    /// A set of which no chunk has come.
    pub fn half() -> Self {
        Set { spec: FilterSpec::new(1, 0.5), body: Body::Half(Box::default()) }
    }

    pub fn spec(&self) -> &FilterSpec {
        &self.spec
    }

    fn filter(&self) -> Option<&Filter> {
        match &self.body {
            Body::Filter(filter) => Some(filter),
            _ => None,
        }
    }

    /// Whether a client is loading it, so that nobody can use it.
    pub fn is_half(&self) -> bool {
        matches!(self.body, Body::Half(_))
    }

    /// Takes over what another one says that it was made of, and returns whether that can be.
    pub fn describe(&mut self, spec: FilterSpec) -> bool {
        let same = spec.seed() == self.spec.seed()
            && spec.capacity == self.spec.capacity
            && spec.grows() == self.spec.grows()
            && !self.is_half();
        if same {
            self.spec = FilterSpec { hasher: self.spec.hasher, ..spec };
        }
        same
    }

    #[inline]
    pub fn hash(&self, item: &[u8]) -> Prehashed {
        Prehashed(self.spec.hasher.hash_one(item))
    }

    /// The number of items. This ends a tick that is passing: what has expired is not counted, so replicas tell the
    /// same.
    pub fn len(&self) -> usize {
        self.finish_tick();
        match &self.body {
            Body::Few(few) => few.hashes().len(),
            Body::Filter(filter) => filter.len(),
            Body::Half(_) => 0,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes that it takes.
    pub fn bytes(&self) -> usize {
        let body = match &self.body {
            Body::Few(few) => few.bytes(),
            Body::Filter(filter) => filter.size_in_bytes(),
            Body::Half(assembly) => assembly.bytes(),
        };
        size_of::<Self>() + body
    }

    /// The figures of its filter, if it has one. This ends a tick that is passing, and adds up the figures of all parts.
    pub fn stats(&self) -> Option<Stats> {
        self.finish_tick();
        self.filter().map(Filter::stats)
    }

    /// Whether [compacting](Self::compact) makes it anew.
    pub fn begins_anew(&self) -> bool {
        self.spec.forget_after == 0 && !self.is_half() && self.is_empty()
    }

    /// Forgets how many items were deleted, and begins to give back the memory that it grew to. Returns the cursor of
    /// the next [part](Self::shrink_part). If no items are left, all of it is given back.
    pub fn compact(&mut self) -> Result<Option<u64>, BuildError> {
        let spec = FilterSpec { deleted: 0, ..self.spec };
        if self.begins_anew() {
            *self = Set::new(spec)?;
        }
        self.spec = spec;
        Ok(self.shrink_part(0).next)
    }

    /// Goes on with giving back memory, from a cursor on, for less than a millisecond or two.
    pub fn shrink_part(&self, cursor: u64) -> Shrunk {
        let Some(filter) = self.filter() else { return Shrunk::default() };
        let (before, bytes) = (filter.shards(), filter.size_in_bytes());
        let mut shrunk = Shrunk { has_changed: false, next: Some(cursor) };
        for _ in 0..MOST_VISITS {
            let Some(cursor) = shrunk.next.filter(|_| !shrunk.has_changed) else { break };
            shrunk.next = filter.shrink_part(cursor, AT_ONCE);
            shrunk.has_changed = filter.shards() < before;
        }
        totals::SHARDS_FREED.fetch_add(before.saturating_sub(filter.shards()) as u64, Relaxed);
        let freed = bytes.saturating_sub(filter.size_in_bytes());
        totals::BYTES_FREED.fetch_add(freed as u64, Relaxed);
        shrunk
    }
}

/// Puts a few items into a filter. Every filter that grows has room for them.
fn filter_of(spec: &FilterSpec, few: &Few) -> Option<Filter> {
    let filter = spec.build().ok()?;
    few.hashes().iter().try_for_each(|hash| filter.insert(hash)).ok()?;
    Some(filter)
}
