//! Rules for lines: where they end, and which part of them is compared.

use crate::arguments::values::JsonPath;
use crate::lines::chunk::{MOST_KEPT, empty};
use crate::lines::json;
use crate::state::comparison::{LineHash, Scratch};
use koel::Prehashed;
use serde::{Deserialize, Serialize};

/// A field of a line.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub enum Field {
    /// The field with this number, from 1, of a line in which this byte is between two fields. A line without the byte
    /// has no fields.
    Numbered { number: usize, delimiter: u8 },
    /// The field of a JSON object.
    Json(JsonPath),
    /// The paragraphs of a text, which is the field of a JSON object.
    Paragraphs(JsonPath),
}

impl Field {
    /// Returns this field of a line, if the line has it: a part of either the line or `scratch`.
    #[inline]
    fn of<'a>(self, line: &'a [u8], scratch: &'a mut Vec<u8>) -> Option<&'a [u8]> {
        match self {
            Field::Numbered { number, delimiter } => {
                let mut ends = memchr::memchr_iter(delimiter, line);
                let start = match number {
                    ..=1 => return ends.next().map(|end| &line[..end]),
                    number => ends.nth(number - 2)? + 1,
                };
                Some(&line[start..ends.next().unwrap_or(line.len())])
            }
            Field::Json(path) | Field::Paragraphs(path) => json::find(line, path.names(), scratch),
        }
    }
}

/// The rules for lines.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub struct Rules {
    /// The byte that ends a line.
    pub terminator: u8,
    /// Whether a carriage return before the terminator is part of it.
    pub folds_cr: bool,
    /// The field by which lines are compared, if not as a whole.
    pub field: Option<Field>,
}

impl Rules {
    /// Returns a line without its terminator.
    #[inline]
    pub fn bare(self, line: &[u8]) -> &[u8] {
        let line = &line[..line.len() - 1];
        match line.split_last() {
            Some((b'\r', bare)) if self.folds_cr => bare,
            _ => line,
        }
    }
}

/// Finds what lines are compared by, in buffers that are reused from line to line.
pub struct Keys {
    pub rules: Rules,
    pub(super) hash: LineHash,
    pub(super) scratch: Scratch,
    pub(super) field: Vec<u8>,
}

/// What a line is compared by.
pub struct Key<'a> {
    pub bytes: &'a [u8],
    pub hash: Prehashed,
    /// Whether the line is of the kind that the comparison expects.
    pub is_expected: bool,
    /// Whether the line has the field by which lines are compared, if there is one.
    pub has_field: bool,
}

impl Keys {
    pub fn new(rules: Rules, hash: LineHash) -> Self {
        Keys { rules, hash, scratch: Scratch::default(), field: Vec::new() }
    }

    #[inline(always)] // once a line; the compiler does not by itself
    pub fn key<'a>(&'a mut self, line: &'a [u8]) -> Key<'a> {
        let bare = self.rules.bare(line);
        let (part, has_field) = match self.rules.field {
            None => (bare, true),
            // A line that does not have the field is compared as a whole.
            Some(field) => match field.of(bare, &mut self.field) {
                Some(part) => (part, true),
                None => (bare, false),
            },
        };
        let (bytes, is_expected) = self.hash.comparison().key(part, &mut self.scratch);
        Key { bytes, hash: self.hash.of_key(bytes), is_expected, has_field }
    }

    /// Returns the hash of a line, or those of its paragraphs.
    pub fn hashes(&mut self, line: &[u8]) -> Vec<Prehashed> {
        let Some(Field::Paragraphs(_)) = self.rules.field else { return vec![self.key(line).hash] };
        let mut paragraphs = Vec::new();
        self.add_paragraphs(line, 0, &mut paragraphs);
        paragraphs.iter().map(|paragraph| paragraph.hash).collect()
    }

    /// Gives back what a long line took.
    pub fn shrink(&mut self) {
        self.scratch.shrink(MOST_KEPT);
        empty(&mut self.field);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_what_is_between_delimiters() {
        for (number, line, expected) in [
            (1, &b"a,b,c"[..], Some(&b"a"[..])),
            (2, b"a,b,c", Some(b"b")),
            (3, b"a,b,c", Some(b"c")),
            (4, b"a,b,c", None),
            (1, b"", None),
            (2, b"", None),
            (1, b"a", None),
            (2, b"a", None),
            (1, b",a", Some(b"")),
            (2, b"a,", Some(b"")),
            (3, b",,", Some(b"")),
            (usize::MAX, b",,", None),
        ] {
            let field = Field::Numbered { number, delimiter: b',' };
            assert_eq!(field.of(line, &mut Vec::new()), expected, "{number}");
        }
    }
}
