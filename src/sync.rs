//! The one place that says whether the atomics are the real ones or a checker's.
//!
//! Nothing else in the crate names `std::sync::atomic`, `parking_lot`, `loom` or `shuttle`. All three offer
//! the same few things: [`AtomicBool`], [`AtomicU32`], [`AtomicU64`], a [`Mutex`] whose
//! `lock` cannot fail, a [`Backoff`], [`nap`], and
//!
//! * `read_owned(word)`: a plain load of something that only the holder of a lock writes. To loom it is no event (an ordinary load right before a store of the same word would
//!   hide other threads' reads from it), and it fails the model when the lock does not order it;
//! * [`zeroed_words`]: the table, or nothing when it cannot be had.

pub use imp::*;

/// A figure that nobody's decisions depend on: to a checker it is no event.
#[derive(Default)]
pub struct Gauge(std::sync::atomic::AtomicU64);

impl Gauge {
    #[inline]
    pub fn get(&self) -> u64 {
        self.0.load(std::sync::atomic::Ordering::Relaxed)
    }

    pub fn set(&self, value: u64) {
        self.0.store(value, std::sync::atomic::Ordering::Relaxed);
    }
}

#[cfg(not(any(loom, shuttle)))]
mod imp {
    pub use crossbeam_utils::Backoff;
    pub use parking_lot::Mutex;
    pub use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

    use std::time::Duration;

    /// A load of what only the holder of a lock writes, by the holder.
    #[inline]
    pub fn read_owned(word: &AtomicU64) -> u64 {
        word.load(Ordering::Relaxed)
    }

    /// The same for a count.
    #[inline]
    pub fn read_owned_u32(word: &AtomicU32) -> u32 {
        word.load(Ordering::Relaxed)
    }

    /// Leaves the processor to others for a moment.
    pub fn nap() {
        std::thread::sleep(Duration::from_micros(50));
    }

    /// Fresh from the system, so pages, small or huge, that are never written are never paid for.
    pub fn zeroed_words(count: usize) -> Option<Box<[AtomicU64]>> {
        bytemuck::allocation::try_zeroed_slice_box(count).ok()
    }
}

#[cfg(loom)]
mod imp {
    pub use loom::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

    use std::cell::Cell;

    #[allow(unsafe_code)]
    pub fn read_owned(word: &AtomicU64) -> u64 {
        // SAFETY: loom itself checks, and panics, when a store is not ordered before this.
        unsafe { word.unsync_load() }
    }

    #[allow(unsafe_code)]
    pub fn read_owned_u32(word: &AtomicU32) -> u32 {
        // SAFETY: as above.
        unsafe { word.unsync_load() }
    }

    pub fn nap() {
        loom::thread::yield_now();
    }

    pub fn zeroed_words(count: usize) -> Option<Box<[AtomicU64]>> {
        Some((0..count).map(|_| AtomicU64::new(0)).collect())
    }

    pub use super::NoBackoff as Backoff;

    pub struct Mutex<T>(loom::sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub fn new(value: T) -> Self {
            Mutex(loom::sync::Mutex::new(value))
        }

        pub fn lock(&self) -> loom::sync::MutexGuard<'_, T> {
            self.0.lock().unwrap()
        }
    }

    pub type MutexGuard<'a, T> = loom::sync::MutexGuard<'a, T>;

    thread_local! {
        static QUEUE_FIRST: Cell<bool> = const { Cell::new(false) };
    }

    /// Whether every lock of this model goes through its queue, so that a waiting thread blocks
    /// instead of trying again: for models of three threads and more, in which tries would never
    /// end. All threads of a model run on one real thread, so this holds for all of them.
    pub fn queue_first() -> bool {
        QUEUE_FIRST.get()
    }

    /// Sets [`queue_first`] for the models that this real thread runs from here on.
    pub fn set_queue_first(on: bool) {
        QUEUE_FIRST.set(on);
    }
}

#[cfg(shuttle)]
mod imp {
    pub use super::NoBackoff as Backoff;
    pub use shuttle::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
    pub use shuttle::thread::yield_now as nap;

    pub fn read_owned(word: &AtomicU64) -> u64 {
        word.load(Ordering::Relaxed)
    }

    pub fn read_owned_u32(word: &AtomicU32) -> u32 {
        word.load(Ordering::Relaxed)
    }

    pub fn zeroed_words(count: usize) -> Option<Box<[AtomicU64]>> {
        Some((0..count).map(|_| AtomicU64::new(0)).collect())
    }

    pub struct Mutex<T>(shuttle::sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub fn new(value: T) -> Self {
            Mutex(shuttle::sync::Mutex::new(value))
        }

        pub fn lock(&self) -> shuttle::sync::MutexGuard<'_, T> {
            self.0.lock().unwrap()
        }
    }
}

/// No spinning under a checker: every try is one more case to look at.
#[cfg(any(loom, shuttle))]
pub struct NoBackoff;

#[cfg(any(loom, shuttle))]
impl NoBackoff {
    pub fn new() -> Self {
        NoBackoff
    }

    pub fn is_completed(&self) -> bool {
        true
    }

    pub fn snooze(&self) {}
}
