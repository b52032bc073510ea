//! Inputs: files, compressed or not, and standard input.

use crate::lines::chunk::BUFFER;
use crate::lines::packing::Form;
use crate::lines::streams::{standard_input, was_open};
use crate::paths::is_same;
use flate2::bufread::GzDecoder;
use koel::SnapshotInfo;
use std::fs::{File, Metadata};
use std::io::{self, BufRead, BufReader, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// An input that is not open yet.
pub enum Source {
    StandardInput,
    File(PathBuf),
}

/// An input that is being read.
pub struct OpenInput {
    pub reader: Box<dyn Read + Send>,
    /// Whether more may arrive only later, as from a pipe. Lines that are there are then processed
    /// without waiting for more.
    pub is_live: bool,
    /// How it is compressed.
    pub form: Option<Form>,
}

/// Returns the inputs that the command line names: `-` is standard input, and so is an empty list.
pub fn sources(files: &[PathBuf]) -> Vec<Source> {
    if files.is_empty() {
        return vec![Source::StandardInput];
    }
    let source = |file: &PathBuf| match file.as_os_str() == "-" {
        true => Source::StandardInput,
        false => Source::File(file.clone()),
    };
    files.iter().map(source).collect()
}

impl Source {
    pub fn name(&self) -> String {
        match self {
            Source::StandardInput => String::from("standard input"),
            Source::File(path) => path.display().to_string(),
        }
    }

    /// Opens the input. The number of bytes read from the file, before decompression, is added to
    /// `read`.
    pub fn open(&self, read: &Arc<AtomicU64>) -> io::Result<OpenInput> {
        let (file, path) = match self {
            Source::StandardInput => (standard_input()?, None),
            Source::File(path) => (File::open(path)?, Some(&**path)),
        };
        if path.is_none() && !was_open(&file)? {
            // Otherwise an output would be replaced by nothing.
            let what = "it is closed, or it is /dev/null opened for reading and writing; for no lines, < /dev/null";
            return Err(io::Error::other(what));
        }
        let is_live = !file.metadata()?.is_file();
        let (reader, form) = unpacked(Counted { inner: file, read: Arc::clone(read) }, path)?;
        Ok(OpenInput { reader, is_live, form })
    }

    /// Returns the metadata of the input, if it has any before it is opened.
    pub fn metadata(&self) -> Option<Metadata> {
        match self {
            Source::StandardInput => standard_input().ok()?.metadata().ok(),
            Source::File(path) => path.metadata().ok(),
        }
    }
}

/// First bytes of inputs that are not lines as they are, and what such an input is.
const MAGICS: [(&[u8], &str); 6] = [
    (b"\x1F\x8B", "gzip"),
    (b"\x28\xB5\x2F\xFD", "zstd"),
    (&SnapshotInfo::MAGIC, "a state"),
    // As the program compresses unless it is told otherwise.
    (b"BZh91AY&SY", "bzip2"),
    (b"\xFD7zXZ\0", "xz"),
    (b"\x04\x22\x4D\x18", "lz4"),
];

/// Returns how a file of this name is compressed, if it is decompressed when it is read.
pub fn form(path: &Path) -> Option<Form> {
    let extension = path.extension()?.to_ascii_lowercase();
    match extension.to_str()? {
        "gz" => Some(Form::Gzip),
        "zst" => Some(Form::Zstd),
        _ => None,
    }
}

/// Decompresses an input if its name says so, or else if it begins as a compressed one does. Also returns how it is
/// compressed.
pub fn unpacked(
    mut input: impl Read + Send + 'static,
    path: Option<&Path>,
) -> io::Result<(Box<dyn Read + Send>, Option<Form>)> {
    let mut begins = Vec::new();
    let (form, advice) = match path.and_then(form) {
        Some(form) => (form, "name it otherwise"),
        None => match recognised(&mut begins, &mut input)? {
            None => return Ok((Box::new(io::Cursor::new(begins).chain(input)), None)),
            Some("gzip") => (Form::Gzip, "put another line before it"),
            Some("zstd") => (Form::Zstd, "put another line before it"),
            Some("a state") => {
                let what = "this is a state, not lines; koel info shows what it contains";
                return Err(io::Error::new(ErrorKind::InvalidInput, what));
            }
            Some(program) => {
                let from = path.map_or(String::new(), |path| format!(" {}", path.display()));
                let what = format!(
                    "it is compressed by {program}, which koel does not read; use: {program} -dc{from} | koel dedup"
                );
                return Err(io::Error::new(ErrorKind::InvalidInput, what));
            }
        },
    };
    let input = BufReader::with_capacity(BUFFER, io::Cursor::new(begins).chain(input));
    let inner: Box<dyn Read + Send> = match form {
        Form::Gzip => Box::new(Members(GzDecoder::new(Box::new(input)))),
        Form::Zstd => Box::new(zstd::Decoder::with_buffer(input)?),
    };
    let name = if form == Form::Gzip { "gzip" } else { "zstd" };
    Ok((Box::new(Unpacked { inner, form: name, advice }), Some(form)))
}

/// The members of a gzip file. Zeros behind a member are padding, as they are for `gzip`.
struct Members(GzDecoder<Box<dyn BufRead + Send>>);

impl Read for Members {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            let length = self.0.read(into)?;
            if length > 0 || into.is_empty() {
                return Ok(length);
            }
            let input = self.0.get_mut();
            loop {
                let bytes = input.fill_buf()?;
                if bytes.is_empty() {
                    return Ok(0);
                }
                let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
                if zeros == 0 {
                    break;
                }
                input.consume(zeros);
            }
            let input = self.0.reset(Box::new(io::empty()));
            self.0.reset(input);
        }
    }
}

/// Reads the first bytes of an input, and returns what they say it is.
fn recognised(begins: &mut Vec<u8>, input: &mut impl Read) -> io::Result<Option<&'static str>> {
    // No more is read than it takes, so that lines from a terminal or a pipe do not wait.
    while MAGICS
        .iter()
        .any(|(magic, _)| magic.len() > begins.len() && magic.starts_with(&begins[..]))
    {
        let mut byte = [0];
        match input.read(&mut byte) {
            Ok(0) => break,
            Ok(_) => begins.push(byte[0]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    let found = MAGICS.iter().find(|(magic, _)| begins.starts_with(magic));
    Ok(found.map(|(_, what)| *what))
}

/// An input that is decompressed. Its errors say why.
struct Unpacked {
    inner: Box<dyn Read + Send>,
    form: &'static str,
    /// What to do if it is text.
    advice: &'static str,
}

/// The errors of decompression.
const OF_CONTENT: [ErrorKind; 4] =
    [ErrorKind::InvalidInput, ErrorKind::InvalidData, ErrorKind::UnexpectedEof, ErrorKind::Other];

impl Read for Unpacked {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.inner.read(into).map_err(|error| match error.kind() {
            kind if OF_CONTENT.contains(&kind) => {
                let Unpacked { form, advice, .. } = self;
                let why = match kind {
                    ErrorKind::UnexpectedEof => "it ends too soon, so it may be cut off".into(),
                    _ => error.to_string(),
                };
                let what = format!(
                    "{why} (it was taken for {form}, and read up to there; if it is text, {advice})"
                );
                io::Error::new(kind, what)
            }
            _ => error,
        })
    }
}

/// Returns the total size of the inputs before decompression, if it is known.
pub fn total_bytes(sources: &[Source]) -> Option<u64> {
    let length =
        |source: &Source| source.metadata().filter(Metadata::is_file).map(|file| file.len());
    sources.iter().map(length).sum()
}

/// Returns the input that is this file, if there is one.
pub fn that_is<'a>(sources: &'a [Source], file: &Metadata) -> Option<&'a Source> {
    sources.iter().find(|source| source.metadata().is_some_and(|input| is_same(&input, file)))
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
