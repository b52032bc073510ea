//! Cuts an input into chunks of whole lines.

use crate::lines::chunk::{CHUNK, Chunk, empty};
use crate::lines::input::Opened;
use memchr::memchr_iter;
use std::io::{self, ErrorKind, Read};

/// The most bytes of a line. Lines are held in memory, several at a time.
const LONGEST: usize = 256 << 20;

/// Cuts one input into chunks.
pub struct Cutter {
    input: Opened,
    terminator: u8,
    /// The most bytes of a line without its terminator. A longer one is given up.
    longest: usize,
    /// The beginning of a line whose end has not been read yet.
    rest: Vec<u8>,
    /// Why there are no more chunks: the input has ended, or cannot be read any further.
    over: Option<io::Result<()>>,
}

impl Cutter {
    pub fn new(input: Opened, terminator: u8) -> Self {
        Cutter { input, terminator, longest: LONGEST, rest: Vec::new(), over: None }
    }

    /// Fills a chunk with the next lines, at least one. Returns `false` if there are no more.
    ///
    /// If the last line has no terminator, one is added. If reading fails, the incomplete line
    /// before the error is left out.
    pub fn fill(&mut self, chunk: &mut Chunk) -> io::Result<bool> {
        chunk.clear();
        let Chunk { text, ends, is_completed, .. } = chunk;
        if text.capacity() > 8 * CHUNK {
            *text = Vec::new();
        }
        text.resize(CHUNK.max(2 * self.rest.len()), 0);
        text[..self.rest.len()].copy_from_slice(&self.rest);
        let (mut scanned, mut filled) = (self.rest.len(), self.rest.len());
        empty(&mut self.rest);
        while self.over.is_none() {
            if filled == text.len() {
                text.resize(2 * filled, 0);
            }
            // The buffer may be larger than a chunk, but no more than usual is read at once.
            let most = text.len().min(filled + CHUNK);
            match self.input.reader.read(&mut text[filled..most]) {
                Ok(0) => {
                    if filled > ends.last().map_or(0, |&end| end as usize) {
                        text[filled] = self.terminator;
                        ends.push(filled as u32 + 1);
                        *is_completed = true;
                    }
                    self.over = Some(Ok(()));
                }
                Ok(read) => filled += read,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => self.over = Some(Err(error)),
            }
            let found = memchr_iter(self.terminator, &text[scanned..filled]);
            ends.extend(found.map(|at| (scanned + at) as u32 + 1));
            scanned = filled;
            // Only the first line of a chunk is longer than what is read at once.
            if ends.first().map_or(filled, |&end| end as usize - 1) > self.longest {
                ends.clear();
                let what = format!("a line is longer than {} MiB", self.longest >> 20);
                self.over = Some(Err(io::Error::other(what)));
            }
            if !ends.is_empty() && (self.input.is_live || filled >= CHUNK) {
                break;
            }
        }
        if self.over.is_none() {
            let end = ends.last().map_or(0, |&end| end as usize);
            self.rest.extend_from_slice(&text[end..filled]);
        }
        match self.over.take_if(|_| ends.is_empty()) {
            None => Ok(true),
            Some(over) => over.map(|()| false),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A reader that returns its bytes in pieces of a given size.
    struct Pieces(io::Cursor<Vec<u8>>, usize);

    impl Read for Pieces {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let most = into.len().min(self.1);
            self.0.read(&mut into[..most])
        }
    }

    /// Reads a text in pieces of this size. Returns its lines, and whether it was read to its end.
    fn cut(text: &[u8], piece: usize, is_live: bool, longest: usize) -> (Vec<Vec<u8>>, bool) {
        let reader = Box::new(Pieces(io::Cursor::new(text.to_vec()), piece));
        let mut cutter = Cutter { longest, ..Cutter::new(Opened { reader, is_live }, b'\n') };
        let (mut lines, mut chunk) = (Vec::new(), Chunk::default());
        loop {
            match cutter.fill(&mut chunk) {
                Ok(true) => lines.extend(chunk.iter().map(<[u8]>::to_vec)),
                end => return (lines, end.is_ok()),
            }
            assert!(!chunk.ends.is_empty());
        }
    }

    #[test]
    fn a_line_is_too_long_wherever_it_begins_and_however_it_is_read() {
        let longest = 3 * CHUNK / 2;
        for before in [0, 1, CHUNK / 2, CHUNK, 5 * CHUNK / 4] {
            for piece in [7, CHUNK - 1, CHUNK, 10 * CHUNK] {
                for (length, is_right) in [(longest, true), (longest + 1, false)] {
                    for ending in [&b"\n"[..], b""] {
                        let (first, line) = (vec![b'a'; before], vec![b'b'; length]);
                        let text = [&first[..], b"\n", &line, ending].concat();
                        let (lines, is_whole) = cut(&text, piece, piece == 7, longest);
                        assert_eq!(is_whole, is_right, "{before} {piece} {length}");
                        assert_eq!(lines.len(), 1 + usize::from(is_right));
                    }
                }
            }
        }
    }

    #[test]
    fn lines_come_whole_however_they_are_read() {
        let long = [vec![b'x'; 3 * CHUNK], b"\n".to_vec()].concat();
        let among = [b"a\n", &long[..], b"b\n", &long, &long, b"abcd\nabcde\nc"].concat();
        let texts: [&[u8]; 8] =
            [b"", b"\n", b"a", b"a\nb\n\nc", b"a\r\n\r\n", b"\xFF\0\n\0", &long.repeat(2), &among];
        for text in texts {
            for piece in [1, 2, 7, CHUNK - 1, CHUNK, 10 * CHUNK] {
                if text.len() > 100 && piece < 100 {
                    continue;
                }
                for is_live in [false, true] {
                    let (lines, is_whole) = cut(text, piece, is_live, LONGEST);
                    assert!(is_whole);
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
}
