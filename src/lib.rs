//! koel answers "have we seen this?" for many threads at once. It is a concurrent cuckoo filter: an approximate set with
//! deletion, at 8 to 38 bits per item, that never loses an item and can be saved while its threads go on.
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
//! assert!(new > 990); // all of them, unless a false positive (0.012 %) hid one
//! ```
//!
//! # Where to start
//!
//! | a set | begins with |
//! |---|---|
//! | of a known size | [`ConcurrentCuckooFilter::with_capacity`]`(1_000_000)` |
//! | that [grows](guide::growth) | [`builder()`](ConcurrentCuckooFilter::builder)[`.seen_set()`](Builder::seen_set)`.build()?` |
//! | that lasts: a kill takes [nothing that a call has answered](guide::durable) | `DurableFilter::open("seen.koel", builder.hasher(StableHash::random()))?` |
//! | that [forgets](ConcurrentCuckooFilter#forgetting) an item after a time | `builder`[`.forgets_after`](Builder::forgets_after)`(Duration::from_secs(3_600)).build()?` |
//!
//! * [`insert_if_absent`](ConcurrentCuckooFilter::insert_if_absent) adds an item once, and says whether it was new. An
//!   item is anything that can be hashed, or its hash, as [`Prehashed`].
//! * A filter with a [`StableHash`] can be [saved and loaded](guide::files).
//! * The methods that end in `_many` process [many items at once](guide::batches), which is faster in a large table;
//!   those that begin with `par_` do so on all threads.
//! * [`union`](ConcurrentCuckooFilter::union) merges another filter into this one.
//! * [`rates`](guide::rates) has the error and the memory of each size of fingerprint, and [`Builder::plan`] those of a
//!   filter before it is built.
//!
//! # Features
//!
//! * `rayon` (default): the methods that begin with `par_`. They run in the caller's rayon pool.
//! * `durable` (default, on Unix): `DurableFilter`.
//! * `serde`: filters that can be saved are `Serialize` and `Deserialize`, as the bytes of their files; [`Stats`] and
//!   [`SnapshotInfo`] are `Serialize`, as their fields.
//!
//! # Systems
//!
//! Rust 1.93 and later. koel is tested on Linux on x86-64. Its unit tests also pass on Linux on 64-bit Arm, in an
//! emulator. For Windows, macOS, FreeBSD, and Linux on 32-bit processors, it has been compiled (by `cargo check`), and
//! not run. Where there is no Unix, a save does not keep the owner of the file, nor sync its folder, nor remove what a
//! killed save has left.
//!
//! # What you can rely on
//!
//! * **No false negatives.** An inserted item is found until it is removed: while other items are moved, inserted and
//!   removed, while the filter grows or shrinks, and on machines that reorder memory accesses.
//! * **Nothing is lost.** An insert that is refused ([`Full`]) has changed nothing, and no other item is dropped for it.
//!   Only a filter that [grows](guide::growth) may have grown in the attempt.
//! * **One winner.** Of racing [`insert_if_absent`](ConcurrentCuckooFilter::insert_if_absent) calls with one new item,
//!   exactly one returns `true`. Two items with the same fingerprint and buckets are one item to any filter: that is
//!   what a false positive is.
//! * **No overdraft.** Successful removals never exceed successful inserts. In a filter that grows, this holds if only
//!   items that were inserted are removed. When no other operation runs, `len` is inserts minus removals.
//! * **The capacity fits.** A filter holds [`capacity`](ConcurrentCuckooFilter::capacity) distinct items, at the
//!   false-positive rate that was asked for. Items are placed by chance: less than one filter in a million refuses one
//!   earlier. The table is not rounded up to a power of two: from 16 MiB on, 2 or 3 % of it is room to spare, and just
//!   above 1 MiB up to 8 %. A filter that grows takes more items than its capacity, and refuses them for
//!   [few reasons](ConcurrentCuckooFilter#when-it-returns-full).
//! * **Saves are atomic.** Everything inserted before a [`save`](ConcurrentCuckooFilter::save) began is in the file. If
//!   the save is killed or fails, the old file is still there, or the new one is complete.
//! * **Panics are contained.** A panic in an item's `Hash` leaves nothing locked and nothing changed; of a batch, other
//!   items may be in. koel itself panics on no input, except for `with_capacity` beyond memory.
//! * **Batches are loops.** A `_many` method returns what a loop over the single method would have returned, with two
//!   exceptions: a batch during which a tick begins may go on as before it, and a batch in a growing filter may see other
//!   items refused when memory runs out.
//!
//! # Consistency
//!
//! All methods take `&self`, and may be called by any number of threads at once.
//!
//! * **Operations on one item are linearizable**: each takes effect at one moment between its call and its return. An
//!   operation sees every operation on its item that happened before it, by whatever synchronisation your threads use.
//!   A thread that finds an item also sees everything that the inserting thread did before the insert.
//! * **Operations on different items have no common order.** Two threads that each insert an item, and then look for
//!   the other thread's item, may both miss it.
//! * **A batch is not atomic.** Other threads see a loop in an unspecified order.
//! * **What goes through the whole filter is no snapshot.** `len`, `stats`, `clear`, `save`, `try_clone`, pieces and
//!   `union` visit one part after another. They meet every item that was there before they began and stays. They may or
//!   may not meet what other threads insert and remove meanwhile. When nothing else runs, they are exact.
//! * **A tick takes effect at once** for operations that change, count or date an item. Until it has passed, `contains`
//!   and figures of the whole filter may still meet items that expire.
//!
//! koel is not lock-free: [which operations wait, and for what](guide::progress).
//!
//! **In async code**, operations on one item may be called as they are: they wait for other threads for microseconds,
//! and never across an `await`. Saving, loading, opening, closing, shrinking, ticks and large batches take as long as
//! the filter is large, and those of a `DurableFilter` with `SyncPolicy::Each` wait for the disk, so call them where
//! blocking is allowed, such as in tokio's `spawn_blocking`.
//!
//! # Inside
//!
//! The [guide] also has pages for those who read the sources: the [design](guide::design), and why a lookup without a
//! lock stays right while [items move](mod@guide::kick), [expire](mod@guide::sweep), and [shards are
//! split](mod@guide::split).

#![deny(unsafe_code)]
#![warn(unreachable_pub)]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(not(any(loom, shuttle)), warn(missing_docs))]

mod backend;
pub mod disk;
#[cfg(all(unix, feature = "durable"))]
mod durable;
mod error;
mod filter;
#[cfg(any(doc, doctest))]
pub mod guide;
mod hash;
#[cfg(any(loom, all(unix, feature = "durable")))]
mod journal;
mod layout;
mod shard;
mod snapshot;
mod stats;
mod sync;
mod table;
mod union;
mod window;

#[cfg(all(unix, feature = "durable"))]
pub use durable::{DurableError, DurableErrorKind, DurableFilter, DurableOptions, SyncPolicy};
pub use error::{BuildError, BuildErrorKind, Error, Full, FullKind, UnionError, UnionErrorKind};
pub use filter::ConcurrentCuckooFilter;
pub use filter::builder::{Builder, Plan};
pub use hash::{
    Key, PersistentHasher, Prehashed, RandomHasher, RandomState, StableHash, StableHasher,
};
pub use snapshot::{
    Piece, PieceLoader, SaveReport, SnapshotError, SnapshotErrorKind, SnapshotFile, SnapshotInfo,
    UnreadChanges,
};
pub use stats::Stats;
pub use window::Window;

#[cfg(all(doctest, feature = "rayon"))]
#[doc = include_str!("../README.md")]
struct Readme;
