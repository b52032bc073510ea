//! Sets that forget: koel and its peers, each set up as its documentation advises.

use cuckoo_clock::config::{BitCount, CuckooConfiguration, TtlConfig};
use foldhash::quality::FixedState;
use koel::ConcurrentCuckooFilter;
use std::num::{NonZeroU32, NonZeroUsize};

/// The ticks for which an item has to be remembered: a tick may be a day, and this a week.
pub const WINDOW: u64 = 7;
/// Just before a tick, the keys of one more tick than the window has are there.
const HELD: u64 = WINDOW + 1;
/// The false-positive rate that each peer is built for.
pub const RATE: f64 = 1.2e-4;

/// A set of keys that were seen lately, which threads share.
pub trait Forgetful: Sync + Sized {
    const NAME: &str;
    /// Builds a set for a stream of this many new keys a tick.
    fn build(keys: u64) -> Self;

    /// Adds a key unless it is there. Returns whether it was added.
    fn put(&self, key: u64) -> bool;

    fn contains(&self, key: u64) -> bool;

    /// Lets a tick pass.
    fn tick(&mut self);

    /// Returns the bytes that the peer touches, if it allocates more than that.
    fn says_it_holds(&self) -> Option<usize> {
        None
    }
}

/// Returns the key of an item of a tick.
pub fn key(tick: u64, item: u64) -> u64 {
    tick << 32 | item
}

/// Returns the key of an item that is never put.
pub fn absent(item: u64) -> u64 {
    1 << 63 | item
}

fn builder(keys: u64) -> koel::Builder<FixedState> {
    let builder = ConcurrentCuckooFilter::builder().capacity(keys as usize);
    builder.false_positive_rate(RATE).hasher(FixedState::default())
}

/// koel: of fixed size, growing, or forgetting nothing while somebody who knows all keys removes the old ones.
pub struct Koel<const HOW: u8> {
    filter: ConcurrentCuckooFilter<FixedState>,
    keys: u64,
    ticks: u64,
}

pub const FIXED: u8 = 0;
pub const GROWING: u8 = 1;
pub const REMOVED_BY_KEY: u8 = 2;

impl<const HOW: u8> Forgetful for Koel<HOW> {
    const NAME: &str = match HOW {
        FIXED => "koel",
        GROWING => "koel, growing",
        _ => "koel, keys removed one by one",
    };

    fn build(keys: u64) -> Self {
        let builder = match HOW {
            FIXED => builder(HELD * keys).remembers(WINDOW as u32),
            // It begins with room for an eighth of a tick.
            GROWING => builder(keys / 8).remembers(WINDOW as u32).growing().expected_growth(64.0),
            _ => builder(HELD * keys),
        };
        Koel { filter: builder.build().expect("memory"), keys, ticks: 0 }
    }

    #[inline]
    fn put(&self, key: u64) -> bool {
        self.filter.insert_if_absent(&key).expect("room for a window")
    }

    #[inline]
    fn contains(&self, key: u64) -> bool {
        self.filter.contains(&key)
    }

    fn tick(&mut self) {
        self.ticks += 1;
        if HOW != REMOVED_BY_KEY {
            self.filter.tick();
        } else if let Some(old) = self.ticks.checked_sub(HELD) {
            (0..self.keys).for_each(|item| _ = self.filter.remove(&key(old, item)));
        }
    }

    fn says_it_holds(&self) -> Option<usize> {
        Some(self.filter.size_in_bytes())
    }
}

/// Bloom filters of which the oldest is emptied and becomes the newest, every `PERIOD` ticks. `BLOOMS` of them remember
/// for at least `(BLOOMS - 1) * PERIOD` ticks.
pub struct Rotated<const BLOOMS: usize, const PERIOD: u64> {
    blooms: Vec<fastbloom::AtomicBloomFilter<FixedState>>,
    newest: usize,
    ticks: u64,
}

impl<const BLOOMS: usize, const PERIOD: u64> Rotated<BLOOMS, PERIOD> {
    /// Looks a key up in all filters but the `newer` newest ones.
    #[inline]
    fn finds(&self, key: u64, newer: usize) -> bool {
        let at = |older: usize| (self.newest + BLOOMS - older) % BLOOMS;
        (newer..BLOOMS).any(|older| self.blooms[at(older)].contains(&key))
    }
}

impl<const BLOOMS: usize, const PERIOD: u64> Forgetful for Rotated<BLOOMS, PERIOD> {
    const NAME: &str = match BLOOMS {
        2 => "fastbloom, 2 rotated",
        3 => "fastbloom, 3 rotated",
        _ => "fastbloom, 8 rotated",
    };

    fn build(keys: u64) -> Self {
        // Each lookup asks all of them.
        let rate = RATE / BLOOMS as f64;
        let bloom = || {
            let builder = fastbloom::AtomicBloomFilter::with_false_pos(rate);
            builder.hasher(FixedState::default()).expected_items((PERIOD * keys) as usize)
        };
        Rotated { blooms: (0..BLOOMS).map(|_| bloom()).collect(), newest: 0, ticks: 0 }
    }

    #[inline]
    fn put(&self, key: u64) -> bool {
        !self.finds(key, 1) && !self.blooms[self.newest].insert(&key)
    }

    #[inline]
    fn contains(&self, key: u64) -> bool {
        self.finds(key, 0)
    }

    fn tick(&mut self) {
        self.ticks += 1;
        if self.ticks.is_multiple_of(PERIOD) {
            self.newest = (self.newest + 1) % BLOOMS;
            self.blooms[self.newest].clear();
        }
    }

    fn says_it_holds(&self) -> Option<usize> {
        Some(self.blooms.iter().map(|bloom| bloom.num_bits() / 8).sum())
    }
}

pub type CuckooClock = cuckoo_clock::CuckooFilter<FixedState>;

impl Forgetful for CuckooClock {
    const NAME: &str = "cuckoo-clock";

    /// With 16 bits and buckets of four, its rate is the one asked for.
    fn build(keys: u64) -> Self {
        let bits = |bits: usize| BitCount::try_from(bits).expect("a number of bits");
        let ttl = NonZeroU32::new(HELD as u32).expect("not zero");
        let configuration = CuckooConfiguration::builder((HELD * keys) as usize * 100 / 95)
            .fingerprint_bits(bits(16))
            .bucket_size(NonZeroUsize::new(4).expect("not zero"))
            .with_ttl(TtlConfig { ttl, ttl_bits: bits(4) })
            .build()
            .expect("a valid setup");
        cuckoo_clock::CuckooFilter::new(configuration, FixedState::default())
    }

    /// It does not say whether the key was there.
    #[inline]
    fn put(&self, key: u64) -> bool {
        let is_new = !self.contains(&key);
        if is_new {
            self.insert(&key);
        }
        is_new
    }

    #[inline]
    fn contains(&self, key: u64) -> bool {
        self.contains(&key)
    }

    fn tick(&mut self) {
        self.scan_and_update_ttl();
    }
}

/// The tick in which each key came, exactly.
pub struct Stamps {
    came: dashmap::DashMap<u64, u32, FixedState>,
    now: u32,
}

impl Forgetful for Stamps {
    const NAME: &str = "DashMap of time stamps";

    fn build(keys: u64) -> Self {
        let hasher = FixedState::default();
        let came = dashmap::DashMap::with_capacity_and_hasher((HELD * keys) as usize, hasher);
        Stamps { came, now: 0 }
    }

    #[inline]
    fn put(&self, key: u64) -> bool {
        let mut is_new = false;
        self.came.entry(key).or_insert_with(|| {
            is_new = true;
            self.now
        });
        is_new
    }

    #[inline]
    fn contains(&self, key: u64) -> bool {
        self.came.contains_key(&key)
    }

    fn tick(&mut self) {
        self.now += 1;
        let now = self.now;
        self.came.retain(|_, came| now - *came <= WINDOW as u32);
    }
}
