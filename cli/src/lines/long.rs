//! Lines that are too long for memory.
//!
//! The end of a line decides whether it is new. Until then, its bytes go to a temporary file without a name. Then they
//! are read again for what is compared of them. So a line may have any length, and takes no more memory than a chunk.
//!
//! The compared part of such a line, which is the line or a field of it, may be short. It is then compared like that of
//! any other line. A part that is too long as well is compared byte by byte: it is no URL, and only ASCII letters have
//! a case that is ignored.

use crate::failure::Failure;
use crate::lines::json;
use crate::lines::rules::{Field, Rules};
use crate::random::mix;
use crate::state::comparison::{Comparison, LineHash, Scratch};
use koel::{PersistentHasher, Prehashed};
use memchr::memchr;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, Write};
use xxhash_rust::xxh3::Xxh3;

/// The number of bytes that are read from the file at once.
const PIECE: usize = 1 << 20;

/// A line that has been read to its end.
pub struct LongLine {
    /// Its length, with its terminator.
    pub bytes: u64,
    pub hash: Prehashed,
    /// Its compared part or, if that is too long, the length of the part and two hashes of 128 bits.
    pub key: Vec<u8>,
    /// Whether it is of the kind that the comparison expects.
    pub is_expected: bool,
    pub has_field: bool,
    file: File,
}

/// Creates a temporary file without a name.
pub fn temporary() -> Result<File, Failure> {
    tempfile::tempfile().map_err(|error| {
        let folder = std::env::temp_dir();
        Failure::of(
            format!(
                "cannot create a temporary file in {} (set TMPDIR to use another folder)",
                folder.display()
            ),
            &error,
        )
    })
}

/// Returns the failure of using a temporary file.
pub fn cannot(error: &io::Error) -> Failure {
    let what = format!(
        "a temporary file in {} (set TMPDIR to use another folder)",
        std::env::temp_dir().display()
    );
    Failure::of(what, error)
}

impl LongLine {
    /// Passes its bytes to `act`, piece by piece.
    pub fn for_each_piece<E: From<Failure>>(
        &self,
        mut act: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut file = &self.file;
        file.rewind().map_err(|error| cannot(&error))?;
        let mut line = BufReader::with_capacity(PIECE, file);
        loop {
            let piece = line.fill_buf().map_err(|error| cannot(&error))?;
            if piece.is_empty() {
                return Ok(());
            }
            act(piece)?;
            let length = piece.len();
            line.consume(length);
        }
    }
}

/// A line of which the end has not been read yet.
pub struct Reading {
    rules: Rules,
    hash: LineHash,
    bytes: u64,
    last: Option<u8>,
    file: File,
}

impl Reading {
    pub fn begin(rules: Rules, hash: LineHash) -> Result<Self, Failure> {
        Ok(Reading { rules, hash, bytes: 0, last: None, file: temporary()? })
    }

    /// Takes the next bytes of the line, without its terminator.
    pub fn push(&mut self, piece: &[u8]) -> Result<(), Failure> {
        self.bytes += piece.len() as u64;
        self.last = piece.last().copied().or(self.last);
        self.file.write_all(piece).map_err(|error| cannot(&error))
    }

    /// Ends the line with its terminator.
    pub fn end(mut self, scratch: &mut Scratch) -> Result<LongLine, Failure> {
        let has_cr = self.rules.folds_cr && self.last == Some(b'\r');
        let length = self.bytes - u64::from(has_cr);
        self.push(&[self.rules.terminator])?;
        let compared = |field| self.compared(field, length).map_err(|error| cannot(&error));
        let part = compared(self.rules.field)?;
        let has_field = part.is_some();
        let part = part.map_or_else(|| compared(None), |part| Ok(Some(part)))?.unwrap_or_default();
        let (hash, key, is_expected) = part.end(&self.hash, scratch);
        Ok(LongLine { bytes: self.bytes, hash, key, is_expected, has_field, file: self.file })
    }

    /// Reads the line again, and returns this field, whose length is known, or the whole line. `None` if they do not
    /// have the field.
    fn compared(&self, field: Option<Field>, length: u64) -> io::Result<Option<Part>> {
        let mut file = &self.file;
        file.rewind()?;
        let mut line = BufReader::with_capacity(PIECE, file.take(length));
        let mut part = Part::default();
        let mut put = |piece: &[u8]| part.push(piece, &self.hash, self.rules.longest);
        let (mut left, delimiter) = match field {
            Some(Field::Json(path)) => {
                let found = json::find(line, path.names(), put)?;
                return Ok(found.then_some(part));
            }
            Some(Field::Numbered { number, delimiter }) => (number - 1, Some(delimiter)),
            None => (0, None),
        };
        loop {
            let bytes = line.fill_buf()?;
            let end = delimiter.and_then(|delimiter| memchr(delimiter, bytes));
            let length = end.unwrap_or(bytes.len());
            if left == 0 {
                put(&bytes[..length]);
            }
            match (end, left) {
                (Some(_), 0) => return Ok(Some(part)),
                (Some(_), _) => left -= 1,
                (None, _) if bytes.is_empty() => return Ok((left == 0).then_some(part)),
                (None, _) => {}
            }
            line.consume(length + usize::from(end.is_some()));
        }
    }
}

/// A part of a line: its bytes, or else hashes of them.
#[derive(Default)]
struct Part {
    bytes: Vec<u8>,
    long: Option<Box<Hashes>>,
}

/// The hash of a line, and two more with other seeds.
struct Hashes {
    length: u64,
    hashes: [Xxh3; 3],
    buffer: Vec<u8>,
}

impl Part {
    fn push(&mut self, bytes: &[u8], hash: &LineHash, most: usize) {
        if self.long.is_none() && self.bytes.len() + bytes.len() > most {
            let seed = hash.seed() as u64;
            let hashes = [seed, mix(!seed), mix(mix(!seed))].map(Xxh3::with_seed);
            let mut long = Box::new(Hashes { length: 0, hashes, buffer: Vec::new() });
            long.push(&std::mem::take(&mut self.bytes), hash);
            self.long = Some(long);
        }
        match &mut self.long {
            Some(long) => long.push(bytes, hash),
            None => self.bytes.extend_from_slice(bytes),
        }
    }

    /// Returns the hash, the key, and whether the part is of the kind that the comparison expects.
    fn end(self, hash: &LineHash, scratch: &mut Scratch) -> (Prehashed, Vec<u8>, bool) {
        let Some(long) = self.long else {
            let (key, is_expected) = hash.comparison().key(&self.bytes, scratch);
            return (hash.of_key(key), key.to_vec(), is_expected);
        };
        let [own, first, second] = long.hashes;
        let [first, second] = [first, second].map(|hash| hash.digest128().to_le_bytes());
        let key = [&long.length.to_le_bytes()[..], &first, &second].concat();
        (Prehashed(own.digest()), key, !hash.comparison().expects_urls())
    }
}

impl Hashes {
    fn push(&mut self, bytes: &[u8], hash: &LineHash) {
        self.length += bytes.len() as u64;
        let mut bytes = bytes;
        if hash.comparison() == Comparison::IgnoringCase {
            self.buffer.clear();
            self.buffer.extend_from_slice(bytes);
            self.buffer.make_ascii_lowercase();
            bytes = &self.buffer;
        }
        self.hashes.iter_mut().for_each(|hash| hash.update(bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::values::JsonPath;

    const RULES: Rules = Rules { terminator: b'\n', folds_cr: true, field: None, longest: 8 };

    fn read(line: &[u8], piece: usize, rules: Rules, hash: LineHash) -> LongLine {
        let mut reading = Reading::begin(rules, hash).unwrap();
        line.chunks(piece).for_each(|piece| reading.push(piece).unwrap());
        reading.end(&mut Scratch::default()).unwrap()
    }

    #[test]
    fn a_line_has_the_hash_of_its_bytes_in_whatever_pieces_it_comes() {
        let hash = LineHash::with_seed(Comparison::Bytes, 7);
        let fields =
            |number| Rules { field: Some(Field::Numbered { number, delimiter: b',' }), ..RULES };
        let json = Rules { field: Some(Field::Json(JsonPath::parse("a.b").unwrap())), ..RULES };
        for (line, rules, key, has_field) in [
            (&b"a long line"[..], RULES, &b"a long line"[..], true),
            (b"a long\r line\r", RULES, b"a long\r line", true),
            (b"a long line\r\r", RULES, b"a long line\r", true),
            (b"a long line\r", Rules { folds_cr: false, ..RULES }, b"a long line\r", true),
            (b"a,bc,a long field", fields(1), b"a", true),
            (b"a,bc,a long field", fields(2), b"bc", true),
            (b"a,bc,a long field\r", fields(3), b"a long field", true),
            (b"a,bc,a long field,", fields(4), b"", true),
            (b"a,bc,a long field\r", fields(4), b"a,bc,a long field", false),
            (b"a long field,", fields(2), b"", true),
            (b"{\"c\":1,\"a\":{\"b\":\"d\\u0061\"}}\r", json, b"da", true),
            (b"{\"a\":{\"b\":\"a long \\u0066ield\"}}", json, b"a long field", true),
            (b"{\"a\":1,\"b\":2}\r", json, b"{\"a\":1,\"b\":2}", false),
        ] {
            for piece in [1, 2, 3, 100] {
                let long = read(line, piece, rules, hash);
                assert_eq!(long.hash, hash.of_key(key), "{}", line.escape_ascii());
                assert_eq!((long.has_field, long.is_expected), (has_field, true));
                let mut written = Vec::new();
                let all = long.for_each_piece(|piece| {
                    written.extend_from_slice(piece);
                    Ok::<_, Failure>(())
                });
                all.unwrap();
                assert_eq!(written, [line, b"\n"].concat());
                assert_eq!(long.bytes, written.len() as u64);
            }
        }
    }

    #[test]
    fn long_keys_tell_lines_apart_as_hashes_do() {
        let hash = LineHash::random(Comparison::IgnoringCase);
        let key = |line: &[u8]| read(line, 3, RULES, hash).key;
        assert_eq!(key(b"a long line"), key(b"A Long Line\r"));
        assert_ne!(key(b"a long line"), key(b"a long lime"));
        assert_eq!(key(b"A\xC3\x84"), "a\u{e4}".as_bytes());
        assert_eq!(key(b"a long line").len(), 40);
    }
}
