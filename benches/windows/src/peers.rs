//! The peers, each set up as its documentation advises.

use crate::peer::{Forgetful, RATE, WINDOW, key};
use cuckoo_clock::config::{BitCount, CuckooConfiguration, TtlConfig};
use foldhash::quality::FixedState;
use koel::ConcurrentCuckooFilter;
use std::num::{NonZeroU32, NonZeroUsize};
use std::time::Duration;

fn builder(keys: u64) -> koel::Builder<FixedState> {
    let builder = ConcurrentCuckooFilter::builder().capacity(keys as usize);
    builder.false_positive_rate(RATE).hasher(FixedState::default())
}

/// Just before a tick, the keys of one more tick than the window has are there.
const HELD: u64 = WINDOW + 1;

/// A filter of fixed size, or one that grows.
pub struct Koel<const GROWS: bool>(ConcurrentCuckooFilter<FixedState>);

impl<const GROWS: bool> Forgetful for Koel<GROWS> {
    const NAME: &str = if GROWS { "koel, growing" } else { "koel" };

    /// One that grows begins with room for an eighth of a tick.
    fn build(keys: u64, _: Duration) -> Self {
        let first = if GROWS { keys / 8 } else { HELD * keys };
        let builder = builder(first).remembers(WINDOW as u32);
        let builder = if GROWS { builder.growing().expected_growth(64.0) } else { builder };
        Koel(builder.build().expect("memory"))
    }

    #[inline]
    fn put(&self, key: u64) -> bool {
        self.0.insert_if_absent(&key).expect("room for a window")
    }

    #[inline]
    fn contains(&self, key: u64) -> bool {
        self.0.contains(&key)
    }

    fn tick(&mut self) {
        self.0.tick();
    }

    fn says_it_holds(&self) -> Option<usize> {
        Some(self.0.size_in_bytes())
    }
}

/// A filter that forgets nothing, of which somebody who knows all keys removes the old ones.
pub struct RemovedByKey {
    filter: ConcurrentCuckooFilter<FixedState>,
    keys: u64,
    tick: u64,
}

impl Forgetful for RemovedByKey {
    const NAME: &str = "koel, keys removed one by one";

    fn build(keys: u64, _: Duration) -> Self {
        RemovedByKey { filter: builder(HELD * keys).build().expect("memory"), keys, tick: 0 }
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
        self.tick += 1;
        if let Some(old) = self.tick.checked_sub(HELD) {
            for item in 0..self.keys {
                self.filter.remove(&key(old, item));
            }
        }
    }

    fn says_it_holds(&self) -> Option<usize> {
        Some(self.filter.size_in_bytes())
    }
}

/// Bloom filters of which the oldest is emptied and becomes the newest, every `PERIOD` ticks. `BLOOMS` of
/// them remember for at least `(BLOOMS - 1) * PERIOD` ticks.
pub struct Rotated<const BLOOMS: usize, const PERIOD: u64> {
    blooms: Vec<fastbloom::AtomicBloomFilter<FixedState>>,
    newest: usize,
    ticks: u64,
}

impl<const BLOOMS: usize, const PERIOD: u64> Forgetful for Rotated<BLOOMS, PERIOD> {
    const NAME: &str = match BLOOMS {
        2 => "fastbloom, 2 rotated",
        3 => "fastbloom, 3 rotated",
        _ => "fastbloom, 8 rotated",
    };

    fn build(keys: u64, _: Duration) -> Self {
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
        let is_old = (1..BLOOMS).any(|older| {
            let at = (self.newest + BLOOMS - older) % BLOOMS;
            self.blooms[at].contains(&key)
        });
        !is_old && !self.blooms[self.newest].insert(&key)
    }

    #[inline]
    fn contains(&self, key: u64) -> bool {
        (0..BLOOMS).any(|older| {
            let at = (self.newest + BLOOMS - older) % BLOOMS;
            self.blooms[at].contains(&key)
        })
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
    fn build(keys: u64, _: Duration) -> Self {
        let bits = |bits: usize| BitCount::try_from(bits).expect("a number of bits");
        let ttl = NonZeroU32::new(HELD as u32).expect("not zero");
        let configuration = CuckooConfiguration::builder((HELD * keys) as usize * 100 / 95)
            .fingerprint_bits(bits(16))
            .bucket_size(NonZeroUsize::new(4).expect("not zero"))
            .with_ttl(TtlConfig { ttl, ttl_bits: bits(4) })
            .build();
        cuckoo_clock::CuckooFilter::new(
            configuration.expect("a valid setup"),
            FixedState::default(),
        )
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

    fn build(keys: u64, _: Duration) -> Self {
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

pub type Moka = moka::sync::Cache<u64, (), FixedState>;

impl Forgetful for Moka {
    const NAME: &str = "moka, time to live";
    const OWN_CLOCK: bool = true;

    fn build(keys: u64, tick: Duration) -> Self {
        moka::sync::Cache::builder()
            .initial_capacity((HELD * keys) as usize)
            .time_to_live(tick * WINDOW as u32)
            .build_with_hasher(FixedState::default())
    }

    #[inline]
    fn put(&self, key: u64) -> bool {
        self.entry(key).or_insert(()).is_fresh()
    }

    #[inline]
    fn contains(&self, key: u64) -> bool {
        self.contains_key(&key)
    }

    fn tick(&mut self) {
        self.run_pending_tasks();
    }
}
