//! Entries of another growing filter: where do they go?
//!
//! An entry is a lane in a bucket. What is known of its item is its anchor, and by its shard and its window
//! the first bits of its position, which is to say: its hash is in a certain range. The bucket is the
//! item's here too, since it depends on nothing that filters differ in.
//!
//! In this filter, shards have other ranges. But both filters began with the same shards, so each range halves
//! at the same places in both. If the entry's range is in one shard, it goes there, and has as many bits of the
//! window as before, less what the shard is deeper, or more what it is less deep (if it has them). If the range is
//! that of several shards, the entry goes to each of them, without bits, and becomes several lanes that stand
//! for one item. Like the copies of a lane that a [split](mod@crate::room::growing::split) sends to both halves,
//! all of them together are one item on the [ledger](crate::room::growing::ledger).
//!
//! An entry counts as an item if it was not covered everywhere. If shards cannot take it all, it is refused,
//! and what was added stays: another thread may have taken it for an item of its own.

use crate::error::Full;
use crate::error::union::Reason;
use crate::layout::bucket::{Fingerprint, Lane, LaneSet, Words};
use crate::layout::geometry::{Bucket, Mixed, Place};
use crate::layout::roots::Position;
use crate::layout::stamps::Moment;
use crate::layout::stamps::by_stamp::ByStamp;
use crate::room::growing::directory::Tenure;
use crate::room::growing::grown::Grown;
use crate::room::growing::site::Site;
use crate::room::growing::until_split::{Ground, Split};
use crate::room::guest::{Guest, Taken};
use crate::rule::rule;
use crate::shard::adopt::{Entry, Host};
use crate::shard::lease::Refusal;

/// What is known of an item of another filter.
#[derive(Clone, Copy)]
struct Known {
    bucket: Bucket,
    /// With the anchor.
    fp: Fingerprint,
    /// The first of the hashes that it may have: those in its root whose positions begin with the same bits as
    /// this one's.
    first: Mixed,
    /// The number of those bits.
    bits: u32,
    came: Moment,
}

impl Grown {
    /// Takes over the entries in a copy of a shard of another filter, which began with the same shards.
    pub(super) fn take_entries<const WIDE: bool>(
        &self,
        guest: &Guest<'_>,
        taken: &mut Taken,
    ) -> Result<(), Reason> {
        let aging = &self.ground.aging;
        let Position { root, in_root } = self.position(Mixed(guest.start));
        let prefix = in_root & !(u64::MAX >> guest.depth);
        guest.for_each(|bucket, words, lane, fp, came| {
            let (window, known) = aging.known::<WIDE>(words, lane);
            let from = Position { root, in_root: prefix | window >> guest.depth };
            let bits = guest.depth + known;
            // No lane of a filter has a range without hashes.
            let first = self.directory.roots().first_from(from);
            let Some(first) = first.filter(|first| self.position(*first).shares(from, bits)) else {
                return Ok(());
            };
            taken.note(self.adopt::<WIDE>(Known { bucket, fp, first, bits, came }))
        })
    }

    /// Adds an item of another filter's list.
    pub(super) fn adopt_hash<const WIDE: bool>(
        &self,
        hash: Mixed,
        came: Moment,
    ) -> Result<bool, Full> {
        let Place { first: bucket, fp, .. } = self.ground.aging.place::<WIDE>(hash, 0, 0);
        self.adopt::<WIDE>(Known { bucket, fp, first: hash, bits: u64::BITS, came })
    }

    /// Adds the entry of an item of whose position only so many bits are known.
    #[cfg(loom)]
    #[doc(hidden)]
    pub fn adopt_vaguely<const WIDE: bool>(&self, hash: Mixed, bits: u32) -> Result<bool, Full> {
        let Place { first: bucket, fp, .. } = self.ground.aging.place::<WIDE>(hash, 0, 0);
        let Position { root, in_root } = self.position(hash);
        let in_root = in_root & !u64::MAX.checked_shr(bits).unwrap_or(0);
        let first = self.directory.roots().first_from(Position { root, in_root }).expect("a hash");
        self.adopt::<WIDE>(Known { bucket, fp, first, bits, came: Moment::FIRST })
    }

    /// Adds an entry wherever it may belong, unless it is there. Returns whether it was added anywhere.
    fn adopt<const WIDE: bool>(&self, known: Known) -> Result<bool, Full> {
        let aging = &self.ground.aging;
        let Known { bucket, bits, came, mut first, .. } = known;
        let mut counts = true;
        loop {
            let position = self.position(first);
            let tenure = self.directory.look_up_at(first, position);
            let depth = tenure.depth();
            let left = bits.saturating_sub(depth).min(aging.window_bits());
            let fp = aging.with_known::<WIDE>(known.fp, position.in_root << depth, left);
            let place = Place { first: bucket, second: aging.alternate(bucket, fp), fp };
            let entry = Entry { place, lost: aging.window_bits() - left, came };
            match self.adopt_in::<WIDE>(tenure, entry, counts) {
                Ok(added) => {
                    counts &= !added;
                    let is_in_several =
                        rule!("an_entry_goes_to_the_first_of_its_shards", depth > bits, false);
                    let next = if is_in_several { self.directory.end(tenure) } else { None };
                    let is_its = |next: &Mixed| self.position(*next).shares(position, bits);
                    let Some(next) = next.filter(is_its) else { return Ok(!counts) };
                    first = next;
                }
                // Its halves come one after the other.
                Err(Refusal::Lapsed(_)) => {
                    rule!("an_entry_is_given_up_when_its_shard_is_split", (), return Ok(true));
                }
                Err(Refusal::Full(_)) => self.split::<WIDE>(self.shard(tenure), place)?,
            }
        }
    }

    /// Adds an entry to a shard, unless it is there. Returns whether it was added.
    fn adopt_in<const WIDE: bool>(
        &self,
        tenure: Tenure<'_>,
        entry: Entry,
        counts: bool,
    ) -> Result<bool, Refusal<Split>> {
        let site = self.site(tenure);
        let Ground { aging, ledger, .. } = &self.ground;
        let _a_split = aging.is_used_up(entry.lost).then(|| ledger.splits.read());
        let counts = rule!("an_entry_counts_in_each_of_its_shards", counts, true);
        let host = AtSite::<WIDE> { ground: &self.ground, site, counts };
        self.shard::<WIDE>(tenure).adopt(entry, host)
    }
}

/// A shard that gets entries, and keeps a record of them.
#[derive(Clone, Copy)]
struct AtSite<'a, const WIDE: bool> {
    ground: &'a Ground,
    site: &'a Site,
    counts: bool,
}

impl<const WIDE: bool> Host for AtSite<'_, WIDE> {
    fn filling(self, Entry { lost, came, .. }: Entry) -> bool {
        let Ground { aging, ledger, .. } = self.ground;
        let is_used_up = aging.is_used_up(lost);
        self.site.aged_gauge().put((1 << lost) - u64::from(!is_used_up));
        if is_used_up {
            if self.counts {
                ledger.put(self.site, &ByStamp::only(aging.lanes().stamp_of_age(0, came), 1));
            }
            ledger.expect_leftovers();
        }
        !is_used_up
    }

    fn finer(self, words: Words, entry: Entry) -> LaneSet {
        self.ground.aging.finer::<WIDE>(words, entry.place.fp, entry.lost)
    }

    fn widen(self, words: Words, lane: Lane, entry: Entry) -> (Words, i32) {
        let Ground { aging, ledger, .. } = self.ground;
        let only = aging.lanes().set_of(aging.lanes().tops()).only(lane);
        let before = aging.closest::<WIDE>(words, only).map_or(0, |(lost, _)| lost);
        let is_used_up = aging.is_used_up(entry.lost);
        if is_used_up {
            ledger.put(self.site, &ByStamp::only(aging.lanes().stamp(words, lane), 1));
        }
        self.site.aged_gauge().put((1 << entry.lost) - (1 << before) + u64::from(is_used_up));
        (aging.widened::<WIDE>(words, lane, entry.lost), is_used_up.into())
    }
}
