//! The atomics of the counted build: the real ones, and each access is noted for its thread while
//! [`noted`] runs. `src/sync.rs` has this file as its `imp`.
//!
//! An access is told from others by the source file that makes it and by the size of what it
//! accesses. A lock of `parking_lot` counts as one read-modify-write when it is taken and one when it
//! is released, which is what it costs if nobody waits.

pub use crossbeam_utils::Backoff;
pub use parking_lot::Mutex;
pub use std::sync::atomic::{Ordering, fence};

use std::cell::RefCell;
use std::ops::{Deref, DerefMut};
use std::panic::Location;
use std::sync::atomic;
use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    Load,
    Store,
    /// A read-modify-write, whether or not it changed anything.
    Swap,
}

#[derive(Clone, Copy, Debug)]
pub struct Note {
    pub access: Access,
    /// The source file, relative to `src`.
    pub file: &'static str,
    /// The size of what was accessed, and where it is.
    pub bytes: usize,
    pub address: usize,
}

thread_local! {
    static NOTES: RefCell<Option<Vec<Note>>> = const { RefCell::new(None) };
}

/// Runs `work`, and returns the accesses that this thread has made meanwhile.
pub fn noted<R>(work: impl FnOnce() -> R) -> (R, Vec<Note>) {
    NOTES.set(Some(Vec::new()));
    let result = work();
    (result, NOTES.take().unwrap_or_default())
}

#[track_caller]
fn note<T>(access: Access, of: &T) {
    note_by(Location::caller(), access, of);
}

fn note_by<T>(by: &'static Location<'static>, access: Access, of: &T) {
    let path = by.file();
    let file = path.rsplit_once("src/").map_or(path, |(_, file)| file);
    let address = std::ptr::from_ref(of).addr();
    NOTES.with_borrow_mut(|notes| {
        if let Some(notes) = notes {
            notes.push(Note { access, file, bytes: size_of::<T>(), address });
        }
    });
}

macro_rules! noted_atomic {
    ($name:ident $(<$of:ident>)?, $value:ty) => {
        #[derive(Default)]
        #[repr(transparent)]
        pub struct $name $(<$of>)? (atomic::$name $(<$of>)?);

        impl $(<$of>)? $name $(<$of>)? {
            pub const fn new(value: $value) -> Self {
                $name(atomic::$name::new(value))
            }

            #[track_caller]
            pub fn load(&self, ordering: Ordering) -> $value {
                note(Access::Load, self);
                self.0.load(ordering)
            }

            #[track_caller]
            pub fn store(&self, value: $value, ordering: Ordering) {
                note(Access::Store, self);
                self.0.store(value, ordering);
            }
        }
    };
}

noted_atomic!(AtomicBool, bool);
noted_atomic!(AtomicPtr<T>, *mut T);
noted_atomic!(AtomicU32, u32);
noted_atomic!(AtomicU64, u64);

impl AtomicBool {
    #[track_caller]
    pub fn compare_exchange(
        &self,
        old: bool,
        new: bool,
        success: Ordering,
        failure: Ordering,
    ) -> Result<bool, bool> {
        note(Access::Swap, self);
        self.0.compare_exchange(old, new, success, failure)
    }
}

impl AtomicU64 {
    #[track_caller]
    pub fn fetch_sub(&self, value: u64, ordering: Ordering) -> u64 {
        note(Access::Swap, self);
        self.0.fetch_sub(value, ordering)
    }
}

#[track_caller]
pub fn read_owned(word: &AtomicU64) -> u64 {
    word.load(Ordering::Relaxed)
}

#[track_caller]
pub fn read_owned_u32(word: &AtomicU32) -> u32 {
    word.load(Ordering::Relaxed)
}

#[track_caller]
pub fn read_owned_pointer<T>(word: &AtomicPtr<T>) -> *mut T {
    word.load(Ordering::Relaxed)
}

pub fn nap() {
    std::thread::sleep(Duration::from_micros(50));
}

pub fn zeroed_words(count: usize) -> Option<Box<[AtomicU64]>> {
    Some((0..count).map(|_| AtomicU64::new(0)).collect())
}

pub struct RwLock<T>(parking_lot::RwLock<T>);

impl<T> RwLock<T> {
    pub fn new(value: T) -> Self {
        RwLock(parking_lot::RwLock::new(value))
    }

    #[track_caller]
    pub fn read(&self) -> Noted<'_, T, parking_lot::RwLockReadGuard<'_, T>> {
        note(Access::Swap, self);
        Noted { lock: self, guard: self.0.read(), by: Location::caller() }
    }

    #[track_caller]
    pub fn write(&self) -> Noted<'_, T, parking_lot::RwLockWriteGuard<'_, T>> {
        note(Access::Swap, self);
        Noted { lock: self, guard: self.0.write(), by: Location::caller() }
    }
}

/// A guard whose drop is noted where the lock was taken.
pub struct Noted<'a, T, G> {
    lock: &'a RwLock<T>,
    guard: G,
    by: &'static Location<'static>,
}

impl<T, G: Deref> Deref for Noted<'_, T, G> {
    type Target = G::Target;

    fn deref(&self) -> &G::Target {
        &self.guard
    }
}

impl<T, G: DerefMut> DerefMut for Noted<'_, T, G> {
    fn deref_mut(&mut self) -> &mut G::Target {
        &mut self.guard
    }
}

impl<T, G> Drop for Noted<'_, T, G> {
    fn drop(&mut self) {
        note_by(self.by, Access::Swap, self.lock);
    }
}
