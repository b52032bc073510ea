//! What is remembered between runs: the filter, the file it is kept in, and how its lines are compared.

pub mod claim;
pub mod comparison;
pub mod keeper;
pub mod seen;
pub mod url_key;
