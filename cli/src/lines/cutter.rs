//! Cuts an input into chunks of whole lines.

use crate::lines::chunk::{CHUNK, Chunk, MOST_KEPT, empty};
use crate::lines::input::OpenInput;
use memchr::{memchr, memchr_iter};
use std::io::{self, ErrorKind, Read};

/// The most bytes of a line. Lines are held in memory, several at a time.
pub const LONGEST: usize = 256 << 20;

/// What was cut off an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// The next lines, at least one.
    Lines,
    /// A line that is too long, which is left out.
    TooLong,
    /// Nothing: the input has ended.
    End,
}

/// Cuts one input into chunks.
pub struct Cutter {
    input: OpenInput,
    terminator: u8,
    /// The most bytes of a line without its terminator. A longer one is left out.
    longest: usize,
    /// What was read and not cut off yet.
    rest: Vec<u8>,
    /// Whether the rest, up to the next terminator, is that of a line that is left out.
    skips: bool,
    /// Why nothing more is read: the input has ended, or cannot be read any further.
    over: Option<io::Result<()>>,
}

impl Cutter {
    pub fn new(input: OpenInput, terminator: u8) -> Self {
        let (rest, skips, over) = (Vec::new(), false, None);
        Cutter { input, terminator, longest: LONGEST, rest, skips, over }
    }

    /// Fills a chunk with the next lines. It has none if there are no more, or if the next one is too long.
    ///
    /// If the last line has no terminator, one is added. If reading fails, the incomplete line
    /// before the error is left out.
    pub fn fill(&mut self, chunk: &mut Chunk) -> io::Result<Cut> {
        chunk.clear();
        let Chunk { text, ends, is_completed, .. } = chunk;
        if text.capacity() > MOST_KEPT {
            *text = Vec::new();
        }
        text.resize(CHUNK.max(2 * self.rest.len()), 0);
        text[..self.rest.len()].copy_from_slice(&self.rest);
        let (mut scanned, mut filled) = (0, self.rest.len());
        empty(&mut self.rest);
        loop {
            if self.skips {
                let end = memchr(self.terminator, &text[..filled]).map(|at| at + 1);
                text.copy_within(end.unwrap_or(filled)..filled, 0);
                filled -= end.unwrap_or(filled);
                self.skips = end.is_none();
            }
            let found = memchr_iter(self.terminator, &text[scanned..filled]);
            ends.extend(found.map(|at| (scanned + at) as u32 + 1));
            scanned = filled;
            // Only the first line of a chunk is longer than what is read at once.
            let end = ends.first().map_or(filled, |&end| end as usize - 1);
            if end > self.longest {
                ends.clear();
                self.skips = true;
                self.rest.extend_from_slice(&text[end..filled]);
                return Ok(Cut::TooLong);
            }
            if self.over.is_some() || !ends.is_empty() && (self.input.is_live || filled >= CHUNK) {
                break;
            }
            if filled == text.len() {
                text.resize(2 * filled, 0);
            }
            // The buffer may be larger than a chunk, but no more than usual is read at once.
            let most = text.len().min(filled + CHUNK);
            match self.input.reader.read(&mut text[filled..most]) {
                Ok(0) => self.over = Some(Ok(())),
                Ok(read) => filled += read,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => self.over = Some(Err(error)),
            }
        }
        let end = ends.last().map_or(0, |&end| end as usize);
        match &self.over {
            None => self.rest.extend_from_slice(&text[end..filled]),
            Some(Ok(())) if filled > end => {
                text.truncate(filled);
                text.push(self.terminator);
                ends.push(filled as u32 + 1);
                *is_completed = true;
            }
            Some(_) => {}
        }
        match self.over.take_if(|_| ends.is_empty()) {
            None => Ok(Cut::Lines),
            Some(over) => over.map(|()| Cut::End),
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

    /// Reads a text in pieces of this size. Returns its lines, and how many were too long.
    fn cut(text: &[u8], piece: usize, is_live: bool, longest: usize) -> (Vec<Vec<u8>>, u64) {
        let reader = Box::new(Pieces(io::Cursor::new(text.to_vec()), piece));
        let mut cutter =
            Cutter { longest, ..Cutter::new(OpenInput { reader, is_live, form: None }, b'\n') };
        let (mut lines, mut too_long, mut chunk) = (Vec::new(), 0, Chunk::default());
        loop {
            let cut = cutter.fill(&mut chunk).unwrap();
            assert_eq!(chunk.ends.is_empty(), cut != Cut::Lines);
            match cut {
                Cut::Lines => lines.extend(chunk.iter().map(<[u8]>::to_vec)),
                Cut::TooLong => too_long += 1,
                Cut::End => return (lines, too_long),
            }
        }
    }

    #[test]
    fn a_line_is_too_long_wherever_it_begins_and_the_lines_after_it_are_read() {
        let longest = 3 * CHUNK / 2;
        for before in [0, 1, CHUNK / 2, CHUNK, 5 * CHUNK / 4] {
            for piece in [7, CHUNK - 1, CHUNK, 10 * CHUNK] {
                for (length, too_long) in [(longest, 0), (longest + 1, 1), (5 * CHUNK, 1)] {
                    for after in [&b"\n"[..], b"", b"\nc\nd"] {
                        let (first, line) = (vec![b'a'; before], vec![b'b'; length]);
                        let text = [&first[..], b"\n", &line, after].concat();
                        let (lines, left_out) = cut(&text, piece, piece == 7, longest);
                        assert_eq!(left_out, too_long, "{before} {piece} {length}");
                        let mut expected = vec![[&first[..], b"\n"].concat()];
                        expected.extend((too_long == 0).then(|| [&line[..], b"\n"].concat()));
                        if after.len() > 1 {
                            expected.extend([b"c\n".to_vec(), b"d\n".to_vec()]);
                        }
                        assert!(lines == expected, "{before} {piece} {length}");
                    }
                }
            }
        }
        // Of several, each counts, and the last one may be at the end of the input.
        let long = [&vec![b'x'; longest + 1][..], b"\n"].concat();
        let text = [&long[..], &long, b"a\n", &long[..long.len() - 1]].concat();
        for piece in [CHUNK - 1, 10 * CHUNK] {
            assert_eq!(cut(&text, piece, false, longest), (vec![b"a\n".to_vec()], 3));
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
                    let (lines, too_long) = cut(text, piece, is_live, LONGEST);
                    assert_eq!(too_long, 0);
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
