//! Filters are written to and read from streams that transfer few bytes at a time, are interrupted,
//! or fail.

use crate::common::bytes_of;
use crate::kind::{Fixed, Growing, Kind, Saved};
use koel::{SnapshotError, SnapshotErrorKind};
use std::io::{self, ErrorKind, Read, Write};

/// A stream whose behaviour at each call is scripted.
struct Stream<'a> {
    bytes: Vec<u8>,
    at: usize,
    /// The most bytes that the next call transfers, or the error that it returns.
    answers: &'a mut dyn FnMut() -> Result<usize, ErrorKind>,
}

impl Write for Stream<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let length = (self.answers)()?.min(bytes.len());
        self.bytes.extend(&bytes[..length]);
        Ok(length)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Read for Stream<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let length = (self.answers)()?.min(bytes.len()).min(self.bytes.len() - self.at);
        bytes[..length].copy_from_slice(&self.bytes[self.at..][..length]);
        self.at += length;
        Ok(length)
    }
}

/// Returns the answers of a stream that is slow and sometimes interrupted, but works.
fn slowly() -> impl FnMut() -> Result<usize, ErrorKind> {
    let mut answers =
        [Ok(1), Err(ErrorKind::Interrupted), Ok(7), Ok(1_000), Ok(8)].into_iter().cycle();
    move || answers.next().expect("a cycle")
}

/// Returns the answers of a stream that works before call number `last`, and fails from
/// then on.
fn until(
    mut last: usize,
    error: Result<usize, ErrorKind>,
) -> impl FnMut() -> Result<usize, ErrorKind> {
    move || {
        last = last.saturating_sub(1);
        if last == 0 { error } else { Ok(usize::MAX) }
    }
}

fn filter(kind: Kind) -> (Saved, Vec<u8>) {
    let filter = kind.filter(270_000);
    (0..40_000u64).for_each(|item| filter.insert(&item).expect("room"));
    let bytes = bytes_of(&filter);
    (filter, bytes)
}

fn slow_streams(kind: Kind) {
    let (filter, bytes) = filter(kind);
    let mut stream = Stream { bytes: Vec::new(), at: 0, answers: &mut slowly() };
    let report = filter.write_to(&mut stream).expect("only slow");
    assert!(stream.bytes == bytes);
    assert_eq!(report.bytes, bytes.len() as u64);

    stream.bytes.extend(b"and more");
    let again = Saved::read_from(&mut stream).expect("only slow");
    assert!((0..40_000u64).all(|item| again.contains(&item)));
    assert_eq!(&stream.bytes[stream.at..], b"and more", "bytes after the filter were read");
}

#[test]
fn a_slow_stream_is_written_and_read_to_the_end_and_no_further() {
    [Fixed, Growing].into_iter().for_each(slow_streams);
}

fn is_error(error: &SnapshotError, words: &str) {
    assert_eq!(error.kind(), SnapshotErrorKind::Io, "{error}");
    assert!(error.to_string().starts_with(words), "{error}");
    assert!(error.io_error().is_some());
    assert!(error.path().is_none() && !error.is_in_place());
}

fn failing_streams(kind: Kind) {
    let (filter, bytes) = filter(kind);
    let (mut writes, mut reads) = (0, 0);
    loop {
        let answers = &mut until(writes + 1, Err(ErrorKind::BrokenPipe));
        match filter.write_to(Stream { bytes: Vec::new(), at: 0, answers }) {
            Ok(_) => break,
            Err(error) => is_error(&error, "cannot write: broken pipe"),
        }
        let answers = &mut until(writes + 1, Ok(0));
        let stopped = filter.write_to(Stream { bytes: Vec::new(), at: 0, answers });
        is_error(&stopped.unwrap_err(), "cannot write: failed to write whole buffer");
        writes += 1;
    }
    loop {
        let answers = &mut until(reads + 1, Err(ErrorKind::ConnectionReset));
        match Saved::read_from(Stream { bytes: bytes.clone(), at: 0, answers }) {
            Ok(_) => break,
            Err(error) => is_error(&error, "cannot read: connection reset"),
        }
        let answers = &mut until(reads + 1, Ok(0));
        let ended = Saved::read_from(Stream { bytes: bytes.clone(), at: 0, answers });
        let kind = ended.unwrap_err().kind();
        match reads {
            0 => assert_eq!(kind, SnapshotErrorKind::NotASnapshot),
            _ => assert_eq!(kind, SnapshotErrorKind::Incomplete),
        }
        reads += 1;
    }
    // A header, shards, and the index with the end.
    assert!(writes >= 4, "{writes}");
    // In a growing filter, the first bucket tells whether it is that of a shard.
    assert_eq!(reads, if filter.grows() { 2 * writes - 1 } else { writes });
    // The failures have not changed the filter.
    assert!((0..40_000u64).all(|item| filter.contains(&item) && filter.remove(&item)));
}

#[test]
fn a_stream_that_fails_at_any_call_is_an_error() {
    [Fixed, Growing].into_iter().for_each(failing_streams);
}

#[test]
fn a_write_whose_flush_fails_is_an_error() {
    struct Keeps;
    impl Write for Keeps {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Err(ErrorKind::StorageFull.into())
        }
    }
    let error = Fixed.filter(10).write_to(Keeps).unwrap_err();
    is_error(&error, "cannot write: no storage space");
}

#[test]
fn a_writer_that_panics_leaves_the_filter_as_it_was() {
    let (filter, _) = filter(Fixed);
    let panicked = std::panic::catch_unwind(|| {
        let answers = &mut || panic!("an intended panic");
        drop(filter.write_to(Stream { bytes: Vec::new(), at: 0, answers }));
    });
    assert!(panicked.is_err());
    assert!((0..40_000u64).all(|item| filter.remove(&item)));
    assert!(filter.is_empty());
}
