//! The block of a small filter: instead of shards, it holds the hashes of all items, and their stamps if the filter
//! forgets.

use crate::backend::exchange::{Loaded, Plan};
use crate::backend::growing::Growing;
use crate::backend::growing::list::slots::GAP;
use crate::backend::growing::list_growth::MAX_LISTED;
use crate::layout::stamps::Moment;
use crate::snapshot::allocate::zeros;
use crate::snapshot::error::Reason;
use crate::snapshot::part::format::{BLOCK_HEAD, BLOCK_WORDS, END_WORDS, HEADER_WORDS, unseal};
use crate::snapshot::part::time::{TIME_WORDS, time_in, words_of};
use crate::snapshot::source::Source;
use crate::table::ticking::Time;
use std::io::Read;

/// The byte at which the block begins.
const AT: u64 = 8 * HEADER_WORDS as u64;

/// The items of a list.
#[derive(Clone, Debug, Default)]
pub struct ListBlock {
    /// The mixed hashes of the items, in ascending order.
    pub hashes: Vec<u64>,
    /// The stamps of the items, in a filter that forgets.
    pub stamps: Vec<u8>,
    /// The time at which the list was copied, in a filter that forgets.
    pub time: Option<Time>,
}

impl ListBlock {
    /// Copies the list of a filter. Returns `None` if shards have replaced it.
    pub fn of(growing: &Growing) -> Result<Option<Self>, Reason> {
        let held = growing.ticking().map(|ticking| ticking.pause(growing));
        let Some(items) = growing.items_of_list() else { return Ok(None) };
        let (hashes, stamps) = items.map_err(|bytes| Reason::OutOfMemory { bytes })?;
        Ok(Some(ListBlock { hashes, stamps, time: held.map(|held| held.time()) }))
    }

    pub fn loaded(self) -> Loaded {
        let ListBlock { hashes, stamps, time } = self;
        Loaded::Items { hashes, stamps, time }
    }
}

/// The number of stamps in a word.
const IN_A_WORD: usize = size_of::<u64>();

/// The number of words in a block of `items` items.
fn words_for(plan: &Plan, items: usize) -> usize {
    let in_time = items.div_ceil(IN_A_WORD) + TIME_WORDS;
    BLOCK_WORDS + items + if plan.geometry().lanes().forgets() { in_time } else { 0 }
}

/// The maximum number of items in a list. The memory that a file can claim for them is that of a few shards.
pub const MAX: i64 = MAX_LISTED as i64;

/// The length of the part with a list of `items` items, if a list can have so many.
pub fn length(plan: &Plan, items: i64) -> u64 {
    match usize::try_from(items) {
        Ok(count) if items <= MAX => 8 * (HEADER_WORDS + words_for(plan, count) + END_WORDS) as u64,
        _ => u64::MAX,
    }
}

/// Returns the block of these items, without its checksum.
pub fn block_of(plan: &Plan, list: &ListBlock) -> Result<Vec<u64>, Reason> {
    let ListBlock { hashes, stamps, time } = list;
    let mut block = zeros(words_for(plan, hashes.len()))?;
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
    Ok(block)
}

/// Reads and validates the block. Returns its items and its checksum.
pub fn read_list<R: Read>(plan: &Plan, source: &mut Source<R>) -> Result<(ListBlock, u64), Reason> {
    let damaged = |what: &'static str| Err(Reason::damaged(AT, what));
    let mut head = [0; BLOCK_HEAD];
    source.read(&mut head)?;
    let [number, depth, items] = head.map(u64::from_le);
    if number != 0 || depth != 0 || items > MAX as u64 {
        return damaged("no list begins like this");
    }
    let items = items as usize;
    let mut words = zeros(words_for(plan, items))?;
    words[..BLOCK_HEAD].copy_from_slice(&head);
    source.read(&mut words[BLOCK_HEAD..])?;
    let Some(sum) = unseal(&mut words) else {
        return damaged("the checksum of the list is wrong");
    };
    words.pop();
    words.drain(..BLOCK_HEAD);
    let (lanes, after) = (plan.geometry().lanes(), words.split_off(items));
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
        return Ok((ListBlock { hashes: words, ..ListBlock::default() }, sum));
    };
    let Ok(time) = time_in(lanes, *of_time) else {
        return damaged("the list cannot be of this time");
    };
    let mut stamps: Vec<u8> = of_stamps.iter().flat_map(|word| word.to_le_bytes()).collect();
    let rest = stamps.split_off(items);
    let now = Moment::of_tick(time.tick);
    let is_young = |stamp: &u8| {
        let is_one = u64::from(*stamp) <= lanes.most_stamps();
        is_one && lanes.age_of(*stamp, now) <= lanes.remembers().into()
    };
    if !stamps.iter().all(is_young) || rest.iter().any(|byte| *byte != 0) {
        return damaged("an item cannot have this stamp");
    }
    Ok((ListBlock { hashes: words, stamps, time: Some(time) }, sum))
}
