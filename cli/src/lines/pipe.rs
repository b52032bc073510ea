//! A pipe as the output: finds the lines that its reader has left in it.
//!
//! A pipe holds the bytes of a write until its reader takes them. Linux reports the number of these bytes on the write
//! end, even after the reader has gone. They are the last bytes that were written, so a line is unread unless it ends
//! before them. Other writers of the same pipe make the number larger: a line that was read may then be taken for an
//! unread one, but never the other way round.

use koel::Prehashed;
use std::collections::VecDeque;
use std::fs::File;

pub struct Pipe {
    file: File,
    /// The last lines that were written, as far back as the pipe can hold them: the length of each, and its hash if
    /// it was added to the state.
    lines: VecDeque<(u64, Option<Prehashed>)>,
    /// The number of their bytes.
    bytes: u64,
}

impl Pipe {
    /// Returns `None` if the file is not a pipe, or if the system does not tell what is in one.
    pub fn of(file: &File) -> Option<Pipe> {
        use std::os::unix::fs::FileTypeExt;
        let is_pipe = file.metadata().ok()?.file_type().is_fifo();
        let file = file.try_clone().ok().filter(|file| is_pipe && capacity(file).is_some())?;
        Some(Pipe { file, lines: VecDeque::new(), bytes: 0 })
    }

    /// Notes that a line, or if it has no hash, a part of a line, was written.
    pub fn wrote_one(&mut self, bytes: u64, hash: Option<Prehashed>) {
        let capacity = capacity(&self.file).unwrap_or(u64::MAX);
        self.push((bytes, hash), capacity);
    }

    /// Notes that whole lines were written. `added` are their hashes.
    pub fn wrote(&mut self, mut text: &[u8], terminator: u8, mut added: &[Prehashed]) {
        let capacity = capacity(&self.file).unwrap_or(u64::MAX);
        // From the end, since the first of many lines are not needed.
        let (mut last, mut bytes) = (VecDeque::new(), 0);
        while let Some((hash, before)) = added.split_last()
            && bytes < capacity
        {
            let start = memchr::memrchr(terminator, &text[..text.len().saturating_sub(1)]);
            let line = text.len() - start.map_or(0, |at| at + 1);
            last.push_front(((line as u64), Some(*hash)));
            bytes += line as u64;
            (text, added) = (&text[..text.len() - line], before);
        }
        last.into_iter().for_each(|line| self.push(line, capacity));
    }

    fn push(&mut self, line: (u64, Option<Prehashed>), capacity: u64) {
        self.bytes += line.0;
        self.lines.push_back(line);
        while let Some((first, _)) = self.lines.front()
            && self.bytes - first >= capacity
        {
            self.bytes -= first;
            self.lines.pop_front();
        }
    }

    /// Returns the hashes of the unread lines if the reader has gone, and no hashes otherwise.
    pub fn unread(&self) -> Vec<Prehashed> {
        let Some(mut left) = unread(&self.file).filter(|_| reader_has_gone(&self.file)) else {
            return Vec::new();
        };
        let mut hashes = Vec::new();
        for (bytes, hash) in self.lines.iter().rev() {
            if left == 0 {
                break;
            }
            left = left.saturating_sub(*bytes);
            hashes.extend(hash);
        }
        hashes
    }
}

/// The number of bytes that a pipe can hold.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn capacity(pipe: &File) -> Option<u64> {
    rustix::pipe::fcntl_getpipe_size(pipe).ok().map(|bytes| bytes as u64)
}

/// The number of bytes in a pipe that have not been read.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn unread(pipe: &File) -> Option<u64> {
    rustix::io::ioctl_fionread(pipe).ok()
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn reader_has_gone(pipe: &File) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let mut asked = [PollFd::new(pipe, PollFlags::OUT)];
    let polled = poll(&mut asked, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }));
    polled.is_ok() && asked[0].revents().contains(PollFlags::ERR)
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn capacity(_: &File) -> Option<u64> {
    None
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn unread(_: &File) -> Option<u64> {
    None
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn reader_has_gone(_: &File) -> bool {
    false
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::io::{Read, Write, pipe};
    use std::os::fd::OwnedFd;

    #[test]
    fn lines_that_were_not_read_completely_are_unread() {
        // Three lines of 2, 3 and 4 bytes, and a piece of 5 bytes that has no hash.
        let text = b"a\nbb\nccc\nddddd";
        let hashes = [1, 2, 3].map(Prehashed);
        for (read, expected) in [
            (0, &hashes[..]),
            (1, &hashes),
            (2, &hashes[1..]),
            (4, &hashes[1..]),
            (5, &hashes[2..]),
            (8, &hashes[2..]),
            (9, &[]),
            (14, &[]),
        ] {
            let (mut reader, mut writer) = pipe().unwrap();
            writer.write_all(text).unwrap();
            let mut pipe = Pipe::of(&File::from(OwnedFd::from(writer))).unwrap();
            pipe.wrote(&text[..9], b'\n', &hashes);
            pipe.wrote_one(5, None);
            reader.read_exact(&mut vec![0; read]).unwrap();
            assert!(pipe.unread().is_empty(), "the reader is still there");
            drop(reader);
            let mut unread = pipe.unread();
            unread.reverse();
            assert_eq!(unread, expected, "{read} bytes were read");
        }
    }

    #[test]
    fn no_more_is_kept_than_the_pipe_can_hold() {
        let (_reader, writer) = pipe().unwrap();
        let mut pipe = Pipe::of(&File::from(OwnedFd::from(writer))).unwrap();
        let most = capacity(&pipe.file).unwrap();
        let hashes: Vec<Prehashed> = (0..200_000).map(Prehashed).collect();
        for _ in 0..3 {
            pipe.wrote(&b"a\n".repeat(hashes.len()), b'\n', &hashes);
            assert!((most..most + 2).contains(&pipe.bytes), "{} of {most}", pipe.bytes);
            assert_eq!(pipe.lines.back(), Some(&(2, Some(Prehashed(199_999)))));
        }
        pipe.wrote_one(1 << 20, None);
        assert_eq!(pipe.lines.len(), 1);
    }
}
