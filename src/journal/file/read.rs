//! A journal that is read.

use crate::journal::file::header::Header;
use crate::journal::file::record::{CHUNK, CHUNK_BYTES, CHUNK_RECORDS, change_of, sealed};
use crate::journal::streams::{Change, STREAMS};
use crate::layout::geometry::Mixed;
use rustix::fs::OFlags;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

/// So many records are read at a time: where a stream goes on after a tick, little is read again.
const PAGE_RECORDS: usize = 256;

/// Opens a journal to read it. Anything but a regular file is an error, and opening a pipe waits for nobody.
pub fn open_journal(journal: &Path) -> io::Result<File> {
    let in_the_way =
        || io::Error::new(io::ErrorKind::InvalidInput, "it is in the way: this is no regular file");
    if !journal.symlink_metadata()?.is_file() {
        return Err(in_the_way());
    }
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY).bits() as i32;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(journal)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(in_the_way()) }
}

/// A journal that is being read.
pub struct Reader {
    file: File,
    key: u64,
    /// The chunks of each stream, in their order.
    streams: Vec<Vec<u64>>,
}

impl Reader {
    pub fn open(path: &Path) -> io::Result<Option<(Header, Reader)>> {
        let file = open_journal(path)?;
        let Some(header) = Header::read(&file)? else { return Ok(None) };
        let key = header.key;
        let chunks = file.metadata()?.len() / CHUNK_BYTES;
        let mut found: Vec<Vec<(u64, u64)>> = vec![Vec::new(); STREAMS];
        for number in 1..chunks {
            let mut words = [0u64; 2];
            file.read_exact_at(bytemuck::cast_slice_mut(&mut words), number * CHUNK_BYTES)?;
            let [word, seal] = words.map(u64::from_le);
            if seal == sealed(key, number * CHUNK_RECORDS as u64, word, CHUNK) {
                found[word as u8 as usize].push((word >> 8, number));
            }
        }
        let streams = found.into_iter().map(|mut chunks| {
            chunks.sort_unstable();
            let in_order = (0..).zip(chunks).take_while(|(number, (own, _))| number == own);
            in_order.map(|(_, (_, number))| number).collect()
        });
        let streams = streams.collect();
        Ok(Some((header, Reader { file, key, streams })))
    }

    /// Passes on the changes of a stream, some at a time, until it ends or `take` returns `false`. Begins after
    /// so many records, and returns how many have been passed on, those included.
    pub fn changes(
        &self,
        stream: usize,
        start: usize,
        mut take: impl FnMut(Mixed, Change) -> bool,
    ) -> io::Result<usize> {
        let in_a_chunk = CHUNK_RECORDS - 1;
        let mut page = [[0u64; 2]; PAGE_RECORDS];
        let mut done = start;
        for number in self.streams[stream].iter().skip(start / in_a_chunk) {
            let mut next = 1 + done % in_a_chunk;
            while next < CHUNK_RECORDS {
                let place = number * CHUNK_RECORDS as u64 + next as u64;
                let page = &mut page[next % PAGE_RECORDS..];
                self.file.read_exact_at(bytemuck::cast_slice_mut(page), place * 16)?;
                for (place, record) in (place..).zip(&*page) {
                    let [word, seal] = record.map(u64::from_le);
                    let Some(change) = change_of(seal & 7) else { return Ok(done) };
                    if seal != sealed(self.key, place, word, seal & 7) {
                        return Ok(done);
                    }
                    done += 1;
                    if !take(Mixed(word), change) {
                        return Ok(done);
                    }
                }
                next += page.len();
            }
        }
        Ok(done)
    }

    /// Makes what is there survive a power failure.
    pub fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    /// Whether any change is recorded.
    pub fn is_empty(&self) -> bool {
        self.streams.iter().all(Vec::is_empty)
    }
}
