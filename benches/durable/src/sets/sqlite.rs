//! A table of SQLite whose key is the hash, in WAL mode.

use crate::set::{Kind, Result, Set, item};
use rusqlite::Connection;
use std::ops::Range;
use std::path::Path;

struct Table {
    connection: Connection,
    /// How many adds a transaction has. One has no transaction around it.
    batch: u64,
    /// How many adds the present transaction has.
    begun: u64,
}

pub fn normal(kind: &Kind, folder: &Path, items: u64) -> Result<Box<dyn Set>> {
    open(kind, folder, items, "NORMAL")
}

pub fn off(kind: &Kind, folder: &Path, items: u64) -> Result<Box<dyn Set>> {
    open(kind, folder, items, "OFF")
}

fn open(kind: &Kind, folder: &Path, _: u64, synchronous: &str) -> Result<Box<dyn Set>> {
    let connection = Connection::open(folder.join("seen.sqlite"))?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", synchronous)?;
    connection.execute("CREATE TABLE IF NOT EXISTS seen (hash INTEGER PRIMARY KEY)", ())?;
    // The calls are answered one by one, whatever the transactions are.
    let batch = if kind.name.ends_with("batches") { 1_000 } else { 1 };
    Ok(Box::new(Table { connection, batch, begun: 0 }))
}

impl Set for Table {
    fn add(&mut self, items: Range<u64>) -> Result<u64> {
        let mut insert = self.connection.prepare_cached("INSERT OR IGNORE INTO seen VALUES (?)")?;
        let mut new = 0;
        for number in items {
            if self.batch > 1 && self.begun == 0 {
                self.connection.prepare_cached("BEGIN")?.execute(())?;
            }
            new += insert.execute([item(number).cast_signed()])? as u64;
            self.begun += 1;
            if self.begun == self.batch {
                self.begun = 0;
                if self.batch > 1 {
                    self.connection.prepare_cached("COMMIT")?.execute(())?;
                }
            }
        }
        Ok(new)
    }

    fn look_up(&mut self, items: Range<u64>) -> Result<u64> {
        let mut select = self.connection.prepare_cached("SELECT 1 FROM seen WHERE hash = ?")?;
        let mut found = 0;
        for number in items {
            found += u64::from(select.exists([item(number).cast_signed()])?);
        }
        Ok(found)
    }
}
