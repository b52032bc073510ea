//! Inputs: files, compressed or not, and standard input.

use crate::failure::Failure;
use crate::lines::streams::{check_input, standard_input};
use flate2::bufread::MultiGzDecoder;
use koel::SnapshotInfo;
use koel_state::files::is_same;
use std::fs::{File, Metadata};
use std::io::{self, BufReader, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// An input that is not open yet.
#[derive(Clone)]
pub enum Source {
    StandardInput,
    File(PathBuf),
}

/// An input that is being read.
pub struct Opened {
    pub reader: Box<dyn Read + Send>,
    /// Whether more may arrive only later, as from a pipe. Lines that are there are then processed
    /// without waiting for more.
    pub is_live: bool,
}

/// Returns the inputs that the command line names: `-` is standard input, and so is an empty list.
pub fn sources(files: &[PathBuf]) -> Result<Vec<Source>, Failure> {
    if files.is_empty() || files.iter().any(|file| file.as_os_str() == "-") {
        check_input()?;
    }
    if files.is_empty() {
        return Ok(vec![Source::StandardInput]);
    }
    let source = |file: &PathBuf| match file.as_os_str() == "-" {
        true => Source::StandardInput,
        false => Source::File(file.clone()),
    };
    Ok(files.iter().map(source).collect())
}

impl Source {
    pub fn name(&self) -> String {
        match self {
            Source::StandardInput => String::from("standard input"),
            Source::File(path) => path.display().to_string(),
        }
    }

    /// Returns a hint to print after an error of reading.
    pub fn advice(&self, error: &io::Error) -> &'static str {
        match self {
            Source::File(path) if is_packed(path) && OF_CONTENT.contains(&error.kind()) => {
                " (its name says that it is compressed; the lines before the error were read)"
            }
            _ => "",
        }
    }

    /// Opens the input. The number of bytes read from the file, before decompression, is added to
    /// `read`.
    pub fn open(&self, read: &Arc<AtomicU64>) -> io::Result<Opened> {
        let counted = |inner| Counted { inner, read: Arc::clone(read) };
        match self {
            Source::StandardInput => {
                let file = standard_input()?;
                let is_live = !file.metadata()?.is_file();
                Ok(Opened { reader: recognised(counted(file), "")?, is_live })
            }
            Source::File(path) => {
                let file = File::open(path)?;
                let is_live = !file.metadata()?.is_file();
                let file = counted(file);
                let reader = match packing(path) {
                    Packing::None => recognised(file, &format!(" {}", path.display()))?,
                    packing => unpacked(file, packing)?,
                };
                Ok(Opened { reader, is_live })
            }
        }
    }

    /// Returns the metadata of the input, if it has any before it is opened.
    fn metadata(&self) -> Option<Metadata> {
        match self {
            Source::StandardInput => standard_input().ok()?.metadata().ok(),
            Source::File(path) => path.metadata().ok(),
        }
    }
}

/// The number of bytes of a compressed file that are read at once.
const PACKED: usize = 64 << 10;

enum Packing {
    None,
    Gzip,
    Zstd,
}

/// Returns `true` if a file of this name is decompressed when it is read.
pub fn is_packed(path: &Path) -> bool {
    !matches!(packing(path), Packing::None)
}

fn packing(path: &Path) -> Packing {
    let extension = path.extension().unwrap_or_default().to_ascii_lowercase();
    match extension.to_str() {
        Some("gz") => Packing::Gzip,
        Some("zst") => Packing::Zstd,
        _ => Packing::None,
    }
}

/// First bytes of the inputs that are decompressed, and of a state.
const GZIP: &[u8] = b"\x1F\x8B";
const ZSTD: &[u8] = b"\x28\xB5\x2F\xFD";
const STATE: &[u8] = &SnapshotInfo::MAGIC;

/// First bytes of compressed inputs that are refused, and the program that decompresses them. A `?` is a digit.
const FOREIGN: [(&[u8], &str); 3] =
    [(b"BZh?1AY&SY", "bzip2"), (b"\xFD7zXZ\0", "xz"), (b"\x04\x22\x4D\x18", "lz4")];

/// Length of the longest of these.
const LONGEST: usize = 10;

/// Returns whether `begins` and `magic` agree as far as both go.
fn agree(begins: &[u8], magic: &[u8]) -> bool {
    let fits = |(byte, of_magic): (&u8, &u8)| {
        byte == of_magic || *of_magic == b'?' && byte.is_ascii_digit()
    };
    begins.iter().zip(magic).all(fits)
}

/// Decompresses an input if it begins as a compressed one does. `from` is its path, or nothing for standard input.
fn recognised(
    mut input: impl Read + Send + 'static,
    from: &str,
) -> io::Result<Box<dyn Read + Send>> {
    let mut bytes = [0; LONGEST];
    let mut length = 0;
    let foreign = FOREIGN.iter().map(|(magic, _)| *magic);
    let magics: Vec<&[u8]> = [GZIP, ZSTD, STATE].into_iter().chain(foreign).collect();
    // No more is read than it takes, so that lines from a terminal or a pipe do not wait.
    while magics.iter().any(|magic| length < magic.len() && agree(&bytes[..length], magic)) {
        match input.read(&mut bytes[length..]) {
            Ok(0) => break,
            Ok(more) => length += more,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    let begins = bytes[..length].to_vec();
    let is_whole =
        |begins: &[u8], magic: &[u8]| begins.len() >= magic.len() && agree(begins, magic);
    let packing = match &*begins {
        begins if begins.starts_with(STATE) => {
            let what = "this is a state, not lines; koel info shows what it contains";
            return Err(io::Error::new(ErrorKind::InvalidInput, what));
        }
        begins if begins.starts_with(GZIP) => Packing::Gzip,
        begins if begins.starts_with(ZSTD) => Packing::Zstd,
        begins => match FOREIGN.iter().find(|(magic, _)| is_whole(begins, magic)) {
            Some((_, program)) => {
                let what = format!(
                    "it is compressed by {program}, which koel does not read; use: {program} -dc{from} | koel dedup"
                );
                return Err(io::Error::new(ErrorKind::InvalidInput, what));
            }
            None => Packing::None,
        },
    };
    let name = match packing {
        Packing::None => return unpacked(io::Cursor::new(begins).chain(input), packing),
        Packing::Gzip => "gzip",
        Packing::Zstd => "zstd",
    };
    let inner = unpacked(io::Cursor::new(begins).chain(input), packing)?;
    Ok(Box::new(TakenFor { inner, name }))
}

/// An input that is decompressed because of its first bytes. Its errors say so.
struct TakenFor {
    inner: Box<dyn Read + Send>,
    name: &'static str,
}

impl Read for TakenFor {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.inner.read(into).map_err(|error| match error.kind() {
            kind if OF_CONTENT.contains(&kind) => {
                let what = format!(
                    "{error} (its first bytes are those of {}, so it was decompressed; the lines \
                     before the error were read; if it is text, put another line before it)",
                    self.name
                );
                io::Error::new(kind, what)
            }
            _ => error,
        })
    }
}

/// The errors of decompression.
const OF_CONTENT: [ErrorKind; 4] =
    [ErrorKind::InvalidInput, ErrorKind::InvalidData, ErrorKind::UnexpectedEof, ErrorKind::Other];

fn unpacked(
    input: impl Read + Send + 'static,
    packing: Packing,
) -> io::Result<Box<dyn Read + Send>> {
    Ok(match packing {
        Packing::None => Box::new(input),
        Packing::Gzip => Box::new(MultiGzDecoder::new(BufReader::with_capacity(PACKED, input))),
        Packing::Zstd => Box::new(zstd::Decoder::new(input)?),
    })
}

/// Returns the total size of the inputs before decompression, if it is known.
pub fn total_bytes(sources: &[Source]) -> Option<u64> {
    let length =
        |source: &Source| source.metadata().filter(Metadata::is_file).map(|file| file.len());
    sources.iter().map(length).sum()
}

/// Returns the name of the input that is this file, if there is one.
pub fn that_is(sources: &[Source], file: &Metadata) -> Option<String> {
    let same = |source: &&Source| source.metadata().is_some_and(|input| is_same(&input, file));
    sources.iter().find(same).map(Source::name)
}

struct Counted<R> {
    inner: R,
    read: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let length = self.inner.read(into)?;
        self.read.fetch_add(length as u64, Relaxed);
        Ok(length)
    }
}
