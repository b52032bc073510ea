//! What models ask of an entry.

use crate::backend::growing::until_split::UntilSplit;

impl<const WIDE: bool> UntilSplit<'_, WIDE> {
    pub fn depth(self) -> u32 {
        self.seen.depth()
    }
}
