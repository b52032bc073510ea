//! Merging a copied shard of another growing filter: which shards get its entries.
//!
//! Both filters began with the same shards, so ranges of hashes are halved at the same places in both, and a bucket has
//! the same number in all shards. The copy and the shard here differ only in depth. If the copy is less deep, it is
//! split like a shard, for each of the shards here that own a part of its hashes. If it is deeper, this filter's shard
//! is split until it is as deep, for as long as fewer shards could not hold the entries. Where they could, or where the
//! shard cannot be split, the last splits of the copy are undone. So an entry loses a bit of its suffix for each level
//! by which the shard here is deeper than the copy, and gains one for each level by which the copy is deeper. Then the
//! buckets correspond to each other, and the entries are merged bucket by bucket. If a shard is full, or another thread
//! has split it, the rest of the copy is converted for its halves.
//!
//! A lane that goes to both halves of a split copy becomes several entries of one item; only the first of them adds to
//! the number of [void items](crate::backend::growing::void). Of lanes that are void in the copy, no more are counted
//! than the other filter has void items; if it has none, they are left out. (Where the shard here is less deep, such a
//! lane gets a bit back, and counts as an item for each of its values: it cannot be told which was its own.) Every lane
//! keeps its place in its bucket, so one bit per lane of the copy is enough to record whether the lane has been
//! counted.
//!
//! An entry counts as an item unless it was covered in each of its shards. If one of the shards has no room
//! for it, the entry is refused, and the lanes that were added stay: another thread may have relied on them
//! for an item of its own.

use crate::backend::growing::sharded::{Leased, Sharded};
use crate::backend::growing::until_split::{Shared, WasSplit};
use crate::backend::incoming::{IncomingShard, MergeReport, Progress, Unplaced};
use crate::backend::storage::Storage;
use crate::error::{UnionError, zeros};
use crate::layout::geometry::Mixed;
use crate::shard::merge::Merged;

/// A copy that is being merged.
struct Merge<'a> {
    copy: &'a IncomingShard<'a>,
    /// The words of the copy, converted for a shard of another depth.
    changed: Vec<u64>,
    /// The top bits of the lanes that have been counted, for each bucket.
    counted: Vec<u64>,
    report: &'a mut MergeReport,
}

impl Sharded {
    /// Merges the entries in a copied shard of another filter, which began with the same shards.
    pub(super) fn merge_copy(
        &self,
        copy: &IncomingShard<'_>,
        report: &mut MergeReport,
    ) -> Result<(), UnionError> {
        let (changed, counted) = (zeros(copy.words.len())?, zeros(copy.buckets())?);
        let mut merge = Merge { copy, changed, counted, report };
        // In a whole, the entries of a half would be merged a second time, and those that another thread has removed
        // since would come back.
        let _no_joins = self.keep_shards();
        self.merge_range(&mut merge, (copy.start, copy.depth), Progress::default())
    }

    /// Merges the rest of the copy into the shards of the range of this depth that begins
    /// with this hash.
    ///
    /// Each round of the outer loop looks up the first shard of the range, and does one of these:
    ///
    /// * The shard is deeper, so it has only a part of the range: the lower half of the range is merged by a call, and
    ///   the upper half becomes the range.
    /// * Fewer shards could not hold the entries: the shard is split, and the next round finds its lower half.
    /// * Otherwise the copy is converted to the depth of the shard, and its buckets are merged. If the shard has to be
    ///   split for them, or has been split meanwhile, the next round goes on with the same bucket in the shards that
    ///   there are then.
    fn merge_range(
        &self,
        merge: &mut Merge<'_>,
        (mut start, mut depth): (Mixed, u32),
        mut progress: Progress,
    ) -> Result<(), UnionError> {
        let mut may_grow = true;
        'shards: loop {
            let position = self.position(start);
            let seen = self.directory.look_up_at(start, position);
            if seen.depth() > depth {
                depth += 1;
                self.merge_range(merge, (start, depth), progress)?;
                let upper = self.directory.roots.first_hash(position.range(depth) + 1, depth);
                let Some(upper) = upper else { return Ok(()) };
                start = upper;
                continue;
            }
            let shard = self.shard(seen);
            if may_grow && merge.copy.needs_depth(seen.depth()) {
                may_grow = self.split_for_all(shard).is_ok();
                continue;
            }
            let Merge { copy, changed, counted, report } = &mut *merge;
            let mut incoming = **copy;
            if seen.depth() != copy.depth {
                changed.copy_from_slice(copy.words);
                let depths = (copy.depth, seen.depth());
                self.shared.shrinking.bring_to_depth(changed, depths, position.in_root);
                incoming.words = changed;
            }
            while !incoming.is_merged(progress) {
                match self.merge_some((copy, &incoming), shard, &mut progress, counted, report) {
                    Ok(None) => {}
                    Ok(Some(unplaced)) => match self.make_room(shard, unplaced.place) {
                        Ok(()) => continue 'shards,
                        Err(full) => {
                            unplaced.refuse(full, report)?;
                            progress.skip_bucket();
                        }
                    },
                    Err(WasSplit) => {
                        continue 'shards;
                    }
                }
            }
            return Ok(());
        }
    }

    /// Merges some buckets into a shard, unless it has been split. Returns the entries for which there is no
    /// room.
    fn merge_some(
        &self,
        (copy, incoming): (&IncomingShard<'_>, &IncomingShard<'_>),
        shard: Leased<'_>,
        progress: &mut Progress,
        counted: &mut [u64],
        report: &mut MergeReport,
    ) -> Result<Option<Unplaced>, WasSplit> {
        let Shared { shrinking, void, .. } = &self.shared;
        let _like_a_split = void.splits.read();
        let locked = shard.lock_all()?;
        let site = self.site(shard.seen);
        let (mut surplus, mut newly_void) = (0i64, 0);
        let shift = incoming.shift(shard, &locked);
        let unplaced = incoming.merge(progress, shard, shift, |place, top| {
            let counted = &mut counted[place.first.0 as usize];
            let is_first = *counted & top == 0;
            let lost = shrinking.lost_by(place.fp);
            let is_void = shrinking.is_void(lost);
            // A lane keeps its place in its bucket when the copy is converted.
            let was_void = (is_void || shard.seen.depth() < copy.depth)
                && shrinking.void_lanes(copy.words_of(place.first)).tops() & top != 0;
            if was_void && report.void_there == 0 {
                return Merged::Covered;
            }
            let merged = shard.merge_entry(&locked, place, shift.now, !is_void);
            let is_new = match merged {
                Merged::Added if is_void && was_void => {
                    is_first && report.void_counted < report.void_there
                }
                Merged::Added => is_first,
                Merged::Coarsened { before } => {
                    // `before` was counted by its stripe.
                    surplus -= (1 << shrinking.lost_by(before)) - 1;
                    shard.add_items(&locked, place.first, -i32::from(is_void));
                    true
                }
                Merged::Covered | Merged::NoRoom => return merged,
            };
            surplus += (1 << lost) - i64::from(!is_void);
            newly_void += u64::from(is_void && is_new);
            report.void_counted += u64::from(was_void && is_new);
            if let Merged::Added = merged {
                report.added += usize::from(is_new);
                *counted |= top;
            }
            merged
        });
        site.surplus_gauge().add(surplus);
        void.add(newly_void);
        Ok(unplaced)
    }
}
