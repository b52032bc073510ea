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
    /// Those that belong to no stream, because a beginning is damaged: their own, or that of one before them.
    others: Vec<u64>,
}

impl Reader {
    pub fn open(path: &Path) -> io::Result<Option<(Header, Reader)>> {
        let file = open_journal(path)?;
        let Some(header) = Header::read(&file)? else { return Ok(None) };
        let key = header.key;
        let chunks = file.metadata()?.len() / CHUNK_BYTES;
        let (mut found, mut others) = (vec![Vec::<(u64, u64)>::new(); STREAMS], Vec::new());
        for number in 1..chunks {
            let mut words = [0u64; 2];
            file.read_exact_at(bytemuck::cast_slice_mut(&mut words), number * CHUNK_BYTES)?;
            let [word, seal] = words.map(u64::from_le);
            if seal == sealed(key, number * CHUNK_RECORDS as u64, word, CHUNK) {
                found[word as u8 as usize].push((word >> 8, number));
            } else if seal != 0 {
                others.push(number);
            }
        }
        let streams = found.into_iter().map(|mut chunks| {
            chunks.sort_unstable();
            let numbered = (0..).zip(&chunks);
            let in_order = numbered.take_while(|(number, (own, _))| number == own).count();
            let mut chunks: Vec<u64> = chunks.into_iter().map(|(_, number)| number).collect();
            others.extend(chunks.drain(in_order..));
            chunks
        });
        let streams = streams.collect();
        Ok(Some((header, Reader { file, key, streams, others })))
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

    /// Returns how many changes there are behind the ends of the streams, which are after so many records of each. There
    /// are some only if something is damaged.
    pub fn lost(&self, ends: impl Iterator<Item = usize>) -> io::Result<u64> {
        let in_a_chunk = CHUNK_RECORDS - 1;
        let mut records = vec![[0u64; 2]; CHUNK_RECORDS];
        // Damaged ones count, but not the one that a process had not finished when it was killed.
        let mut changes_in = |chunk: u64, first: usize| -> io::Result<u64> {
            let bytes = bytemuck::cast_slice_mut(&mut records);
            self.file.read_exact_at(bytes, chunk * CHUNK_BYTES)?;
            Ok(records[first..].iter().filter(|[_, seal]| *seal != 0).count() as u64)
        };
        let mut lost = 0;
        for (chunks, end) in self.streams.iter().zip(ends) {
            let behind = chunks.get(end / in_a_chunk..).unwrap_or_default();
            for (at, number) in behind.iter().enumerate() {
                let first = if at == 0 { 1 + end % in_a_chunk } else { 1 };
                lost += changes_in(*number, first)?;
            }
        }
        for number in &self.others {
            lost += changes_in(*number, 1)?;
        }
        Ok(lost)
    }

    /// Makes what is there survive a power failure.
    pub fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    /// The bytes of the chunks that are in use.
    pub fn bytes(&self) -> u64 {
        let of_streams: usize = self.streams.iter().map(Vec::len).sum();
        (1 + of_streams + self.others.len()) as u64 * CHUNK_BYTES
    }

    /// Whether any change is recorded.
    pub fn is_empty(&self) -> bool {
        self.streams.iter().all(Vec::is_empty) && self.others.is_empty()
    }
}
