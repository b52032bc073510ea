//! koel answers "have we seen this?" for many threads at once. It is a concurrent cuckoo filter: an
//! approximate set with deletion, at 8 to 38 bits per item, that never loses an item and can be
//! saved while its threads go on.
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
//! * [`ConcurrentCuckooFilter`] is the filter. Its [`builder`](ConcurrentCuckooFilter::builder) chooses
//!   [the false-positive rate](guide::rates) and the hasher, and whether it has a fixed capacity or
//!   [grows](Builder::growing). Let it grow if you don't know [how many items](guide::growth) to expect.
//! * An item is anything that can be hashed, or its hash, as [`Prehashed`].
//! * [`StableHash`] makes a filter that can be [saved and loaded](guide::files).
//! * `DurableFilter` is opened with its file, and a crash takes [nothing that it has answered](guide::durable).
//! * [`forgets_after`](Builder::forgets_after) makes a filter that forgets an item after a time.
//! * [`union`](ConcurrentCuckooFilter::union) merges another filter into this one.
//! * The methods that end in `_many` process [many items at once](guide::batches), which is faster
//!   in a large table; those that begin with `par_` do so on all threads.
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
//! * **No false negatives.** An inserted item is found until it is removed: while other items are
//!   moved, inserted and removed, and on machines that reorder memory accesses.
//! * **Nothing is lost.** An insert that is refused ([`Full`]) has changed nothing, and no other
//!   item is dropped for it.
//! * **One winner.** Of racing [`insert_if_absent`](ConcurrentCuckooFilter::insert_if_absent) calls
//!   with one new item, exactly one returns `true`. (Two items with the same fingerprint and
//!   buckets are one item to any filter; that is what a false positive is.)
//! * **No overdraft.** Successful removals never exceed successful inserts (of the items that were
//!   inserted, if the filter grows). When no other operation runs, `len` is inserts minus removals.
//! * **The capacity fits.** A filter holds [`capacity`](ConcurrentCuckooFilter::capacity) distinct
//!   items, any number of them, in a table that is not rounded up to a power of two (from 16 MiB on, at most 2 or 3 %
//!   of it is room to spare; just above 1 MiB, up to 8 %), and its false-positive rate is then at most the one you asked for. (Items are placed by chance: less
//!   than one filter in a million refuses an item earlier.)
//! * **Saves are atomic.** Everything inserted before a [`save`](ConcurrentCuckooFilter::save)
//!   began is in the file. If the save is killed or fails, the old file is still there, or the new one is complete.
//! * **Panics are contained.** A panic in an item's `Hash` leaves nothing locked and nothing
//!   changed (of a batch, other items may be in). koel itself panics on no input, except for
//!   `with_capacity` beyond memory.
//! * **Batches are loops.** A `_many` method returns what a loop over the single method would have
//!   returned. (A batch during which a tick begins may go on as before it. In a growing filter, a batch may see other
//!   items refused than a loop when memory runs out.)
//!
//! A filter that [grows](ConcurrentCuckooFilter#growth) promises the same while it does so, with more items than its
//! capacity for as long as there is memory. It refuses an item only for the item's own copies, for memory, or for its
//! limit, and never for other items, but for [rare cases](ConcurrentCuckooFilter#when-it-returns-full): short
//! fingerprints when most items have all their copies, fingerprints that have no bits left, and items that were chosen
//! by someone who knows the hasher's keys. (A filter of fixed size also refuses items whose buckets are full of copies
//! of others.) A refused insert may still have grown the filter.
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
//! ```text
//! Filter    routes a hash to a shard
//!  └ Shard      at most 2^17 buckets (1 or 2 MiB): a complete cuckoo table; it has both buckets of an item
//!     └ Segment     512 buckets (4 or 8 KiB), guarded by one stripe: a lock, a version, a count of items
//!        └ Bucket      one 64-bit atomic word, or two, cut into equal lanes
//!           └ Lane        one fingerprint, or 0 when empty
//! ```
//!
//! | ask for | bits × slots | load at capacity | rate at capacity | bits per item |
//! |---|---|---|---|---|
//! | 0.061 and more | 8 × 8 | 97.0 % | 6.1 % | 8.3 |
//! | 0.027 | 9 × 7 | 94.3 % | 2.6 % | 9.7 |
//! | 0.012 | 10 × 6 | 94.6 % | 1.1 % | 11.3 |
//! | 0.0024 | 12 × 5 | 93.9 % | 0.23 % | 13.7 |
//! | 0.00012 | 16 × 4 | 92.5 % | 0.011 % | 17.4 |
//! | 5.3e-5 | 18 × 7 | 96.9 % | 5.1e-5 | 18.9 |
//! | 1.2e-5 | 20 × 6 | 94.6 % | 1.1e-5 | 22.6 |
//! | 2.7e-6 | 21 × 3 | 90.4 % | 2.6e-6 | 23.7 |
//! | 5.8e-7 | 24 × 5 | 93.9 % | 5.7e-7 | 27.3 |
//! | 1.8e-9 | 32 × 4 | 95.4 % | 1.8e-9 | 33.6 |
//! | 8.0e-10 | 32 × 2 | 84.8 % | 7.8e-10 | 37.9 |
//!
//! (For 1,000,003 items, with everything that the filter holds. Smaller filters have more headroom,
//! because chance treats them less evenly: a filter for 1,000 items takes 20.4 bits per item at 16
//! bits a fingerprint.)
//!
//! A lookup reads the version of its second bucket's stripe, then its two buckets. Its answer counts only if the
//! version was even and is unchanged: then the item was not being moved, since a move changes the versions of both its
//! stripes. (In narrow buckets of a filter of fixed size, it looks at both of them before, without a version, and is
//! done if it finds the item: a fingerprint that is found is proof enough there. A wide bucket of a filter that forgets
//! asks for both versions: [`sweep`](mod@guide::sweep).) [`kick`](mod@guide::kick) explains why that is right while an
//! item is on its way from one bucket to the other.
//!
//! A filter that grows has equal shards of 64 or 128 KiB behind a directory: the position of a hash among all hashes
//! leads to the shard. A lookup also reads the directory's entry before and after, and tries again if the entry has
//! changed; [`split`](mod@guide::split) explains why.
//!
//! # The sources
//!
//! Each folder is a layer, and imports only from the folders below it, as a test checks.
//!
//! ```text
//! durable/    a filter with its file: syncs, checkpoints, replays
//! filter/     the public types: hash an item, ask the backend
//! union/      one filter merged into another
//! snapshot/   files and pieces: their format, writing and reading
//! backend/    where the items are: a fixed table, or a growing filter's shards
//! shard/      one cuckoo table: lookup, write, kick
//! journal/    a record of each change, in a file
//! table/      words, stripes and locks; hints to the machine
//! layout/     bits, buckets and sizes: pure arithmetic
//! disk/       files, whatever is in them: replaced, claimed, mapped
//! guide/      the pages of this documentation
//! ```
//!
//! Single files are for all layers: `error.rs`, `hash.rs`, `stats.rs`, `window.rs`, and `sync.rs`, which has the atomics
//! of the standard library or of a checker.
//!
//! `unsafe` is in `table/{memory,locked}.rs` and `backend/growing/{arena,site}.rs`, and, in one place each (but for what
//! only a checker compiles), in `durable/keeper.rs`, `disk/mapping.rs` and `sync.rs`.
//!
//! An ordering of an atomic says at its line what it pairs with; those of the seqlock, which several files share, are
//! in a table in `table/stripe.rs`. `loom-tests` runs these same files through every interleaving of small models, most
//! of them up to a number of preemptions, and again with one rule broken at a time: then a model has to fail.
//! `tests/random` runs them through random schedules of many threads, whose histories have to be linearizable.

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
