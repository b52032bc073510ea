//! The union of two filters: merges the entries of another filter into this one.
//!
//! The other filter's shards are copied one after the other. The entries of a copy, [`Incoming`], are merged bucket by
//! bucket into the shards here that own their hashes, and taken out of it one by one; an entry is added if it [is not
//! here already](entry). No lock of a shard of one filter is held while a shard of the other is locked, so two filters
//! may be merged into each other at the same time. No shard of the other filter is joined meanwhile, so that each copy
//! begins where the copy before it ended. Each copy has its time, and an entry is added with [the age that it has
//! then](Ages).
//!
//! # Which shards get an entry?
//!
//! In a fixed filter, a copy belongs to one shard. Two growing filters began with the same shards, so ranges of hashes
//! are halved at the same places in both, and a bucket has the same number in all shards. A copy and a shard here differ
//! only in depth:
//!
//! * If the shard is deeper, the copy is split as a shard is, and the halves are merged one after the other. Each entry
//!   loses a bit of its suffix.
//! * If the copy is deeper, the shard is split until it is as deep, for as long as fewer shards could not hold the
//!   entries. Where they could, or where the shard cannot be split, the last splits of the copy are undone, bucket by
//!   bucket as it is merged. Each entry gains a bit.
//!
//! Then the buckets correspond to each other. Whenever a merge has released the locks of a shard, it looks up the shard
//! again, which may have changed:
//!
//! 1. It was split, by the merge for want of room or by another thread. Then what is left of the copy is split for its
//!    halves.
//! 2. It was joined. Then what is left is deeper than the shard.
//!
//! An entry that was merged is not left, so it is merged once, and does not come back if another thread removes its
//! item.
//!
//! # Void lanes
//!
//! A [void](crate::backend::growing#void-lanes) lane goes to both halves of a split copy, so it becomes several entries.
//! None of them counts as an item, and where the shard here is less deep, the lane stays void. If one of the shards has
//! no room for its entry, that entry is refused, and those that were added stay: another thread may have relied on them
//! for an item of its own.

pub(crate) mod entry;

use crate::backend::Backend;
use crate::backend::fixed::Fixed;
use crate::backend::growing::{Growing, Leased};
use crate::error::{Full, FullKind, UnionError, UnionErrorKind, zeros};
use crate::layout::bucket::{Lane, Lanes, Words};
use crate::layout::geometry::{Bucket, Mixed, Place, STRIPE_BUCKETS};
use crate::layout::shrinking::{Halves, Shrinking};
use crate::layout::sizing::Layout;
use crate::layout::stamps::{AgeShift, Moment};
use crate::shard::{Lease, Shard};
use crate::table::ticking::Ticking;
use crate::union::entry::{Ages, Merged};
use crate::window::Window;

/// The number of refused entries after which a union gives up.
const MAX_REFUSED: usize = 1_000;

/// The number of entries after which a merge releases the locks of the shard, so that writers have a turn.
const CHUNK: usize = 1_000;

/// Merges the entries of another filter, which is [alike](check), into this one. Returns the number of entries added.
pub(crate) fn union_with(backend: &Backend, other: &Backend) -> Result<usize, UnionError> {
    let mut union = Union::default();
    union.merge_shards(backend, other)?;
    union.result().map(|()| union.added)
}

/// Checks that the filters have the same kind, window, size and layout.
pub(crate) fn check(backend: &Backend, other: &Backend) -> Result<(), UnionError> {
    let windows = [backend, other].map(|it| {
        let number = it.ticking().and_then(Ticking::number);
        Window::of_ticks(it.lanes().remembers().into(), number)
    });
    let [one, other] = [backend.layout(), other.layout()];
    let are_lanes_alike = one.lanes() == other.lanes();
    let (is_one_size, is_one_layout) = if one.grows {
        let [mine, theirs] = [&one, &other].map(|layout| layout.shrinking().suffix_bits());
        // Different roots divide the hashes at different places, so the entries of one filter fit no shard of
        // the other.
        (one.roots() == other.roots(), are_lanes_alike && mine == theirs)
    } else {
        let size = |layout: &Layout| (layout.geometry.shards(), layout.geometry.buckets());
        (!are_lanes_alike || size(&one) == size(&other), are_lanes_alike)
    };
    let (kind, text) = if one.grows != other.grows {
        let text = "one of the filters grows and the other does not: build both with .growing(), or neither";
        (UnionErrorKind::DifferentKind, text)
    } else if one.lanes().remembers() != other.lanes().remembers() {
        let text = "the filters remember items for different numbers of ticks: build both with one \
                    .remembers(ticks)";
        (UnionErrorKind::DifferentWindow, text)
    } else if windows[0].is_some() && windows[1].is_some() && windows[0] != windows[1] {
        // As many ticks of other lengths would be taken for times long after each other.
        let text = "the filters forget items after different times: build both with one .forgets_after(time)";
        (UnionErrorKind::DifferentWindow, text)
    } else if !is_one_size {
        let text = "the filters have different sizes, or began with different numbers of shards if they \
                    grow: build both for one capacity";
        (UnionErrorKind::DifferentSize, text)
    } else if !is_one_layout {
        let text = "the filters have fingerprints of different sizes: build both for one \
                    false-positive rate, and one expected growth if they grow";
        (UnionErrorKind::DifferentLayout, text)
    } else {
        return Ok(());
    };
    Err(UnionError::new(kind, text))
}

/// What is left to be merged of the entries in a copied shard of another filter, or in a half of it.
pub(crate) struct Incoming<'a> {
    /// A hash of the shard: the first, if the filter grows.
    pub start: Mixed,
    pub depth: u32,
    pub words: Vec<u64>,
    pub lanes: Lanes,
    /// If the filters forget.
    pub ages: Option<Ages<'a>>,
    /// The number of buckets, in their order, that have no entries left.
    pub done: usize,
}

impl Incoming<'_> {
    fn buckets(&self) -> usize {
        self.words.len() / self.lanes.words()
    }

    /// The number of buckets, padded with empty ones to whole stripes, and to a power of two of these.
    fn end(&self) -> usize {
        let stripes = self.buckets().div_ceil(STRIPE_BUCKETS as usize);
        stripes.next_power_of_two() * STRIPE_BUCKETS as usize
    }

    /// Returns the bucket that comes after `after` others. The stripes take turns, so that they fill up evenly.
    /// Otherwise one would be full before the others have any entries, and the shard would seem to have met a
    /// [crowd](crate::guide::split).
    #[inline]
    fn bucket(&self, after: usize) -> Bucket {
        let stripes = self.end() / STRIPE_BUCKETS as usize;
        let (stripe, in_stripe) = (after & (stripes - 1), after >> stripes.ilog2());
        Bucket((stripe * STRIPE_BUCKETS as usize + in_stripe) as u32)
    }

    #[inline]
    fn words_of(&self, bucket: Bucket) -> Words {
        let bucket = bucket.0 as usize;
        let word = |at: usize| self.words.get(at).copied().unwrap_or(0);
        match self.lanes.is_wide() {
            false => Words { heads: word(bucket), tails: 0 },
            true => Words { heads: word(2 * bucket), tails: word(2 * bucket + 1) },
        }
    }

    fn set_words(&mut self, Bucket(bucket): Bucket, Words { heads, tails }: Words) {
        let words = [heads, tails];
        let each = self.lanes.words();
        self.words[each * bucket as usize..][..each].copy_from_slice(&words[..each]);
    }

    /// Returns the next entry: its bucket, and its lane there.
    #[inline]
    fn next(&mut self) -> Option<(Bucket, Words, Lane)> {
        while self.done < self.end() {
            let bucket = self.bucket(self.done);
            let words = self.words_of(bucket);
            if let Some(lane) = self.lanes.taken(words.heads).first() {
                return Some((bucket, words, lane));
            }
            self.done += 1;
        }
        None
    }

    #[inline]
    fn take_next(&mut self) {
        if let Some((bucket, words, lane)) = self.next() {
            self.set_words(bucket, self.lanes.without_whole(words, lane));
        }
    }

    /// Takes out the lower half of the entries, as a shard is split. The upper half is left.
    fn take_lower(&mut self, shrinking: &Shrinking) -> Result<Self, UnionError> {
        self.depth += 1;
        let mut lower = Incoming { words: zeros(self.words.len())?, ..*self };
        for bucket in (0..self.buckets() as u32).map(Bucket) {
            let halves: Halves = shrinking.split(self.words_of(bucket));
            lower.set_words(bucket, halves.lower);
            self.set_words(bucket, halves.upper);
        }
        Ok(lower)
    }

    /// Merges up to `CHUNK` entries into a shard. The caller holds all locks of the shard, in which these ages are
    /// those of the present time. `convert` converts a bucket to the depth of the shard. `merge` adds an entry. Returns
    /// the place of an entry for which there is no room, which stays the next one.
    #[inline]
    fn merge_some<'s, L: Lease<'s>>(
        &mut self,
        shard: Shard<L>,
        shift: Option<AgeShift>,
        convert: impl Fn(Words) -> Words,
        mut merge: impl FnMut(Place, Moment) -> Merged,
    ) -> Option<Place> {
        let (lanes, now) = (self.lanes, shift.map_or(Moment::FIRST, |shift| shift.now));
        for _ in 0..CHUNK {
            let (bucket, words, lane) = self.next()?;
            let words = convert(words);
            let aged = shift.map_or(Some(words), |shift| shift.aged(lanes, words, lane));
            if let Some(fp) = aged.and_then(|words| lanes.get_whole(words, lane)) {
                let place = Place { first: bucket, second: shard.alternate(bucket, fp), fp };
                if let Merged::NoRoom = merge(place, now) {
                    return Some(place);
                }
            }
            self.take_next();
        }
        None
    }
}

/// A union that is going on, and the outcome of its entries so far.
#[derive(Default)]
pub(crate) struct Union {
    pub added: usize,
    pub refused: usize,
    pub full: Option<Full>,
}

impl Union {
    fn merge_shards(&mut self, backend: &Backend, other: &Backend) -> Result<(), UnionError> {
        let layout = other.layout();
        let lanes = layout.lanes();
        let _no_joins = other.keep_shards();
        let clocks = backend.ticking().zip(other.ticking());
        let ages = clocks.map(|(here, there)| Ages::new(here, there));
        let mut next = Some(0);
        while let Some(start) = next {
            let mut words = zeros(layout.geometry.words())?;
            let Some((depth, copied)) = other.copy_shard(&mut next, &mut words) else { break };
            let ages = ages.zip(copied.time).map(|(ages, there)| {
                // What has expired there expires here, too, and no entry comes from a later tick.
                if let Some(number) = there.number {
                    backend.tick_to(number);
                }
                let ages = ages.at(there);
                ages.erase_expired(&mut words, lanes);
                ages
            });
            let start = other.hash_in(start);
            let incoming = Incoming { start, depth, words, lanes, ages, done: 0 };
            match backend {
                Backend::Fixed(fixed) => self.merge_into_fixed(fixed, incoming)?,
                Backend::Growing(growing) => self.merge_into_growing(growing, incoming)?,
            }
        }
        Ok(())
    }

    fn merge_into_fixed(
        &mut self,
        fixed: &Fixed,
        mut incoming: Incoming<'_>,
    ) -> Result<(), UnionError> {
        let shard = fixed.shard_of(incoming.start);
        while incoming.next().is_some() {
            let Ok(locked) = shard.lock_all();
            let shift = incoming.ages.map(|ages| ages.shift_for(shard, &locked));
            let unplaced = incoming.merge_some(
                shard,
                shift,
                |words| words,
                |place, now| {
                    let merged = shard.merge_entry(&locked, None, (place, now), true);
                    self.added += usize::from(matches!(merged, Merged::Added));
                    merged
                },
            );
            drop(locked);
            if unplaced.is_some() {
                self.refuse(&mut incoming, Full::new(FullKind::NoRoomNearby))?;
            }
        }
        Ok(())
    }

    /// Merges a copied shard of another growing filter, which began with the same shards.
    pub(crate) fn merge_into_growing(
        &mut self,
        growing: &Growing,
        incoming: Incoming<'_>,
    ) -> Result<(), UnionError> {
        let (buckets, lanes) = (incoming.buckets(), incoming.lanes);
        // Each of the other copies in the range of a shard probably has as many entries.
        let (entries, slots) = (lanes.count_taken(&incoming.words) as u64, buckets * lanes.slots());
        let is_too_small = |depth: u32| {
            let deeper = incoming.depth.saturating_sub(depth);
            deeper > 0 && (4 * entries) << deeper > 3 * slots as u64
        };
        loop {
            let shard = growing.shard(growing.directory.look_up(incoming.start));
            if !is_too_small(shard.seen.depth()) || growing.split_for_all(shard).is_err() {
                break;
            }
        }
        self.merge_range(growing, incoming)
    }

    /// Merges what is left of a copy into the shards that own its range of hashes.
    fn merge_range(
        &mut self,
        growing: &Growing,
        mut incoming: Incoming<'_>,
    ) -> Result<(), UnionError> {
        while incoming.next().is_some() {
            let shard = growing.shard(growing.directory.look_up(incoming.start));
            if shard.seen.depth() > incoming.depth {
                let lower = incoming.take_lower(&growing.shared.shrinking)?;
                self.merge_range(growing, lower)?;
                let range = growing.position(incoming.start).range(incoming.depth);
                let upper = growing.directory.roots.first_hash(range + 1, incoming.depth);
                let Some(upper) = upper else { return Ok(()) };
                incoming.start = upper;
            } else if let Some(place) = self.merge_some(growing, shard, &mut incoming)
                && let Err(full) = growing.make_room(shard, place)
            {
                self.refuse(&mut incoming, full)?;
            }
        }
        Ok(())
    }

    /// Merges some entries into a shard, unless it has been split. Returns the place of an entry for which there is no
    /// room.
    fn merge_some(
        &mut self,
        growing: &Growing,
        shard: Leased<'_>,
        incoming: &mut Incoming<'_>,
    ) -> Option<Place> {
        let shrinking = &growing.shared.shrinking;
        let Ok(locked) = shard.lock_all() else { return None };
        let depths = (incoming.depth, shard.seen.depth());
        let position = growing.position(incoming.start).in_root;
        let convert = |words| shrinking.joined_to_depth(words, depths, position);
        let shift = incoming.ages.map(|ages| ages.shift_for(shard, &locked));
        incoming.merge_some(shard, shift, convert, |place, now| {
            let lost = shrinking.lost_by(place.fp);
            let counts = !shrinking.is_void(lost);
            if !counts {
                growing.shared.may_have_void.set(1);
            }
            let merged = shard.merge_entry(&locked, Some(shrinking), (place, now), counts);
            match merged {
                Merged::Added => self.added += usize::from(counts),
                Merged::Coarsened => {
                    shard.add_items(&locked, place.first, -i32::from(!counts));
                }
                Merged::Covered | Merged::NoRoom => {}
            }
            merged
        })
    }

    /// Refuses the next entry. Returns an error if the union has to give up.
    fn refuse(&mut self, incoming: &mut Incoming<'_>, full: Full) -> Result<(), UnionError> {
        incoming.take_next();
        self.refused += 1;
        self.full = Some(full);
        if self.refused < MAX_REFUSED { Ok(()) } else { self.result() }
    }

    pub(crate) fn result(&self) -> Result<(), UnionError> {
        let &Union { added, refused, full, .. } = self;
        full.map_or(Ok(()), |full| {
            let is_all = refused < MAX_REFUSED;
            Err(UnionError::of_full(full, added, refused, is_all))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::geometry::Geometry;
    use crate::table::Table;

    fn incoming(lanes: Lanes, words: Vec<u64>) -> Incoming<'static> {
        Incoming { start: Mixed(0), depth: 0, words, lanes, ages: None, done: 0 }
    }

    #[test]
    fn an_entry_is_not_merged_again_with_one_that_had_no_room() {
        let lanes = Lanes::of_bits(16);
        let table = Table::new(Geometry::new(lanes, 1, 2)).expect("memory");
        let shard = Shard::new(&table, 0);
        let mut copy = incoming(lanes, vec![0x0003_0002_0001, 0x0004]);
        let mut offered = Vec::new();
        let mut merge = |refused| {
            copy.merge_some(
                shard,
                None,
                |words| words,
                |place, _| {
                    offered.push(place.fp.head());
                    if place.fp.head() == refused { Merged::NoRoom } else { Merged::Added }
                },
            )
        };
        assert!(merge(2).is_some() && merge(2).is_some() && merge(0).is_none());
        assert_eq!(offered, [1, 2, 2, 2, 3, 4]);
        assert!(copy.next().is_none());
    }

    #[test]
    fn a_refused_entry_is_left_out() {
        let mut copy = incoming(Lanes::of_bits(16), vec![0x0003_0002, 0]);
        let mut union = Union { added: 7, ..Union::default() };
        union.refuse(&mut copy, Full::new(FullKind::LimitReached)).expect("only one was refused");
        assert_eq!(copy.words, [0x0003_0000, 0]);
        let error = union.result().expect_err("one was refused");
        let kind = UnionErrorKind::Full { reason: FullKind::LimitReached, added: 7, refused: 1 };
        assert_eq!(error.kind(), kind);
    }

    #[test]
    fn each_bucket_comes_once_and_the_stripes_take_turns() {
        const STRIPE: u64 = STRIPE_BUCKETS as u64;
        for count in [2, STRIPE + 1, 5 * STRIPE, 16 * STRIPE] {
            let words: Vec<u64> = (0..count).collect();
            let copy = incoming(Lanes::of_bits(16), words.clone());
            let all: Vec<(u32, u64)> = (0..copy.end())
                .map(|after| copy.bucket(after))
                .map(|bucket| (bucket.0, copy.words_of(bucket).heads))
                .filter(|(bucket, _)| u64::from(*bucket) < count)
                .collect();
            assert!(all.iter().all(|(bucket, word)| u64::from(*bucket) == *word));
            let mut sorted: Vec<u64> = all.iter().map(|(_, word)| *word).collect();
            sorted.sort_unstable();
            assert_eq!(sorted, words);
            // At any point, no whole stripe is more than one bucket ahead of another.
            let mut in_stripes = vec![0u32; count.div_ceil(STRIPE) as usize];
            for (bucket, _) in all {
                in_stripes[(bucket / STRIPE_BUCKETS) as usize] += 1;
                let whole = &in_stripes[..(count / STRIPE) as usize];
                let [most, least] = [whole.iter().max(), whole.iter().min()];
                assert!(most.zip(least).is_none_or(|(most, least)| most - least <= 1), "{count}");
            }
        }
    }
}
