//! The keys of lines that are not compared byte by byte.

pub mod lower_case;
pub mod url_key;
