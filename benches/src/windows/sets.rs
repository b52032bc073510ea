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

/// A set of keys that were seen lately.
pub trait Forgetful {
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

/// koel: of fixed size, growing, or forgetting nothing while somebody who knows all keys removes the old ones. Like
/// the other sets, it is built for a stream of `keys` new keys a tick.
pub struct Koel {
    filter: ConcurrentCuckooFilter<FixedState>,
    forgets: bool,
    keys: u64,
    ticks: u64,
}

fn builder(capacity: u64) -> koel::Builder<FixedState> {
    let builder = ConcurrentCuckooFilter::builder().capacity(capacity as usize);
    builder.false_positive_rate(RATE).hasher(FixedState::default())
}

impl Koel {
    fn build(builder: koel::Builder<FixedState>, forgets: bool, keys: u64) -> Self {
        Koel { filter: builder.build().expect("memory"), forgets, keys, ticks: 0 }
    }

    pub fn fixed(keys: u64) -> Self {
        Self::build(builder(HELD * keys).remembers(WINDOW as u32), true, keys)
    }

    /// It begins with room for an eighth of a tick.
    pub fn growing(keys: u64) -> Self {
        let builder = builder(keys / 8).remembers(WINDOW as u32).growing();
        Self::build(builder.expected_growth(64.0), true, keys)
    }

    pub fn removed_by_key(keys: u64) -> Self {
        Self::build(builder(HELD * keys), false, keys)
    }
}

impl Forgetful for Koel {
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
        if self.forgets {
            self.filter.tick();
        } else if let Some(old) = self.ticks.checked_sub(HELD) {
            (0..self.keys).for_each(|item| _ = self.filter.remove(&key(old, item)));
        }
    }

    fn says_it_holds(&self) -> Option<usize> {
        Some(self.filter.size_in_bytes())
    }
}

/// Bloom filters, the newest first, of which the oldest is emptied and becomes the newest every `period` ticks. So many
/// of them remember for at least one period less.
pub struct Rotated {
    blooms: Vec<fastbloom::AtomicBloomFilter<FixedState>>,
    period: u64,
    ticks: u64,
}

impl Rotated {
    pub fn new(blooms: u64, period: u64, keys: u64) -> Self {
        // Each lookup asks all of them.
        let rate = RATE / blooms as f64;
        let bloom = |_| {
            let builder = fastbloom::AtomicBloomFilter::with_false_pos(rate);
            builder.hasher(FixedState::default()).expected_items((period * keys) as usize)
        };
        Rotated { blooms: (0..blooms).map(bloom).collect(), period, ticks: 0 }
    }
}

impl Forgetful for Rotated {
    #[inline]
    fn put(&self, key: u64) -> bool {
        let (newest, older) = self.blooms.split_first().expect("a filter");
        !older.iter().any(|bloom| bloom.contains(&key)) && !newest.insert(&key)
    }

    #[inline]
    fn contains(&self, key: u64) -> bool {
        self.blooms.iter().any(|bloom| bloom.contains(&key))
    }

    fn tick(&mut self) {
        self.ticks += 1;
        if self.ticks.is_multiple_of(self.period) {
            self.blooms.rotate_right(1);
            self.blooms[0].clear();
        }
    }

    fn says_it_holds(&self) -> Option<usize> {
        Some(self.blooms.iter().map(|bloom| bloom.num_bits() / 8).sum())
    }
}

pub type CuckooClock = cuckoo_clock::CuckooFilter<FixedState>;

/// With 16 bits and buckets of four, its rate is the one asked for.
pub fn cuckoo_clock(keys: u64) -> CuckooClock {
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

impl Forgetful for CuckooClock {
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

impl Stamps {
    pub fn new(keys: u64) -> Self {
        let hasher = FixedState::default();
        let came = dashmap::DashMap::with_capacity_and_hasher((HELD * keys) as usize, hasher);
        Stamps { came, now: 0 }
    }
}

impl Forgetful for Stamps {
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
