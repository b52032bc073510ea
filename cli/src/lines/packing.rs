//! Outputs that are compressed as their inputs are: one gzip member, or one zstd frame, because many programs read no
//! more than the first.
//!
//! Workers compress what goes into a gzip file, chunk by chunk: each is a piece of the member, and ends at a byte. A
//! zstd frame has no such pieces, so zstd divides it among threads of its own.

use flate2::{Compress, Compression, Crc, FlushCompress};
use std::fs::File;
use std::io::{self, Write};

/// A form of compression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Gzip,
    Zstd,
}

/// The number of bytes of a buffer that is kept for the next piece.
const MOST_KEPT: usize = 8 << 20;

/// A piece of a gzip member.
#[derive(Default)]
pub struct Piece {
    bytes: Vec<u8>,
    crc: Crc,
}

impl Piece {
    /// Makes it that of a text.
    pub fn pack(&mut self, text: &[u8]) -> io::Result<()> {
        let Piece { bytes, crc } = self;
        bytes.clear();
        bytes.shrink_to(MOST_KEPT);
        *crc = Crc::new();
        crc.update(text);
        let mut deflate = Compress::new(Compression::default(), false);
        // The flush is complete when it leaves room.
        while bytes.len() == bytes.capacity() || deflate.total_in() < text.len() as u64 {
            bytes.reserve(text.len() / 2 + 64);
            let rest = &text[deflate.total_in() as usize..];
            deflate.compress_vec(rest, bytes, FlushCompress::Sync)?;
        }
        Ok(())
    }
}

/// A file that is compressed as it is written.
pub enum Packer {
    Plain(File),
    Gzip(File, Crc),
    Zstd(zstd::Encoder<'static, File>),
}

/// What a gzip member begins with: no name, no time, no system.
const HEADER: [u8; 10] = [0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 0xFF];

/// The last block of a gzip member, which is empty.
const LAST: [u8; 2] = [3, 0];

impl Packer {
    /// Begins a file, with this many threads for zstd.
    pub fn begin(mut file: File, form: Option<Form>, threads: u32) -> io::Result<Packer> {
        Ok(match form {
            None => Packer::Plain(file),
            Some(Form::Gzip) => {
                file.write_all(&HEADER)?;
                Packer::Gzip(file, Crc::new())
            }
            Some(Form::Zstd) => {
                let mut encoder = zstd::Encoder::new(file, zstd::DEFAULT_COMPRESSION_LEVEL)?;
                encoder.include_checksum(true)?;
                encoder.multithread(threads)?;
                Packer::Zstd(encoder)
            }
        })
    }

    /// Writes a text, or its piece.
    pub fn write(&mut self, text: &[u8], piece: &Piece) -> io::Result<()> {
        match self {
            Packer::Plain(file) => file.write_all(text),
            Packer::Gzip(file, crc) => {
                crc.combine(&piece.crc);
                file.write_all(&piece.bytes)
            }
            Packer::Zstd(encoder) => encoder.write_all(text),
        }
    }

    pub fn finish(self) -> io::Result<()> {
        match self {
            Packer::Plain(_) => Ok(()),
            Packer::Gzip(mut file, crc) => {
                let [sum, length] = [crc.sum(), crc.amount()].map(u32::to_le_bytes);
                file.write_all(&[&LAST[..], &sum, &length].concat())
            }
            Packer::Zstd(encoder) => encoder.finish().map(drop),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::read::GzDecoder;
    use std::io::{Read, Seek};

    #[test]
    fn pieces_in_any_order_are_one_member() {
        let texts = [&b"some text\n".repeat(1_000)[..], b"", b"a\n", &[7; 200_000], b"some text\n"];
        let pieces = texts.map(|text| {
            let mut piece = Piece::default();
            piece.pack(text).unwrap();
            piece
        });
        for order in [&[][..], &[2], &[0, 1, 2, 3, 4], &[4, 3, 3, 0]] {
            let file = tempfile::tempfile().unwrap();
            let mut packer = Packer::begin(file.try_clone().unwrap(), Some(Form::Gzip), 1).unwrap();
            order.iter().for_each(|&at| packer.write(texts[at], &pieces[at]).unwrap());
            packer.finish().unwrap();
            let (mut read, mut file) = (Vec::new(), file);
            file.rewind().unwrap();
            // This one reads the first member only.
            GzDecoder::new(&file).read_to_end(&mut read).unwrap();
            assert!(read == order.iter().map(|&at| texts[at]).collect::<Vec<_>>().concat());
            assert_eq!(file.stream_position().unwrap(), file.metadata().unwrap().len());
        }
    }
}
