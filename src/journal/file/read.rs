//! A journal that is read.

use crate::journal::file::header::Header;
use crate::journal::file::record::{CHUNK, MAX_CHUNK, PAGE_BYTES, PAGE_RECORDS, change_of, sealed};
use crate::journal::streams::{Change, STREAMS};
use crate::layout::geometry::Mixed;
use rustix::fs::OFlags;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

/// Opens a journal to read it. Anything but a regular file is an error, and opening a pipe waits for nobody.
fn open_journal(journal: &Path) -> io::Result<File> {
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
    /// Chunks of each stream, in their order.
    streams: Vec<Vec<Chunk>>,
    /// Pages of no stream, because the beginning of a chunk is damaged: their own, or that of an earlier chunk.
    others: Vec<u64>,
}

#[derive(Clone, Copy)]
struct Chunk {
    /// Its first page.
    page: u64,
    pages: u64,
    /// Number of changes in the chunks before it.
    before: usize,
}

impl Chunk {
    fn records(self) -> usize {
        self.pages as usize * PAGE_RECORDS
    }

    /// Number of changes up to its end. Its first record is none.
    fn end(self) -> usize {
        self.before + self.records() - 1
    }
}

impl Reader {
    pub fn open(path: &Path) -> io::Result<Option<(Header, Reader)>> {
        let file = open_journal(path)?;
        let Some(header) = Header::read(&file)? else { return Ok(None) };
        let key = header.key;
        let pages = file.metadata()?.len() / PAGE_BYTES;
        let (mut found, mut others) = (vec![Vec::<(u64, Chunk)>::new(); STREAMS], Vec::new());
        let mut page = 1;
        while page < pages {
            let mut words = [0u64; 2];
            file.read_exact_at(bytemuck::cast_slice_mut(&mut words), page * PAGE_BYTES)?;
            let [word, seal] = words.map(u64::from_le);
            let of_chunk = 1 << (word >> 8 & 0xFF).min(MAX_CHUNK.into());
            if seal == sealed(key, page * PAGE_RECORDS as u64, word, CHUNK)
                && page + of_chunk <= pages
            {
                let chunk = Chunk { page, pages: of_chunk, before: 0 };
                found[word as u8 as usize].push((word >> 16, chunk));
                page += of_chunk;
                continue;
            }
            if seal != 0 {
                others.push(page);
            }
            page += 1;
        }
        let streams = found.into_iter().map(|mut chunks| {
            chunks.sort_unstable_by_key(|(number, chunk)| (*number, chunk.page));
            let numbered = (0..).zip(&chunks);
            let in_order = numbered.take_while(|(number, (own, _))| number == own).count();
            for (_, Chunk { page, pages, .. }) in chunks.drain(in_order..) {
                others.extend(page..page + pages);
            }
            let mut before = 0;
            let in_their_place = |(_, chunk): (u64, Chunk)| {
                let chunk = Chunk { before, ..chunk };
                before = chunk.end();
                chunk
            };
            chunks.into_iter().map(in_their_place).collect()
        });
        let streams = streams.collect();
        Ok(Some((header, Reader { file, key, streams, others })))
    }

    /// Passes on the changes of a stream, a page of them at a time, until it ends or `take` returns `false`. Begins
    /// after `start` records, and returns how many have been passed on, those included.
    pub fn changes(
        &self,
        stream: usize,
        start: usize,
        mut take: impl FnMut(Mixed, Change) -> bool,
    ) -> io::Result<usize> {
        let mut page = [[0u64; 2]; PAGE_RECORDS];
        let mut done = start;
        let chunks = &self.streams[stream];
        for chunk in &chunks[chunks.partition_point(|chunk| chunk.end() <= start)..] {
            let mut next = 1 + done - chunk.before;
            while next < chunk.records() {
                let place = chunk.page * PAGE_RECORDS as u64 + next as u64;
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

    /// Returns the number of changes behind the ends of the streams, given the number of records before each end. It is
    /// 0 unless the journal is damaged.
    pub fn lost(&self, ends: impl Iterator<Item = usize>) -> io::Result<u64> {
        let mut records = [[0u64; 2]; PAGE_RECORDS];
        // Damaged ones count, but not the one that a process had not finished when it was killed.
        let mut changes_in = |page: u64, first: usize| -> io::Result<u64> {
            self.file.read_exact_at(bytemuck::cast_slice_mut(&mut records), page * PAGE_BYTES)?;
            let is_change = |[_, seal]: &&[u64; 2]| *seal != 0 && u64::from_le(*seal) & 7 != CHUNK;
            Ok(records[first..].iter().filter(is_change).count() as u64)
        };
        let mut lost = 0;
        for (chunks, end) in self.streams.iter().zip(ends) {
            for chunk in &chunks[chunks.partition_point(|chunk| chunk.end() <= end)..] {
                let first = 1 + end.saturating_sub(chunk.before);
                let (page, first) = (first / PAGE_RECORDS, first % PAGE_RECORDS);
                lost += changes_in(chunk.page + page as u64, first)?;
                for page in chunk.page + page as u64 + 1..chunk.page + chunk.pages {
                    lost += changes_in(page, 0)?;
                }
            }
        }
        for page in &self.others {
            lost += changes_in(*page, 0)?;
        }
        Ok(lost)
    }

    /// Makes what is there survive a power failure.
    pub fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    /// The bytes of the chunks that are in use.
    pub fn bytes(&self) -> u64 {
        let of_streams: u64 = self.streams.iter().flatten().map(|chunk| chunk.pages).sum();
        (1 + of_streams + self.others.len() as u64) * PAGE_BYTES
    }

    /// Whether any change is recorded.
    pub fn is_empty(&self) -> bool {
        self.streams.iter().all(Vec::is_empty) && self.others.is_empty()
    }
}
