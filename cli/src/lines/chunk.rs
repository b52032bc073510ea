//! Chunks of whole lines.

use crate::failure::Failure;

/// The number of bytes read at once.
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
    /// Whether the input ends with the last line, which has no terminator there.
    pub is_completed: bool,
    /// The number of lines that were added, found or removed.
    pub yes: u64,
    /// The number of lines that should be URLs and are not.
    pub not_urls: u64,
    /// The number of lines that do not have the field by which lines are compared.
    pub without_field: u64,
    /// Why an input cannot be read any further, or a line was left out. The chunk has no lines then.
    pub trouble: Option<Trouble>,
    /// Why lines could not be looked up or added. The chunk must not be written then.
    pub failure: Option<Failure>,
}

/// What keeps some of an input from being processed. It is told in the order of the lines.
pub enum Trouble {
    Unreadable(Failure),
    TooLong(Failure),
}

impl Chunk {
    /// Removes all lines.
    pub fn clear(&mut self) {
        self.ends.clear();
        self.is_completed = false;
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
