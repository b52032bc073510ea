//! The source from which parts are read.

use crate::snapshot::error::SnapshotError;
use crate::snapshot::part::format::{HEADER_WORDS, Words, bytes_of};
use crate::snapshot::part::header::is_snapshot;
use std::io::{ErrorKind, Read};

/// A stream of words.
pub struct Source<R> {
    reader: R,
    /// The number of bytes that have been read.
    at: u64,
    /// The number of bytes in the source, if nothing may follow a part.
    length: Option<u64>,
}

impl<R: Read> Source<R> {
    /// A stream, which may continue after a part.
    pub fn stream(reader: R) -> Self {
        Source { reader, at: 0, length: None }
    }

    /// A source of `length` bytes that have to be one part, read from byte `at` on.
    pub fn of_length(reader: R, at: u64, length: u64) -> Self {
        Source { reader, at, length: Some(length) }
    }

    /// The number of bytes that have been read.
    pub fn at(&self) -> u64 {
        self.at
    }

    /// Reads words, in the byte order of a file.
    pub fn read(&mut self, words: &mut [u64]) -> Result<(), SnapshotError> {
        let bytes = bytes_of(words);
        match self.read_up_to(bytes)? == bytes.len() {
            true => Ok(()),
            false => Err(SnapshotError::cut_off(self.at)),
        }
    }

    /// Reads until `bytes` is full or the stream ends. Returns the number of bytes read.
    fn read_up_to(&mut self, bytes: &mut [u8]) -> Result<usize, SnapshotError> {
        let mut got = 0;
        while got < bytes.len() {
            match self.reader.read(&mut bytes[got..]) {
                Ok(0) => break,
                Ok(more) => got += more,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(SnapshotError::io("cannot read")(error)),
            }
        }
        self.at += got as u64;
        Ok(got)
    }

    /// Reads the words of a header, without validating them. Returns `None` if the source is empty.
    pub fn header(&mut self) -> Result<Option<Words<HEADER_WORDS>>, SnapshotError> {
        let mut words = [0; HEADER_WORDS];
        match self.read_up_to(bytes_of(&mut words))? {
            0 => Ok(None),
            // Data that is not a filter is reported as such, however short it is.
            _ if !is_snapshot(&words) => Err(SnapshotError::not_a_snapshot()),
            got if got < size_of_val(&words) => Err(SnapshotError::cut_off(self.at)),
            _ => Ok(Some(words)),
        }
    }

    /// Checks that nothing follows the part, if nothing may.
    pub fn check_end(&self) -> Result<(), SnapshotError> {
        match self.length {
            Some(bytes) if bytes != self.at => Err(SnapshotError::wrong_length(bytes, self.at)),
            _ => Ok(()),
        }
    }
}
