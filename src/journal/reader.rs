//! Reads a journal.

use crate::disk::claim::flags_in_shared_folder;
use crate::error::{repeated, reserve};
use crate::journal::format::{
    CHUNK, Header, MAX_CHUNK, PAGE_BYTES, PAGE_RECORDS, change_of, sealed,
};
use crate::journal::streams::{Change, STREAMS};
use crate::layout::geometry::Mixed;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Opens a journal to read it. Anything but a regular file is an error.
fn open_journal(journal: &Path) -> io::Result<File> {
    let in_the_way =
        io::Error::new(io::ErrorKind::InvalidInput, "it is in the way: this is no regular file");
    if !journal.symlink_metadata()?.is_file() {
        return Err(in_the_way);
    }
    let file =
        OpenOptions::new().read(true).custom_flags(flags_in_shared_folder()).open(journal)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(in_the_way) }
}

pub(crate) struct Reader {
    pub path: PathBuf,
    pub header: Header,
    file: File,
    /// The pages of each stream, in their order.
    streams: Vec<Vec<u64>>,
    /// Pages that have records and are in no stream, because the beginning of a chunk is damaged: their own, or that of
    /// an earlier chunk.
    others: Vec<u64>,
}

impl Reader {
    /// Opens a journal. Returns `None` if it has no header yet, and so no records.
    pub(crate) fn open(path: &Path) -> io::Result<Option<Reader>> {
        let file = open_journal(path)?;
        let Some(header) = Header::read(&file)? else { return Ok(None) };
        let end = file.metadata()?.len() / PAGE_BYTES;
        let (mut chunks, mut others) = (repeated(Vec::new(), STREAMS)?, Vec::new());
        let mut page = 1;
        while page < end {
            let mut words = [0u64; 2];
            file.read_exact_at(bytemuck::cast_slice_mut(&mut words), page * PAGE_BYTES)?;
            let [word, seal] = words.map(u64::from_le);
            let after = page + (1 << (word >> 8 & 0xFF).min(MAX_CHUNK.into()));
            if seal == sealed(header.key, page * PAGE_RECORDS as u64, word, CHUNK) && after <= end {
                let of_stream = &mut chunks[word as u8 as usize];
                reserve(of_stream, 1)?;
                of_stream.push((word >> 16, page..after));
                page = after;
                continue;
            }
            if seal != 0 {
                reserve(&mut others, 1)?;
                others.push(page);
            }
            page += 1;
        }
        let in_order = |mut chunks: Vec<(u64, std::ops::Range<u64>)>| {
            chunks.sort_unstable_by_key(|(number, pages)| (*number, pages.start));
            let (mut of_stream, mut is_whole) = (Vec::new(), true);
            for (expected, (number, pages)) in (0..).zip(chunks) {
                is_whole &= number == expected;
                let pages_so_far = if is_whole { &mut of_stream } else { &mut others };
                reserve(pages_so_far, (pages.end - pages.start) as usize)?;
                pages_so_far.extend(pages);
            }
            Ok(of_stream)
        };
        let streams = chunks.into_iter().map(in_order).collect::<io::Result<_>>()?;
        Ok(Some(Reader { path: path.to_path_buf(), header, file, streams, others }))
    }

    fn read_page(&self, page: u64, records: &mut [[u64; 2]; PAGE_RECORDS]) -> io::Result<()> {
        self.file.read_exact_at(bytemuck::cast_slice_mut(records), page * PAGE_BYTES)
    }

    /// Passes the changes of a stream to `take`, until the stream ends or `take` returns `false`. `place` is the number
    /// of records of the stream that come before, and is moved behind the last change that was passed on.
    pub(crate) fn changes(
        &self,
        stream: usize,
        place: &mut usize,
        mut take: impl FnMut(Mixed, Change) -> bool,
    ) -> io::Result<()> {
        let mut records = [[0; 2]; PAGE_RECORDS];
        for page in self.streams[stream].iter().skip(*place / PAGE_RECORDS) {
            self.read_page(*page, &mut records)?;
            let first = page * PAGE_RECORDS as u64;
            for (at, record) in (first..).zip(&records).skip(*place % PAGE_RECORDS) {
                let [word, seal] = record.map(u64::from_le);
                let code = seal & 7;
                if seal != sealed(self.header.key, at, word, code) {
                    return Ok(());
                }
                *place += 1;
                // The first record of a chunk is not a change.
                let Some(change) = change_of(code) else { continue };
                if !take(Mixed(word), change) {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Returns the number of changes behind the ends of the streams. It is 0 unless the journal is damaged.
    pub(crate) fn lost(&self, ends: impl Iterator<Item = usize>) -> io::Result<u64> {
        let mut records = [[0; 2]; PAGE_RECORDS];
        let mut lost = 0;
        let others = (&self.others, 0);
        for (stream, (pages, end)) in self.streams.iter().zip(ends).chain([others]).enumerate() {
            let mut first = end % PAGE_RECORDS;
            for page in pages.iter().skip(end / PAGE_RECORDS) {
                self.read_page(*page, &mut records)?;
                // The beginning of a chunk is no change. Elsewhere, and in a stream, whose chunks are known, a record
                // with that code only is a damaged one.
                let begins_chunk = |at: usize, word: u64, seal: u64| {
                    let whole = || sealed(self.header.key, page * PAGE_RECORDS as u64, word, CHUNK);
                    at == 0 && seal & 7 == CHUNK && (stream == STREAMS || seal == whole())
                };
                // Damaged records count, but not one that a process had not finished when it was killed.
                let is_change = |(at, record): &(usize, &[u64; 2])| {
                    let [word, seal] = record.map(u64::from_le);
                    seal != 0 && !begins_chunk(*at, word, seal)
                };
                lost += records.iter().enumerate().skip(first).filter(is_change).count() as u64;
                first = 0;
            }
        }
        Ok(lost)
    }

    pub(crate) fn bytes(&self) -> u64 {
        let pages: usize = self.streams.iter().chain([&self.others]).map(Vec::len).sum();
        (1 + pages as u64) * PAGE_BYTES
    }

    /// Returns whether no change is recorded.
    pub(crate) fn is_empty(&self) -> bool {
        self.bytes() == PAGE_BYTES
    }
}
