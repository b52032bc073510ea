//! Splitting a shard in two, while other threads look up its items.
//!
//! (This page is for reading; nothing in it can be called. It continues the page on
//! [kicks](mod@crate::guide::kick).)
//!
//! A filter that grows has a *directory*: the leading bits of the *position* of an item's hash lead to an *entry*,
//! which says where the item's *shard* is and how *deep* it is, that is, how many bits led to it. A full shard is
//! split. It keeps the items whose next bit is zero, the *lower half*; a new shard of the same size takes the *upper
//! half*. Both are one bit deeper, and the fingerprints in both have lost the bit that tells the halves apart (see
//! `layout/shrinking.rs`). So a split changes three things that a lookup depends on: the place of an item, the meaning
//! of the words of the lower half, and the directory. It cannot change all three at one moment.
//!
//! # How does a lookup stay right during a split?
//!
//! A split holds the locks of all the shard's stripes and does, in this order:
//!
//! ```text
//! S1  make the versions of all stripes of both shards odd
//! S2  store the words of the upper half in the new shard, and of the lower half in the old one
//! S3  store the entries of both halves in the directory
//! S4  make the versions even, two more than before
//! ```
//!
//! The lookup does:
//!
//! ```text
//! L1  read the entry, and derive the item's fingerprint from its depth
//! L2  read the version of one of the item's two stripes
//! L3  read both words
//! L4  read the entry again. Unchanged? Otherwise start over at L1.
//! L5  read that version again. Even at L2 and unchanged? Otherwise start over at L2.
//!     Then the words give the answer, yes or no.
//! ```
//!
//! The answer is right because L1 and L3 saw the shard at the same depth:
//!
//! * Suppose L1 read the old entry. If L3 reads a word that S2 stored, the lookup sees S1 from then on, since
//!   words are stored `Release` and loaded `Acquire`. So L5 reads an odd version, or the version of S4; and
//!   the lookup has to retry unless L2 had read the version of S4, too. In that case L2 came after S4, so S3
//!   is visible to this lookup, and L4 finds another entry.
//! * Suppose L1 read the new entry of either half. All words of both halves were stored before it,
//!   so L3 sees no word from before the split; and if another split has begun since, the first case
//!   applies to that one.
//!
//! (The page on [joins](mod@crate::backend::growing::join), after which an old entry may come back, has the reason for
//! the order of L4 and L5, and for the versions of the new shard.)
//!
//! A hit is validated like a miss, unlike in a fixed filter. There the meaning of a lane never changes; here
//! a lane may be read with one bit too many or too few, and then match another item.
//!
//! A lookup that fails at all its attempts locks its two stripes, and so waits until the split is over; then it reads
//! the directory again. Items of other shards are not affected at all.
//!
//! # And writers?
//!
//! A writer finds the shard to lock in the directory. Once it holds the lock, it checks that the entry is unchanged. If
//! the entry has changed, the item belongs elsewhere now, and the writer starts over. Otherwise the entry stays
//! unchanged for as long as the lock is held, because a split needs all locks of the shard. The functions of a shard
//! that lock it for an operation on items make this check (`Shard::lock`, for example), so no operation can forget it.
//! (The sweep of a stripe needs none while its shard is in use: what has expired has expired in both halves.) The check
//! gives `insert_if_absent` one winner and `remove` one taker on either side of a split; and of two writers that found
//! the same shard full, the second finds it split.
//!
//! # And if the directory is not deep enough?
//!
//! If the directory has no two entries for the halves, a list with each entry twice is made first. Lists are
//! freed only with the filter, so a lookup may read an old one: its entries stay right for all shards that
//! have not been split since. A shard that has been split is marked there, and the mark sends readers to the
//! newer list. One thread at a time makes lists and stores entries.
//!
//! # How many items does each half have?
//!
//! As many as it has lanes with bits left. A lane that was void before the split goes to both halves. A lane that loses
//! its last bit in this split goes to one half, and is not counted from then on.
//!
//! # When is a split refused?
//!
//! A split doubles the memory of a shard. It sends each lane to one of the two halves, by the next bit of the
//! lane's hash; a *void* lane, which has no bit left, goes to both. So a
//! split makes room if the shard is full of lanes that it can tell apart. In three cases it does not, and the
//! item is refused:
//!
//! 1. **Copies.** Every lane of the item's two buckets matches the item. Such a lane either has the item's
//!    own next bit or is void, so all of them follow the item into its half, and both buckets are full
//!    again, however often the shard is split. (An item is
//!    refused when it has half as many copies, so these
//!    lanes belong to several items.)
//!
//! 2. **A crowd.** A shard of random items is at least 73 % full before it refuses an item (`unsplit` in
//!    `layout/sizing.rs`, which was measured). Where many items have all the copies that they
//!    may have, it is about half full. A shard that refuses an item below that has met a crowd: a few hot
//!    items whose buckets meet by chance, or items chosen by someone who knows the hasher's keys. A split or
//!    two tells hot items apart, and such items must not be refused. But splitting for chosen items would let
//!    a few of them double the filter again and again. So a shard that is less than half full is split only
//!    while the filter has few shards, or has an eighth of all its slots taken.
//!
//! 3. **Too few lanes can be told apart.** Each half keeps all void lanes and half of the others. If
//!    lanes with bits left take a quarter of the slots, each half has an eighth of its slots free afterwards,
//!    on average. With fewer such lanes, a split gains less than that, and the next one still less, while
//!    each doubles the memory. In a crowd, half of the lanes must have bits left.
//!
//! With these rules the memory stays within a factor of eight of what the lanes need, beyond a megabyte or
//! two. (In a union, a shard is also split if the other filter has more entries for it than it has room for,
//! but no further than the other filter was; see `union/mod.rs`.)
//!
//! # What does a refusal cost?
//!
//! One counter per stripe is read. If their sum is less than half of the slots, and the shard may have void lanes, all
//! of its words are read, too. Meanwhile, and while it searches for room once more, a refusal
//! holds the locks of the item's two stripes and no other lock of the shard, for some microseconds. In a
//! crowd, all counters of the filter are summed, which takes a millisecond at a billion items.

use crate::backend::growing::directory::MAX_ENTRIES;
use crate::backend::growing::site::{Entry, Site};
use crate::backend::growing::{Growing, Leased};
use crate::backend::retry::Room;
use crate::error::{Full, FullKind};
use crate::layout::SMALL;
use crate::layout::bucket::Words;
use crate::layout::geometry::{Bucket, Place, SHARD_STRIPES};
use crate::layout::shrinking::{Halves, Shrinking};
use crate::shard::path;
use crate::shard::raw::{AllLocks, RawShard};
use crate::table::stripe::{Locks, StripeSet};

/// The number of words in a page of memory.
const PAGE_WORDS: usize = 512;

/// Moves the upper half of a shard's items into `upper`, which is empty and has no entry yet. The lower half
/// stays, and each item keeps the number of its bucket. `publish` gets the
/// [`surplus`](crate::backend::growing::site::Site::surplus) of each half, and stores both and the entries of the halves.
#[doc(hidden)]
pub(crate) fn split(
    (shard, locked): (RawShard<'_>, &AllLocks<'_>),
    (upper, upper_locked): (RawShard<'_>, &AllLocks<'_>),
    shrinking: &Shrinking,
    publish: impl FnOnce([u64; 2]),
) {
    let all: StripeSet<SHARD_STRIPES> = shard.own_stripes().collect();
    if !SMALL {
        // The system provides memory when it is first written, which may take milliseconds. Here, no lookup
        // has to wait for it.
        for bucket in upper.buckets().step_by(PAGE_WORDS / shrinking.lanes().words()) {
            upper.write(upper_locked, bucket, Words::default());
        }
    }
    let _moving = shard.write_section(locked, &all);
    let of_upper: StripeSet<SHARD_STRIPES> = upper.own_stripes().collect();
    let _coming = upper.write_section(upper_locked, &of_upper);
    let lanes = shard.lanes();
    let (mut surplus, mut counted) = ([0, 0], [0, 0]);
    for bucket in shard.buckets() {
        let words = shard.read_locked(locked, bucket);
        if words.heads == 0 {
            continue;
        }
        let Halves { lower: lower_words, upper: upper_words } = shrinking.split(words);
        upper.write(upper_locked, bucket, upper_words);
        shard.write(locked, bucket, lower_words);
        for (half, words) in [lower_words, upper_words].into_iter().enumerate() {
            let (mut with_bits, match_weight) =
                (lanes.taken(words.heads).len(), shrinking.match_weight(words));
            // Usually all lanes together weigh less than one void lane.
            if match_weight >> shrinking.suffix_bits() > 0 {
                with_bits -= shrinking.void_lanes(words).len();
            }
            counted[half] += with_bits as i64;
            surplus[half] += match_weight - with_bits as u64;
        }
    }
    upper.share_out(upper_locked, counted[1], Bucket(0));
    shard.share_out(locked, counted[0], Bucket(0));
    publish(surplus);
}

/// Checks whether the item would probably find room if the shard were split. The error is the reason why not.
/// `is_dense` returns whether the filter may be split further for a crowd.
fn split_helps(
    shard: Leased<'_>,
    locked: &impl Locks,
    place: Place,
    is_dense: impl FnOnce() -> bool,
) -> Result<(), FullKind> {
    let in_a_bucket = shard.lanes().slots();
    let only_copies = shard.count_locked(locked, place) == 2 * in_a_bucket;
    if only_copies {
        return Err(FullKind::TooManyCopies);
    }
    let slots = (shard.buckets().count() * in_a_bucket) as i64;
    let told_apart = shard.all_items();
    if 2 * told_apart >= slots {
        return Ok(());
    }
    let taken = told_apart + shard.site().void_lanes(&shard.shared.shrinking) as i64;
    let helps = if 2 * taken >= slots {
        4 * told_apart >= slots
    } else {
        2 * told_apart >= taken && is_dense()
    };
    if helps { Ok(()) } else { Err(FullKind::NoRoomNearby) }
}

/// The number of shards below which a filter is split for a crowd however empty it is.
pub(super) const FEW_SHARDS: usize = 16;

impl Growing {
    /// Makes room for an item that found none in its shard, by splitting the shard.
    ///
    /// # Errors
    ///
    /// [`Full`] if [a split would not help](split_helps) the item, or if there is no memory for the split.
    #[cold]
    #[inline(never)]
    pub(crate) fn make_room(&self, shard: Leased<'_>, place: Place) -> Result<Room, Full> {
        {
            // A refusal is decided under the item's own locks. A split or a clear holds all locks of the
            // shard, so neither is half done then, and the writes of earlier ones are visible.
            let Ok(own) = shard.lock(place) else { return Ok(Room::Found) };
            if let Err(kind) = split_helps(shard, &own, place, || self.is_dense()) {
                return path::find(shard, place).map(|_| Room::Found).ok_or(Full::new(kind));
            }
        }
        let _resharding = self.resharding.read();
        let Ok(locked) = shard.lock_all() else { return Ok(Room::Found) };
        let helps = split_helps(shard, &locked, place, || self.is_dense()).is_ok();
        if !helps {
            // The shard has changed since. The item is tried again, and refused above if there is still no room.
            return Ok(Room::Found);
        }
        self.split_locked(shard, &locked)
    }

    /// Splits a shard that is too small for the entries of another filter, whatever its own load.
    #[cold]
    #[inline(never)]
    pub(crate) fn split_for_all(&self, shard: Leased<'_>) -> Result<Room, Full> {
        let _resharding = self.resharding.read();
        let Ok(locked) = shard.lock_all() else { return Ok(Room::Found) };
        self.split_locked(shard, &locked)
    }

    /// Splits a shard. The caller holds `resharding` for reading.
    fn split_locked(&self, shard: Leased<'_>, locked: &AllLocks<'_>) -> Result<Room, Full> {
        let seen = shard.seen;
        let (site, depth) = (self.site(seen), seen.depth() + 1);
        let shrinking = &self.shared.shrinking;
        let (new, new_locked) = self.allocate(depth)?;
        let upper = (new.shard(), &new_locked);
        let now = shard.now();
        if now.is_passing() {
            // The shard has been swept. After a tick that expired everything, entries of another filter may have come
            // that are older than it.
            upper.0.mark_swept(&new_locked, now);
        }
        split((shard.raw, locked), upper, shrinking, |surplus| {
            let halves = [site, new];
            halves
                .iter()
                .zip(surplus)
                .for_each(|(site, surplus)| site.surplus_gauge().set(surplus));
            let [lower, upper] = halves.map(|site| Entry::new(site, depth));
            self.directory.replace(seen, lower, upper);
        });
        Ok(Room::Made)
    }

    /// Whether the filter may be split further for a crowd, because it is small, or because
    /// an eighth of all slots are taken.
    fn is_dense(&self) -> bool {
        let slots = self.buckets() * self.layout.geometry.lanes().slots();
        self.shared.tables.shards() < FEW_SHARDS || self.items() >= slots / 8
    }

    /// Provides what a split needs: an unused shard, and entries in the directory for shards of this depth.
    /// Returns the shard with all its locks: ticks go through it from now on, and have to wait until it has
    /// its items and figures.
    ///
    /// The caller holds all locks of the shard that is to be split, and other splits wait here for their
    /// turn. Usually an unused shard is at hand and the directory is deep enough. Per doubling of the filter,
    /// a table is allocated a few dozen times, and the directory is copied once or twice.
    ///
    /// # Errors
    ///
    /// [`Full`] if there is not enough memory, or
    ///
    /// * if the directory would have more than [`MAX_ENTRIES`] entries per shard. It has two or four when
    ///   hashes are random. Items that someone chose so that they share their first bits would otherwise
    ///   double it with each split;
    /// * if the filter would exceed its limit of bytes. A new table leaves room for the directory's next
    ///   level, so that its shards can be used.
    fn allocate(&self, depth: u32) -> Result<(&Site, AllLocks<'_>), Full> {
        let _alone = self.growth.lock();
        let limit = Full::new(FullKind::LimitReached);
        let entries = self.directory.missing_bytes(depth);
        let most = MAX_ENTRIES * (self.shared.tables.shards() + 1);
        if self.directory.roots.count << depth > most {
            return Err(Full::new(FullKind::NoRoomNearby));
        }
        let left = self.max_bytes().checked_sub(self.bytes() + entries).ok_or(limit)?;
        let for_a_table = left.saturating_sub(self.directory.bytes_of(depth + 1));
        let tables = &self.shared.tables;
        let spare = tables.next_unused(for_a_table).map_err(Full::new)?;
        self.directory.deepen(depth).map_err(Full::new)?;
        let locked = spare.site.shard().lock_raw();
        tables.take_into_use(spare);
        Ok((spare.site, locked))
    }
}
