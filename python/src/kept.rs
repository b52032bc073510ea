//! A filter of either kind, which knows the time if it forgets.

use crate::errors;
use koel::{
    AnyCuckooFilter, BuildError, ConcurrentCuckooFilter, Full, PersistentHasher, SnapshotError,
    StableHash, Stats, UnionError,
};
use koel_state::window::Window;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::io::Write;
use std::path::Path;

/// What a new filter is to be like.
#[derive(Clone, Copy)]
pub struct Plan {
    pub rate: f64,
    pub capacity: Option<usize>,
    /// The seconds for which items are remembered, if not for ever.
    pub remembers: Option<u64>,
    pub max_bytes: usize,
    pub seed: Option<u64>,
}

/// The rate of a filter of which nothing else was asked: that of the command.
pub const DEFAULT_RATE: f64 = 1e-6;

/// Little enough to begin with a list.
const FIRST_CAPACITY: usize = 10_000;

/// The growth up to which the rate stays below what was asked for.
const EXPECTED_GROWTH: f64 = 5e6;

/// The same, if the number of items is known.
const EXPECTED_GROWTH_OF_KNOWN: f64 = 4.0;

/// A filter in memory.
pub struct Kept {
    filter: AnyCuckooFilter<StableHash>,
    window: Option<Window>,
}

/// Does the same with a filter of either kind.
macro_rules! either {
    ($self:ident, $filter:ident => $do:expr) => {
        match &$self.filter {
            AnyCuckooFilter::Fixed($filter) => $do,
            AnyCuckooFilter::Growing($filter) => $do,
        }
    };
}

impl Kept {
    pub fn build(plan: Plan) -> Result<Kept, BuildError> {
        let growth = match plan.capacity {
            Some(_) => EXPECTED_GROWTH_OF_KNOWN,
            None => EXPECTED_GROWTH,
        };
        let window = plan.remembers.map(Window::of_seconds);
        let hasher = plan.seed.map_or_else(StableHash::random, StableHash::with_seed);
        let mut builder = ConcurrentCuckooFilter::builder()
            .capacity(plan.capacity.unwrap_or(FIRST_CAPACITY).max(1))
            .false_positive_rate(plan.rate)
            .hasher(hasher);
        if let Some(window) = window {
            builder = builder.remembers(window.ticks());
        }
        let filter = builder.growing().expected_growth(growth).max_bytes(plan.max_bytes).build()?;
        if let Some(window) = window {
            filter.tick_to(window.number_now());
        }
        Ok(Kept { filter: AnyCuckooFilter::Growing(filter), window })
    }

    pub fn load(path: &Path) -> PyResult<Kept> {
        let name = path.display();
        AnyCuckooFilter::load(path)
            .map_err(|error| errors::of_snapshot(&error))
            .and_then(|filter| Self::of(filter, &format!("{name}: ")))
    }

    pub fn read(bytes: &[u8]) -> PyResult<Kept> {
        let mut rest = bytes;
        let filter =
            AnyCuckooFilter::read_from(&mut rest).map_err(|error| errors::of_snapshot(&error))?;
        if !rest.is_empty() {
            return Err(PyValueError::new_err("there are more bytes than those of a filter"));
        }
        Self::of(filter, "")
    }

    /// Takes over what another program may have saved.
    fn of(filter: AnyCuckooFilter<StableHash>, name: &str) -> PyResult<Kept> {
        let mut kept = Kept { filter, window: None };
        match either!(kept, filter => Window::of(filter)) {
            Ok(window) => kept.window = window,
            Err(ticks) => {
                return Err(PyValueError::new_err(format!(
                    "{name}it remembers items for {ticks} ticks, which another program counts, so nobody knows \
                     here when to forget one"
                )));
            }
        }
        kept.keep_up();
        Ok(kept)
    }

    /// Whether ticks are due.
    #[inline]
    pub fn is_late(&self) -> bool {
        self.window.is_some_and(|window| {
            either!(self, filter => filter.present_tick()) < Some(window.number_now())
        })
    }

    /// Lets the ticks pass that are due.
    pub fn keep_up(&self) {
        if let Some(window) = self.window {
            either!(self, filter => filter.tick_to(window.number_now()));
        }
    }

    #[inline]
    pub fn hash_of(&self, bytes: &[u8]) -> u64 {
        either!(self, filter => filter.hasher().hash_bytes(bytes))
    }

    #[inline]
    pub fn contains(&self, hash: u64) -> bool {
        either!(self, filter => filter.contains_hash(hash))
    }

    #[inline]
    pub fn add(&self, hash: u64, refresh: bool) -> Result<bool, Full> {
        if refresh {
            return either!(self, filter => filter.insert_or_refresh_hash(hash));
        }
        either!(self, filter => filter.insert_hash_if_absent(hash))
    }

    #[inline]
    pub fn discard(&self, hash: u64) -> bool {
        either!(self, filter => filter.remove_hash(hash))
    }

    pub fn contains_many(&self, hashes: &[u64]) -> Vec<bool> {
        either!(self, filter => filter.contains_hash_many(hashes))
    }

    pub fn add_many(&self, hashes: &[u64], refresh: bool) -> Vec<Result<bool, Full>> {
        if refresh {
            return hashes.iter().map(|hash| self.add(*hash, true)).collect();
        }
        either!(self, filter => filter.insert_hash_if_absent_many(hashes))
    }

    pub fn discard_many(&self, hashes: &[u64]) -> Vec<bool> {
        either!(self, filter => filter.remove_hash_many(hashes))
    }

    pub fn clear(&self) {
        either!(self, filter => filter.clear());
    }

    pub fn len(&self) -> usize {
        either!(self, filter => filter.len())
    }

    pub fn size_in_bytes(&self) -> usize {
        either!(self, filter => filter.size_in_bytes())
    }

    /// The rate that it is planned to have at most.
    pub fn planned_rate(&self) -> f64 {
        either!(self, filter => filter.false_positive_rate_at_capacity())
    }

    pub fn stats(&self) -> Stats {
        either!(self, filter => filter.stats())
    }

    pub fn seed(&self) -> u128 {
        either!(self, filter => filter.hasher().seed())
    }

    pub fn window(&self) -> Option<Window> {
        self.window
    }

    pub fn set_max_bytes(&self, bytes: usize) {
        if let AnyCuckooFilter::Growing(filter) = &self.filter {
            filter.set_max_bytes(bytes);
        }
    }

    pub fn save(&self, path: &Path) -> Result<(), SnapshotError> {
        match either!(self, filter => filter.save(path)) {
            Err(error) if !error.is_in_place() => Err(error),
            _ => Ok(()),
        }
    }

    pub fn write(&self, to: impl Write) -> Result<(), SnapshotError> {
        either!(self, filter => filter.write_to(to)).map(drop)
    }

    pub fn copy(&self) -> Result<Kept, BuildError> {
        let filter = match &self.filter {
            AnyCuckooFilter::Fixed(filter) => AnyCuckooFilter::Fixed(filter.try_clone()?),
            AnyCuckooFilter::Growing(filter) => AnyCuckooFilter::Growing(filter.try_clone()?),
        };
        Ok(Kept { filter, window: self.window })
    }

    /// Takes over what another filter knows, if they are of one kind.
    pub fn union(&self, other: &Kept) -> Option<Result<usize, UnionError>> {
        match (&self.filter, &other.filter) {
            (AnyCuckooFilter::Fixed(one), AnyCuckooFilter::Fixed(other)) => Some(one.union(other)),
            (AnyCuckooFilter::Growing(one), AnyCuckooFilter::Growing(other)) => {
                Some(one.union(other))
            }
            _ => None,
        }
    }
}
