//! Chunks of whole lines, and how they are cut out of what is read.

use crate::lines::input::Opened;
use memchr::memchr_iter;
use std::io::{self, ErrorKind, Read};

/// How much is read at once. A chunk is larger only if a line is.
pub const CHUNK: usize = 1 << 20;

/// Whole lines, and what becomes of them. Chunks are used again and again.
#[derive(Default)]
pub struct Chunk {
    pub number: u64,
    /// What was read; lines are in it up to the last of `ends`.
    text: Vec<u8>,
    /// Where each line ends, its terminator included.
    ends: Vec<u32>,
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
fn empty(buffer: &mut Vec<u8>) {
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

/// Cuts one input into chunks.
pub struct Cutter {
    input: Opened,
    rules: Rules,
    /// The beginning of a line of which the end was not read yet.
    rest: Vec<u8>,
    /// Lines of this input so far.
    lines: u64,
    over: Option<Over>,
}

/// Why there are no more chunks.
pub enum Over {
    End,
    Unreadable(io::Error),
    TooLong { line: u64 },
}

impl Cutter {
    pub fn new(input: Opened, rules: Rules) -> Self {
        Cutter { input, rules, rest: Vec::new(), lines: 0, over: None }
    }

    /// The next lines, at least one. A last line without a terminator is given one. What follows the last terminator
    /// before an error is no whole line, and left out.
    pub fn fill(&mut self, chunk: &mut Chunk) -> Result<(), Over> {
        if let Some(over) = self.over.take() {
            return Err(over);
        }
        let Chunk { text, ends, .. } = chunk;
        ends.clear();
        if text.capacity() > 8 * CHUNK {
            *text = Vec::new(); // after a long line
        }
        text.resize(CHUNK.max(2 * self.rest.len()), 0);
        text[..self.rest.len()].copy_from_slice(&self.rest);
        let mut filled = self.rest.len();
        empty(&mut self.rest);
        let mut line_start = 0;
        loop {
            if filled == text.len() {
                text.resize(2 * filled, 0);
            }
            // After a long line there is much room, but no more is read at once.
            let most = text.len().min(filled + CHUNK);
            let read = match self.input.reader.read(&mut text[filled..most]) {
                Ok(read) => read,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => {
                    self.over = Some(Over::Unreadable(error));
                    break;
                }
            };
            if read == 0 {
                if filled > line_start {
                    text[filled] = self.rules.terminator;
                    ends.push(filled as u32 + 1);
                }
                self.over = Some(Over::End);
                break;
            }
            for at in memchr_iter(self.rules.terminator, &text[filled..filled + read]) {
                let end = filled + at;
                if end - line_start > self.rules.longest {
                    self.over = Some(Over::TooLong { line: 0 });
                    break;
                }
                ends.push(end as u32 + 1);
                line_start = end + 1;
            }
            filled += read;
            if self.over.is_none() && filled - line_start > self.rules.longest {
                self.over = Some(Over::TooLong { line: 0 });
            }
            let enough = self.input.is_live || filled >= CHUNK;
            if self.over.is_some() || (enough && !ends.is_empty()) {
                break;
            }
        }
        self.lines += ends.len() as u64;
        match &mut self.over {
            None => self.rest.extend_from_slice(&text[line_start..filled]),
            Some(Over::TooLong { line }) => *line = self.lines + 1,
            Some(_) => {}
        }
        match self.over.take_if(|_| ends.is_empty()) {
            None => Ok(()),
            Some(over) => Err(over),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives what it has in pieces of a few bytes.
    struct Pieces(Vec<u8>, usize);

    impl Read for Pieces {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let length = self.0.len().min(self.1).min(into.len());
            into[..length].copy_from_slice(&self.0[..length]);
            self.0.drain(..length);
            Ok(length)
        }
    }

    fn cut(text: &[u8], piece: usize, is_live: bool, longest: usize) -> (Vec<Vec<u8>>, Over) {
        let reader = Box::new(Pieces(text.to_vec(), piece));
        let rules = Rules { terminator: b'\n', longest };
        let mut cutter = Cutter::new(Opened { reader, is_live }, rules);
        let mut lines = Vec::new();
        let mut chunk = Chunk::default();
        loop {
            match cutter.fill(&mut chunk) {
                Ok(()) => lines.extend(chunk.iter().map(<[u8]>::to_vec)),
                Err(over) => return (lines, over),
            }
        }
    }

    #[test]
    fn lines_come_whole_however_they_are_read() {
        let long = [vec![b'x'; 3 * CHUNK], b"\n".to_vec()].concat();
        let texts: [&[u8]; 7] =
            [b"", b"\n", b"a", b"a\nb\n\nc", b"a\r\n\r\n", b"\xFF\0\n\0", &long.repeat(2)];
        for text in texts {
            for piece in [1, 2, 7, CHUNK - 1, CHUNK, 10 * CHUNK] {
                if text.len() > 100 && piece < 100 {
                    continue;
                }
                for is_live in [false, true] {
                    let (lines, over) = cut(text, piece, is_live, 1 << 30);
                    assert!(matches!(over, Over::End));
                    let mut expected = text.to_vec();
                    if !text.is_empty() && !text.ends_with(b"\n") {
                        expected.push(b'\n');
                    }
                    assert_eq!(lines.concat(), expected);
                    assert!(lines.iter().all(|line| memchr_iter(b'\n', line).count() == 1));
                }
            }
        }
    }

    #[test]
    fn a_line_that_is_too_long_is_told_by_its_number() {
        for piece in [1, 3, 100] {
            let (lines, over) = cut(b"abc\nabcd\nabcde\nx\n", piece, false, 4);
            assert_eq!(lines.len(), 2);
            assert!(matches!(over, Over::TooLong { line: 3 }));
            let (lines, over) = cut(b"abc\nabcde", piece, false, 4);
            assert_eq!(lines.len(), 1);
            assert!(matches!(over, Over::TooLong { line: 2 }));
            assert!(matches!(cut(b"abcd", piece, false, 4).1, Over::End));
        }
    }

    #[test]
    fn lines_are_sorted_out_in_their_order() {
        let reader = Box::new(Pieces(b"a\nb\nc\nd\ne\n".to_vec(), 100));
        let rules = Rules { terminator: b'\n', longest: 9 };
        let mut chunk = Chunk::default();
        Cutter::new(Opened { reader, is_live: false }, rules).fill(&mut chunk).ok().unwrap();
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
