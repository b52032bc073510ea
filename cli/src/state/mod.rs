//! The state: the filter, the file that keeps it between runs, and how its lines are compared.

pub mod claim;
pub mod comparison;
pub mod figures;
pub mod keeper;
pub mod lookups;
pub mod lower_case;
pub mod refusals;
pub mod scrapy_key;
pub mod seen;
pub mod url_key;
