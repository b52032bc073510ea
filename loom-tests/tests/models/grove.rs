//! A growing filter of tiny shards.
//!
//! A shard has eight buckets of two lanes. It is half full, and may be split, when its count says
//! eight items. The models add to the count without inserting items; a split counts again.

use crate::toy::{MISSED, NOT_ONCE, World, lanes};
use koel_under_loom::Full;
use koel_under_loom::internals::{
    Backend, Bucket, Fingerprint, Geometry, Growing, GrowingShards, Known, Layout, Mixed, Moment,
    Place, Shard, Shards, Shrinking, Site, Ticking, UntilSplit,
};

/// An entry of the directory: which shard, and how deep it is.
#[derive(Clone, Copy)]
pub struct Entry {
    pub shard: usize,
    pub depth: u32,
}

pub const ROOT: Entry = Entry { shard: 0, depth: 0 };

/// One half of the first shard.
pub fn half_of_root(upper: u64) -> Entry {
    Entry { shard: upper as usize, depth: 1 }
}

pub const LEFT: &str = "something that expired is left";

pub struct Grove<const WIDE: bool = false, const FORGETS: bool = false> {
    pub backend: Backend,
}

impl<const WIDE: bool, const FORGETS: bool> World for Grove<WIDE, FORGETS> {
    fn of_shards(roots: usize) -> Self {
        let geometry = Geometry::new(lanes::<WIDE, FORGETS>(), roots, 8);
        let layout = Layout::growing(geometry, 1, 1.0, 1.0);
        Grove { backend: Backend::new(layout).expect("memory") }
    }

    fn check(&self) {
        if FORGETS {
            let now = self.ticking().clock().now();
            for site in (0..).map_while(|number| self.room().site_of(number)) {
                let shard = site.shard();
                let mut words = shard.recent_words(shard.buckets());
                let lanes = lanes::<WIDE, FORGETS>();
                assert!(words.all(|words| lanes.expired(words, now).is_empty()), "{LEFT}");
            }
            return;
        }
        for bits in 0..4 {
            let (shard, place) = self.shard(items_in::<WIDE>(bits, 2).next().unwrap());
            for bucket in [0, 2, 4, 6].map(Bucket) {
                let look = shard.look(Place { first: bucket, ..place });
                assert_ne!(look, None, "a version stayed odd");
            }
        }
    }
}

impl<const WIDE: bool, const FORGETS: bool> Grove<WIDE, FORGETS> {
    pub fn shards(&self) -> GrowingShards<'_, WIDE> {
        GrowingShards(self.room())
    }

    /// What only a growing filter has.
    pub fn room(&self) -> &Growing {
        let Backend::Growing(growing) = &self.backend else { unreachable!() };
        growing
    }

    pub fn shard(&self, hash: Mixed) -> (Shard<UntilSplit<'_, Known<WIDE>>>, Place) {
        self.shards().locate(hash)
    }

    /// Puts a fingerprint into a bucket of the item's shard. Returns whether there was room.
    pub fn fill_with(&self, hash: Mixed, bucket: Bucket, fp: Fingerprint) -> bool {
        let (shard, _) = self.shard(hash);
        let locked = shard.lock_one(bucket).unwrap();
        shard.fill_locked(&locked, bucket, fp)
    }

    /// Fills a lane of the item's shard, with a fingerprint that has lost all bits but `left`, and which the item
    /// matches.
    pub fn fill_with_bits(&self, hash: Mixed, bucket: Bucket, left: u32) {
        // A lane that forgets has fifteen bits of window above two of stamp, any other sixteen of window.
        let last = if FORGETS { 1 << 16 } else { 1 << 15 } >> left;
        let fp = self.shard(hash).1.fp.head() & !(2 * last - 1) | last;
        assert!(self.fill_with(hash, bucket, Fingerprint::new(fp).unwrap()));
        if left == 0 {
            self.add_items(hash, -1);
            self.room().has_void();
        }
    }

    /// Puts an item into its first bucket.
    pub fn fill(&self, hash: Mixed) {
        let (_, Place { first, fp, .. }) = self.shard(hash);
        assert!(self.fill_with(hash, first, fp));
    }

    /// Puts an item into its first bucket, and makes its shard count as half full.
    pub fn put(&self, hash: Mixed) {
        self.fill(hash);
        self.pretend(hash);
    }

    /// Adds eight to the count of the item's shard, which then counts as half full.
    pub fn pretend(&self, hash: Mixed) {
        self.add_items(hash, 8);
    }

    pub fn add_items(&self, hash: Mixed, items: i32) {
        let (shard, place) = self.shard(hash);
        let locked = shard.lock_one(place.first).unwrap();
        shard.add_items(&locked, place.first, items);
    }

    /// Fills a bucket of an item's shard with items of a half that no model looks for.
    pub fn stuff(&self, hash: Mixed, bucket: Bucket, half: u64) {
        let others = (1_000..).map(|number| Mixed(half << 63 | number << 20));
        let mut fps = others.map(|other| place_in::<WIDE>(other, 0).fp);
        while self.fill_with(hash, bucket, fps.next().unwrap()) {}
    }

    pub fn split(&self, hash: Mixed, entry: Entry) {
        self.split_as_seen(hash, entry.depth, entry).expect("a full shard was not split");
    }

    /// Splits the shard that owned the item when this entry was in the list of this level.
    pub fn split_as_seen(&self, hash: Mixed, level: u32, entry: Entry) -> Result<(), Full> {
        let entry = self.room().entry(entry.shard, entry.depth);
        self.room().split_as_seen(hash, level, entry).map(|_| ())
    }

    pub fn insert(&self, hash: Mixed) {
        self.backend.insert(hash).expect("there is room");
    }

    pub fn insert_if_absent(&self, hash: Mixed) -> bool {
        self.backend.insert_if_absent(hash).expect("there is room")
    }

    pub fn remove(&self, hash: Mixed) -> bool {
        self.backend.remove(hash)
    }

    pub fn copies(&self, hash: Mixed) -> usize {
        loop {
            let (shard, place) = self.shard(hash);
            if let Ok(copies) = shard.count(place) {
                return copies;
            }
        }
    }

    pub fn ticking(&self) -> &Ticking {
        self.backend.ticking().expect("a filter that forgets")
    }

    pub fn set_clock(&self, tick: u64) {
        self.ticking().clock().set(Moment::of_tick(tick));
    }

    pub fn begin_tick(&self) {
        assert!(self.backend.begin_tick(), "a tick is passing");
    }

    pub fn finish_tick(&self) {
        self.backend.finish_tick();
    }

    pub fn site(&self, number: usize) -> &Site {
        self.room().site_of(number).expect("a shard")
    }
}

pub fn shrinking() -> Shrinking {
    Shrinking::new(lanes::<false, false>(), 1.0)
}

pub fn place(hash: Mixed, depth: u32) -> Place {
    place_in::<false>(hash, depth)
}

fn place_in<const WIDE: bool>(hash: Mixed, depth: u32) -> Place {
    Shrinking::new(lanes::<WIDE, false>(), 1.0).place(hash, hash.0, depth, WIDE)
}

/// Different numbers with random upper bits.
pub fn random() -> impl Iterator<Item = u64> {
    (1..).map(|number: u64| number.wrapping_mul(0x9E37_79B9_7F4A_7C15))
}

/// Returns the items whose hashes begin with these bits, and whose buckets, of this kind, are in two stripes.
pub fn items_in<const WIDE: bool>(bits: u64, count: u32) -> impl Iterator<Item = Mixed> {
    random().map(move |random| Mixed(bits << (64 - count) | random >> count)).filter(|hash| {
        let Place { first, second, .. } = place_in::<WIDE>(*hash, 0);
        first.0 / 2 != second.0 / 2
    })
}

pub fn item(bits: u64, count: u32) -> Mixed {
    items_in::<false>(bits, count).next().unwrap()
}

/// Puts an item of this half into a shard that may be split.
pub fn in_whole(grove: &Grove, half: u64) -> Mixed {
    grove.put(item(half, 1));
    item(half, 1)
}

/// The same without the item itself.
pub fn into_whole(grove: &Grove, half: u64) -> Mixed {
    grove.pretend(item(half, 1));
    item(half, 1)
}

/// Looks once, without locks. The result may be undecided, but not wrong.
pub fn look<const WIDE: bool>(grove: &Grove<WIDE>, hash: &Mixed) {
    let (shard, place) = grove.shard(*hash);
    assert_ne!(shard.look(place), Some(false), "{MISSED}");
}

pub fn insert(grove: &Grove, hash: &Mixed) {
    grove.insert(*hash);
}

pub fn remove(grove: &Grove, hash: &Mixed) {
    assert!(grove.remove(*hash), "a present item was not removed");
}

pub fn split_root<const WIDE: bool>(grove: &Grove<WIDE>, hash: &Mixed) {
    grove.split(*hash, ROOT);
}

pub fn there_once<const WIDE: bool>(grove: &Grove<WIDE>, hash: &Mixed) {
    assert_eq!(grove.copies(*hash), 1, "{NOT_ONCE}");
}

pub fn removed(grove: &Grove, hash: &Mixed) {
    assert_eq!(grove.copies(*hash), 0, "a removed item is there");
}
