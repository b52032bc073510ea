//! Chunks of whole lines.

use crate::arguments::common::LongLines;
use crate::failure::Failure;
use koel::Prehashed;

/// The number of bytes read at once. A chunk is larger only if a line is.
pub const CHUNK: usize = 1 << 20;

/// Whole lines, and the result of processing them. Chunks are reused.
#[derive(Default)]
pub struct Chunk {
    pub number: u64,
    /// The bytes that were read. The lines end at the last of `ends`.
    pub text: Vec<u8>,
    /// The end of each line, including its terminator.
    pub ends: Vec<u32>,
    /// The lines to write.
    pub selected: Vec<u8>,
    pub selected_lines: u64,
    /// The lines to set aside.
    pub aside: Vec<u8>,
    /// The answer for each line, if the run may end in the middle of a chunk.
    pub answers: Vec<bool>,
    /// Whether the text is a piece of a line that is passed on as it is. There are no `ends` then.
    pub is_raw: bool,
    /// Whether the input ends with the last line, which has no terminator there.
    pub is_completed: bool,
    /// The number of lines that were added, found or removed.
    pub yes: u64,
    /// The number of lines that should be URLs and are not.
    pub not_urls: u64,
    /// The number of lines that do not have the field by which lines are compared.
    pub without_field: u64,
    /// The hashes that were added to a state, in the order of their lines if the output is a pipe; and those that were
    /// refreshed in a state with a journal.
    pub added: Vec<Prehashed>,
    pub refreshed: Vec<Prehashed>,
    /// The record of that for the journal. Empty if there is nothing to record.
    pub record: Vec<u8>,
    /// Whether a line could not be added. The chunk must not be written then.
    pub full: bool,
    /// Why lines could not be looked up. The chunk must not be written then either.
    pub failure: Option<Failure>,
}

impl Chunk {
    pub fn lines(&self) -> usize {
        self.ends.len()
    }

    /// The number of bytes of the lines, as they are in the input.
    pub fn bytes(&self) -> usize {
        self.ends.last().map_or(0, |&end| end as usize - usize::from(self.is_completed))
    }

    /// Leaves out the lines after the first `lines`.
    pub fn truncate(&mut self, lines: usize) {
        let written = self.iter().zip(&self.answers).take(lines).filter(|(_, chosen)| **chosen);
        let bytes = written.map(|(line, _)| line.len()).sum();
        self.selected.truncate(bytes);
        self.is_completed &= lines == self.lines();
        self.ends.truncate(lines);
        self.answers.truncate(lines);
    }

    /// Iterates over the lines, with their terminators.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let mut start = 0;
        self.ends.iter().map(move |&end| {
            let line = &self.text[start..end as usize];
            start = end as usize;
            line
        })
    }

    /// Copies the lines whose answer is `choose` to `selected` and, if `put_aside`, the others to
    /// `aside`.
    pub fn sort_out(&mut self, answers: &[bool], choose: bool, put_aside: bool) {
        let Chunk { text, ends, selected, aside, .. } = self;
        empty(selected);
        empty(aside);
        let mut put = |chosen: bool, lines: &[u8]| match chosen {
            true => selected.extend_from_slice(lines),
            false if put_aside => aside.extend_from_slice(lines),
            false => {}
        };
        // Adjacent lines with the same answer are copied at once.
        let (mut start, mut line_start, mut run) = (0, 0, choose);
        for (&end, &answer) in ends.iter().zip(answers) {
            if answer != run {
                put(run == choose, &text[start..line_start]);
                (start, run) = (line_start, answer);
            }
            line_start = end as usize;
        }
        put(run == choose, &text[start..line_start]);
    }
}

/// Clears a buffer, and frees the extra memory that a long line took.
pub fn empty(buffer: &mut Vec<u8>) {
    buffer.clear();
    if buffer.capacity() > 8 * CHUNK {
        *buffer = Vec::new();
    }
}

/// A field of a line.
#[derive(Clone, Copy)]
pub struct Field {
    /// Its number, from 1.
    pub number: usize,
    /// The byte between two fields.
    pub delimiter: u8,
}

impl Field {
    /// Returns this field of a line, if the line has so many.
    #[inline]
    fn of(self, line: &[u8]) -> Option<&[u8]> {
        let start = match self.number {
            ..=1 => 0,
            number => memchr::memchr_iter(self.delimiter, line).nth(number - 2)? + 1,
        };
        let field = &line[start..];
        Some(&field[..memchr::memchr(self.delimiter, field).unwrap_or(field.len())])
    }
}

/// The rules for lines.
#[derive(Clone, Copy)]
pub struct Rules {
    /// The byte that ends a line.
    pub terminator: u8,
    /// Whether a carriage return before the terminator is part of it.
    pub folds_cr: bool,
    /// The field by which lines are compared, if not as a whole.
    pub field: Option<Field>,
    /// The length of the longest line that is compared.
    pub longest: usize,
    /// What happens to longer lines.
    pub longer: LongLines,
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

    /// Returns the part of a line that is compared, and `false` if that is the whole line because it
    /// does not have the field.
    #[inline]
    pub fn compared(self, line: &[u8]) -> (&[u8], bool) {
        let bare = self.bare(line);
        let Some(field) = self.field else { return (bare, true) };
        match field.of(bare) {
            Some(part) => (part, true),
            None => (bare, false),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_sorted_out_in_their_order() {
        let (text, ends) = (b"a\nb\nc\nd\ne\n".to_vec(), vec![2, 4, 6, 8, 10]);
        let mut chunk = Chunk { text, ends, ..Chunk::default() };
        for bits in 0..32u32 {
            let chosen: Vec<bool> = (0..5).map(|line| bits >> line & 1 == 1).collect();
            let pick = |wanted: bool| -> Vec<u8> {
                let lines = chunk.iter().zip(&chosen).filter(|(_, chosen)| **chosen == wanted);
                lines.flat_map(|(line, _)| line.to_vec()).collect()
            };
            let (selected, aside) = (pick(true), pick(false));
            chunk.sort_out(&chosen, true, true);
            assert_eq!((&chunk.selected, &chunk.aside), (&selected, &aside));
            chunk.sort_out(&chosen, false, true);
            assert_eq!((&chunk.selected, &chunk.aside), (&aside, &selected));
            chunk.sort_out(&chosen, true, false);
            assert_eq!((&chunk.selected, chunk.aside.len()), (&selected, 0));
        }
    }

    #[test]
    fn carriage_returns_belong_to_the_end_of_a_line() {
        let rules = |terminator| {
            let folds_cr = terminator == b'\n';
            Rules { terminator, folds_cr, field: None, longest: 9, longer: LongLines::Stop }
        };
        assert_eq!(rules(b'\n').bare(b"a\r\n"), b"a");
        assert_eq!(rules(b'\n').bare(b"a\r\r\n"), b"a\r");
        assert_eq!(rules(b'\n').bare(b"\n"), b"");
        assert_eq!(rules(b'\n').bare(b"\r\n"), b"");
        assert_eq!(rules(0).bare(b"a\r\0"), b"a\r");
    }

    #[test]
    fn a_field_is_what_is_between_delimiters() {
        for (number, line, expected) in [
            (1, &b"a,b,c"[..], Some(&b"a"[..])),
            (2, b"a,b,c", Some(b"b")),
            (3, b"a,b,c", Some(b"c")),
            (4, b"a,b,c", None),
            (1, b"", Some(b"")),
            (2, b"", None),
            (1, b"a", Some(b"a")),
            (1, b",a", Some(b"")),
            (2, b"a,", Some(b"")),
            (3, b",,", Some(b"")),
            (usize::MAX, b",,", None),
        ] {
            assert_eq!(Field { number, delimiter: b',' }.of(line), expected, "{number}");
        }
    }

    #[test]
    fn a_line_without_the_field_is_compared_as_a_whole() {
        let rules = Rules {
            terminator: b'\n',
            folds_cr: true,
            field: Some(Field { number: 2, delimiter: b',' }),
            longest: 9,
            longer: LongLines::Stop,
        };
        assert_eq!(rules.compared(b"a,b\r\n"), (&b"b"[..], true));
        assert_eq!(rules.compared(b"a\r\n"), (&b"a"[..], false));
        let whole = Rules { field: None, ..rules };
        assert_eq!(whole.compared(b"a,b\r\n"), (&b"a,b"[..], true));
    }
}
