//! Chunks of whole lines.

use crate::failure::Failure;
use crate::lines::packing::{Form, Piece};
use std::ops::AddAssign;

/// The number of bytes read at once.
pub const CHUNK: usize = 1 << 20;

/// The number of bytes of a buffer for files that are read or written in small steps.
pub const BUFFER: usize = 64 << 10;

/// The number of bytes of a buffer that is kept for the next chunk. A long line takes more.
pub const MOST_KEPT: usize = 8 * CHUNK;

/// Whole lines, and what became of them. Chunks are reused.
#[derive(Default)]
pub struct Chunk {
    pub number: u64,
    /// The number of the source of the lines, and how it is compressed.
    pub source: usize,
    pub form: Option<Form>,
    /// Whether nothing of the source follows. Such a chunk has no lines.
    pub is_last: bool,
    /// The bytes that were read. The lines end at the last of `ends`.
    pub text: Vec<u8>,
    /// The end of each line, including its terminator.
    pub ends: Vec<u32>,
    /// Whether the input ends with the last line, which has no terminator there.
    pub is_completed: bool,
    /// The answer for each line.
    pub answers: Vec<bool>,
    /// The lines to write.
    pub selected: Vec<u8>,
    /// The same, compressed, if they go into a gzip file.
    pub packed: Piece,
    /// The lines to set aside.
    pub aside: Vec<u8>,
    pub counts: Counts,
    pub fault: Option<Fault>,
}

/// What keeps lines from being processed. It is reported in the order of the lines.
pub enum Fault {
    /// Some of an input is left out, as the counts say. The chunk has no lines.
    LeftOut(Failure),
    /// The lines could not be looked up or added. They must not be written, and the run ends.
    Failed(Failure),
}

/// The counts of some lines.
#[derive(Clone, Copy, Default)]
pub struct Counts {
    pub lines: u64,
    /// Bytes of the lines, after decompression.
    pub bytes: u64,
    /// Lines that were added, found or removed.
    pub yes: u64,
    /// Lines that were selected, whether they are written or only counted.
    pub selected: u64,
    /// Lines that could not be removed: the filter has forgotten what tells them apart.
    pub kept: u64,
    /// Lines that should be URLs and are not.
    pub not_urls: u64,
    /// Lines that do not have the field by which lines are compared.
    pub without_field: u64,
    /// Inputs that could not be read completely.
    pub unreadable: u64,
    /// Lines that were left out, because they are too long. They are not counted elsewhere.
    pub too_long: u64,
    /// Records of which paragraphs are compared. Their paragraphs are the lines of all other counts.
    pub records: u64,
    /// Records that were left out, because no paragraph is left of them.
    pub emptied: u64,
}

impl AddAssign for Counts {
    fn add_assign(&mut self, more: Counts) {
        self.lines += more.lines;
        self.bytes += more.bytes;
        self.yes += more.yes;
        self.selected += more.selected;
        self.kept += more.kept;
        self.not_urls += more.not_urls;
        self.without_field += more.without_field;
        self.unreadable += more.unreadable;
        self.too_long += more.too_long;
        self.records += more.records;
        self.emptied += more.emptied;
    }
}

impl Chunk {
    /// Removes all lines.
    pub fn clear(&mut self) {
        self.ends.clear();
        (self.is_completed, self.is_last) = (false, false);
        empty(&mut self.selected);
        empty(&mut self.aside);
        (self.counts, self.fault) = (Counts::default(), None);
    }

    pub fn lines(&self) -> usize {
        self.ends.len()
    }

    /// The number of bytes of the lines, as they are in the input.
    pub fn bytes(&self) -> u64 {
        let end = self.ends.last().map_or(0, |&end| u64::from(end));
        end.saturating_sub(u64::from(self.is_completed))
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
    pub fn sort_out(&mut self, choose: bool, put_aside: bool) {
        let Chunk { text, ends, answers, selected, aside, .. } = self;
        let mut put = |chosen: bool, lines: &[u8]| match chosen {
            true => selected.extend_from_slice(lines),
            false if put_aside => aside.extend_from_slice(lines),
            false => {}
        };
        // Adjacent lines with the same answer are copied at once.
        let (mut start, mut line_start, mut run) = (0, 0, choose);
        for (&end, &answer) in ends.iter().zip(&*answers) {
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
    if buffer.capacity() > MOST_KEPT {
        *buffer = Vec::new();
    }
}
