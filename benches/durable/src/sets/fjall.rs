//! A log-structured store whose keys are the hashes.

use crate::set::{Kind, Result, Set, item};
use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};
use std::ops::Range;
use std::path::Path;

struct Store {
    database: Database,
    seen: Keyspace,
    /// Whether each change is synced.
    syncs: bool,
}

pub fn default(_: &Kind, folder: &Path, _: u64) -> Result<Box<dyn Set>> {
    open(folder, false)
}

pub fn each(_: &Kind, folder: &Path, _: u64) -> Result<Box<dyn Set>> {
    open(folder, true)
}

fn open(folder: &Path, syncs: bool) -> Result<Box<dyn Set>> {
    let database = Database::builder(folder).open()?;
    let seen = database.keyspace("seen", KeyspaceCreateOptions::default)?;
    Ok(Box::new(Store { database, seen, syncs }))
}

impl Set for Store {
    fn add(&mut self, items: Range<u64>) -> Result<u64> {
        let mut new = 0;
        for number in items {
            let key = item(number).to_be_bytes();
            if !self.seen.contains_key(key)? {
                self.seen.insert(key, [])?;
                if self.syncs {
                    self.database.persist(PersistMode::SyncData)?;
                }
                new += 1;
            }
        }
        Ok(new)
    }

    fn look_up(&mut self, items: Range<u64>) -> Result<u64> {
        let mut found = 0;
        for number in items {
            found += u64::from(self.seen.contains_key(item(number).to_be_bytes())?);
        }
        Ok(found)
    }
}
