//! Selects the atomics: the standard ones or a checker's.
//!
//! What the models check names `std::sync::atomic`, `parking_lot`, `loom` or `shuttle` nowhere else. Files, which no
//! checker runs, use the standard ones. Each of the three versions of this module (std, loom, shuttle) has the same
//! atomics, a [`Mutex`] and an [`RwLock`] that cannot be poisoned, a [`Backoff`], [`nap`], and `read_owned(word)`: a
//! plain load of a word that nobody else writes meanwhile. Under loom that load is not an event, because an ordinary
//! load right before a store of the same word would hide other threads' reads from loom. A model fails if the lock does
//! not order the load.

pub(crate) use imp::*;
pub(crate) use owned::*;

/// A figure that no lookup's answer depends on. Checkers do not treat accesses to it as events.
///
/// `get` acquires what preceded the `set` that it reads: a new shard is in its table before it is counted. No model
/// can show that, because checkers do not see the accesses.
#[derive(Default)]
pub(crate) struct Gauge(std::sync::atomic::AtomicU64);

impl Gauge {
    pub(crate) const fn new() -> Self {
        Gauge(std::sync::atomic::AtomicU64::new(0))
    }

    /// Adds to the figure. Only one thread at a time may change it.
    pub(crate) fn add(&self, change: i64) {
        self.set(self.get().wrapping_add_signed(change));
    }

    #[inline]
    pub(crate) fn get(&self) -> u64 {
        self.0.load(std::sync::atomic::Ordering::Acquire)
    }

    pub(crate) fn set(&self, value: u64) {
        self.0.store(value, std::sync::atomic::Ordering::Release);
    }
}

/// An append-only list. Values are never removed while threads share the list, so a reader may keep using a value, and
/// a writer never waits for readers. Reading a value acquires everything that was written before the value was added.
pub(crate) struct AppendList<T> {
    /// The address of the newest value, which is in one of the nodes.
    newest: AtomicPtr<T>,
    first: Link<T>,
}

type Link<T> = std::sync::OnceLock<Box<Node<T>>>;

struct Node<T> {
    value: T,
    next: Link<T>,
}

impl<T> AppendList<T> {
    /// The number of bytes that each value takes.
    pub(crate) const BYTES_OF_EACH: usize = size_of::<Node<T>>();

    pub(crate) fn new(first: T) -> Self {
        let list = AppendList { newest: AtomicPtr::new(std::ptr::null_mut()), first: Link::new() };
        list.add(first);
        list
    }

    #[inline]
    pub(crate) fn newest(&self) -> &T {
        // Acquire: pairs with `make_newest`. The reader finds the value complete.
        self.at(self.newest.load(Ordering::Acquire))
    }

    /// Returns the newest value to a caller that holds the lock under which values are added.
    pub(crate) fn newest_alone(&self) -> &T {
        self.at(read_owned_pointer(&self.newest))
    }

    /// Returns the value at an address that was loaded from `newest`.
    #[inline]
    fn at(&self, value: *mut T) -> &T {
        // SAFETY: `value` is the address of a value in one of the nodes, and no value is changed or dropped while
        // `self` is borrowed. The value was complete before its address was stored with `Release`, and the address was
        // loaded with `Acquire`, or under the lock under which it was stored.
        #[allow(unsafe_code)]
        unsafe {
            &*value
        }
    }

    /// Iterates over all values, the oldest first. Checkers do not treat this as an event.
    pub(crate) fn all(&self) -> impl Iterator<Item = &T> {
        let nodes = std::iter::successors(self.first.get(), |node| node.next.get());
        nodes.map(|node| &node.value)
    }

    /// Adds a value, which becomes the newest. The caller holds the lock under which values are added.
    pub(crate) fn add(&self, value: T) {
        let mut end = &self.first;
        while let Some(node) = end.get() {
            end = &node.next;
        }
        let new = end.get_or_init(|| Box::new(Node { value, next: Link::new() }));
        self.make_newest(&new.value);
    }

    fn make_newest(&self, value: &T) {
        // Release: pairs with `newest`.
        self.newest.store(std::ptr::from_ref(value).cast_mut(), Ordering::Release);
    }
}

/// Drops nodes in a loop. The drop that the compiler generates would recurse from each node into the next.
fn drop_all<T>(mut next: Option<Box<Node<T>>>) {
    while let Some(mut node) = next {
        next = node.next.take();
    }
}

impl<T> Drop for AppendList<T> {
    fn drop(&mut self) {
        drop_all(self.first.take());
    }
}

#[cfg(not(any(loom, shuttle)))]
mod imp {
    pub(crate) use crossbeam_utils::Backoff;
    pub(crate) use parking_lot::{Mutex, RwLock};
    pub(crate) type RwLockReadGuard<'a> = parking_lot::RwLockReadGuard<'a, ()>;
    pub(crate) use std::sync::atomic::{
        AtomicBool, AtomicPtr, AtomicU16, AtomicU32, AtomicU64, Ordering,
    };

    use std::time::Duration;

    pub(crate) fn nap() {
        std::thread::sleep(Duration::from_micros(50));
    }
}

#[cfg(any(loom, shuttle))]
mod imp {
    #[cfg(loom)]
    use loom as checker;
    #[cfg(shuttle)]
    use shuttle as checker;

    #[cfg(loom)]
    pub(crate) use checker::sync::atomic::fence;
    pub(crate) use checker::sync::atomic::{
        AtomicBool, AtomicPtr, AtomicU16, AtomicU32, AtomicU64, Ordering,
    };
    pub(crate) use checker::thread::yield_now as nap;

    pub(crate) use checker::sync::MutexGuard;
    pub(crate) type RwLockReadGuard<'a> = checker::sync::RwLockReadGuard<'a, ()>;

    pub(crate) struct Mutex<T>(checker::sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub(crate) fn new(value: T) -> Self {
            Mutex(checker::sync::Mutex::new(value))
        }

        pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
            self.0.lock().unwrap()
        }

        pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
            self.0.try_lock().ok()
        }
    }

    pub(crate) struct RwLock<T>(checker::sync::RwLock<T>);

    impl<T> RwLock<T> {
        pub(crate) fn new(value: T) -> Self {
            RwLock(checker::sync::RwLock::new(value))
        }

        pub(crate) fn read(&self) -> checker::sync::RwLockReadGuard<'_, T> {
            self.0.read().unwrap()
        }

        pub(crate) fn try_write(&self) -> Option<checker::sync::RwLockWriteGuard<'_, T>> {
            self.0.try_write().ok()
        }

        pub(crate) fn write(&self) -> checker::sync::RwLockWriteGuard<'_, T> {
            self.0.write().unwrap()
        }
    }

    /// A backoff that never spins: under a checker, every retry is another case to explore.
    pub(crate) struct Backoff;

    impl Backoff {
        pub(crate) fn new() -> Self {
            Backoff
        }

        pub(crate) fn is_completed(&self) -> bool {
            true
        }

        pub(crate) fn snooze(&self) {}
    }
}

/// Loads of words that only the holder of a lock writes: the caller is that holder, or keeps others from writing.
#[cfg(not(loom))]
mod owned {
    use super::*;

    #[inline]
    pub(crate) fn read_owned(word: &AtomicU64) -> u64 {
        word.load(Ordering::Relaxed)
    }

    #[inline]
    pub(crate) fn read_owned_u32(word: &AtomicU32) -> u32 {
        word.load(Ordering::Relaxed)
    }

    #[inline]
    pub(crate) fn read_owned_pointer<T>(word: &AtomicPtr<T>) -> *mut T {
        word.load(Ordering::Relaxed)
    }
}

#[cfg(loom)]
mod owned {
    use super::*;

    #[allow(unsafe_code)]
    pub(crate) fn read_owned(word: &AtomicU64) -> u64 {
        // SAFETY: loom itself checks this, and panics if a store is not ordered before the load.
        unsafe { word.unsync_load() }
    }

    #[allow(unsafe_code)]
    pub(crate) fn read_owned_u32(word: &AtomicU32) -> u32 {
        // SAFETY: as above.
        unsafe { word.unsync_load() }
    }

    #[allow(unsafe_code)]
    pub(crate) fn read_owned_pointer<T>(word: &AtomicPtr<T>) -> *mut T {
        // SAFETY: as above.
        unsafe { word.unsync_load() }
    }
}

#[cfg(loom)]
pub(crate) use loom::cell::{MutPtr, UnsafeCell};

/// A value that only the holder of a lock reaches.
#[cfg(all(unix, feature = "durable", not(loom)))]
mod cell {
    pub(crate) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

    impl<T> UnsafeCell<T> {
        pub(crate) fn new(value: T) -> Self {
            UnsafeCell(std::cell::UnsafeCell::new(value))
        }

        #[inline]
        pub(crate) fn get_mut(&self) -> MutPtr<T> {
            MutPtr(self.0.get())
        }
    }

    pub(crate) struct MutPtr<T>(*mut T);

    impl<T> MutPtr<T> {
        #[inline]
        pub(crate) fn with<R>(&self, act: impl FnOnce(*mut T) -> R) -> R {
            act(self.0)
        }
    }
}
#[cfg(all(unix, feature = "durable", not(loom)))]
pub(crate) use cell::{MutPtr, UnsafeCell};
