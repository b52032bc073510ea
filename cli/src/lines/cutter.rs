//! Cuts an input into chunks of whole lines.

use crate::failure::Failure;
use crate::lines::chunk::{CHUNK, Chunk, empty};
use crate::lines::input::Opened;
use crate::lines::long::Reading;
use crate::lines::rules::Rules;
use crate::state::comparison::{LineHash, Scratch};
use memchr::{memchr, memchr_iter};
use std::io::{self, ErrorKind, Read};

/// Cuts one input into chunks.
pub struct Cutter {
    input: Opened,
    rules: Rules,
    hash: LineHash,
    /// The beginning of a line whose end has not been read yet.
    rest: Vec<u8>,
    /// Whether `rest` begins with a line that is too long for memory.
    is_long: bool,
    over: Option<Over>,
}

/// Why there are no more chunks.
pub enum Over {
    End,
    Unreadable(io::Error),
    /// A long line could not be set aside.
    Failed(Failure),
}

impl From<Failure> for Over {
    fn from(failure: Failure) -> Self {
        Over::Failed(failure)
    }
}

impl Cutter {
    pub fn new(input: Opened, rules: Rules, hash: LineHash) -> Self {
        Cutter { input, rules, hash, rest: Vec::new(), is_long: false, over: None }
    }

    /// Fills a chunk with the next lines, at least one, or with one line that is too long for memory.
    ///
    /// If the last line has no terminator, one is added. If reading fails, the incomplete line
    /// before the error is left out.
    pub fn fill(&mut self, chunk: &mut Chunk) -> Result<(), Over> {
        chunk.clear();
        if !self.is_long {
            self.fill_with_lines(chunk)?;
        }
        if chunk.ends.is_empty() { self.fill_with_long(chunk) } else { Ok(()) }
    }

    /// Fills a chunk with the line at the beginning of the rest.
    fn fill_with_long(&mut self, chunk: &mut Chunk) -> Result<(), Over> {
        self.is_long = false;
        let mut line = Reading::begin(self.rules, self.hash)?;
        loop {
            let end = memchr(self.rules.terminator, &self.rest);
            line.push(&self.rest[..end.unwrap_or(self.rest.len())])?;
            if let Some(end) = end {
                self.rest.drain(..=end);
                break;
            }
            match self.read_more() {
                Ok(()) => {}
                Err(Over::End) => {
                    (self.over, chunk.is_completed) = (Some(Over::End), true);
                    break;
                }
                Err(over) => return Err(over),
            }
        }
        chunk.long = Some(line.end(&mut Scratch::default())?);
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

    /// Fills a chunk with lines: at least one, unless a long one follows.
    fn fill_with_lines(&mut self, chunk: &mut Chunk) -> Result<(), Over> {
        if let Some(over) = self.over.take() {
            return Err(over);
        }
        let Chunk { text, ends, is_completed, .. } = chunk;
        text.resize(CHUNK.max(2 * self.rest.len()), 0);
        text[..self.rest.len()].copy_from_slice(&self.rest);
        let mut filled = self.rest.len();
        empty(&mut self.rest);
        // The rest has whole lines only after a long one.
        let (mut scanned, mut line_start) = (0, 0);
        loop {
            for at in memchr_iter(self.rules.terminator, &text[scanned..filled]) {
                let end = scanned + at;
                if end - line_start > self.rules.longest {
                    self.is_long = true;
                    break;
                }
                ends.push(end as u32 + 1);
                line_start = end + 1;
            }
            scanned = filled;
            self.is_long |= filled - line_start > self.rules.longest;
            let enough = self.input.is_live || filled >= CHUNK;
            if self.is_long || (enough && !ends.is_empty()) {
                break;
            }
            if filled == text.len() {
                text.resize(2 * filled, 0);
            }
            // The buffer may be larger than a chunk, but no more than usual is read at once.
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
        if self.over.is_none() {
            self.rest.extend_from_slice(&text[line_start..filled]);
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
    use crate::state::comparison::Comparison;

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
        let rules = Rules { terminator: b'\n', folds_cr: true, field: None, longest };
        let hash = LineHash::random(Comparison::Bytes);
        let mut cutter = Cutter::new(Opened { reader, is_live }, rules, hash);
        let mut lines = Vec::new();
        let mut chunk = Chunk::default();
        loop {
            match cutter.fill(&mut chunk) {
                Ok(()) => lines.extend(chunk.iter().map(<[u8]>::to_vec)),
                Err(over) => return (lines, over),
            }
            assert_eq!(chunk.long.is_some(), chunk.ends.is_empty());
            assert!(chunk.iter().all(|line| line.len() <= longest + 1));
            if let Some(long) = &chunk.long {
                let mut line = Vec::new();
                let all = long.for_each_piece(|piece| {
                    line.extend_from_slice(piece);
                    Ok::<_, Failure>(())
                });
                all.unwrap();
                assert!(line.len() > longest + 1);
                assert_eq!(long.hash, hash.of_key(rules.bare(&line)));
                lines.push(line);
            }
        }
    }

    #[test]
    fn lines_come_whole_however_they_are_read() {
        let long = [vec![b'x'; 3 * CHUNK], b"\n".to_vec()].concat();
        let among = [b"a\n", &long[..], b"b\n", &long, &long, b"abcd\nabcde\nc"].concat();
        let texts: [&[u8]; 9] = [
            b"",
            b"\n",
            b"a",
            b"a\nb\n\nc",
            b"a\r\n\r\n",
            b"\xFF\0\n\0",
            b"abcde\na\nabcdef\nabcdefg\nb\nc\nabcdef",
            &long.repeat(2),
            &among,
        ];
        for text in texts {
            for piece in [1, 2, 7, CHUNK - 1, CHUNK, 10 * CHUNK] {
                if text.len() > 100 && piece < 100 {
                    continue;
                }
                for (is_live, longest) in [
                    (false, 1 << 30),
                    (true, 1 << 30),
                    (false, CHUNK),
                    (true, CHUNK),
                    (false, 4),
                    (true, 0),
                ] {
                    let (lines, over) = cut(text, piece, is_live, longest);
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
}
