//! The size of the table that is measured, and whether there is enough memory for it.

use super::workloads::fixed;
use indicatif::BinaryBytes;
use koel::Stats;

/// In a smaller table, threads would mostly wait for each other.
const LEAST: u64 = 64 << 10;

/// A description of the table.
pub struct Table {
    /// The number of items that are certain to fit.
    pub items: u64,
    pub stats: Stats,
}

impl Table {
    /// Plans a table of about `size` bytes.
    pub fn of(size: u64) -> Result<Table, String> {
        if size < LEAST {
            let (size, least) = (BinaryBytes(size), BinaryBytes(LEAST));
            return Err(format!(
                "a table of {size} is too small to measure; use a --size of at least {least}"
            ));
        }
        // While it grows, the growing filter takes nearly twice as much.
        let most = size.saturating_mul(5) / 2;
        if let Some(free) = free_memory().filter(|&free| free < most) {
            let (most, free) = (BinaryBytes(most), BinaryBytes(free));
            return Err(format!(
                "not enough memory: the filters take up to {most}, and {free} is free; use a \
                 smaller --size"
            ));
        }
        // Sizes are almost proportional to capacities, so one correction is enough.
        let guess = size / 17 * 8;
        let built = Table::for_items(guess)?.stats.size_in_bytes as f64;
        Table::for_items((guess as f64 * (size as f64 / built)) as u64)
    }

    fn for_items(items: u64) -> Result<Table, String> {
        Ok(Table { items, stats: fixed(items)?.stats() })
    }
}

/// Returns the available memory, if the system reports it. An allocation may succeed beyond that,
/// and the process be killed later.
fn free_memory() -> Option<u64> {
    available(&std::fs::read_to_string("/proc/meminfo").ok()?)
}

fn available(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1_024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_as_large_as_they_were_asked_to_be() {
        for size in [64 << 10, 1 << 20, 3_000_000, 32 << 20, 100 << 20] {
            let table = Table::of(size).unwrap();
            let (bytes, load) =
                (table.stats.size_in_bytes as f64, table.items as f64 / table.stats.slots as f64);
            assert!((0.97..1.03).contains(&(bytes / size as f64)), "{size}: {bytes}");
            assert!((0.91..0.95).contains(&load), "{size}: {load}");
            assert_eq!(table.stats.fingerprint_bits, 16);
        }
    }

    #[test]
    fn what_cannot_be_had_is_refused() {
        for size in [1, LEAST - 1, 100 << 40, u64::MAX] {
            let error = Table::of(size).err().unwrap();
            assert!(error.contains("--size"), "{error}");
        }
    }

    #[test]
    fn what_is_free_is_read() {
        let text = "MemTotal:  100 kB\nMemFree:   10 kB\nMemAvailable:   24055552 kB\n";
        assert_eq!(available(text), Some(24_055_552 * 1_024));
        assert_eq!(available("MemTotal: 100 kB\n"), None);
    }
}
