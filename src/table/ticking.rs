//! How a tick passes through a filter: in which order its segments learn of it, and who does the work.
//!
//! A tick has two passes over all segments. In the first pass each segment learns
//! what time it is; in the second, what has expired is erased. [`expire`](mod@crate::shard::expire)
//! explains why it takes two. In a growing filter two more passes settle its
//! [accounts](crate::room::growing::accounts). The work is handed out in portions, to whichever threads ask
//! for some. A pass begins when all portions of the one before are done, and so does the next tick.
//!
//! No lock is held while a portion is worked on, so a thread may wait for others here wherever it may
//! wait for the lock of a segment.
//!
//! A thread that cannot wait for the passes takes the tick [ahead](Ticking::ahead) through the shard of its item.
//! The pass that is going on does not end meanwhile, and finds nothing there that has expired.
//!
//! While the filter is being copied in memory, no tick begins: the ages in a copy are all of one moment.

use crate::layout::SMALL;
use crate::layout::bucket::Lanes;
use crate::layout::geometry::Mixed;
use crate::layout::stamps::{Moment, STAMPS};
use crate::sync::{Backoff, Mutex, nap};
use crate::table::clock::Clock;
use std::collections::BTreeSet;
use std::ops::Range;
use std::panic::RefUnwindSafe;

/// The segments that a thread works on before it asks for more: 256 KiB, or 512.
const PORTION: usize = if SMALL { 2 } else { 64 };

/// What ticks pass through.
pub trait Passage: Sync {
    /// Whether its accounts have to be settled.
    const SETTLES: bool;

    fn lanes(&self) -> Lanes;

    /// Begins a tick to this moment: calls `set`, which sets the clock, while no segments are being added.
    /// Those that are added later learn of it by that.
    fn begin(&self, now: Moment, set: impl FnOnce());

    /// The number of segments now. There may be more later, but never fewer.
    fn segments(&self) -> usize;

    /// Tells the writers of these segments what time it is, and sends away the lookups that have begun.
    fn announce(&self, segments: Range<usize>);

    /// Erases what has expired in these segments.
    fn expire(&self, segments: Range<usize>, now: Moment);

    /// Settles the accounts of these segments. Nothing that has expired is left.
    fn settle(&self, segments: Range<usize>, now: Moment);

    /// Ends the tick. All accounts are settled.
    fn close(&self);

    /// What tells the shard of this item from all others, as long as it is not split.
    fn shard_of(&self, hash: Mixed) -> usize;

    /// Does all that the passes do in the shard of this item, and returns what tells that shard from others.
    fn advance(&self, hash: Mixed, now: Moment) -> usize;

    /// Whether what the passes do in one shard has nothing to do with the other shards.
    fn is_apart(&self) -> bool;
}

/// When a filter was copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Time {
    /// The number of the tick, or one with the same stamp.
    pub tick: u64,
    /// The ticks that have passed since some moment, by their numbers. (Where more were made up for at once
    /// than anything is remembered for, there may be fewer, but as many as that.)
    pub elapsed: u64,
    /// What the caller calls it.
    pub number: Option<u64>,
}

/// Keeps ticks from beginning.
pub struct Held<'a> {
    ticking: &'a Ticking,
    time: Time,
}

impl Held<'_> {
    pub fn time(&self) -> Time {
        self.time
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.ticking.progress.lock().copies -= 1;
    }
}

pub struct Ticking {
    /// It is set by whoever has the lock of the progress.
    clock: Clock,
    progress: Mutex<Progress>,
}

/// Nothing that is done under its lock panics.
impl RefUnwindSafe for Ticking {}

struct Progress {
    /// The pass that is going on, if a tick is.
    pass: Option<Pass>,
    /// The first segment that no thread works on or has worked on in this pass.
    next: usize,
    /// The number of threads that work on a portion, or on a shard ahead of the passes.
    at_work: usize,
    /// The shards that the tick was taken through ahead of its passes.
    ahead: BTreeSet<usize>,
    /// The number of copies of the filter that are being made.
    copies: usize,
    /// What the caller calls the first tick, if ticks have numbers.
    number_of_first: Option<u64>,
    /// As in [`Time`].
    elapsed: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pass {
    Announce,
    Expire,
    Settle,
    Close,
}

/// What there is to do for a thread.
enum Task {
    Work(Pass, Range<usize>),
    /// Nothing, until other threads are done.
    Wait,
    /// Nothing: no tick is passing.
    Rest,
}

impl Ticking {
    /// The memory that one takes which is shared, with the two counts of an [`Arc`](std::sync::Arc).
    pub const SHARED_BYTES: usize = size_of::<Ticking>() + 2 * size_of::<usize>();

    pub fn new() -> Self {
        let progress = Progress {
            pass: None,
            next: 0,
            at_work: 0,
            ahead: BTreeSet::new(),
            copies: 0,
            number_of_first: None,
            elapsed: 0,
        };
        Ticking { clock: Clock::new(), progress: Mutex::new(progress) }
    }

    #[inline]
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Lets one more tick pass, after those that are passing.
    pub fn tick(&self, through: &impl Passage) {
        while !self.begin(through) {
            self.finish(through);
        }
        self.finish(through);
    }

    /// Does this at a moment when no copy of the filter is being made.
    fn without_copies<T>(&self, act: impl FnOnce(&mut Progress) -> T) -> T {
        loop {
            let mut progress = self.progress.lock();
            if progress.copies == 0 {
                return act(&mut progress);
            }
            drop(progress);
            nap();
        }
    }

    /// Lets no tick begin until the result is dropped, for a copy of the filter.
    pub fn hold(&self, through: &impl Passage) -> Held<'_> {
        loop {
            self.finish(through);
            let mut progress = self.progress.lock();
            if progress.pass.is_none() {
                progress.copies += 1;
                let tick = self.clock.own_time().tick();
                self.end_of_all(through);
                let number = progress.number_of_first.map(|first| first.wrapping_add(tick));
                return Held {
                    ticking: self,
                    time: Time { tick, elapsed: progress.elapsed, number },
                };
            }
        }
    }

    /// After a tick that ended all, what is older than the tick may come again, from another filter. The
    /// caller has the lock of the progress, and no tick is passing.
    fn end_of_all(&self, through: &impl Passage) {
        let now = self.clock.own_time();
        if now.ends_all() {
            // Whoever goes by the time that was is done before.
            let now = Moment::of_tick(now.tick());
            through.begin(now, || self.clock.set(now));
        }
    }

    /// Begins with what was copied at this time. The caller alone has the filter.
    pub fn continue_from(&self, Time { tick, elapsed, number }: Time) {
        self.clock.set(Moment::of_tick(tick));
        let mut progress = self.progress.lock();
        progress.number_of_first = number.map(|number| number.wrapping_sub(tick));
        progress.elapsed = elapsed;
    }

    /// Lets ticks pass until the present one has this number. Returns how many have passed in this call.
    ///
    /// Without numbers until now, the present tick gets this one.
    pub fn tick_to(&self, through: &impl Passage, number: u64) -> u64 {
        let mut passed = 0;
        loop {
            let some = self.begin_toward(through, number);
            let Some(some) = some else { return passed };
            passed += some;
            self.finish(through);
        }
    }

    /// Begins a tick, unless one is passing.
    pub fn begin(&self, through: &impl Passage) -> bool {
        self.without_copies(|progress| {
            let may_begin = progress.pass.is_none();
            if may_begin {
                self.begin_with(progress, through, self.clock.own_time().next(false));
            }
            may_begin
        })
    }

    /// Begins a tick toward the one with this number, unless one is passing. Returns how many ticks it
    /// makes up for, or `None` if there is none to begin.
    pub fn begin_toward(&self, through: &impl Passage, number: u64) -> Option<u64> {
        // Mostly the time is known, and then nobody has to wait for copies.
        if self.number().is_some_and(|present| number <= present) {
            return None;
        }
        self.without_copies(|progress| {
            let now = self.clock.own_time();
            let Some(first) = progress.number_of_first else {
                progress.number_of_first = Some(number.wrapping_sub(now.tick()));
                return None;
            };
            let behind = number.checked_sub(first.wrapping_add(now.tick()))?;
            if behind == 0 {
                return None;
            }
            if progress.pass.is_some() {
                return Some(0);
            }
            // After so many ticks, nothing that came before is remembered.
            let ends_all = behind > through.lanes().remembers().into();
            let passed = if ends_all { behind } else { 1 };
            progress.number_of_first = Some(first.wrapping_add(passed - 1));
            progress.elapsed = progress.elapsed.wrapping_add(passed.min(STAMPS as u64) - 1);
            self.begin_with(progress, through, now.next(ends_all));
            Some(passed)
        })
    }

    fn begin_with(&self, progress: &mut Progress, through: &impl Passage, now: Moment) {
        progress.elapsed = progress.elapsed.wrapping_add(1);
        through.begin(now, || self.clock.set(now));
        (progress.pass, progress.next) = (Some(Pass::Announce), 0);
    }

    /// The number of the present tick, if ticks have numbers.
    pub fn number(&self) -> Option<u64> {
        let progress = self.progress.lock();
        Some(progress.number_of_first?.wrapping_add(self.clock.own_time().tick()))
    }

    /// Works until no tick is passing.
    pub fn finish(&self, through: &impl Passage) {
        self.work(through, usize::MAX);
    }

    /// Works on at most so many segments. Returns whether no tick is passing any more.
    pub fn work(&self, through: &impl Passage, most: usize) -> bool {
        let mut left = most;
        let mut backoff = Backoff::new();
        loop {
            match self.task(through, left.min(PORTION)) {
                Task::Rest => return true,
                _ if left == 0 => return false,
                Task::Work(pass, segments) => {
                    left -= segments.len();
                    match pass {
                        Pass::Announce => through.announce(segments),
                        Pass::Expire => through.expire(segments, self.clock.own_time()),
                        Pass::Settle => through.settle(segments, self.clock.own_time()),
                        Pass::Close => through.close(),
                    }
                    self.progress.lock().at_work -= 1;
                    backoff = Backoff::new();
                }
                Task::Wait if most < usize::MAX => return false,
                Task::Wait if backoff.is_completed() => nap(),
                Task::Wait => backoff.snooze(),
            }
        }
    }

    /// If a tick is passing, takes it through the shard of this item, ahead of its passes: or through the whole
    /// filter, if it takes all shards to tell what the tick changes in one.
    pub fn ahead(&self, through: &impl Passage, hash: Mixed) {
        if !self.is_passing() {
            return;
        }
        if !through.is_apart() {
            return self.finish(through);
        }
        loop {
            let shard = through.shard_of(hash);
            match self.begin_ahead(shard) {
                Some(true) => {
                    let shard = through.advance(hash, self.clock.own_time());
                    let mut progress = self.progress.lock();
                    progress.ahead.insert(shard);
                    progress.at_work -= 1;
                }
                Some(false) => {}
                None => return,
            }
            // It may have been split meanwhile.
            if through.shard_of(hash) == shard {
                return;
            }
        }
    }

    /// Begins to take the tick through a shard ahead of its passes. `Some(false)` if it has been there, `None` if
    /// there is nothing left to do anywhere.
    fn begin_ahead(&self, shard: usize) -> Option<bool> {
        let mut progress = self.progress.lock();
        // To close is all that is left to do then, and nothing to shards that are apart.
        if matches!(progress.pass, None | Some(Pass::Close)) {
            return None;
        }
        let is_due = !progress.ahead.contains(&shard);
        progress.at_work += usize::from(is_due);
        Some(is_due)
    }

    /// Whether a tick is passing.
    pub fn is_passing(&self) -> bool {
        self.progress.lock().pass.is_some()
    }

    fn task<P: Passage>(&self, through: &P, most: usize) -> Task {
        let mut progress = self.progress.lock();
        loop {
            let Some(pass) = progress.pass else { return Task::Rest };
            let all = if pass == Pass::Close { 1 } else { through.segments() };
            let start = progress.next;
            let end = start.saturating_add(most).min(all);
            if start < end {
                progress.next = end;
                progress.at_work += 1;
                return Task::Work(pass, start..end);
            }
            if start < all {
                return Task::Wait;
            }
            if progress.at_work > 0 {
                return Task::Wait;
            }
            progress.next = 0;
            progress.pass = match pass {
                Pass::Announce => Some(Pass::Expire),
                Pass::Expire if P::SETTLES => Some(Pass::Settle),
                Pass::Settle => Some(Pass::Close),
                Pass::Expire | Pass::Close => None,
            };
            if progress.pass.is_none() {
                progress.ahead = BTreeSet::new();
            }
        }
    }
}
