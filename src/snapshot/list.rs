//! The file of a small filter: instead of shards, a block with the hashes of all items.

use crate::room::growing::stages::MOST_LISTED;
use crate::room::parts::Plan;
use crate::snapshot::allocate::zeros;
use crate::snapshot::blocks::Tally;
use crate::snapshot::error::Reason;
use crate::snapshot::format::{
    BLOCK_HEAD, BLOCK_WORDS, END_WORDS, End, HEADER_WORDS, Words, seal, unseal,
};

/// The byte at which the block begins.
const AT: u64 = 8 * HEADER_WORDS as u64;

/// The number of bytes in the block.
fn bytes_of_block(items: usize) -> u64 {
    8 * (BLOCK_WORDS + items) as u64
}

/// The most items of a list. The memory that a file can claim for them is that of a few shards.
pub const MOST: i64 = MOST_LISTED as i64;

/// The length of the whole file.
pub fn length(items: u64) -> u64 {
    items.saturating_add((HEADER_WORDS + BLOCK_WORDS + END_WORDS) as u64).saturating_mul(8)
}

/// Returns the words of the file with this header and these hashes, which are in ascending order.
pub fn list_file(header: Words<HEADER_WORDS>, hashes: &[u64]) -> Result<Vec<u64>, Reason> {
    let mut words = zeros(HEADER_WORDS + BLOCK_WORDS + hashes.len() + END_WORDS)?;
    let (head, rest) = words.split_at_mut(HEADER_WORDS);
    let (block, end) = rest.split_at_mut(BLOCK_WORDS + hashes.len());
    head.copy_from_slice(&header);
    let (_, header_sum) = seal(head);
    let sum = write_block(block, hashes);
    let mut tally = Tally::new(1, header_sum);
    tally.add(0, hashes.len() as i64, sum).map_err(|_| Reason::Outgrown)?;
    end.copy_from_slice(&tally.end(bytes_of_block(hashes.len())).words());
    seal(end);
    Ok(words)
}

/// Writes the block of these hashes, which are in ascending order. Returns its checksum.
pub fn write_block(block: &mut [u64], hashes: &[u64]) -> u64 {
    block[..BLOCK_HEAD].copy_from_slice(&[0, 0, hashes.len() as u64]);
    block[BLOCK_HEAD..][..hashes.len()].copy_from_slice(hashes);
    seal(block).1
}

/// Validates a block that was read at byte `at`, and leaves only its hashes. Returns its checksum.
pub fn open_block(plan: &Plan, words: &mut Vec<u64>, at: u64) -> Result<u64, Reason> {
    let damaged = |what: &'static str| Err(Reason::damaged(at, what));
    let Some(sum) = unseal(words) else {
        return damaged("the checksum of the list is wrong");
    };
    words.pop();
    let head: Vec<u64> = words.drain(..BLOCK_HEAD.min(words.len())).collect();
    if head != [0, 0, words.len() as u64] || words.len() as i64 > MOST {
        return damaged("no list begins like this");
    }
    if !words.is_sorted() {
        return damaged("the hashes are not in order");
    }
    let most_copies = 2 * plan.geometry().lanes().slots();
    if words.windows(most_copies + 1).any(|several| several[0] == several[most_copies]) {
        return damaged("an item has more copies than fit in a filter");
    }
    Ok(sum)
}

/// Reads and validates what comes after the header. Returns the hashes. `read` fills words with
/// those that follow.
pub fn read_list(
    plan: &Plan,
    header_sum: u64,
    mut read: impl FnMut(&mut [u64]) -> Result<(), Reason>,
) -> Result<Vec<u64>, Reason> {
    let mut head = [0; BLOCK_HEAD];
    read(&mut head)?;
    let [number, depth, items] = head.map(u64::from_le);
    if number != 0 || depth != 0 || items > MOST as u64 {
        return Err(Reason::damaged(AT, "no list begins like this"));
    }
    let items = items as usize;
    let mut words = zeros(BLOCK_WORDS + items)?;
    words[..BLOCK_HEAD].copy_from_slice(&head);
    read(&mut words[BLOCK_HEAD..])?;
    let sum = open_block(plan, &mut words, AT)?;
    let at = AT + bytes_of_block(items);
    let mut tally = Tally::new(1, header_sum);
    tally.add(0, items as i64, sum).map_err(|gap| gap.at(AT))?;
    let mut end = [0; END_WORDS];
    read(&mut end)?;
    tally.finish(bytes_of_block(items), End::read(&mut end, at)?, at)?;
    Ok(words)
}
