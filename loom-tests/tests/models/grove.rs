//! A growing filter of tiny shards.
//!
//! A shard has eight buckets of two lanes. It is half full, and may be split, when its count says
//! eight items. The models add to the count without inserting items; a split counts again.

use crate::toy::World;
use koel_under_loom::Full;
use koel_under_loom::internals::{
    Bucket, Geometry, GrowthPlan, Lanes, Mixed, Place, Shard, Sharded, Shards, Shrinking, Stagger,
    UntilSplit,
};

/// An entry of the directory: which shard, and how deep it is.
#[derive(Clone, Copy)]
pub struct Entry {
    pub shard: usize,
    pub depth: u32,
}

pub const ROOT: Entry = Entry { shard: 0, depth: 0 };

pub struct Grove<const WIDE: bool = false> {
    pub room: Sharded<WIDE>,
}

impl<const WIDE: bool> World for Grove<WIDE> {
    fn of_shards(roots: usize) -> Self {
        let geometry = Geometry::new(lanes::<WIDE>(), roots, 8);
        let (stagger, own_bytes, max_bytes) = (Stagger::NONE, 0, usize::MAX);
        let plan =
            GrowthPlan { geometry, stagger, own_bytes, max_bytes, expected_growth: 1.0, rate: 1.0 };
        Grove { room: Sharded::of(plan) }
    }

    fn check(&self) {
        for bits in 0..4 {
            let (shard, place) = self.shard(items_in::<WIDE>(bits, 2).next().unwrap());
            for bucket in [0, 2, 4, 6].map(Bucket) {
                let look = shard.look(Place { first: bucket, ..place });
                assert_ne!(look, None, "a version stayed odd");
            }
        }
    }
}

impl<const WIDE: bool> Grove<WIDE> {
    pub fn shard(&self, hash: Mixed) -> (Shard<'_, UntilSplit<'_, WIDE>>, Place) {
        self.room.locate(hash)
    }

    /// Puts an item into its first bucket.
    pub fn fill(&self, hash: Mixed) {
        let (shard, place) = self.shard(hash);
        let locked = shard.lock_one(place.first).unwrap();
        assert!(shard.fill_locked(&locked, place.first, place.fp));
    }

    /// Puts an item into its first bucket, and makes its shard count as half full.
    pub fn put(&self, hash: Mixed) {
        self.fill(hash);
        self.pretend(hash);
    }

    /// Adds eight to the count of the item's shard, which then counts as half full.
    pub fn pretend(&self, hash: Mixed) {
        let (shard, place) = self.shard(hash);
        let locked = shard.lock_one(place.first).unwrap();
        shard.add_items(&locked, place.first, 8);
    }

    /// Fills a bucket of an item's shard with items that no model looks for.
    pub fn stuff(&self, hash: Mixed, bucket: Bucket) {
        let (shard, _) = self.shard(hash);
        let locked = shard.lock_one(bucket).unwrap();
        for number in 1000.. {
            let fp = place_in::<WIDE>(Mixed(number << 20), 0).fp;
            if !shard.fill_locked(&locked, bucket, fp) {
                return;
            }
        }
    }

    pub fn split(&self, hash: Mixed, entry: Entry) {
        self.split_as_seen(hash, entry.depth, entry).expect("a full shard was not split");
    }

    /// Splits the shard that owned the item when this entry was in the list of this level.
    pub fn split_as_seen(&self, hash: Mixed, level: u32, entry: Entry) -> Result<(), Full> {
        let entry = self.room.entry(entry.shard, entry.depth);
        self.room.split_as_seen(hash, level, entry)
    }

    pub fn copies(&self, hash: Mixed) -> usize {
        let (shard, place) = self.shard(hash);
        shard.count(place).unwrap()
    }
}

fn lanes<const WIDE: bool>() -> Lanes {
    if WIDE { Lanes::of_wide(64) } else { Lanes::of_bits(32) }
}

pub fn shrinking() -> Shrinking<false> {
    Shrinking::new(lanes::<false>(), 1.0)
}

pub fn place(hash: Mixed, depth: u32) -> Place {
    place_in::<false>(hash, depth)
}

pub fn place_in<const WIDE: bool>(hash: Mixed, depth: u32) -> Place {
    Shrinking::<WIDE>::new(lanes::<WIDE>(), 1.0).place(hash, hash.0, depth)
}

/// Returns the items whose hashes begin with these bits, and whose buckets are in two stripes.
pub fn items(bits: u64, count: u32) -> impl Iterator<Item = Mixed> {
    items_in::<false>(bits, count)
}

/// The same for buckets of this kind.
pub fn items_in<const WIDE: bool>(bits: u64, count: u32) -> impl Iterator<Item = Mixed> {
    let hashes = (1..).map(move |number: u64| {
        let random = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        Mixed(bits << (64 - count) | random >> count)
    });
    hashes.filter(|hash| {
        let Place { first, second, .. } = place_in::<WIDE>(*hash, 0);
        first.0 / 2 != second.0 / 2
    })
}

pub fn item(bits: u64, count: u32) -> Mixed {
    items(bits, count).next().unwrap()
}

pub fn split_root<const WIDE: bool>(grove: &Grove<WIDE>, hash: &Mixed) {
    grove.split(*hash, ROOT);
}

pub fn there_once<const WIDE: bool>(grove: &Grove<WIDE>, hash: &Mixed) {
    assert_eq!(grove.copies(*hash), 1, "an item is not there once after a split");
}
