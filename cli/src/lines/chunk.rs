//! Chunks of whole lines.

/// How much is read at once. A chunk is larger only if a line is.
pub const CHUNK: usize = 1 << 20;

/// Whole lines, and what becomes of them. Chunks are used again and again.
#[derive(Default)]
pub struct Chunk {
    pub number: u64,
    /// What was read; lines are in it up to the last of `ends`.
    pub text: Vec<u8>,
    /// Where each line ends, its terminator included.
    pub ends: Vec<u32>,
    /// What is to be written.
    pub selected: Vec<u8>,
    pub selected_lines: u64,
    /// What is to be put aside.
    pub aside: Vec<u8>,
    /// Lines that were added, found, or taken out, whatever is done with this chunk.
    pub yes: u64,
    /// Lines that are compared as they are, though they should be URLs.
    pub not_urls: u64,
    /// Nothing more could be added: this chunk must not be written.
    pub full: bool,
}

impl Chunk {
    pub fn lines(&self) -> usize {
        self.ends.len()
    }

    pub fn bytes(&self) -> usize {
        self.ends.last().map_or(0, |&end| end as usize)
    }

    /// The lines with their terminators.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let mut start = 0;
        self.ends.iter().map(move |&end| {
            let line = &self.text[start..end as usize];
            start = end as usize;
            line
        })
    }

    /// Puts the lines that have the answer which is chosen into `selected`, and the others aside if that is asked for.
    pub fn sort_out(&mut self, answers: &[bool], choose: bool, put_aside: bool) {
        let Chunk { text, ends, selected, aside, .. } = self;
        empty(selected);
        empty(aside);
        let mut put = |chosen: bool, lines: &[u8]| match chosen {
            true => selected.extend_from_slice(lines),
            false if put_aside => aside.extend_from_slice(lines),
            false => {}
        };
        // Lines that lie side by side are copied at once.
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

/// Makes a buffer empty. What it took for a long line is given back.
pub fn empty(buffer: &mut Vec<u8>) {
    buffer.clear();
    if buffer.capacity() > 8 * CHUNK {
        *buffer = Vec::new();
    }
}

/// What is asked of lines.
#[derive(Clone, Copy)]
pub struct Rules {
    /// The byte that ends a line.
    pub terminator: u8,
    /// The longest that is taken.
    pub longest: usize,
}

impl Rules {
    /// A line without its terminator, which may be a carriage return and a newline.
    #[inline]
    pub fn bare(self, line: &[u8]) -> &[u8] {
        let line = &line[..line.len() - 1];
        match line.split_last() {
            Some((b'\r', bare)) if self.terminator == b'\n' => bare,
            _ => line,
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
        let rules = |terminator| Rules { terminator, longest: 9 };
        assert_eq!(rules(b'\n').bare(b"a\r\n"), b"a");
        assert_eq!(rules(b'\n').bare(b"a\r\r\n"), b"a\r");
        assert_eq!(rules(b'\n').bare(b"\n"), b"");
        assert_eq!(rules(b'\n').bare(b"\r\n"), b"");
        assert_eq!(rules(0).bare(b"a\r\0"), b"a\r");
    }
}
