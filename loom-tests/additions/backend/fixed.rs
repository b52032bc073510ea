//! What models ask of a fixed filter.

use crate::backend::fixed::Fixed;
use crate::layout::geometry::Geometry;
use crate::layout::sizing::Layout;
use crate::table::Table;

impl Fixed {
    pub fn with_geometry(geometry: Geometry) -> Self {
        Fixed::new(Layout::fixed(geometry, 1)).expect("memory for a small table")
    }

    pub fn table(&self) -> &Table {
        &self.table
    }
}
