//! Reads a filter from its parts, one after the other, each from front to back. The index of a part comes after its
//! shards, so these are put where they stay before they are compared with it. No filter is made of them unless all is
//! right.
//!
//! Memory is allocated only for shards that have been read, whatever a header claims:
//!
//! * The shards of a growing filter go into the [tables](Arena) where they stay. Tables are allocated one after
//!   another, as in a filter that grows. Only the directory is made at the end.
//! * A filter of fixed size has one table. Shards wait until half of them have been read. Then the table is allocated,
//!   and they all move there.

use crate::backend::Backend;
use crate::backend::fixed::Fixed;
use crate::backend::growing::arena::Arena;
use crate::backend::growing::site::Site;
use crate::backend::growing::{Growing, bytes_beside};
use crate::error::{NoMemory, reserve, zeros};
use crate::hash::PersistentHasher;
use crate::layout::geometry::Bucket;
use crate::layout::sizing::Layout;
use crate::shard::raw::RawShard;
use crate::snapshot::error::{SnapshotError, SnapshotErrorKind};
use crate::snapshot::format::{HEADER_WORDS, bytes_of, mark, to_file};
use crate::snapshot::header::{Header, check_fits, is_snapshot};
use crate::snapshot::index::{Entry, ShardReader, Totals, age_shift, from_here};
use crate::table::Table;
use crate::table::ticking::Time;
use std::fmt;
use std::io::{ErrorKind, Read};

/// Reads a filter that is one part.
pub(crate) fn read<S: PersistentHasher>(
    reader: &mut dyn Read,
) -> Result<(Backend, S), SnapshotError> {
    let mut loader = PieceLoader::new();
    let read = loader.read_from(reader).map_err(|error| match error.kind() {
        SnapshotErrorKind::OutOfOrder => SnapshotError::only_a_piece(),
        _ => error,
    })?;
    if !read {
        return Err(SnapshotError::not_a_snapshot());
    }
    if loader.next().is_some() { Err(SnapshotError::only_a_piece()) } else { loader.restored() }
}

/// Makes a filter from its [pieces](crate::ConcurrentCuckooFilter::piece_at), which are pushed in their order.
///
/// A push takes time and memory in proportion to the piece, but for the push with which half of a fixed filter has
/// come: then its shards are copied into the table together. The loader of a growing filter takes a 32nd more memory
/// than the filter, and up to 2 MiB more if the filter has 16 MiB or more. The loader of a fixed one takes up to half
/// more. Neither ever asks for more than three times what was pushed, and some megabytes: no piece is believed about
/// those that follow.
///
/// ```
/// use koel::{ConcurrentCuckooFilter, SnapshotErrorKind, StableHash};
///
/// let builder = ConcurrentCuckooFilter::builder().capacity(1_000_000); // three shards
/// let filter = builder.hasher(StableHash::random()).build()?;
/// let pieces: Vec<_> = filter.pieces(1 << 20).collect::<Result<_, _>>()?;
///
/// let mut loader = ConcurrentCuckooFilter::<StableHash>::loader();
/// loader.push(pieces[0].as_bytes())?;
/// let error = loader.push(pieces[2].as_bytes()).unwrap_err();
/// assert_eq!(error.kind(), SnapshotErrorKind::OutOfOrder);
/// loader.push(pieces[1].as_bytes())?; // the next piece can still be pushed
/// loader.push(pieces[2].as_bytes())?;
/// let again = loader.finish()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct PieceLoader<S> {
    begun: Option<Begun>,
    /// Once a part has been read.
    hasher: Option<S>,
}

/// The parts of a filter that have been read.
struct Begun {
    /// The header of the last part: the limit of the filter's size may have changed since the first part.
    header: Header,
    reader: ShardReader,
    totals: Totals,
    gathered: Gathered,
}

impl<S: PersistentHasher> PieceLoader<S> {
    pub(crate) fn new() -> Self {
        PieceLoader { begun: None, hasher: None }
    }

    /// Checks the next piece, and takes it over.
    ///
    /// # Errors
    ///
    /// Returns an error if this is not the piece that comes next, or if it is of a filter that was built otherwise
    /// ([`OutOfOrder`](crate::SnapshotErrorKind::OutOfOrder)), or of one with another hasher. The loader is then as it
    /// was before, and the right piece can be pushed.
    ///
    /// Also returns an error if the piece is damaged or cut off, or if there is no memory for it. If that is found out
    /// after its header, the loader has become empty, and [`next`](Self::next) is 0 again: begin the dump again.
    ///
    /// Pieces of two dumps, or of two filters that were built alike, cannot be told apart. If a piece is from an
    /// earlier dump than the one before it, items that were inserted between the two may be missing.
    ///
    /// The author of a forged piece decides what the filter contains, but no piece causes a panic.
    ///
    /// ```
    /// use koel::{ConcurrentCuckooFilter, SnapshotErrorKind, StableHash};
    ///
    /// let builder = ConcurrentCuckooFilter::builder().capacity(100);
    /// let filter = builder.hasher(StableHash::random()).build()?;
    /// let mut loader = ConcurrentCuckooFilter::<StableHash>::loader();
    /// loader.push(filter.piece_at(0, 0)?.as_bytes())?;
    /// assert_eq!(loader.next(), None);
    ///
    /// let twice = loader.push(filter.piece_at(0, 0)?.as_bytes());
    /// assert_eq!(twice.unwrap_err().kind(), SnapshotErrorKind::OutOfOrder);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn push(&mut self, piece: &[u8]) -> Result<(), SnapshotError> {
        let mut rest = piece;
        if !self.read_from(&mut rest)? {
            return Err(SnapshotError::not_a_snapshot());
        }
        if rest.is_empty() {
            return Ok(());
        }
        self.begun = None;
        let bytes = piece.len() as u64;
        Err(SnapshotError::wrong_length(bytes, bytes - rest.len() as u64))
    }

    /// Reads the next piece from a stream in which pieces follow one another, and takes it over, as
    /// [`push`](Self::push) does. Nothing after it is read. Returns `false` if the stream has ended. After an error,
    /// the stream is somewhere in the piece.
    ///
    /// ```
    /// # use koel::{ConcurrentCuckooFilter, StableHash};
    /// # let builder = ConcurrentCuckooFilter::builder().hasher(StableHash::random());
    /// let filter = builder.capacity(1_000_000).build()?; // three shards
    /// let mut stream = Vec::new();
    /// for piece in filter.pieces(1 << 20) {
    ///     stream.extend(piece?.as_bytes());
    /// }
    /// let (mut stream, mut loader) = (&stream[..], ConcurrentCuckooFilter::<StableHash>::loader());
    /// while loader.read_from(&mut stream)? {}
    /// assert!(loader.finish().is_ok());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn read_from(&mut self, mut stream: impl Read) -> Result<bool, SnapshotError> {
        let mut source = Source { reader: &mut stream, at: 0 };
        let Some(words) = source.header()? else { return Ok(false) };
        let mut header = Header::read(words)?;
        let hasher = header.hasher()?;
        Begun::add(&mut self.begun, header, &mut source)?;
        self.hasher = Some(hasher);
        Ok(true)
    }

    /// Returns whether the filter [grows](crate::Builder::growing), or `None` before the first piece has been pushed.
    /// So a caller for whom only a growing filter will do need not go on.
    #[must_use]
    pub fn grows(&self) -> Option<bool> {
        self.begun.as_ref().map(|begun| begun.header.layout.grows)
    }

    /// Returns the cursor of the piece that comes next, or `None` if all have been pushed.
    #[must_use]
    pub fn next(&self) -> Option<u64> {
        next_of(&self.begun)
    }

    /// Returns the filter, if all of its parts have been read.
    pub(crate) fn restored(self) -> Result<(Backend, S), SnapshotError> {
        let next = self.next();
        let (Some(begun), Some(hasher), None) = (self.begun, self.hasher, next) else {
            return Err(missing(next.unwrap_or(0)));
        };
        let Begun { header, reader, totals, gathered } = begun;
        Ok((gathered.finish(header.layout, &reader, totals.time)?, hasher))
    }
}

impl<S: PersistentHasher> fmt::Debug for PieceLoader<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PieceLoader").field("next", &self.next()).finish_non_exhaustive()
    }
}

/// The error of pieces that have not been pushed.
fn missing(next: u64) -> SnapshotError {
    let text = format!("the pieces from cursor {next} on are missing: push them first");
    SnapshotError::new(SnapshotErrorKind::Incomplete, text)
}

/// Returns the place where the next part begins, or `None` if there is no other part.
fn next_of(begun: &Option<Begun>) -> Option<u64> {
    begun.as_ref().map_or(Some(0), |begun| begun.totals.next())
}

impl Begun {
    /// Reads the rest of the part with this header, after those of `all`.
    fn add(
        all: &mut Option<Self>,
        header: Header,
        source: &mut Source<'_>,
    ) -> Result<(), SnapshotError> {
        Self::check_order(all, &header)?;
        // If the part is damaged, or its source panics, nothing is put back.
        let mut begun = match all.take() {
            Some(begun) => Begun { header, ..begun },
            None => Begun::begin(header)?,
        };
        begun.add_shards(source)?;
        *all = Some(begun);
        Ok(())
    }

    /// Checks that a part with this header comes next.
    fn check_order(all: &Option<Self>, header: &Header) -> Result<(), SnapshotError> {
        let start = header.start();
        let is_other = |begun: &Self| !header.is_of_one_filter_with(&begun.header);
        let text = match next_of(all) {
            _ if all.as_ref().is_some_and(is_other) => {
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

    /// Begins the filter with this header.
    fn begin(header: Header) -> Result<Self, SnapshotError> {
        let layout = &header.layout;
        let (reader, totals) = (ShardReader::new(layout), Totals::new(&layout.geometry, 0));
        let gathered = Gathered::new(layout, None, Vec::new())?;
        Ok(Begun { header, reader, totals, gathered })
    }

    /// Reads and validates the shards, the index and the end of a part with this header.
    fn add_shards(&mut self, source: &mut Source<'_>) -> Result<(), SnapshotError> {
        let Begun { header, reader, totals, gathered } = self;
        let layout = &header.layout;
        let mut between = zeros((header.first() - source.at) as usize / 8)?;
        source.read(&mut between)?;
        header.check_zeros(&between)?;
        let mut mark = mark(layout);
        to_file(&mut mark);
        let before = gathered.entries.len();
        let mut words = zeros(layout.geometry.words())?;
        for _ in 0..header.shards().unwrap_or(u64::MAX) {
            let at = source.at;
            let (first, rest) = words.split_at_mut(mark.len());
            source.read(first)?;
            if layout.grows && *first == *mark {
                break;
            }
            source.read(rest)?;
            let entry = reader.convert(&mut words);
            reader.check(&words, None, at)?;
            gathered.add(layout, entry, &words)?;
        }
        let found = gathered.entries.len() - before;
        let mut index = Totals::room(header, found)?;
        let at = header.offset(found);
        source.read(&mut index[1 + mark.len()..])?;
        let told = totals.read(header, &mut index, at)?;
        for (number, entry) in told.into_iter().enumerate() {
            let (shard, at) = (before + number, header.offset(number));
            gathered.entries[shard].compare(&entry, at)?;
            if entry.time.is_some() {
                gathered.copy(shard, &mut words);
                reader.check(&words, entry.time, at)?;
            }
            gathered.entries[shard] = entry;
        }
        Ok(())
    }
}

struct Source<'a> {
    reader: &'a mut dyn Read,
    /// The number of bytes that have been read.
    at: u64,
}

impl Source<'_> {
    /// Reads words, in the byte order of a file.
    fn read(&mut self, words: &mut [u64]) -> Result<(), SnapshotError> {
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
    fn header(&mut self) -> Result<Option<[u64; HEADER_WORDS]>, SnapshotError> {
        let mut words = [0; HEADER_WORDS];
        match self.read_up_to(bytes_of(&mut words))? {
            0 => Ok(None),
            // Data that is not a filter is reported as such, however short it is.
            _ if !is_snapshot(&words) => Err(SnapshotError::not_a_snapshot()),
            got if got < size_of_val(&words) => Err(SnapshotError::cut_off(self.at)),
            _ => Ok(Some(words)),
        }
    }
}

enum Memory {
    /// All shards of this table.
    Table(Table),
    Tables(Box<Arena>),
}

/// The shards of a filter that have been read so far.
pub(crate) struct Gathered {
    /// Where they are, unless they wait.
    memory: Option<Memory>,
    waiting: Vec<Vec<u64>>,
    entries: Vec<Entry>,
}

impl Gathered {
    /// Begins with the shards in this table that have entries. If there is no table, those of a fixed filter wait for
    /// their memory.
    pub(crate) fn new(
        layout: &Layout,
        table: Option<Table>,
        entries: Vec<Entry>,
    ) -> Result<Self, NoMemory> {
        let memory = match layout.grows {
            false => table.map(Memory::Table),
            true => {
                let table = table.map_or_else(|| table_of(layout, 0), Ok)?;
                let tables = Arena::restore(layout.geometry.shards(), table, entries.len());
                Some(Memory::Tables(Box::new(tables.map_err(NoMemory)?)))
            }
        };
        Ok(Gathered { memory, waiting: Vec::new(), entries })
    }

    /// Adds the next shard, which has these buckets.
    pub(crate) fn add(
        &mut self,
        layout: &Layout,
        entry: Entry,
        buckets: &[u64],
    ) -> Result<(), NoMemory> {
        reserve(&mut self.entries, 1)?;
        match &self.memory {
            Some(Memory::Table(table)) => RawShard::new(table, self.entries.len()).fill(buckets),
            Some(Memory::Tables(tables)) => {
                let site = take(tables, layout);
                let site = site.ok_or_else(|| NoMemory::for_values::<u64>(buckets.len()))?;
                site.shard().fill(buckets);
            }
            None => {
                let mut own = Vec::new();
                reserve(&mut own, buckets.len())?;
                own.extend_from_slice(buckets);
                reserve(&mut self.waiting, 1)?;
                self.waiting.push(own);
            }
        }
        self.entries.push(entry);
        let shards = layout.geometry.shards();
        if self.memory.is_none() && self.entries.len() >= shards.div_ceil(2) {
            let table = table_of(layout, shards)?;
            for (shard, buckets) in std::mem::take(&mut self.waiting).into_iter().enumerate() {
                RawShard::new(&table, shard).fill(&buckets);
            }
            self.memory = Some(Memory::Table(table));
        }
        Ok(())
    }

    /// Copies the buckets of a shard that was added.
    fn copy(&self, number: usize, to: &mut [u64]) {
        let shard = match &self.memory {
            None => return to.copy_from_slice(&self.waiting[number]),
            Some(Memory::Table(table)) => Some(RawShard::new(table, number)),
            Some(Memory::Tables(tables)) => {
                tables.sites_from(number).next().map(|(_, site)| site.shard())
            }
        };
        shard.into_iter().for_each(|shard| shard.copy_words(&shard.lock_raw(), to));
    }

    /// Makes a filter of all shards, as of the time at which the last one was copied.
    pub(crate) fn finish(
        mut self,
        layout: Layout,
        reader: &ShardReader,
        time: Option<Time>,
    ) -> Result<Backend, NoMemory> {
        // A filter has at least one shard, so a complete one has its memory.
        let memory = self.memory.ok_or(NoMemory(0))?;
        let mut words = Vec::new();
        let mut bring = |shard: RawShard<'_>, entry: &mut Entry| {
            if let Some(shift) = age_shift(entry.time, time) {
                if words.is_empty() {
                    words = zeros(shard.table.geometry.words())?;
                }
                shard.copy_words(&shard.lock_raw(), &mut words);
                entry.items = reader.older(&mut words, shift);
                drop(shard.clear());
                shard.fill(&words);
            }
            shard.share_out(&shard.lock_raw(), entry.items, Bucket(0));
            Ok(())
        };
        match &memory {
            Memory::Table(table) => {
                for (shard, entry) in self.entries.iter_mut().enumerate() {
                    bring(RawShard::new(table, shard), entry)?;
                }
            }
            Memory::Tables(tables) => {
                for ((_, site), entry) in tables.sites_from(0).zip(&mut self.entries) {
                    bring(site.shard(), entry)?;
                }
            }
        }
        let time = time.map(from_here);
        match memory {
            Memory::Table(table) => {
                Ok(Backend::Fixed(Fixed::restore(layout.capacity, table, time)))
            }
            Memory::Tables(tables) => {
                let depths = self.entries.iter().map(|entry| entry.depth);
                let growing = Growing::restore(layout, tables, depths, time);
                growing.map(Backend::Growing).map_err(NoMemory)
            }
        }
    }
}

/// Allocates an empty table with this number of shards.
pub(crate) fn table_of(layout: &Layout, shards: usize) -> Result<Table, NoMemory> {
    check_fits(&layout.geometry.with_shards(1), shards)?;
    Table::new(layout.geometry.with_shards(shards)).map_err(NoMemory)
}

/// Takes a shard into use, if there is memory. If the filter has a limit, a new table keeps it below the limit as long
/// as that is possible: the limit may have been lowered below the size of the filter. Above the limit, a new table at
/// most doubles the excess, so that there are not too many tables.
fn take<'a>(tables: &'a Arena, layout: &Layout) -> Option<&'a Site> {
    // About two entries for each shard. The depths are not known yet.
    let directory = 16 * tables.shards();
    let others = layout.own_bytes + bytes_beside(layout) + tables.heap_bytes();
    let (taken, most) = (others.saturating_add(directory), layout.max_bytes);
    let of_one = Arena::bytes(&layout.geometry.with_shards(1));
    let above = taken.saturating_sub(most).max(of_one);
    let below = tables.take_next(most.saturating_sub(taken));
    below.or_else(|_| tables.take_next(above)).ok()
}

pub(crate) fn copy(backend: &Backend) -> Result<Backend, NoMemory> {
    let _no_joins = backend.keep_shards();
    copied(backend, || ())
}

/// Copies a filter shard by shard, and calls `go_on` after each.
fn copied(backend: &Backend, mut go_on: impl FnMut()) -> Result<Backend, NoMemory> {
    let layout = backend.layout();
    let reader = ShardReader::new(&layout);
    let table = table_of(&layout, backend.shards())?;
    let mut copy = Gathered::new(&layout, Some(table), Vec::new())?;
    let mut buckets = zeros(layout.geometry.words())?;
    let (mut next, mut time) = (Some(0), None);
    while let Some((depth, copied)) = backend.copy_shard(&mut next, &mut buckets) {
        time = copied.time;
        copy.add(&layout, Entry::new(depth, copied), &buckets)?;
        go_on();
    }
    copy.finish(layout, &reader, time)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::geometry::Mixed;
    use crate::layout::sizing::layout_for;

    /// The filter grows after each copied shard. Unless the copy grew as well, there would be no end.
    #[test]
    fn each_shard_is_copied_once_while_the_filter_grows() {
        let layout = layout_for(100_000, 0.001, 0, Some(64.0)).expect("a layout");
        let filter = Backend::new(layout).expect("memory");
        let before = filter.shards();
        let (mut items, mut count) = (0u64.., 0);
        let mut fill_up_to = |most: usize| {
            while count < most {
                let item = items.next().expect("an item");
                filter.insert(Mixed::of(item)).expect("memory");
                count += 1;
            }
        };
        fill_up_to(50_000);
        let mut copies = 0;
        let copy = copied(&filter, || {
            copies += 1;
            assert!(copies < 1_000, "it begins again and again");
            fill_up_to(50_000 << copies.min(4));
        });
        let Ok(copy) = copy else { panic!("no memory") };
        assert!(copies > 2 * before, "{before} shards did not become more than {copies}");
        assert_eq!(copy.shards(), copies);
        let missing = (0..50_000).filter(|item| !copy.contains_slow(Mixed::of(*item)));
        assert_eq!(missing.count(), 0);
    }
}
