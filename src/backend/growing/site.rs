//! The site of a shard: where it is, and what is known of it beside its words.
//!
//! An [`Entry`] of the [directory](crate::backend::growing::directory) is the address of a shard's site, with the
//! shard's depth in bits that are zero in every such address. So a lookup gets from the entry to the shard with one
//! load, and address and depth change together.

use crate::layout::either;
use crate::layout::geometry::Geometry;
use crate::layout::shrinking::{GROWING_BUCKETS, Lost, Shrinking};
use crate::layout::stamps::Moment;
use crate::layout::stamps::by_stamp::ByStamp;
use crate::rule::rule;
use crate::shard::Shard;
use crate::shard::permanent::Permanent;
use crate::shard::whole::{clear, fill, read_shard};
use crate::sync::Gauge;
use crate::table::Table;
use crate::table::shard_memory::{ShardMemory, Versions, Words};
use std::ptr::{NonNull, null_mut};
use std::sync::Arc;

/// A shard of a table. Lookups read this, so it is never written.
///
/// It has a share in the table, and the addresses of what lookups read there. So a lookup gets from here to the words
/// with one load. By way of the table it takes two.
#[repr(align(64))] // A line of the cache. Its address leaves six bits for a depth.
pub struct Site {
    table: Arc<Table>,
    /// The first of as many as the buckets have words, which lie one after another.
    words: NonNull<Words>,
    versions: NonNull<Versions>,
    words_of_a_bucket: u32,
    /// The shard's number in the table.
    number: u32,
    /// First how many more absent items the lanes of the shard match than its counted lanes would if they were new:
    /// the [match_weight](crate::layout::shrinking::Shrinking::match_weight) of all lanes, less the number of those that are
    /// not exhausted. It is set under all locks of the shard. A removal, which holds one of them, takes its lane off,
    /// and so does a tick.
    ///
    /// Then the balance of the shard in the [ledger](crate::backend::growing::ledger), by the stamps that there are.
    figures: Box<[Gauge]>,
}

const _: () = assert!(size_of::<Site>() == 64);

/// The number of figures of each shard.
fn figures(geometry: &Geometry) -> usize {
    1 + geometry.lanes().most_stamps() as usize + 1
}

// SAFETY: it is a share of the table, and lends references to parts of it.
#[allow(unsafe_code)]
unsafe impl Send for Site {}
// SAFETY: as above.
#[allow(unsafe_code)]
unsafe impl Sync for Site {}

impl Site {
    /// The site of a shard of this table, if it has that shard, and if there is memory for its figures.
    pub fn new(table: &Arc<Table>, number: usize) -> Option<Self> {
        let (count, mut all) = (figures(table.geometry()), Vec::<Gauge>::new());
        all.try_reserve_exact(count).ok()?;
        all.resize_with(count, Gauge::default);
        let (words, versions) = ShardMemory::find(table, number * GROWING_BUCKETS as usize)?;
        Some(Site {
            words: NonNull::from(words).cast(),
            versions: NonNull::from(versions),
            words_of_a_bucket: words.len().try_into().ok()?,
            number: number.try_into().ok()?,
            figures: all.into(),
            table: Arc::clone(table),
        })
    }

    /// The memory that the sites of a table of this geometry take.
    pub fn bytes(geometry: &Geometry) -> usize {
        geometry.shards() * (size_of::<Site>() + figures(geometry) * size_of::<Gauge>())
    }

    /// What lookups read of the shard, whose buckets are wide or are not.
    #[inline(always)]
    pub fn memory<const WIDE: bool>(&self) -> ShardMemory<'_> {
        // SAFETY: the addresses are those of parts of the table, of which there are so many. The table stays
        // where it is and is not dropped while this has a share of it, and nobody may change it meanwhile, since
        // a share is only ever lent for reading.
        #[allow(unsafe_code)]
        let (words, all, versions) = unsafe {
            let count = self.words_of_a_bucket as usize;
            let all = std::slice::from_raw_parts(self.words.as_ptr(), count);
            (self.words.as_ref(), all, self.versions.as_ref())
        };
        // With this, the compiler knows that all that follows is within.
        assert!(!WIDE || all.len() == 2, "a shard of wide buckets");
        ShardMemory::new(words, all, versions)
    }

    #[inline]
    pub fn table(&self) -> &Table {
        &self.table
    }

    #[inline]
    fn number(&self) -> usize {
        self.number as usize
    }

    /// The table's index of the shard's first bucket.
    #[inline]
    pub fn base(&self) -> usize {
        self.number() * GROWING_BUCKETS as usize
    }

    /// The table's index of the shard's first stripe.
    pub fn first_stripe(&self) -> usize {
        Table::stripe_of(self.base())
    }

    /// The shard itself. It is the caller's concern which items it owns.
    pub fn shard<const WIDE: bool>(&self) -> Shard<'_, Permanent<WIDE>> {
        Shard::leased(self.table(), self.base(), Permanent)
    }

    /// Fills the shard, which is empty, with a copy that holds `items` items.
    pub fn fill(&self, from: &[u64], items: i64) {
        fill(self.table(), self.number(), from, items);
    }

    /// Reads the words of the shard, which no other thread knows.
    pub fn read(&self, to: &mut [u64]) {
        read_shard(self.table(), self.number(), to);
    }

    /// Empties the shard, which no other thread knows.
    pub fn clear(&self) {
        clear(self.table(), self.number());
    }

    /// The balance of the shard in the [ledger](crate::backend::growing::ledger).
    pub fn balance(&self) -> ByStamp {
        ByStamp::of(self.figures[1..].iter().map(|items| items.get().cast_signed()))
    }

    /// Records the figures of a shard that was loaded, which no other thread knows.
    pub fn record(&self, surplus: u64, balance: &ByStamp) {
        self.surplus_gauge().set(surplus);
        let figures = self.figures[1..].iter().zip(balance.figures());
        figures.for_each(|(own, items)| own.set(items.cast_unsigned()));
    }

    /// The part of it that has this stamp. It changes under the ledger's lock.
    pub fn balance_of(&self, stamp: usize) -> &Gauge {
        &self.figures[1 + stamp]
    }

    /// The gauge of how many more absent items the lanes match than the counted lanes would if they were new.
    pub fn surplus_gauge(&self) -> &Gauge {
        &self.figures[0]
    }

    pub fn surplus(&self) -> u64 {
        self.surplus_gauge().get()
    }

    /// How many absent items the lanes of the shard match, in units of a new lane.
    pub fn match_weight(&self) -> f64 {
        let items = either!(self.table().is_wide(), WIDE => self.shard::<WIDE>().all_items());
        items.max(0) as f64 + self.surplus() as f64
    }

    /// Takes off what has expired in these words, which are those of whole buckets. Returns how many of the lanes are
    /// exhausted. Their items stay on the ledger until the tick ends.
    pub fn expiring<const WIDE: bool>(
        &self,
        shrinking: &Shrinking<WIDE>,
        words: &[u64],
        now: Moment,
    ) -> i32 {
        // Mostly all lanes are as they were inserted, and there is nothing more to find out.
        if self.surplus() == 0 {
            return 0;
        }
        let (lanes, mut lost) = (shrinking.lanes(), Lost::default());
        let expiry = lanes.expiry::<WIDE>(now);
        lanes.for_each(words, |bucket| {
            lost = lost + shrinking.lost(lanes.only(bucket, expiry.expired(bucket)));
        });
        self.surplus_gauge().take(lost.surplus);
        lost.exhausted as i32
    }

    /// The number of lanes that are exhausted, by the words of a moment ago.
    pub fn exhausted<const WIDE: bool>(&self, shrinking: &Shrinking<WIDE>) -> usize {
        // Mostly there is none, since each adds so much to this.
        if self.surplus() >> shrinking.suffix_bits() == 0 {
            return 0;
        }
        let of_bucket = |words| shrinking.exhausted(words).len();
        self.shard::<WIDE>().all_words().map(of_bucket).sum()
    }

    /// Erases all lanes that are exhausted.
    pub fn erase_exhausted<const WIDE: bool>(&self, shrinking: &Shrinking<WIDE>) {
        let shard = self.shard::<WIDE>();
        let Ok(locked) = shard.lock_all();
        let mut lost = Lost::default();
        shard.rewrite(&locked, |words| {
            let gone = rule!(
                "what_has_come_is_erased_with_what_is_left_over",
                shrinking.exhausted(words),
                shrinking.lanes().taken(words.heads)
            );
            lost = lost + shrinking.lost(shrinking.lanes().only(words, gone));
            gone.fold(words, |words, lane| shrinking.lanes().without_whole(words, lane))
        });
        self.surplus_gauge().take(lost.surplus);
    }
}

/// The lowest bits of an entry are the depth.
const DEPTH: usize = 31;

/// The site of a shard and the shard's depth, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry(*mut Site);

impl Entry {
    /// In place of an entry.
    pub const NONE: Entry = Entry(null_mut());

    /// The entry of a site that stays where it is for as long as any of its entries is used.
    pub fn new(site: &Site, depth: u32) -> Self {
        let site = std::ptr::from_ref(site).cast_mut();
        Entry(site.map_addr(|address| address | depth as usize & DEPTH))
    }

    #[inline]
    pub fn of_word(word: *mut Site) -> Self {
        Entry(word)
    }

    #[inline]
    pub fn word(self) -> *mut Site {
        self.0
    }

    #[inline]
    pub fn depth(self) -> u32 {
        (self.0.addr() & DEPTH) as u32
    }

    /// Returns the address of the site.
    #[inline]
    pub fn address(self) -> *const Site {
        self.0.map_addr(|address| address & !DEPTH)
    }
}
