//! What an operation accessed, by kind.

use koel_counted::counting::{Access, Note};
use std::collections::BTreeSet;

const COUNT: usize = size_of::<u32>();

/// The source file of an access, except that a stripe's count, which is smaller than its version,
/// is a `count`.
fn kind(note: &Note) -> &'static str {
    match note.file {
        "table/stripe.rs" if note.bytes == COUNT => "count",
        file => file,
    }
}

/// How often an operation accessed what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tally {
    word_loads: u64,
    version_loads: u64,
    directory_loads: u64,
    lock_swaps: u64,
    lock_stores: u64,
    count_stores: u64,
    word_stores: u64,
    version_stores: u64,
    /// Of locks that are not a stripe's, and of figures that several threads change.
    pub other_swaps: u64,
    /// Of entries of the directory and of figures: a split.
    other_stores: u64,
}

impl Tally {
    /// Counts these accesses. Loads by a holder of a lock of what it is about to store count too.
    pub fn of(notes: &[Note]) -> Tally {
        let mut tally = Tally::default();
        for note in notes {
            let count = match (kind(note), note.access) {
                ("table/mod.rs", Access::Load) => &mut tally.word_loads,
                ("table/mod.rs", Access::Store) => &mut tally.word_stores,
                ("table/stripe.rs", Access::Load) => &mut tally.version_loads,
                ("table/stripe.rs", Access::Store) => &mut tally.version_stores,
                ("count", Access::Load) => continue,
                ("count", Access::Store) => &mut tally.count_stores,
                ("table/lock.rs", Access::Swap) => &mut tally.lock_swaps,
                ("table/lock.rs", Access::Store) => &mut tally.lock_stores,
                ("room/growing/directory.rs", Access::Load) => &mut tally.directory_loads,
                (_, Access::Swap) => &mut tally.other_swaps,
                ("room/growing/directory.rs" | "sync.rs", Access::Store) => &mut tally.other_stores,
                // A figure that is read.
                ("sync.rs", Access::Load) => continue,
                unknown => panic!("a new kind of access: {unknown:?}"),
            };
            *count += 1;
        }
        if tally.searched() {
            // They differ.
            tally.word_loads = 0;
        }
        tally
    }

    pub fn of_other_swaps(other_swaps: u64) -> Tally {
        Tally { other_swaps, ..Tally::default() }
    }

    /// Whether it split a shard.
    pub fn splits(&self) -> bool {
        self.other_stores > 0
    }

    pub fn locks(&self) -> u64 {
        self.lock_swaps
    }

    /// How many versions were stored.
    pub fn versions(&self) -> u64 {
        self.version_stores
    }

    /// How many words were stored.
    pub fn words(&self) -> u64 {
        self.word_stores
    }

    pub fn cells(&self) -> [String; 8] {
        let mut cells = [
            self.word_loads,
            self.version_loads,
            self.directory_loads,
            self.lock_swaps,
            self.lock_stores,
            self.count_stores,
            self.word_stores,
            self.version_stores,
        ]
        .map(|count| count.to_string());
        if self.searched() {
            cells[0] = "many".into();
        }
        cells
    }

    /// Whether it looked for a path to an empty lane, which takes any number of loads.
    fn searched(&self) -> bool {
        self.word_stores > 1
    }
}

/// How many different words, versions and locks operations accessed.
#[derive(Default)]
pub struct Touched([u64; 5]);

impl Touched {
    pub fn add(&mut self, notes: &[Note]) {
        let different = |file, written: bool| {
            let of = notes.iter().filter(|note| kind(note) == file);
            let written = of.filter(|note| !written || note.access != Access::Load);
            written.map(|note| note.address).collect::<BTreeSet<_>>().len() as u64
        };
        let now = [
            different("table/mod.rs", false),
            different("table/mod.rs", true),
            different("table/stripe.rs", false),
            different("table/stripe.rs", true),
            different("table/lock.rs", true),
        ];
        for (sum, count) in self.0.iter_mut().zip(now) {
            *sum += count;
        }
    }

    pub fn sums(&self) -> [u64; 5] {
        self.0
    }
}

/// The eight bytes, of which each cache line has eight, that each store to this kind went to.
pub fn eights(notes: &[Note], file: &str) -> BTreeSet<usize> {
    let stores = notes.iter().filter(|note| kind(note) == file && note.access != Access::Load);
    stores.map(|note| note.address / 8).collect()
}
