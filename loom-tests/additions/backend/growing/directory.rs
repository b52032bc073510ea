//! What models ask of a directory.

use crate::backend::growing::directory::{Directory, SeenEntry};
use crate::backend::growing::site::Entry;
use crate::layout::geometry::Mixed;

impl Directory {
    /// Returns what a lookup saw that read this entry in the list of this level.
    pub fn assume(&self, hash: Mixed, level: u32, entry: Entry) -> SeenEntry<'_> {
        let slot = &self.list(level)[self.index(hash, level)];
        SeenEntry { slot, entry, hash }
    }
}
