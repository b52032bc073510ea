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
//! all but one of them are [excess](crate::room::growing::site::census::Census).
//!
//! An entry counts as an item if it was not covered everywhere. If shards cannot take it all, it is refused,
//! and what was added stays: another thread may have taken it for an item of its own.

use crate::error::Full;
use crate::error::union::Reason;
use crate::layout::aging::Aging;
use crate::layout::bucket::{Fingerprint, Lane, LaneSet, Words};
use crate::layout::geometry::{Bucket, Mixed, Place};
use crate::layout::roots::Position;
use crate::layout::stamps::Moment;
use crate::room::growing::directory::Tenure;
use crate::room::growing::grown::Grown;
use crate::room::growing::site::Site;
use crate::room::growing::until_split::Split;
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
        // A lane that is not counted is one that stands for no item. While this is held, nobody finds the
        // filter empty and forgets that there are such lanes.
        let _no_transfer = (!counts).then(|| self.accounts.expect_excess());
        // A shard has an excess of as many as half of its slots only after removals of what it never had. It
        // gets no more of it then, however many threads are at work, and the entry counts twice: an excess
        // of more than all slots would be taken for damage.
        let slots = self.geometry.buckets() as usize * self.geometry.lanes().slots();
        let not_excess = rule!("an_entry_counts_in_each_of_its_shards", counts, true);
        let counts = not_excess || site.census().excess.total() >= slots as i64 / 2;
        let stamp = self.geometry.lanes().stamp_of_age(0, entry.came);
        let excess = (!counts).then_some(stamp);
        let host = AtSite::<WIDE> { aging: &self.ground.aging, site, excess };
        self.shard::<WIDE>(tenure).adopt(entry, host)
    }
}

/// A shard that gets entries, and keeps a record of them.
#[derive(Clone, Copy)]
struct AtSite<'a, const WIDE: bool> {
    aging: &'a Aging,
    site: &'a Site,
    /// The stamp of an entry that does not count.
    excess: Option<usize>,
}

impl<const WIDE: bool> AtSite<'_, WIDE> {
    fn is_used_up(self, lost: u32) -> bool {
        lost == self.aging.window_bits()
    }
}

impl<const WIDE: bool> Host for AtSite<'_, WIDE> {
    fn filling(self, Entry { lost, .. }: Entry) -> bool {
        self.site.put_on(1 << lost, self.is_used_up(lost), self.excess);
        self.excess.is_none()
    }

    fn finer(self, words: Words, entry: Entry) -> LaneSet {
        self.aging.finer::<WIDE>(words, entry.place.fp, entry.lost)
    }

    fn widen(self, words: Words, lane: Lane, entry: Entry) -> Words {
        let only = self.aging.lanes().set_of(self.aging.lanes().tops()).only(lane);
        let before = self.aging.closest::<WIDE>(words, only).map_or(0, |(lost, _)| lost);
        let more = (1 << entry.lost) - (1 << before);
        self.site.put_on(more + 1, self.is_used_up(entry.lost), None);
        self.aging.widened::<WIDE>(words, lane, entry.lost)
    }
}
