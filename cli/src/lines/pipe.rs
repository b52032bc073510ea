//! A pipe as the output: finds the lines that its reader has left in it.
//!
//! A pipe holds the bytes of a write until its reader takes them. Linux reports their number on the write end, even
//! after the reader has gone. They are the last bytes that were written, so a line is unread unless it ends before
//! them. Other writers of the same pipe make the number larger: a line that was read may then be taken for an unread
//! one, but never the other way round.

use crate::lines::chunk::Chunk;
use crate::lines::rules::{Keys, Rules};
use crate::state::comparison::LineHash;
use koel::Prehashed;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::fs::File;
use std::os::unix::fs::FileTypeExt;

pub struct Pipe {
    file: File,
    keys: Keys,
    /// The length and the hash of the last lines, as many as may be unread.
    lines: Vec<(u64, Prehashed)>,
    /// The number of their last bytes that the pipe has not taken, because its reader has gone.
    refused: u64,
}

impl Pipe {
    /// Returns `None` if the file is not a pipe, or if the system does not tell what is in one.
    pub fn of(file: &File, rules: Rules, hash: LineHash) -> Option<Pipe> {
        let tells = cfg!(any(target_os = "linux", target_os = "android"));
        let is_pipe = file.metadata().ok()?.file_type().is_fifo();
        let file = file.try_clone().ok().filter(|_| tells && is_pipe)?;
        Some(Pipe { file, keys: Keys::new(rules, hash), lines: Vec::new(), refused: 0 })
    }

    /// Notes that the selected lines of a chunk were written, except for the last bytes, which the pipe refused.
    pub fn wrote(&mut self, chunk: &Chunk, refused: u64) {
        self.refused = refused;
        let left = self.held() + refused;
        let (text, terminator) = (&chunk.selected, self.keys.rules.terminator);
        let read = text.len().saturating_sub(left as usize);
        let start = memchr::memrchr(terminator, &text[..read]).map_or(0, |at| at + 1);
        for line in text[start..].split_inclusive(|byte| *byte == terminator) {
            self.lines.push((line.len() as u64, self.keys.key(line).hash));
        }
        self.lines.drain(..self.first_in(left));
    }

    /// Returns the lines that were refused or, if the reader has gone, are unread: the length and the hash of each.
    pub fn unread(&self) -> &[(u64, Prehashed)] {
        let held = if self.reader_has_gone() { self.held() } else { 0 };
        &self.lines[self.first_in(held + self.refused)..]
    }

    /// The first of the lines that have any of the last `left` bytes.
    fn first_in(&self, mut left: u64) -> usize {
        let mut first = self.lines.len();
        while left > 0 && first > 0 {
            first -= 1;
            left = left.saturating_sub(self.lines[first].0);
        }
        first
    }

    /// The number of bytes in the pipe.
    fn held(&self) -> u64 {
        rustix::io::ioctl_fionread(&self.file).unwrap_or(0)
    }

    fn reader_has_gone(&self) -> bool {
        let mut asked = [PollFd::new(&self.file, PollFlags::OUT)];
        let polled = poll(&mut asked, Some(&Timespec::default()));
        polled.is_ok() && asked[0].revents().contains(PollFlags::ERR)
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use crate::state::comparison::Comparison;
    use std::io::{PipeReader, Read, Write, pipe};
    use std::os::fd::OwnedFd;

    /// A pipe that has taken the first bytes of a text, and its reader.
    fn piped(text: &[u8], taken: usize) -> (Pipe, PipeReader) {
        let (reader, mut writer) = pipe().unwrap();
        writer.write_all(&text[..taken]).unwrap();
        let rules = Rules { terminator: b'\n', folds_cr: true, field: None };
        let (file, hash) = (File::from(OwnedFd::from(writer)), LineHash::random(Comparison::Bytes));
        (Pipe::of(&file, rules, hash).unwrap(), reader)
    }

    #[test]
    fn lines_that_were_not_read_completely_are_unread() {
        let text = b"a\nbb\nccc\n";
        // How much the pipe has taken, how much was read, and how many lines are unread.
        for (taken, read, expected) in [
            (9, 0, 3),
            (9, 1, 3),
            (9, 2, 2),
            (9, 4, 2),
            (9, 5, 1),
            (9, 8, 1),
            (9, 9, 0),
            (8, 8, 1),
            (5, 5, 1),
            (4, 4, 2),
            (4, 2, 2),
            (3, 1, 3),
            (0, 0, 3),
        ] {
            let (mut pipe, mut reader) = piped(text, taken);
            pipe.wrote(&Chunk { selected: text.to_vec(), ..Chunk::default() }, 9 - taken as u64);
            reader.read_exact(&mut vec![0; read]).unwrap();
            assert!(pipe.refused > 0 || pipe.unread().is_empty(), "the reader is still there");
            drop(reader);
            let last = text.split_inclusive(|byte| *byte == b'\n').skip(3 - expected);
            let last = last.map(|line| (line.len() as u64, pipe.keys.key(line).hash));
            let last: Vec<_> = last.collect();
            assert_eq!(pipe.unread(), last, "{read} of {taken} bytes were read");
        }
    }

    #[test]
    fn no_more_is_kept_than_the_pipe_holds() {
        let text = b"a\n".repeat(10_000);
        let (mut pipe, mut reader) = piped(&text, text.len());
        let chunk = Chunk { selected: text, ..Chunk::default() };
        for kept in [10_000, 5_000, 0] {
            pipe.wrote(&chunk, 0);
            assert_eq!(pipe.lines.len(), kept);
            let _ = reader.by_ref().take(pipe.held().min(10_000)).read_to_end(&mut Vec::new());
        }
    }
}
