//! The state: the filter, the file that keeps it between runs, and how its lines are compared.

pub mod comparison;
pub mod keeper;
pub mod keys;
pub mod seen;
