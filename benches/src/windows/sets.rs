//! Sets that forget: koel and its peers, each set up as its documentation advises.

use crate::peers::sets::{
    self as peers, AtomicBloom, CuckooClock, Koel, Peer, RATE, atomic_bloom, builder, hasher,
};
use foldhash::quality::FixedState;

/// The ticks for which an item has to be remembered: a tick may be a day, and this a week.
pub const WINDOW: u64 = 7;
/// Just before a tick, the keys of one more tick than the window has are there.
const HELD: u64 = WINDOW + 1;

/// A set of keys that were seen lately. It is built for a stream of a number of new keys a tick.
pub trait Forgetful: Peer {
    /// Lets a tick pass, the one with this number, in a stream of `keys` new keys a tick.
    fn tick(&mut self, number: u64, keys: u64);
}

/// Returns the key of an item of a tick.
pub fn key(tick: u64, item: u64) -> u64 {
    tick << 32 | item
}

/// Returns the key of an item that is never put.
pub fn absent(item: u64) -> u64 {
    1 << 63 | item
}

/// koel of fixed size.
pub fn fixed(keys: u64) -> Koel {
    Koel::build(builder(HELD * keys, RATE).remembers(WINDOW as u32))
}

/// koel that begins with room for an eighth of a tick, and grows.
pub fn growing(keys: u64) -> Koel {
    let builder = builder(keys / 8, RATE).remembers(WINDOW as u32);
    Koel::build(builder.growing().expected_growth(64.0))
}

/// koel that forgets nothing, while somebody who knows all keys removes the old ones.
pub fn removed_by_key(keys: u64) -> Koel {
    Koel::fixed(HELD * keys)
}

impl Forgetful for Koel {
    fn tick(&mut self, number: u64, keys: u64) {
        if self.0.remembers().is_some() {
            self.0.tick();
        } else if let Some(old) = number.checked_sub(HELD) {
            (0..keys).for_each(|item| _ = self.0.remove(&key(old, item)));
        }
    }
}

/// Bloom filters, the newest first. Every `period` ticks, the oldest is emptied and becomes the newest, so n filters
/// remember for at least n - 1 periods.
pub struct Rotated {
    blooms: Vec<AtomicBloom>,
    period: u64,
}

impl Rotated {
    pub fn new(blooms: u64, period: u64, keys: u64) -> Self {
        // Each lookup asks all of them.
        let bloom = |_| atomic_bloom(period * keys, RATE / blooms as f64);
        Rotated { blooms: (0..blooms).map(bloom).collect(), period }
    }
}

impl Peer for Rotated {
    #[inline]
    fn insert(&self, key: u64) -> bool {
        self.blooms[0].insert(&key);
        true
    }

    #[inline]
    fn contains(&self, key: u64) -> bool {
        self.blooms.iter().any(|bloom| bloom.contains(&key))
    }

    #[inline]
    fn claim(&self, key: u64) -> Option<bool> {
        let (newest, older) = self.blooms.split_first().expect("a filter");
        Some(!older.iter().any(|bloom| bloom.contains(&key)) && !newest.insert(&key))
    }

    fn says_it_holds(&self) -> Option<usize> {
        Some(self.blooms.iter().map(|bloom| bloom.num_bits() / 8).sum())
    }
}

impl Forgetful for Rotated {
    fn tick(&mut self, number: u64, _: u64) {
        if number.is_multiple_of(self.period) {
            self.blooms.rotate_right(1);
            self.blooms[0].clear();
        }
    }
}

pub fn cuckoo_clock(keys: u64) -> CuckooClock {
    peers::cuckoo_clock(HELD * keys, Some(HELD as u32))
}

impl Forgetful for CuckooClock {
    fn tick(&mut self, _: u64, _: u64) {
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
        let room = (HELD * keys) as usize;
        Stamps { came: dashmap::DashMap::with_capacity_and_hasher(room, hasher()), now: 0 }
    }
}

impl Peer for Stamps {
    #[inline]
    fn insert(&self, key: u64) -> bool {
        self.came.insert(key, self.now);
        true
    }

    #[inline]
    fn contains(&self, key: u64) -> bool {
        self.came.contains_key(&key)
    }

    #[inline]
    fn claim(&self, key: u64) -> Option<bool> {
        let mut is_new = false;
        self.came.entry(key).or_insert_with(|| {
            is_new = true;
            self.now
        });
        Some(is_new)
    }
}

impl Forgetful for Stamps {
    fn tick(&mut self, number: u64, _: u64) {
        let now = number as u32;
        self.now = now;
        self.came.retain(|_, came| now - *came <= WINDOW as u32);
    }
}
