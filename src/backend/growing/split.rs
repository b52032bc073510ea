//! Splits: a full shard becomes two. [Why lookups stay right](mod@crate::guide::split) meanwhile, and when a split is
//! refused.

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

/// Moves the upper half of a shard's items into `upper`, which is empty and has no entry yet. Each item keeps the
/// number of its bucket. `publish` stores the entries of the halves.
#[doc(hidden)]
pub(crate) fn split(
    (shard, locked): (RawShard<'_>, &AllLocks<'_>),
    (upper, upper_locked): (RawShard<'_>, &AllLocks<'_>),
    shrinking: &Shrinking,
    publish: impl FnOnce(),
) -> bool {
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
    let (mut counted, mut has_void) = ([0, 0], false);
    for bucket in shard.buckets() {
        let words = shard.read_locked(locked, bucket);
        if words.heads == 0 {
            continue;
        }
        let Halves { lower: lower_words, upper: upper_words } = shrinking.split(words);
        upper.write(upper_locked, bucket, upper_words);
        shard.write(locked, bucket, lower_words);
        for (half, words) in [lower_words, upper_words].into_iter().enumerate() {
            let void = shrinking.void_lanes(words);
            has_void |= !void.is_empty();
            let with_bits = lanes.taken(words.heads).without(void);
            counted[half] += with_bits.len() as i64;
        }
    }
    upper.share_out(upper_locked, counted[1], Bucket(0));
    shard.share_out(locked, counted[0], Bucket(0));
    publish();
    has_void
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
    let void = |words| shard.shared.shrinking.void_lanes(words).len();
    let taken = told_apart + shard.recent_words(shard.buckets()).map(void).sum::<usize>() as i64;
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
        let has_void = split((shard.raw, locked), upper, shrinking, || {
            let [lower, upper] = [site, new].map(|site| Entry::new(site, depth));
            self.directory.replace(seen, lower, upper);
        });
        if has_void {
            self.shared.may_have_void.set(1);
        }
        Ok(Room::Made)
    }

    /// Whether the filter may be split further for a crowd, because it is small, or because an eighth of all slots are
    /// taken.
    fn is_dense(&self) -> bool {
        let slots = self.buckets() * self.layout.geometry.lanes().slots();
        self.shared.tables.shards() < FEW_SHARDS || self.items() >= slots / 8
    }

    /// Provides what a split needs: an unused shard, and entries in the directory for shards of this depth. Returns the
    /// shard with all its locks: ticks go through it from now on, and have to wait until it has its items.
    /// The caller holds all locks of the shard that is to be split, and other splits wait here for their turn.
    ///
    /// # Errors
    ///
    /// [`Full`] if there is not enough memory, or
    ///
    /// * if the directory would have more than [`MAX_ENTRIES`] entries per shard;
    /// * if the filter would exceed its limit of bytes. A new table leaves room for the directory's next level, so that
    ///   its shards can be used.
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
