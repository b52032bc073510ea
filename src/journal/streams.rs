//! In which order changes are recorded, and which journal each of them goes to.
//!
//! The hashes are divided into equal ranges, one for each *stream*. A thread that changes an item holds the lock of its
//! stream from before the change until the record is written. So the records of an item are in the order of its
//! changes, and threads that change items of different streams do not wait for each other.
//!
//! # Which changes are in a checkpoint?
//!
//! A checkpoint copies the filter shard by shard, in the order of the hashes, while threads go on changing it. It has a
//! journal of its own, the *next* one. A record must be replayed on a copy that was made before it, and on no other: a
//! removal that is replayed on a copy that lacks the item may take another item's fingerprint. So there is a *cut*, a
//! hash that only rises: all hashes below it have been copied. Each change is recorded in the present journal, and a
//! change of a hash below the cut in the next journal, too.
//!
//! ```text
//! S1  lock the streams of all hashes of a shard
//! S2  copy the shard
//! S3  cut := the end of the shard
//! S4  unlock the streams
//! ```
//!
//! A change of a hash of that shard comes, with its record:
//!
//! 1. before S1. Then it is in the copy, and its record is in the present journal alone.
//! 2. after S4. Then it is not in the copy, and its record is in both journals.
//!
//! So at every moment the old state and the present journal have all changes; and once all is copied, so have the new state
//! and the next journal. A stream may have hashes of several shards: the cut is compared with the hash, so it tells the
//! shards apart. While a stream is locked, the cut may change only if the checkpoint has locked it.
//!
//! # Is the answer of a lookup on record?
//!
//! A lookup takes no lock. It may see a change whose record is not written yet; if the process were killed then, the
//! answer would not survive. So it looks afterwards whether its stream is locked, and waits until it is not. A lookup that
//! has seen a change also sees that the lock was taken before it, or that it was released after the record: the words
//! of the filter are stored `Release` and loaded `Acquire`.

use crate::error::{NoMemory, reserve};
use crate::layout::SMALL;
use crate::layout::geometry::Mixed;
use crate::sync::{AtomicU64, Ordering};
use crate::table::locked::{Locked, LockedGuard};
use arrayvec::ArrayVec;

/// The number of streams: many more than threads, so that two threads seldom need the same one.
pub(crate) const STREAMS: usize = if SMALL { 2 } else { 256 };

/// The maximum number of records that are reserved at once.
pub(crate) const MAX_RESERVED: usize = 1 << 10;

/// Where the records of a stream go.
pub(crate) trait Sink {
    type Error;

    /// Makes room for `count` records, at most [`MAX_RESERVED`].
    fn reserve(&mut self, count: usize) -> Result<(), Self::Error>;

    /// Writes a record, for which there is room.
    fn write(&mut self, hash: Mixed, change: Change);
}

/// A change of an item, or of all of them, with its code in a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub(crate) enum Change {
    Added = 1,
    Removed = 2,
    Refreshed = 3,
    /// A tick began.
    Ticked = 4,
    /// A tick began towards the tick whose number is in the place of the hash.
    TickedTo = 6,
    /// All items were removed.
    Cleared = 7,
}

pub(crate) struct Streams<W> {
    all: Box<[Stream<W>; STREAMS]>,
    /// The first hash that has not been copied, during a checkpoint. [`ALL`] if there is none.
    cut: AtomicU64,
}

/// The [cut](self) once all hashes have been copied: no shard begins at the last hash.
const ALL: u64 = u64::MAX;

/// A stream, in cache lines of its own.
#[repr(align(128))]
struct Stream<W>(Locked<Writers<W>>);

struct Writers<W> {
    current: W,
    /// The writer to the next journal, during a checkpoint.
    next: Option<Box<W>>,
}

pub(crate) struct Held<'a, W> {
    cut: u64,
    writers: LockedGuard<'a, Writers<W>>,
}

impl<W: Sink> Held<'_, W> {
    /// Makes room for `count` records, of any hashes of this stream.
    pub(crate) fn reserve(&mut self, count: usize) -> Result<(), W::Error> {
        debug_assert!(count <= MAX_RESERVED);
        let Writers { current, next } = &mut *self.writers;
        current.reserve(count)?;
        next.as_mut().map_or(Ok(()), |next| next.reserve(count))
    }

    /// Records a change of an item of this stream, or of all items.
    #[inline(always)]
    pub(crate) fn write(&mut self, hash: Mixed, change: Change) {
        let Writers { current, next } = &mut *self.writers;
        current.write(hash, change);
        if let Some(next) = next
            && (hash.0 < self.cut || self.cut == ALL)
        {
            next.write(hash, change);
        }
    }
}

impl<W: Sink> Streams<W> {
    pub(crate) fn new(mut writer: impl FnMut(usize) -> W) -> Result<Self, NoMemory> {
        let stream = |number| Stream(Locked::new(Writers { current: writer(number), next: None }));
        let mut all = Vec::new();
        reserve(&mut all, STREAMS)?;
        all.extend((0..STREAMS).map(stream));
        let Ok(all) = all.try_into() else { unreachable!("there are as many") };
        Ok(Streams { all, cut: AtomicU64::new(0) })
    }

    #[inline]
    pub(crate) fn index_of(hash: Mixed) -> usize {
        hash.scaled(STREAMS).0
    }

    #[inline]
    pub(crate) fn hold(&self, number: usize) -> Held<'_, W> {
        let writers = self.all[number].0.lock();
        // Relaxed: the cut changes only under the locks of all streams for whose hashes a comparison changes.
        Held { cut: self.cut.load(Ordering::Relaxed), writers }
    }

    /// Waits until the change that is being made in the stream of this hash is recorded.
    pub(crate) fn until_free(&self, hash: Mixed) {
        drop(self.all[Self::index_of(hash)].0.lock());
    }

    /// Returns whether a change of this hash that the thread has seen may be unrecorded.
    #[inline]
    pub(crate) fn is_busy(&self, hash: Mixed) -> bool {
        self.all[Self::index_of(hash)].0.is_held()
    }

    /// Locks all streams, in their order.
    pub(crate) fn hold_all(&self) -> ArrayVec<Held<'_, W>, STREAMS> {
        (0..STREAMS).map(|number| self.hold(number)).collect()
    }

    /// Begins a cut: the changes of hashes that are copied from now on go to the next journal, too.
    pub(crate) fn begin_cut(&self, mut next: impl FnMut(usize) -> W) {
        // Relaxed, as in `cut`: a writer reads it under the lock of a stream that this thread locks next.
        self.cut.store(0, Ordering::Relaxed);
        for (number, stream) in self.all.iter().enumerate() {
            stream.0.lock().next = Some(Box::new(next(number)));
        }
    }

    /// Calls `copy` while no item changes from the hash `first` up to `most` (or the last hash), and moves the cut to
    /// the end that it returns.
    pub(crate) fn cut(
        &self,
        first: Mixed,
        most: Option<Mixed>,
        copy: impl FnOnce() -> Option<Mixed>,
    ) {
        let last = most.map_or(STREAMS - 1, |end| Self::index_of(Mixed(end.0 - 1)));
        let numbers = Self::index_of(first)..=last;
        let held: ArrayVec<_, STREAMS> = numbers.map(|number| self.hold(number)).collect();
        let end = copy();
        // Relaxed: the writers that have to see it wait for the locks that are held here.
        self.cut.store(end.map_or(ALL, |end| end.0), Ordering::Relaxed);
        drop(held);
    }

    /// Ends a cut: from now on, all changes go to the next journal alone.
    pub(crate) fn adopt_next(&self) {
        for number in 0..STREAMS {
            let writers = &mut *self.hold(number).writers;
            if let Some(next) = writers.next.take() {
                writers.current = *next;
            }
        }
    }

    /// Ends a cut: from now on, all changes go to the present journal alone.
    pub(crate) fn drop_next(&self) {
        for number in 0..STREAMS {
            self.hold(number).writers.next = None;
        }
    }
}
