//! From a stream of words to a filter.
//!
//! The length of a stream is not known before its end. So the buckets are collected in pieces until
//! the stream is complete. Then the table is allocated and filled, and each piece is freed as soon
//! as it has been copied.

use crate::room::Room;
use crate::room::parts::{Block, CannotRestore, Loaded};
use crate::shard::whole::fill;
use crate::snapshot::allocate::{table_of, zeros};
use crate::snapshot::blocks::{BlockReader, Tally};
use crate::snapshot::error::Reason;
use crate::snapshot::format::{
    END_WORDS, End, HEADER_WORDS, block_bytes, block_words, buckets_in, bytes_of,
};
use crate::snapshot::header::{Header, is_snapshot, read_header};
use crate::snapshot::list::read_list;
use crate::snapshot::time::{Times, from_here};
use crate::stable_hash::PersistentHasher;
use std::io::{self, ErrorKind, Read};

/// The parts of a filter that was in a file.
pub struct Contents<S, R> {
    pub capacity: usize,
    pub room: R,
    pub hasher: S,
}

/// Parses a header, which has to be of a filter with this hasher and this kind of room. Returns it
/// with its checksum.
pub fn header_of<S: PersistentHasher, R: Room>(
    words: &mut [u64; HEADER_WORDS],
    own_bytes: usize,
) -> Result<(Header<S>, u64), Reason> {
    let (header, sum) = read_header(words, own_bytes)?;
    let grows = header.plan.grows();
    if grows != R::GROWS { Err(Reason::WrongKind { grows }) } else { Ok((header, sum)) }
}

pub fn contents_of<S, R: Room>(
    header: Header<S>,
    mut loaded: Loaded,
) -> Result<Contents<S, R>, Reason> {
    let (Loaded::Shards { time, .. } | Loaded::Gathered { time, .. } | Loaded::Items { time, .. }) =
        &mut loaded;
    *time = time.map(from_here);
    let Header { plan, capacity, hasher, .. } = header;
    let room = R::restore(plan, loaded).map_err(|error| match error {
        CannotRestore::WrongKind { grows } => Reason::WrongKind { grows },
        CannotRestore::OutOfMemory { bytes } => Reason::OutOfMemory { bytes },
    })?;
    Ok(Contents { capacity, room, hasher })
}

/// The words of a piece. It is so large that allocators map it from the system, and return it to
/// the system when it is freed.
const PIECE: usize = (64 << 20) / size_of::<u64>();

/// Reads a stream. `own_bytes` is the size of the filter without its heap.
pub fn read<S: PersistentHasher, R: Room>(
    reader: &mut impl Read,
    own_bytes: usize,
) -> Result<Contents<S, R>, Reason> {
    let mut at = 0;
    let mut read = |words: &mut [u64]| {
        let bytes = bytes_of(words);
        let got = read_up_to(reader, bytes).map_err(Reason::io("cannot read"))?;
        at += got as u64;
        if got == bytes.len() { Ok(()) } else { Err(Reason::CutOff { at }) }
    };

    let mut words = [0; HEADER_WORDS];
    match read(&mut words) {
        // Something that is not a filter is reported as such, however short it is.
        Err(Reason::CutOff { .. }) if !is_snapshot(&words) => return Err(Reason::NotASnapshot),
        result => result?,
    }
    let (header, sum) = header_of::<S, R>(&mut words, own_bytes)?;
    let plan = &header.plan;
    if header.is_list {
        let list = read_list(plan, sum, read)?;
        return contents_of(header, list.loaded());
    }
    let blocks = BlockReader::new(plan);
    let mut tally = Tally::new(plan.geometry().shards(), sum);
    let mut buffer = zeros(block_words(plan))?;
    let in_a_block = plan.geometry().words();
    let mut pieces: Vec<Vec<u64>> = Vec::new();
    let mut found: Vec<Block> = Vec::new();
    let mut times = Times::default();
    while !tally.coverage().is_complete() {
        let number = found.len() as u64;
        read(&mut buffer)?;
        let block = blocks.read(number, &mut buffer)?;
        let added = tally.add(block.depth, block.items, block.sum);
        added.map_err(|gap| gap.at(blocks.at(number)))?;
        times.add(block.time).ok_or_else(|| blocks.too_early(number))?;
        if pieces.last().is_none_or(|piece| piece.capacity() - piece.len() < in_a_block) {
            // A piece has a block, or at most a quarter of all that was read before it. So what a stream
            // claims about its length does not decide how much memory is allocated, and little is left over.
            let most = (found.len() / 4 * in_a_block).clamp(in_a_block, PIECE.max(in_a_block));
            let mut piece = Vec::new();
            piece.try_reserve_exact(most).map_err(|_| Reason::OutOfMemory { bytes: 8 * most })?;
            pieces.push(piece);
        }
        if let Some(piece) = pieces.last_mut() {
            piece.extend_from_slice(&buffer[buckets_in(plan)]);
        }
        found.push(block);
    }
    let at = blocks.at(found.len() as u64);
    let mut words = [0; END_WORDS];
    read(&mut words)?;
    let end = End::read(&mut words, at)?;
    tally.finish(block_bytes(plan), end, at)?;

    let table = table_of(plan, found.len())?;
    let mut index = 0;
    let time = times.last();
    for mut piece in pieces {
        for buckets in piece.chunks_exact_mut(in_a_block) {
            if let Some(older) = blocks.at_time(&found[index], buckets, time) {
                found[index] = older;
            }
            fill(&table, index, buckets, found[index].counted);
            index += 1;
        }
    }
    contents_of(header, Loaded::Shards { table, blocks: found, time })
}

/// Reads until `bytes` is full or the stream ends. Returns the number of bytes read.
pub fn read_up_to(reader: &mut impl Read, bytes: &mut [u8]) -> io::Result<usize> {
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
