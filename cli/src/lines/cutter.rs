//! Cuts an input into chunks of whole lines.

use crate::arguments::common::LongLines;
use crate::lines::chunk::{CHUNK, Chunk, Rules, empty};
use crate::lines::input::Opened;
use memchr::{memchr, memchr_iter};
use std::io::{self, ErrorKind, Read};

/// Cuts one input into chunks.
pub struct Cutter {
    input: Opened,
    rules: Rules,
    /// The beginning of a line whose end has not been read yet.
    rest: Vec<u8>,
    /// Whether `rest` is in the middle of a line that is too long, and left out or passed on.
    in_long: bool,
    /// The number of lines cut so far.
    lines: u64,
    /// The number of lines that were too long, and left out or passed on.
    pub long: u64,
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
        let rest = Vec::new();
        Cutter { input, rules, rest, in_long: false, lines: 0, long: 0, over: None }
    }

    /// Fills a chunk with the next lines, at least one, or with a piece of a line that is passed on.
    ///
    /// If the last line has no terminator, one is added. If reading fails, the incomplete line
    /// before the error is left out.
    pub fn fill(&mut self, chunk: &mut Chunk) -> Result<(), Over> {
        loop {
            chunk.ends.clear();
            chunk.is_raw = self.in_long && self.rules.longer == LongLines::Pass;
            if chunk.is_raw {
                return self.pass_on(chunk);
            }
            if self.in_long {
                self.skip()?;
            }
            self.fill_with_lines(chunk)?;
            if !chunk.ends.is_empty() {
                return Ok(());
            }
        }
    }

    /// Reads on to the end of a line that is too long.
    fn skip(&mut self) -> Result<(), Over> {
        loop {
            if let Some(end) = memchr(self.rules.terminator, &self.rest) {
                self.rest.drain(..=end);
                self.in_long = false;
                return Ok(());
            }
            self.read_more()?;
        }
    }

    /// Fills a chunk with the next piece of a line that is too long.
    fn pass_on(&mut self, chunk: &mut Chunk) -> Result<(), Over> {
        let read = if self.rest.is_empty() { self.read_more() } else { Ok(()) };
        chunk.text.clear();
        if let Err(over) = read {
            // The line ends here, so that the next one begins a line of its own.
            chunk.text.push(self.rules.terminator);
            (self.over, self.in_long) = (Some(over), false);
            return Ok(());
        }
        let end = memchr(self.rules.terminator, &self.rest);
        self.in_long = end.is_none();
        chunk.text.extend(self.rest.drain(..end.map_or(self.rest.len(), |end| end + 1)));
        Ok(())
    }

    /// Replaces the rest by what comes next, at least one byte.
    fn read_more(&mut self) -> Result<(), Over> {
        self.rest.resize(CHUNK, 0);
        loop {
            let over = match self.input.reader.read(&mut self.rest) {
                Ok(0) => Over::End,
                Ok(read) => {
                    self.rest.truncate(read);
                    return Ok(());
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => Over::Unreadable(error),
            };
            self.rest.clear();
            return Err(over);
        }
    }

    /// Fills a chunk with lines: at least one, unless one follows that is too long.
    fn fill_with_lines(&mut self, chunk: &mut Chunk) -> Result<(), Over> {
        if let Some(over) = self.over.take() {
            return Err(over);
        }
        let Chunk { text, ends, is_completed, .. } = chunk;
        *is_completed = false;
        if text.capacity() > 8 * CHUNK {
            *text = Vec::new(); // after a long line
        }
        text.resize(CHUNK.max(2 * self.rest.len()), 0);
        text[..self.rest.len()].copy_from_slice(&self.rest);
        let mut filled = self.rest.len();
        empty(&mut self.rest);
        // The rest has whole lines only after a line that was left out or passed on.
        let (mut scanned, mut line_start) = (0, 0);
        loop {
            for at in memchr_iter(self.rules.terminator, &text[scanned..filled]) {
                let end = scanned + at;
                if end - line_start > self.rules.longest {
                    self.over = Some(Over::TooLong { line: 0 });
                    break;
                }
                ends.push(end as u32 + 1);
                line_start = end + 1;
            }
            scanned = filled;
            if self.over.is_none() && filled - line_start > self.rules.longest {
                self.over = Some(Over::TooLong { line: 0 });
            }
            let enough = self.input.is_live || filled >= CHUNK;
            if self.over.is_some() || (enough && !ends.is_empty()) {
                break;
            }
            if filled == text.len() {
                text.resize(2 * filled, 0);
            }
            // After a long line the buffer is large, but no more than usual is read at once.
            let most = text.len().min(filled + CHUNK);
            match self.input.reader.read(&mut text[filled..most]) {
                Ok(0) => {
                    if filled > line_start {
                        text[filled] = self.rules.terminator;
                        ends.push(filled as u32 + 1);
                        *is_completed = true;
                    }
                    self.over = Some(Over::End);
                    break;
                }
                Ok(read) => filled += read,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    self.over = Some(Over::Unreadable(error));
                    break;
                }
            }
        }
        self.lines += ends.len() as u64;
        match &mut self.over {
            None => self.rest.extend_from_slice(&text[line_start..filled]),
            Some(Over::TooLong { .. }) if self.rules.longer != LongLines::Stop => {
                self.rest.extend_from_slice(&text[line_start..filled]);
                (self.over, self.in_long) = (None, true);
                (self.lines, self.long) = (self.lines + 1, self.long + 1);
                return Ok(());
            }
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
    struct Pieces(io::Cursor<Vec<u8>>, usize);

    impl Read for Pieces {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let most = into.len().min(self.1);
            self.0.read(&mut into[..most])
        }
    }

    fn cut(text: &[u8], piece: usize, is_live: bool, longest: usize) -> (Vec<Vec<u8>>, Over) {
        let reader = Box::new(Pieces(io::Cursor::new(text.to_vec()), piece));
        let rules = Rules {
            terminator: b'\n',
            folds_cr: true,
            field: None,
            longest,
            longer: LongLines::Stop,
        };
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

    #[test]
    fn lines_that_are_too_long_are_left_out_or_passed_on() {
        let long = [vec![b'x'; 3 * CHUNK], b"\n".to_vec()].concat();
        let texts = [
            b"abcde\na\nabcdef\nabcdefg\nb\nc\nabcde\n".to_vec(),
            b"a\nabcdefghijkl".to_vec(),
            b"abcde\n".to_vec(),
            [b"a\n", &long[..], b"b\n", &long, &long, b"abcd\nc\n"].concat(),
        ];
        for text in texts {
            let mut whole = text.clone();
            if !whole.ends_with(b"\n") {
                whole.push(b'\n');
            }
            for (longer, piece) in [LongLines::Skip, LongLines::Pass]
                .into_iter()
                .flat_map(|longer| [1, 2, 3, 7, CHUNK].map(|piece| (longer, piece)))
            {
                if text.len() > 100 && piece < 100 {
                    continue;
                }
                let reader = Box::new(Pieces(io::Cursor::new(text.clone()), piece));
                let rules =
                    Rules { terminator: b'\n', folds_cr: true, field: None, longest: 4, longer };
                let mut cutter = Cutter::new(Opened { reader, is_live: false }, rules);
                let (mut lines, mut all) = (Vec::new(), Vec::<u8>::new());
                let mut chunk = Chunk::default();
                while cutter.fill(&mut chunk).is_ok() {
                    assert_eq!(chunk.is_raw, chunk.ends.is_empty());
                    lines.extend(chunk.iter().map(<[u8]>::to_vec));
                    chunk.iter().for_each(|line| all.extend_from_slice(line));
                    if chunk.is_raw {
                        all.extend_from_slice(&chunk.text);
                    }
                }
                let lines_of = |is_long: bool| {
                    let lines = whole.split_inclusive(|byte| *byte == b'\n');
                    lines.filter(move |line| (line.len() > 5) == is_long).map(<[u8]>::to_vec)
                };
                assert!(lines.into_iter().eq(lines_of(false)));
                assert_eq!(cutter.long, lines_of(true).count() as u64);
                if longer == LongLines::Pass {
                    assert!(all == whole, "pieces of {piece}");
                }
            }
        }
    }
}
