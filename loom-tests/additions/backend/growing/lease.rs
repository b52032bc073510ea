//! What models ask of an entry.

use crate::backend::growing::lease::UntilSplit;

impl<W> UntilSplit<'_, W> {
    pub fn depth(self) -> u32 {
        self.seen.depth()
    }
}
