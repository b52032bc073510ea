//! Cuts an input into chunks of whole lines.

use crate::lines::chunk::{CHUNK, Chunk, Rules, empty};
use crate::lines::input::Opened;
use memchr::memchr_iter;
use std::io::{self, ErrorKind, Read};

/// Cuts one input into chunks.
pub struct Cutter {
    input: Opened,
    rules: Rules,
    /// The beginning of a line whose end has not been read yet.
    rest: Vec<u8>,
    /// The number of lines cut so far.
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

    /// Fills a chunk with the next lines, at least one.
    ///
    /// If the last line has no terminator, one is added. If reading fails, the incomplete line
    /// before the error is left out.
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
            // After a long line the buffer is large, but no more than usual is read at once.
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

    /// A reader that returns its bytes in pieces of a given size.
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
    fn a_line_that_is_too_long_is_reported_by_its_number() {
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
}
