//! A filter, which knows the time if it forgets.

use crate::errors;
use koel::{BuildError, ConcurrentCuckooFilter, Full, Prehashed, SnapshotError, StableHash};
use koel_state::window::Window;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
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
    pub filter: ConcurrentCuckooFilter<StableHash>,
    pub window: Option<Window>,
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
        Ok(Kept { filter, window })
    }

    pub fn load(path: &Path) -> PyResult<Kept> {
        let filter =
            ConcurrentCuckooFilter::load(path).map_err(|error| errors::of_snapshot(&error))?;
        Self::of(filter, &format!("{}: ", path.display()))
    }

    pub fn read(bytes: &[u8]) -> PyResult<Kept> {
        let mut rest = bytes;
        let filter = ConcurrentCuckooFilter::read_from(&mut rest)
            .map_err(|error| errors::of_snapshot(&error))?;
        if !rest.is_empty() {
            return Err(PyValueError::new_err("there are more bytes than those of a filter"));
        }
        Self::of(filter, "")
    }

    /// Takes over what another program may have saved.
    fn of(filter: ConcurrentCuckooFilter<StableHash>, name: &str) -> PyResult<Kept> {
        let window = Window::of(&filter).map_err(|ticks| {
            PyValueError::new_err(format!(
                "{name}it remembers items for {ticks} ticks, which another program counts, so nobody knows \
                 here when to forget one"
            ))
        })?;
        let kept = Kept { filter, window };
        kept.keep_up();
        Ok(kept)
    }

    /// Whether ticks are due.
    #[inline]
    pub fn is_late(&self) -> bool {
        self.window.is_some_and(|window| self.filter.present_tick() < Some(window.number_now()))
    }

    /// Lets the ticks pass that are due.
    pub fn keep_up(&self) {
        if let Some(window) = self.window {
            self.filter.tick_to(window.number_now());
        }
    }

    #[inline]
    pub fn hash_of(&self, bytes: &[u8]) -> Prehashed {
        Prehashed(self.filter.hasher().hash_bytes(bytes))
    }

    #[inline]
    pub fn add(&self, hash: Prehashed, refresh: bool) -> Result<bool, Full> {
        if refresh {
            return self.filter.insert_or_refresh(&hash);
        }
        self.filter.insert_if_absent(&hash)
    }

    pub fn add_many(&self, hashes: &[Prehashed], refresh: bool) -> Vec<Result<bool, Full>> {
        if refresh {
            return self.filter.insert_or_refresh_many(hashes);
        }
        self.filter.insert_if_absent_many(hashes)
    }

    pub fn save(&self, path: &Path) -> Result<(), SnapshotError> {
        match self.filter.save(path) {
            Err(error) if !error.is_in_place() => Err(error),
            _ => Ok(()),
        }
    }

    pub fn copy(&self) -> Result<Kept, BuildError> {
        Ok(Kept { filter: self.filter.try_clone()?, window: self.window })
    }
}
