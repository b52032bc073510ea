//! The operations of a filter, with or without a journal.

use koel::{
    BuildError, ConcurrentCuckooFilter, DurableError, DurableFilter, Full, Prehashed,
    SnapshotError, StableHash, Stats, Window,
};
use std::convert;

/// A filter in memory.
pub type Table = ConcurrentCuckooFilter<StableHash>;

/// A filter with its file.
pub type Durable = DurableFilter<StableHash>;

/// For each item, whether it was new.
pub type Answers = Result<Vec<Result<bool, Full>>, DurableError>;

/// Operations of a filter, with or without a journal. Without one, only a lack of room is an error.
pub trait Set {
    /// Adds an item that is not there. With `refresh`, one that is there is remembered from now on.
    fn add(&self, hash: Prehashed, refresh: bool) -> Result<bool, DurableError>;
    fn contains(&self, hash: Prehashed) -> bool;
    fn discard(&self, hash: Prehashed) -> Result<bool, DurableError>;
    fn add_many(&self, hashes: &[Prehashed], refresh: bool) -> Answers;
    fn contains_many(&self, hashes: &[Prehashed]) -> Vec<bool>;
    fn discard_many(&self, hashes: &[Prehashed]) -> Result<Vec<bool>, DurableError>;
    fn clear(&self) -> Result<(), DurableError>;
    /// Returns memory that is no longer needed to the system, and how many bytes.
    fn compact(&self) -> usize;
    fn present_tick(&self) -> Option<u64>;
    /// Lets the ticks pass that are due.
    fn keep_up(&self) -> Result<u64, DurableError>;
    fn window(&self) -> Option<Window>;
    fn remembers(&self) -> Option<u32>;
    fn len(&self) -> usize;
    fn stats(&self) -> Stats;
    fn copy(&self) -> Result<Table, BuildError>;
    fn write_to(&self, bytes: &mut Vec<u8>) -> Result<(), SnapshotError>;
}

/// Implements `Set` by the methods of a filter. `$result` turns the return value of a change into a `Result`.
macro_rules! set {
    ($filter:ident, $result:path) => {
        impl Set for $filter {
            #[inline]
            fn add(&self, hash: Prehashed, refresh: bool) -> Result<bool, DurableError> {
                match refresh {
                    true => Ok(self.insert_or_refresh(&hash)?),
                    false => Ok(self.insert_if_absent(&hash)?),
                }
            }
            #[inline]
            fn contains(&self, hash: Prehashed) -> bool {
                self.contains(&hash)
            }
            fn discard(&self, hash: Prehashed) -> Result<bool, DurableError> {
                $result(self.remove(&hash))
            }
            fn add_many(&self, hashes: &[Prehashed], refresh: bool) -> Answers {
                match refresh {
                    true => $result(self.insert_or_refresh_many(hashes)),
                    false => $result(self.insert_if_absent_many(hashes)),
                }
            }
            fn contains_many(&self, hashes: &[Prehashed]) -> Vec<bool> {
                self.contains_many(hashes)
            }
            fn discard_many(&self, hashes: &[Prehashed]) -> Result<Vec<bool>, DurableError> {
                $result(self.remove_many(hashes))
            }
            fn clear(&self) -> Result<(), DurableError> {
                $result(self.clear())
            }
            fn compact(&self) -> usize {
                self.shrink()
            }
            fn present_tick(&self) -> Option<u64> {
                self.present_tick()
            }
            fn keep_up(&self) -> Result<u64, DurableError> {
                $result(self.keep_up())
            }
            fn window(&self) -> Option<Window> {
                self.window()
            }
            fn remembers(&self) -> Option<u32> {
                self.remembers()
            }
            fn len(&self) -> usize {
                self.len()
            }
            fn stats(&self) -> Stats {
                self.stats()
            }
            fn copy(&self) -> Result<Table, BuildError> {
                self.try_clone()
            }
            fn write_to(&self, bytes: &mut Vec<u8>) -> Result<(), SnapshotError> {
                self.write_to(bytes).map(|_| ())
            }
        }
    };
}

set!(Table, Ok);
set!(Durable, convert::identity);

/// For how long a filter remembers items. An error if another program counts its ticks.
pub fn window_of(filter: &impl Set) -> Result<Option<Window>, String> {
    match (filter.window(), filter.remembers()) {
        (None, Some(ticks)) => Err(format!(
            "it remembers items for {ticks} ticks, which another program counts, so nobody knows here when to \
             forget one"
        )),
        (window, _) => Ok(window),
    }
}
