//! The file of a small filter: instead of shards, a block with the hashes of all items, and
//! with their stamps if the filter forgets.

use crate::layout::stamps::Moment;
use crate::room::Room;
use crate::room::growing::stages::Stages;
use crate::room::growing::stages::grow::MOST_LISTED;
use crate::room::growing::stages::list::slots::GAP;
use crate::room::parts::{Loaded, Plan};
use crate::snapshot::allocate::zeros;
use crate::snapshot::blocks::Tally;
use crate::snapshot::error::Reason;
use crate::snapshot::format::{
    BLOCK_HEAD, BLOCK_WORDS, END_WORDS, End, HEADER_WORDS, Words, seal, unseal,
};
use crate::snapshot::time::{TIME_WORDS, time_in, words_of};
use crate::table::ticking::Time;

/// The byte at which the block begins.
const AT: u64 = 8 * HEADER_WORDS as u64;

/// The items of a list.
#[derive(Clone, Debug, Default)]
pub struct Listing {
    /// Their mixed hashes, in ascending order.
    pub hashes: Vec<u64>,
    /// Their stamps, in a filter that forgets.
    pub stamps: Vec<u8>,
    /// When they were copied, in a filter that forgets.
    pub time: Option<Time>,
}

impl Listing {
    /// Copies the list of a filter, unless that has ended.
    pub fn of<R: Room>(room: &R, stages: &Stages) -> Result<Option<Self>, Reason> {
        let held = room.time().map(|(ticking, through)| ticking.hold(through));
        let items = stages
            .items_of_list()
            .or_else(|| stages.shards().is_none().then(|| Ok((Vec::new(), Vec::new()))));
        let Some(items) = items else { return Ok(None) };
        let (hashes, stamps) = items.map_err(|bytes| Reason::OutOfMemory { bytes })?;
        Ok(Some(Listing { hashes, stamps, time: held.map(|held| held.time()) }))
    }

    pub fn loaded(self) -> Loaded {
        let Listing { hashes, stamps, time } = self;
        Loaded::Items { hashes, stamps, time }
    }
}

/// The stamps in a word.
const IN_A_WORD: usize = size_of::<u64>();

/// The words of a block for so many items.
pub fn words_for(plan: &Plan, items: usize) -> usize {
    let in_time = items.div_ceil(IN_A_WORD) + TIME_WORDS;
    BLOCK_WORDS + items + if plan.geometry().lanes().forgets() { in_time } else { 0 }
}

/// The number of bytes in the block.
fn bytes_of_block(plan: &Plan, items: usize) -> u64 {
    8 * words_for(plan, items) as u64
}

/// The most items of a list. The memory that a file can claim for them is that of a few shards.
pub const MOST: i64 = MOST_LISTED as i64;

/// The length of the whole file with so many items, if a list has so many.
pub fn length(plan: &Plan, items: i64) -> u64 {
    match usize::try_from(items) {
        Ok(count) if items <= MOST => {
            bytes_of_block(plan, count) + 8 * (HEADER_WORDS + END_WORDS) as u64
        }
        _ => u64::MAX,
    }
}

/// Returns the words of the file with this header and these items.
pub fn list_file(
    plan: &Plan,
    header: Words<HEADER_WORDS>,
    list: &Listing,
) -> Result<Vec<u64>, Reason> {
    let in_block = words_for(plan, list.hashes.len());
    let mut words = zeros(HEADER_WORDS + in_block + END_WORDS)?;
    let (head, rest) = words.split_at_mut(HEADER_WORDS);
    let (block, end) = rest.split_at_mut(in_block);
    head.copy_from_slice(&header);
    let (_, header_sum) = seal(head);
    let sum = write_block(plan, block, list);
    let mut tally = Tally::new(1, header_sum);
    tally.add(0, list.hashes.len() as i64, sum).map_err(|_| Reason::Outgrown)?;
    end.copy_from_slice(&tally.end(8 * in_block as u64).words());
    seal(end);
    Ok(words)
}

/// Writes the block of these items, which has as many words as it [needs](words_for). Returns its checksum.
pub fn write_block(plan: &Plan, block: &mut [u64], list: &Listing) -> u64 {
    let Listing { hashes, stamps, time } = list;
    block[..BLOCK_HEAD].copy_from_slice(&[0, 0, hashes.len() as u64]);
    let (of_hashes, rest) = block[BLOCK_HEAD..].split_at_mut(hashes.len());
    of_hashes.copy_from_slice(hashes);
    if let Some(time) = time {
        let (of_stamps, rest) = rest.split_at_mut(hashes.len().div_ceil(IN_A_WORD));
        for (word, stamps) in of_stamps.iter_mut().zip(stamps.chunks(IN_A_WORD)) {
            let mut bytes = [0; IN_A_WORD];
            bytes[..stamps.len()].copy_from_slice(stamps);
            *word = u64::from_le_bytes(bytes);
        }
        rest[..TIME_WORDS].copy_from_slice(&words_of(plan.geometry().lanes(), *time));
    }
    seal(block).1
}

/// Validates a block that was read at byte `at`. Returns its items and its checksum.
pub fn open_block(plan: &Plan, mut words: Vec<u64>, at: u64) -> Result<(Listing, u64), Reason> {
    let damaged = |what: &'static str| Err(Reason::damaged(at, what));
    let lanes = plan.geometry().lanes();
    let Some(sum) = unseal(&mut words) else {
        return damaged("the checksum of the list is wrong");
    };
    let head: Vec<u64> = words.iter().copied().take(BLOCK_HEAD).collect();
    let items = head.get(2).map_or(u64::MAX, |items| *items);
    let is_right = items <= MOST as u64 && words.len() == words_for(plan, items as usize);
    if !is_right || head != [0, 0, items] {
        return damaged("no list begins like this");
    }
    words.pop();
    words.drain(..BLOCK_HEAD);
    let after = words.split_off(items as usize);
    if !words.is_sorted() {
        return damaged("the hashes are not in order");
    }
    if words.last() == Some(&GAP) {
        return damaged("no list has an item with this hash");
    }
    let most_copies = lanes.slots();
    if words.windows(most_copies + 1).any(|several| several[0] == several[most_copies]) {
        return damaged("an item has more copies than fit in a filter");
    }
    let Some((of_stamps, of_time)) = after.split_last_chunk() else {
        return Ok((Listing { hashes: words, ..Listing::default() }, sum));
    };
    let Ok(time) = time_in(lanes, *of_time) else {
        return damaged("the list cannot be of this time");
    };
    let mut stamps: Vec<u8> = of_stamps.iter().flat_map(|word| word.to_le_bytes()).collect();
    let rest = stamps.split_off(items as usize);
    let now = Moment::of_tick(time.tick);
    let is_young = |stamp: &u8| {
        let is_one = u64::from(*stamp) <= lanes.most_stamps();
        is_one && lanes.age_of(*stamp, now) <= lanes.remembers().into()
    };
    if !stamps.iter().all(is_young) || rest.iter().any(|byte| *byte != 0) {
        return damaged("an item cannot have this stamp");
    }
    Ok((Listing { hashes: words, stamps, time: Some(time) }, sum))
}

/// Reads and validates what comes after the header. `read` fills words with those that follow.
pub fn read_list(
    plan: &Plan,
    header_sum: u64,
    mut read: impl FnMut(&mut [u64]) -> Result<(), Reason>,
) -> Result<Listing, Reason> {
    let mut head = [0; BLOCK_HEAD];
    read(&mut head)?;
    let [number, depth, items] = head.map(u64::from_le);
    if number != 0 || depth != 0 || items > MOST as u64 {
        return Err(Reason::damaged(AT, "no list begins like this"));
    }
    let items = items as usize;
    let mut words = zeros(words_for(plan, items))?;
    words[..BLOCK_HEAD].copy_from_slice(&head);
    read(&mut words[BLOCK_HEAD..])?;
    let (list, sum) = open_block(plan, words, AT)?;
    let at = AT + bytes_of_block(plan, items);
    let mut tally = Tally::new(1, header_sum);
    tally.add(0, items as i64, sum).map_err(|gap| gap.at(AT))?;
    let mut end = [0; END_WORDS];
    read(&mut end)?;
    tally.finish(bytes_of_block(plan, items), End::read(&mut end, at)?, at)?;
    Ok(list)
}
