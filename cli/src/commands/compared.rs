//! What makes two lines equal, in words: what a run without loss promises depends on it.

use crate::lines::rules::{Field, Rules};
use crate::state::comparison::Comparison;
use std::fmt::{self, Display};

/// How the lines of a run were compared.
pub struct Compared {
    pub comparison: Comparison,
    pub rules: Rules,
}

impl Display for Compared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.rules.field {
            None => {}
            Some(Field::Numbered { number, .. }) => write!(f, "by field {number}, ")?,
            Some(Field::Json(path)) => write!(f, "by JSON field {}, ", path.names().join("."))?,
        }
        match self.comparison {
            Comparison::Bytes => f.write_str("byte by byte")?,
            Comparison::IgnoringCase => f.write_str("in lower case (--ignore-case)")?,
            urls @ Comparison::Urls(_) => write!(f, "as {urls}")?,
        }
        f.write_str(if self.rules.folds_cr { ", ignoring a CR before the newline" } else { "" })
    }
}
