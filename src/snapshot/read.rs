//! Reads a filter from its parts, one after the other, each from front to back.
//!
//! A file is one part, and pieces are several. Everything is validated before it is used: the order of the parts, the
//! blocks, and the order of the blocks.

use crate::backend::exchange::{Block, Copied, Loaded};
use crate::backend::shards::Shards;
use crate::backend::{Backend, on_shards};
use crate::error::{NoMemory, zeros};
use crate::layout::sizing::Layout;
use crate::snapshot::block::{BlockReader, Coverage, Totals, from_here};
use crate::snapshot::error::{SnapshotError, SnapshotErrorKind};
use crate::snapshot::format::{END_WORDS, End, HEADER_WORDS, Words, buckets_in, bytes_of};
use crate::snapshot::gather::Gathered;
use crate::snapshot::header::{Header, are_of_one_filter, is_snapshot, read_header};
use crate::stable_hash::PersistentHasher;
use std::io::{ErrorKind, Read};

/// A filter as it was read.
pub struct ReadFilter<S> {
    pub header: Header<S>,
    pub loaded: Loaded,
}

impl<S> ReadFilter<S> {
    /// Returns the filter's backend and its hasher.
    pub fn into_backend(self) -> Result<(Backend, S), SnapshotError> {
        let ReadFilter { header: Header { layout, hasher, .. }, mut loaded } = self;
        loaded.time = loaded.time.map(from_here);
        let backend = Backend::restore(layout, loaded).map_err(NoMemory)?;
        Ok((backend, hasher))
    }
}

/// Reads a filter that is one part.
pub fn read<S: PersistentHasher>(reader: impl Read) -> Result<ReadFilter<S>, SnapshotError> {
    let mut loading = Loading::new();
    let read = loading.read(Source::stream(reader)).map_err(|error| match error.kind() {
        SnapshotErrorKind::OutOfOrder => SnapshotError::only_a_piece(),
        _ => error,
    })?;
    if !read {
        return Err(SnapshotError::not_a_snapshot());
    }
    if loading.next().is_some() { Err(SnapshotError::only_a_piece()) } else { loading.finish() }
}

/// A filter whose parts are being read.
pub struct Loading<S> {
    /// The parts that have been read.
    begun: Option<Begun<S>>,
}

struct Begun<S> {
    /// The header of the last part: the limit of the filter's size may have changed since the first part.
    header: Header<S>,
    /// The words of a header, after parsing.
    words: Words<HEADER_WORDS>,
    reader: BlockReader,
    coverage: Coverage,
    /// The number of items of void lanes, from the end of the last part.
    void: u64,
    gathered: Gathered,
}

impl<S: PersistentHasher> Loading<S> {
    pub fn new() -> Self {
        Loading { begun: None }
    }

    /// Adds a part. One that is out of order is refused, and nothing has changed. After another error, nothing of any
    /// part is left.
    pub fn push(&mut self, part: &[u8]) -> Result<(), SnapshotError> {
        match self.read(Source::of_length(part, 0, part.len() as u64))? {
            true => Ok(()),
            false => Err(SnapshotError::not_a_snapshot()),
        }
    }

    /// Reads the next part, and nothing after it, as [`push`](Self::push) does. Returns whether there was anything to
    /// read.
    pub fn read<R: Read>(&mut self, mut source: Source<R>) -> Result<bool, SnapshotError> {
        let Some(words) = source.header()? else { return Ok(false) };
        self.add(words, source).map(|()| true)
    }

    /// Adds a part whose header has been read.
    fn add(
        &mut self,
        mut words: Words<HEADER_WORDS>,
        mut source: Source<impl Read>,
    ) -> Result<(), SnapshotError> {
        let (header, sum) = read_header(&mut words)?;
        self.check_order(header.start, &words)?;
        // If the part is damaged, or its source panics, nothing is put back.
        let mut begun = match self.begun.take() {
            Some(begun) => Begun { header, ..begun },
            None => Begun::of(header, words)?,
        };
        begun.add_blocks(sum, &mut source)?;
        self.begun = Some(begun);
        Ok(())
    }

    /// Checks that a part with this header comes next.
    fn check_order(&self, start: u64, words: &Words<HEADER_WORDS>) -> Result<(), SnapshotError> {
        let is_other = |begun: &Begun<S>| !are_of_one_filter(words, &begun.words);
        let text = match self.next() {
            _ if self.begun.as_ref().is_some_and(is_other) => {
                "the piece is of another filter than those that were pushed before it: push the pieces \
                 of one filter"
                    .into()
            }
            Some(place) if start == place => return Ok(()),
            Some(place) => {
                let what = if start < place { "pushed already" } else { "pushed too soon" };
                format!(
                    "the piece begins at cursor {start}, so it was {what}: the next one begins at {place}"
                )
            }
            None => format!(
                "the piece begins at cursor {start}, but all pieces have been pushed: finish the filter"
            ),
        };
        Err(SnapshotError::new(SnapshotErrorKind::OutOfOrder, text))
    }

    /// Whether the filter grows. `None` until a part has been read.
    pub fn grows(&self) -> Option<bool> {
        self.begun.as_ref().map(|begun| begun.header.layout.grows)
    }

    /// The place where the next part begins. `None` if all parts have been read.
    pub fn next(&self) -> Option<u64> {
        self.begun.as_ref().map_or(Some(0), |begun| begun.coverage.next())
    }

    /// Returns the filter, if all of its parts have been read.
    pub fn finish(self) -> Result<ReadFilter<S>, SnapshotError> {
        let next = self.next();
        let (Some(Begun { header, reader, coverage, void, gathered, .. }), None) =
            (self.begun, next)
        else {
            let next = next.unwrap_or(0);
            let text = format!("the pieces from cursor {next} on are missing: push them first");
            return Err(SnapshotError::new(SnapshotErrorKind::Incomplete, text));
        };
        let loaded = gathered.finish(&reader, (void, coverage.time))?;
        Ok(ReadFilter { header, loaded })
    }
}

impl<S> Begun<S> {
    /// Begins the filter with this header.
    fn of(header: Header<S>, words: Words<HEADER_WORDS>) -> Result<Self, SnapshotError> {
        let layout = &header.layout;
        let (reader, gathered) = (BlockReader::new(layout), Gathered::nothing(layout)?);
        let coverage = Coverage::from(layout.geometry.shards(), 0);
        Ok(Begun { header, words, reader, coverage, void: 0, gathered })
    }

    /// Reads and validates what follows a header with this checksum.
    fn add_blocks(
        &mut self,
        header_sum: u64,
        source: &mut Source<impl Read>,
    ) -> Result<(), SnapshotError> {
        let Header { layout, is_file, .. } = &self.header;
        let mut totals = Totals::new(header_sum, self.coverage.clone(), *is_file);
        // The next word: the number of a block, or the first word of the end.
        let mut next = [0];
        let mut words = zeros(self.reader.block_words())?;
        source.read(&mut next)?;
        while !(End::begins(next[0]) || totals.coverage.is_complete()) {
            let number = totals.blocks;
            self.reader.check_number(number, u64::from_le(next[0]))?;
            words[0] = next[0];
            source.read(&mut words[1..])?;
            let block = self.reader.read(number, &mut words)?;
            totals.add_read(&self.reader, (block.depth, block.items, block.sum), block.time)?;
            self.gathered.add(layout, block, &words[buckets_in(layout)])?;
            source.read(&mut next)?;
        }
        let at = source.at() - size_of_val(&next) as u64;
        let mut words = [0; END_WORDS];
        words[0] = next[0];
        if End::begins(next[0]) {
            source.read(&mut words[1..])?;
        }
        let end = End::read(&mut words, at, layout.grows)?;
        source.check_end()?;
        self.coverage = totals.finish(end, at)?;
        self.void = end.void;
        Ok(())
    }
}

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
    pub fn read(&mut self, words: &mut [u64]) -> Result<(), SnapshotError> {
        let bytes = bytes_of(words);
        match self.read_up_to(bytes)? == bytes.len() {
            true => Ok(()),
            false => Err(SnapshotError::cut_off(self.at)),
        }
    }

    /// Reads until `bytes` is full or the stream ends. Returns the number of bytes read.
    fn read_up_to(&mut self, bytes: &mut [u8]) -> Result<usize, SnapshotError> {
        let mut got = 0;
        while got < bytes.len() {
            match self.reader.read(&mut bytes[got..]) {
                Ok(0) => break,
                Ok(more) => got += more,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(SnapshotError::io("cannot read")(error)),
            }
        }
        self.at += got as u64;
        Ok(got)
    }

    /// Reads the words of a header, without validating them. Returns `None` if the source is empty.
    pub fn header(&mut self) -> Result<Option<Words<HEADER_WORDS>>, SnapshotError> {
        let mut words = [0; HEADER_WORDS];
        match self.read_up_to(bytes_of(&mut words))? {
            0 => Ok(None),
            // Data that is not a filter is reported as such, however short it is.
            _ if !is_snapshot(&words) => Err(SnapshotError::not_a_snapshot()),
            got if got < size_of_val(&words) => Err(SnapshotError::cut_off(self.at)),
            _ => Ok(Some(words)),
        }
    }

    /// Checks that nothing follows the part, if nothing may.
    pub fn check_end(&self) -> Result<(), SnapshotError> {
        match self.length {
            Some(bytes) if bytes != self.at => Err(SnapshotError::wrong_length(bytes, self.at)),
            _ => Ok(()),
        }
    }
}

/// Copies a filter.
pub fn copy(backend: &Backend) -> Result<Backend, NoMemory> {
    let _no_joins = backend.keep_shards();
    let layout = backend.layout();
    let copy_next = |next: &mut Option<u64>, buckets: &mut [u64]| on_shards!(backend, shards => shards.copy_shard(next, buckets));
    let loaded = copied(&layout, backend.shards(), copy_next)?;
    let loaded = Loaded { void: backend.void_items(), ..loaded };
    Backend::restore(layout, loaded).map_err(NoMemory)
}

/// Builds a backend's contents from the shards that `copy_next` copies. The filter has `shards` shards at the
/// beginning.
fn copied(
    layout: &Layout,
    shards: usize,
    mut copy_next: impl FnMut(&mut Option<u64>, &mut [u64]) -> Option<Copied>,
) -> Result<Loaded, NoMemory> {
    let (reader, mut copy) = (BlockReader::new(layout), Gathered::with_memory(layout, shards)?);
    let mut buckets = zeros(layout.geometry.words())?;
    let (mut next, mut now) = (Some(0), None);
    while let Some(Copied { depth, items, time }) = copy_next(&mut next, &mut buckets) {
        let block = match layout.grows {
            // The items of a shard are its taken lanes, which need not be counted again.
            false => Block { items, ..Block::EMPTY },
            true => reader.block(&buckets),
        };
        let block = Block { depth, time, ..block };
        copy.add(layout, block, &buckets)?;
        now = time;
    }
    copy.finish(&reader, (0, now))
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use crate::backend::growing::sharded::Sharded;
    use crate::backend::shards::Shards;
    use crate::layout::geometry::Mixed;
    use crate::layout::sizing::layout_for;

    /// The filter grows after each copied shard. Unless the copy grew as well, there would be no end.
    #[test]
    fn each_shard_is_copied_once_while_the_filter_grows() {
        let layout = layout_for(100_000, 0.001, 0, Some(64.0)).expect("a layout");
        let Ok(shards) = Sharded::<false>::new(layout.clone()) else { panic!("memory") };
        let before = shards.bucket_count() / layout.geometry.buckets() as usize;
        let (mut items, mut count) = (0u64.., 0);
        let mut fill_up_to = |most: usize| {
            while count < most {
                let item = items.next().expect("an item");
                shards.insert(shards.locate(Mixed::of(item))).expect("memory");
                count += 1;
            }
        };
        fill_up_to(50_000);
        let mut copies = 0;
        let loaded = copied(&layout, before, |next, buckets| {
            let copied = shards.copy_shard(next, buckets)?;
            copies += 1;
            assert!(copies < 1_000, "it begins again and again");
            fill_up_to(50_000 << copies.min(4));
            Some(copied)
        });
        let Ok(loaded) = loaded else { panic!("no memory") };
        assert!(copies > 2 * before, "{before} shards did not become more than {copies}");
        assert_eq!(loaded.blocks.len(), copies);
        let copy = Sharded::<false>::restore(layout, loaded);
        let Ok(copy) = copy else { panic!("memory") };
        let missing = (0..50_000).filter(|item| !copy.contains(copy.locate(Mixed::of(*item))));
        assert_eq!(missing.count(), 0);
    }
}
