//! The source from which parts are read.

use crate::snapshot::error::Reason;
use crate::snapshot::part::format::{HEADER_WORDS, Words, bytes_of};
use crate::snapshot::part::header::is_snapshot;
use std::io::{self, ErrorKind, Read};

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
    pub fn read(&mut self, words: &mut [u64]) -> Result<(), Reason> {
        let bytes = bytes_of(words);
        let got = read_up_to(&mut self.reader, bytes).map_err(Reason::io("cannot read"))?;
        self.at += got as u64;
        if got == bytes.len() { Ok(()) } else { Err(Reason::CutOff { at: self.at }) }
    }

    /// Reads the words of a header, without validating them. Returns `None` if the source is empty.
    pub fn header(&mut self) -> Result<Option<Words<HEADER_WORDS>>, Reason> {
        let mut words = [0; HEADER_WORDS];
        match self.read(&mut words) {
            Err(Reason::CutOff { .. }) if self.at == 0 => Ok(None),
            // Data that is not a filter is reported as such, however short it is.
            Err(Reason::CutOff { .. }) if !is_snapshot(&words) => Err(Reason::NotASnapshot),
            result => result.map(|()| Some(words)),
        }
    }

    /// Checks that nothing follows the part, if nothing may.
    pub fn check_end(&self) -> Result<(), Reason> {
        match self.length {
            Some(bytes) if bytes != self.at => Err(Reason::WrongLength { bytes, wanted: self.at }),
            _ => Ok(()),
        }
    }
}

/// Reads until `bytes` is full or the stream ends. Returns the number of bytes read.
fn read_up_to(reader: &mut impl Read, bytes: &mut [u8]) -> io::Result<usize> {
    let mut got = 0;
    while got < bytes.len() {
        match reader.read(&mut bytes[got..]) {
            Ok(0) => break,
            Ok(more) => got += more,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(got)
}
