//! The paragraphs of a text, which is the field of a record of JSON.

use crate::lines::json;
use crate::lines::rules::{Field, Keys};
use koel::Prehashed;
use std::ops::Range;

/// A paragraph of a record, or a record that has none.
pub struct Paragraph {
    pub hash: Prehashed,
    /// Whether it is of the kind that the comparison expects.
    pub is_expected: bool,
    /// Whether it is one.
    pub has_field: bool,
    /// Where it is in its chunk, with the newline and the blank lines after it.
    pub range: Range<usize>,
}

impl Keys {
    /// Appends the paragraphs of a record that begins there in its chunk. If it does not have such a text, it is
    /// compared as a whole.
    pub fn add_paragraphs(&mut self, line: &[u8], at: usize, into: &mut Vec<Paragraph>) {
        let first = into.len();
        if self.find_paragraphs(line, at, into).is_none() || into.len() == first {
            into.truncate(first);
            let (bytes, is_expected) =
                self.hash.comparison().key(self.rules.bare(line), &mut self.scratch);
            let (hash, range) = (self.hash.of_key(bytes), at..at + line.len());
            into.push(Paragraph { hash, is_expected, has_field: false, range });
        }
    }

    /// Returns `None` if the record does not have such a text.
    fn find_paragraphs(&mut self, line: &[u8], at: usize, into: &mut Vec<Paragraph>) -> Option<()> {
        let Keys { rules, hash, scratch, field } = self;
        let Some(Field::Paragraphs(path)) = rules.field else { return None };
        let text = json::text_in(rules.bare(line), path.names(), field)?;
        let (mut start, first) = (text.start, into.len());
        while start < text.end {
            let (length, next) = json::first_line(&line[start..text.end]);
            let decoded = json::decode(&line[start..start + length], field)?;
            let carriage = if rules.folds_cr { &b"\r"[..] } else { b"" };
            let bare = decoded.strip_suffix(carriage).unwrap_or(decoded);
            let range = at + start..at + start + next;
            start += next;
            if !bare.trim_ascii().is_empty() {
                let (bytes, is_expected) = hash.comparison().key(bare, scratch);
                let hash = hash.of_key(bytes);
                into.push(Paragraph { hash, is_expected, has_field: true, range });
            } else if let Some(before) = into[first..].last_mut() {
                before.range.end = range.end;
            }
        }
        Some(())
    }
}
