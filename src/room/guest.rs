//! What one filter gets of another that it takes over.

use crate::error::Full;
use crate::error::union::Reason;
use crate::layout::bucket::{Fingerprint, Lane, Lanes, Words};
use crate::layout::geometry::{Bucket, STRIPE_BUCKETS};
use crate::layout::stamps::Moment;
use crate::table::ticking::Time;

/// After so many refusals, a filter takes over no more.
const MOST_REFUSED: usize = 1_000;

/// A copy of a shard of another filter.
#[doc(hidden)]
pub struct Guest<'a> {
    /// What [`copy_shard`](Shards::copy_shard) began with.
    pub start: u64,
    pub depth: u32,
    pub words: &'a [u64],
    pub lanes: Lanes,
    pub times: &'a Times,
}

impl Guest<'_> {
    /// Calls this with each entry that has not expired: its bucket, the bucket's words, its lane, what is
    /// in the lane but for the stamp, and when it came.
    ///
    /// The stripes take turns, so that they fill up evenly. Otherwise one would be full before the others have
    /// anything, and the shard would seem to have met a [crowd](crate::room::growing::grown::worth).
    pub fn for_each(
        &self,
        mut act: impl FnMut(Bucket, Words, Lane, Fingerprint, Moment) -> Result<(), Reason>,
    ) -> Result<(), Reason> {
        let count = self.words.len() / self.lanes.words();
        let in_a_stripe = STRIPE_BUCKETS as usize;
        let in_turns = (0..in_a_stripe).flat_map(|first| (first..count).step_by(in_a_stripe));
        for bucket in in_turns {
            let words = self.bucket(bucket);
            let unstamped = self.lanes.without_stamps(words);
            for lane in self.lanes.taken(words.heads) {
                let came = self.times.came(self.lanes.age(words, lane, self.times.there));
                let fp = self.lanes.get_whole(unstamped, lane);
                if let (Some(came), Some(fp)) = (came, fp) {
                    act(Bucket(bucket as u32), words, lane, fp, came)?;
                }
            }
        }
        Ok(())
    }

    fn bucket(&self, bucket: usize) -> Words {
        match self.lanes.is_wide() {
            false => Words { heads: self.words[bucket], tails: 0 },
            true => Words { heads: self.words[2 * bucket], tails: self.words[2 * bucket + 1] },
        }
    }
}

/// The present times of two filters.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct Times {
    here: u64,
    pub there: Moment,
    /// How many ticks this filter is ahead.
    lag: u64,
    /// For how many ticks both remember their items.
    remembers: u64,
}

impl Times {
    /// Of filters whose times are these, here and there, if they forget.
    pub fn of(times: Option<[Time; 2]>, lanes: Lanes) -> Self {
        let Some([here, there]) = times else {
            return Times { here: 0, there: Moment::FIRST, lag: 0, remembers: 0 };
        };
        let ahead = here.number.zip(there.number).map(|(here, there)| here.saturating_sub(there));
        Times {
            here: here.tick,
            there: Moment::of_tick(there.tick),
            lag: ahead.unwrap_or(0),
            remembers: lanes.remembers().into(),
        }
    }

    /// When something came that is so old in the other filter, or `None` if it has expired here.
    pub fn came(&self, age: u64) -> Option<Moment> {
        let age = age.checked_add(self.lag).filter(|age| *age <= self.remembers)?;
        Some(Moment::of_tick(self.here.wrapping_sub(age)))
    }
}

/// What became of the entries so far.
#[doc(hidden)]
#[derive(Default)]
pub struct Taken {
    pub added: usize,
    refused: usize,
    full: Option<Full>,
}

impl Taken {
    /// Notes what became of an entry. The error is to go no further.
    pub fn note(&mut self, result: Result<bool, Full>) -> Result<(), Reason> {
        match result {
            Ok(added) => self.added += usize::from(added),
            Err(full) => {
                self.refused += 1;
                self.full = Some(full);
            }
        }
        if self.refused < MOST_REFUSED { Ok(()) } else { self.result() }
    }

    /// The error if any entry was refused.
    pub fn result(&self) -> Result<(), Reason> {
        let &Taken { added, refused, full } = self;
        full.map_or(Ok(()), |full| {
            let is_all = refused < MOST_REFUSED;
            Err(Reason::Full { full, added, refused, is_all })
        })
    }
}
