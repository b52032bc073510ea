//! What a measured set can do.

use std::error::Error;
use std::ops::Range;
use std::path::Path;

pub type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// A set of hashes that may outlive its process. Items have numbers, and [`item`] tells their hashes.
pub trait Set {
    /// Adds those of the items that are not there, and returns how many these were.
    fn add(&mut self, items: Range<u64>) -> Result<u64>;

    /// Returns how many of the items are there.
    fn look_up(&mut self, items: Range<u64>) -> Result<u64>;

    /// Does what a careful owner does before the set is closed.
    fn settle(&mut self) -> Result<()> {
        Ok(())
    }

    /// The process that has the set.
    fn process(&self) -> u32 {
        std::process::id()
    }
}

/// A set and how it is used.
pub struct Kind {
    /// For the command line.
    pub name: &'static str,
    pub label: &'static str,
    pub group: Group,
    pub threads: u64,
    /// It gets one in so many of the items.
    pub of: u64,
    /// How many items a call is given, and so how many are answered at once.
    pub step: u64,
    /// How many of a million items may be taken for others.
    pub false_positives: u64,
    pub maker: Maker,
    /// What a power failure takes, by its documentation.
    pub power: &'static str,
}

impl Kind {
    /// Whether it gets all items, so that they tell what each takes, and is not on more threads what it is on one.
    pub fn tells_room(&self) -> bool {
        self.of == 1 && self.threads == 1
    }
}

/// Who makes and asks a set.
pub enum Maker {
    /// This program. The function opens the set of so many items in a folder, or makes it.
    Here(fn(&Kind, &Path, u64) -> Result<Box<dyn Set>>),
    /// The script `seen.py`.
    Scrapy,
}

/// What a power failure takes, roughly.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Group {
    Nothing,
    Second,
    Unwritten,
    Corrupt,
    Everything,
}

impl Group {
    pub const ALL: [Group; 5] =
        [Group::Nothing, Group::Second, Group::Unwritten, Group::Corrupt, Group::Everything];

    pub fn title(self) -> &'static str {
        match self {
            Group::Nothing => "A power failure takes nothing",
            Group::Second => "A power failure takes the last second or two",
            Group::Unwritten => {
                "A power failure takes what was not synced yet, of the last half minute or more"
            }
            Group::Corrupt => "A power failure may damage the file",
            Group::Everything => "The end of the process takes everything",
        }
    }
}

/// The hash of an item. Different items have different hashes.
pub fn item(number: u64) -> u64 {
    let z = number.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}
