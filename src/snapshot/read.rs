//! From the words of a file to a filter.
//!
//! A file says how long it should be at its end, and is as long as it is, so a damaged or hostile one
//! is found out before memory is taken. A stream only ends; so it is collected in pieces, and when all is
//! there, the table is filled, and each piece given back when it has been copied.

use crate::ConcurrentCuckooFilter;
use crate::lease::Always;
use crate::room::Room;
use crate::shard::Shard;
use crate::snapshot::error::Reason;
use crate::snapshot::format::{
    BLOCK_HEAD, BLOCK_WORDS, BlockReader, END_WORDS, End, HEADER_WORDS, Header, Tally, block_bytes,
    block_words, bytes_of, read_header,
};
use crate::snapshot::parts::{Loaded, Plan};
use crate::stable_hash::PersistentHasher;
use crate::sync::Gauge;
use crate::table::Table;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::thread;

type Filter<S, R> = ConcurrentCuckooFilter<S, R>;

/// The header, if it is of a filter of this type, and its checksum.
fn header_of<S: PersistentHasher, R: Room>(
    words: &mut [u64; HEADER_WORDS],
) -> Result<(Header<S>, u64), Reason> {
    let (header, sum) = read_header(words, size_of::<Filter<S, R>>())?;
    let grows = header.plan.grows();
    if grows != R::GROWS { Err(Reason::WrongKind { grows }) } else { Ok((header, sum)) }
}

fn filter_of<S, R: Room>(header: Header<S>, loaded: Loaded) -> Result<Filter<S, R>, Reason> {
    let Header { plan, capacity, hasher } = header;
    Ok(ConcurrentCuckooFilter::from_parts(capacity, R::restore(plan, loaded)?, hasher))
}

fn shard(table: &Table, index: usize) -> Shard<'_, Always> {
    Shard::leased(table, index * table.geometry().buckets() as usize, Always)
}

fn block_buffer(plan: &Plan) -> Result<Vec<u64>, Reason> {
    let mut buffer = Vec::new();
    let words = block_words(plan);
    buffer.try_reserve_exact(words).map_err(|_| Reason::OutOfMemory { bytes: 8 * words })?;
    buffer.resize(words, 0);
    Ok(buffer)
}

// A stream.

/// The words of a piece: so many that any allocator has them from the system, and gives them back.
const PIECE: usize = (64 << 20) / size_of::<u64>();

pub fn read<S: PersistentHasher, R: Room>(reader: &mut impl Read) -> Result<Filter<S, R>, Reason> {
    let mut at = 0;
    let mut read = |words: &mut [u64]| {
        let bytes = bytes_of(words);
        let got = read_up_to(reader, bytes).map_err(Reason::io("cannot read"))?;
        at += got as u64;
        if got == bytes.len() { Ok(()) } else { Err(Reason::CutOff { at }) }
    };

    let mut words = [0; HEADER_WORDS];
    let cut_off = match read(&mut words) {
        Err(error) if !matches!(error, Reason::CutOff { .. }) => return Err(error),
        result => result,
    };
    // What is no filter is called that, however short it is.
    let (header, sum) = match (header_of::<S, R>(&mut words), cut_off) {
        (Err(error @ Reason::NotASnapshot), _) | (_, Err(error)) | (Err(error), _) => {
            return Err(error);
        }
        (Ok(header), Ok(())) => header,
    };
    let plan = &header.plan;
    let blocks = BlockReader::new(plan);
    let mut tally = Tally::new(plan.geometry().shards(), sum);
    let mut buffer = block_buffer(plan)?;
    let in_a_block = buffer.len() - BLOCK_WORDS;
    let mut pieces: Vec<Vec<u64>> = Vec::new();
    let mut found = Vec::new();
    while !tally.is_complete() {
        let number = found.len() as u64;
        read(&mut buffer)?;
        let block = blocks.read(number, &mut buffer)?;
        let added = tally.add(block.depth, block.census.items, block.sum);
        added.map_err(|gap| gap.at(blocks.at(number)))?;
        if pieces.last().is_none_or(|piece| piece.capacity() - piece.len() < in_a_block) {
            // No more than has come.
            let most = (found.len() * in_a_block).clamp(in_a_block, PIECE.max(in_a_block));
            let mut piece = Vec::new();
            piece.try_reserve_exact(most).map_err(|_| Reason::OutOfMemory { bytes: 8 * most })?;
            pieces.push(piece);
        }
        if let Some(piece) = pieces.last_mut() {
            piece.extend_from_slice(&buffer[BLOCK_HEAD..][..in_a_block]);
        }
        found.push(block);
    }
    let at = blocks.at(found.len() as u64);
    let mut words = [0; END_WORDS];
    read(&mut words)?;
    let end = End::read(&mut words, at)?;
    tally.finish(plan.geometry().shards(), block_bytes(plan), end, at)?;

    let geometry = plan.geometry().with_shards(found.len());
    let table = Table::new(geometry).map_err(|bytes| Reason::OutOfMemory { bytes })?;
    let mut index = 0;
    for piece in pieces {
        for buckets in piece.chunks_exact(in_a_block) {
            let Ok(()) = shard(&table, index).fill(buckets, found[index].census.items);
            index += 1;
        }
    }
    filter_of(header, Loaded { table, blocks: found })
}

/// Reads until there is no more, or `bytes` is full.
fn read_up_to(reader: &mut impl Read, bytes: &mut [u8]) -> io::Result<usize> {
    let mut got = 0;
    while got < bytes.len() {
        match reader.read(&mut bytes[got..]) {
            Ok(0) => break,
            Ok(more) => got += more,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(got)
}

// A file.

/// A file that is not worth another thread.
const FOR_A_THREAD: u64 = 4 << 20;

pub fn load<S: PersistentHasher, R: Room>(mut file: File) -> Result<Filter<S, R>, Reason> {
    let about = file.metadata().map_err(Reason::io("cannot read"))?;
    if !about.is_file() {
        return read(&mut file);
    }
    let length = about.len();
    let file = Whole::new(file);
    let read = |words: &mut [u64], at: u64| match file.read(bytes_of(words), at) {
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
            Err(Reason::CutOff { at: length })
        }
        result => result.map_err(Reason::io("cannot read")),
    };

    let mut words = [0; HEADER_WORDS];
    let part = (length / 8).min(HEADER_WORDS as u64) as usize;
    read(&mut words[..part], 0)?;
    let (header, sum) = match header_of::<S, R>(&mut words) {
        Err(error @ Reason::NotASnapshot) => return Err(error),
        _ if part < HEADER_WORDS => return Err(Reason::CutOff { at: length }),
        header => header?,
    };
    let plan = &header.plan;
    let reader = BlockReader::new(plan);

    // Of a fixed filter the length is known; a growing one says it at its end.
    let roots = plan.geometry().shards();
    let with_blocks = |blocks: u64| {
        let bytes = blocks.checked_mul(block_bytes(plan));
        bytes.and_then(|bytes| bytes.checked_add(8 * (HEADER_WORDS + END_WORDS) as u64))
    };
    let wrong_length = |wanted| Err(Reason::WrongLength { bytes: length, wanted });
    if let Some(wanted) = with_blocks(roots as u64)
        && (if R::GROWS { length < wanted } else { length != wanted })
    {
        return wrong_length(wanted);
    }
    let at = length.saturating_sub(8 * END_WORDS as u64);
    let mut words = [0; END_WORDS];
    read(&mut words, at)?;
    let end = End::read(&mut words, at)?;
    match with_blocks(end.blocks) {
        Some(wanted) if wanted == length => {}
        Some(wanted) => return wrong_length(wanted),
        None => return Err(Reason::damaged(at + 8, "there cannot be so many blocks")),
    }

    let no_memory = |bytes| Reason::OutOfMemory { bytes };
    let count = usize::try_from(end.blocks).map_err(|_| no_memory(usize::MAX))?;
    let table = Table::new(plan.geometry().with_shards(count)).map_err(no_memory)?;
    let read_block = |index: usize, buffer: &mut Vec<u64>| {
        read(buffer, reader.at(index as u64))?;
        let block = reader.read(index as u64, buffer)?;
        let buckets = &buffer[BLOCK_HEAD..buffer.len() - 1];
        let Ok(()) = shard(&table, index).fill(buckets, block.census.items);
        Ok(block)
    };
    let blocks = on_all_cores(count, length / FOR_A_THREAD, || block_buffer(plan), read_block)?;
    let mut tally = Tally::new(roots, sum);
    for (number, block) in blocks.iter().enumerate() {
        let added = tally.add(block.depth, block.census.items, block.sum);
        added.map_err(|gap| gap.at(reader.at(number as u64)))?;
    }
    tally.finish(roots, block_bytes(plan), end, at)?;
    filter_of(header, Loaded { table, blocks })
}

/// Does `work` on each number up to `count`, on a number of threads that is at most `most`, each of which
/// has a buffer of its own. The results in order, or one of the errors.
fn on_all_cores<B, T: Send>(
    count: usize,
    most: u64,
    buffer: impl Fn() -> Result<B, Reason> + Sync,
    work: impl Fn(usize, &mut B) -> Result<T, Reason> + Sync,
) -> Result<Vec<T>, Reason> {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let threads = cores.min(usize::try_from(most).unwrap_or(cores)).clamp(1, count.max(1));
    let failed = Gauge::default();
    let part = |first: usize| -> Result<Vec<T>, (usize, Reason)> {
        // After an error of one, the others need not go on.
        let mine = (first..count).step_by(threads).take_while(|_| failed.get() == 0);
        let mut buffer = buffer().map_err(|error| (first, error))?;
        let done = mine.map(|number| work(number, &mut buffer).map_err(|error| (number, error)));
        let done: Result<Vec<T>, _> = done.collect();
        if done.is_err() {
            failed.set(1);
        }
        done
    };
    let part = &part;
    let parts: Vec<_> = thread::scope(|scope| {
        let start = |first| thread::Builder::new().spawn_scoped(scope, move || part(first)).ok();
        let others: Vec<_> = (1..threads).map(start).collect();
        let mut parts = vec![part(0)];
        for (other, first) in others.into_iter().zip(1..) {
            // Where no thread could be had, or one was lost, there is this one.
            let done = other.and_then(|thread| thread.join().ok());
            parts.push(done.unwrap_or_else(|| part(first)));
        }
        parts
    });
    let (mut done, mut errors) = (Vec::new(), Vec::new());
    for part in parts {
        match part {
            Ok(part) => done.push(part.into_iter()),
            Err(error) => errors.push(error),
        }
    }
    if let Some((_, error)) = errors.into_iter().min_by_key(|(number, _)| *number) {
        return Err(error);
    }
    Ok((0..count).filter_map(|number| done[number % threads].next()).collect())
}

/// A file that is read at any place by several threads.
#[cfg(unix)]
struct Whole(File);

#[cfg(unix)]
impl Whole {
    fn new(file: File) -> Self {
        Whole(file)
    }

    fn read(&self, bytes: &mut [u8], at: u64) -> io::Result<()> {
        std::os::unix::fs::FileExt::read_exact_at(&self.0, bytes, at)
    }
}

#[cfg(not(unix))]
struct Whole(std::sync::Mutex<File>);

#[cfg(not(unix))]
impl Whole {
    fn new(file: File) -> Self {
        Whole(std::sync::Mutex::new(file))
    }

    fn read(&self, bytes: &mut [u8], at: u64) -> io::Result<()> {
        use std::io::{Seek, SeekFrom};
        let mut file = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        file.seek(SeekFrom::Start(at))?;
        file.read_exact(bytes)
    }
}
