//! koel is a set that answers "have we seen this?" for many threads at once: a cuckoo filter with
//! deletion, at 8 to 38 bits an item, that never loses an item, and can be saved while its threads go on.
//!
//! ```
//! use koel::ConcurrentCuckooFilter;
//! use std::sync::Arc;
//!
//! let seen = Arc::new(ConcurrentCuckooFilter::with_capacity(1_000_000));
//!
//! let workers: Vec<_> = (0..4)
//!     .map(|_| {
//!         let seen = Arc::clone(&seen);
//!         std::thread::spawn(move || {
//!             let urls = (0..1_000).map(|page| format!("https://example.org/{page}"));
//!             urls.filter(|url| seen.insert_if_absent(url).expect("room for a million")).count()
//!         })
//!     })
//!     .collect();
//!
//! // Each page was new to exactly one of the four.
//! let new: usize = workers.into_iter().map(|worker| worker.join().unwrap()).sum();
//! assert_eq!(new, seen.len());
//! assert!(new > 990); // at a false-positive rate of 0.012 %, all of them but for bad luck
//! ```
//!
//! Start at [`ConcurrentCuckooFilter`]; a [`Builder`] chooses another false-positive rate or
//! hasher. Who does not know how many items will come takes a [`GrowingCuckooFilter`]. What has to outlive
//! the process gets a [`StableHash`], and can be [saved](ConcurrentCuckooFilter::save). Whoever has many items at once asks with one of the forms that end in `_many`, which are
//! faster in a large table, or on all threads with one that begins with `par_`.
//!
//! # Features
//!
//! `rayon`, a default: the forms that begin with `par_`. They run in the rayon pool that calls them.
//!
//! # What it promises
//!
//! * What was inserted and not removed is found, while other items are moved, added and removed.
//! * An insert that is refused ([`Full`]) has changed nothing, and no other item is lost for it.
//! * Of racing [`insert_if_absent`](ConcurrentCuckooFilter::insert_if_absent) calls with a new
//!   item, exactly one returns `true`.
//! * No more copies can be removed than were inserted (of what was inserted, when the filter grows).
//! * [`capacity`](ConcurrentCuckooFilter::capacity) distinct items fit, any number of them, in a
//!   table that is not rounded up to a power of two (but for less than one filter in a million);
//!   and the false-positive rate at capacity is at most the one that was asked for.
//! * What had been inserted before a [`save`](ConcurrentCuckooFilter::save) began is in the file, and the file is
//!   there as a whole or not at all.
//! * A panic in an item's `Hash` leaves nothing locked and nothing changed (of a batch, other items
//!   may be in).
//!
//! A [`GrowingCuckooFilter`] promises the same, and takes more items than its capacity as long as there is
//! memory.
//!
//! What it does not promise is that an unlocked read is all that a lookup ever does: see the
//! progress of each operation [below](#progress).
//!
//! # Inside
//!
//! ```text
//! Filter    routes a hash to a shard
//!  └ Shard      at most 2^17 buckets (1 MiB): a whole cuckoo table; both buckets of an item are in one
//!     └ Segment     512 buckets (4 KiB), guarded by one stripe: a lock, a version, a count of items
//!        └ Bucket      one 64-bit atomic word, split in equal lanes
//!           └ Lane        one fingerprint, or 0 when empty
//! ```
//!
//! | ask for | bits × slots | load at capacity | rate at capacity | bits an item |
//! |---|---|---|---|---|
//! | 0.061 and more | 8 × 8 | 96.5 % | 6.1 % | 8.3 |
//! | 0.027 | 9 × 7 | 95.6 % | 2.6 % | 9.6 |
//! | 0.012 | 10 × 6 | 95.2 % | 1.1 % | 11.3 |
//! | 0.0024 | 12 × 5 | 94.4 % | 0.23 % | 13.6 |
//! | 0.00012 | 16 × 4 | 93.0 % | 0.011 % | 17.3 |
//! | 2.7e-6 | 21 × 3 | 90.4 % | 2.6e-6 | 23.7 |
//! | 8.0e-10 | 32 × 2 | 83.8 % | 7.8e-10 | 38.3 |
//!
//! (Those of a filter for 1,000,003 items, everything that it holds counted. Smaller ones have more
//! to spare, since chance treats them less evenly: a filter for 1,000 items takes 20.0 bits an item
//! at 16 bits a fingerprint.)
//!
//! A lookup reads the version of one of its two stripes, then its two buckets. A fingerprint found
//! is proof enough. One not found counts only if the version was even and is still the same: then
//! the item was not being moved, since a move changes the versions of both. [`kick`](mod@kick) tells why that is
//! right while an item is on its way from one bucket to the other.
//!
//! A filter that grows has equal shards of 64 KiB, and a directory in front of them: the first bits of a hash
//! lead to the shard. It reads the directory's entry before and after, too, and believes neither a miss nor
//! a hit if that is another; [`split`](mod@split) tells why.
//!
//! # Progress
//!
//! | operation | other threads |
//! |---|---|
//! | `contains`; `remove` and `count` of what is not there | takes no lock. If items move in the segment of its first bucket at each of 17 looks, it takes the locks of both its segments; so it waits for a thread that stopped in the middle of a move, and is not starved by ones that go on |
//! | `insert` | locks one stripe, and may wait for its holder; a full pair of buckets is searched around without locks, and then the stripes of the path are locked, in ascending order |
//! | `insert_if_absent`; `remove` and `count` of what is there | locks the two stripes of the item's buckets, which mostly are one; a path as above. `insert_if_absent` of what is there takes no lock, but if the item moves during its one look |
//! | `clear` | locks all stripes of a shard, one shard at a time |
//! | an insert that splits a shard | locks all stripes of that shard, of 64 KiB. Others that ask for items of it wait until the split is over; nobody else does, unless they split a shard as well and need memory at the same moment |
//! | `contains_many` and the other many-forms, also in parallel | as many single ones; no lock is held for longer than by one of them |
//! | `save`, `write_to` | lock all stripes of a shard while it is copied, one shard at a time; none while they write |
//! | `len`, `stats` | take no lock |
//!
//! Who waits for a lock spins, then yields, then queues up and sleeps; others may overtake it. A path
//! that was changed by others before it was locked is searched again; each time, one of them has got
//! something done, so all together get on, but no bound is given for one of them. While others
//! write, an insert may be refused though there was room at every moment, since a search looks at one
//! bucket after the other.
//!
//! # Reading order
//!
//! For those who read the source: `filter` → `by_hash` → `room` → `shard` → [`kick`](mod@kick) (the essay) →
//! `path`; `table`, `stripe` and `lock` below them; `bucket`, `geometry` and `sizing` are plain
//! arithmetic. What a shard needs to know of its filter is its `lease`. Of the two rooms, `fixed` is a
//! table, and `growing` has a `directory`, `tables`, and lanes by the rules of `aging`;
//! [`split`](mod@split) is its essay.
//! Files: `files` (the face) → `snapshot/write`, `read` and `load` → [`format`](mod@format), which tells what is in
//! them; `replace` puts a new file in the place of an old one; `stable_hash`.
//! Batches: `many` and `parallel` (the faces) → `bulk` → `ahead`. `memory` has the two hints to the
//! machine that take `unsafe`. Each file with atomics has a table of its orderings, and names the test that fails without them.
//! `loom-tests` runs these very files through every interleaving of small models, `shuttle-tests`
//! through random schedules of many threads, whose histories have to be linearizable.

#![deny(unsafe_code)]
#![cfg_attr(not(any(loom, shuttle)), warn(missing_docs))]

mod error;
mod filter;
mod layout;
mod room;
mod shard;
mod snapshot;
mod stable_hash;
mod stats;
mod sync;
mod table;

#[cfg(feature = "rayon")]
pub use error::Refused;
pub use error::{BuildError, BuildErrorKind, Full};
pub use filter::builder::{Builder, GrowingBuilder};
pub use filter::{ConcurrentCuckooFilter, GrowingCuckooFilter};
pub use room::Room;
pub use room::fixed::Fixed;
pub use room::growing::Growing;
#[cfg(doc)]
pub use room::split;
#[cfg(doc)]
pub use shard::kick;
#[cfg(doc)]
pub use snapshot::format;
pub use snapshot::{SaveReport, SnapshotError, SnapshotErrorKind};
pub use stable_hash::{PersistentHasher, StableHash, StableHasher};
pub use stats::Stats;

/// The default hasher of a filter: ahash with random keys.
#[doc(no_inline)]
pub use ahash::RandomState;

/// The parts, for the models that check them.
#[cfg(any(loom, shuttle))]
#[doc(hidden)]
pub mod internals {
    pub use crate::filter::bulk::write as write_batch;
    pub use crate::layout::aging::Aging;
    pub use crate::layout::bucket::{Fingerprint, Lane, Lanes};
    pub use crate::layout::geometry::{Bucket, Geometry, Mixed, Place};
    pub use crate::layout::sizing::GrowthPlan;
    pub use crate::room::directory::{Directory, Entry, Tenure};
    pub use crate::room::until_split::{Split, UntilSplit};
    pub use crate::room::{contains, insert, insert_if_absent, remove};
    pub use crate::shard::Shard;
    pub use crate::shard::kick::{Copies, Outcome, make_room, make_room_if_absent, walk};
    pub use crate::shard::lease::{Always, Refusal};
    pub use crate::shard::path::{Path, Step, find};
    pub use crate::sync::AtomicU64;
    #[cfg(loom)]
    pub use crate::sync::set_queue_first;
    pub use crate::table::Table;
    pub use crate::table::stripe::{Locks, Many, Moving, One, Stamp, StripeSet, Stripes, Two};
}

#[cfg(all(doctest, feature = "rayon"))]
#[doc = include_str!("../README.md")]
struct Readme;
