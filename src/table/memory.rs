//! Hints to the machine about memory, and allocations that suit them. Most of the crate's `unsafe` code is
//! here.
//!
//! No hint changes what a read returns, only how soon. `benches/results/hints.txt` has the measurements that
//! justify them.

/// Starts fetching the cache line of `value`.
///
/// A lookup in a table that does not fit the caches spends most of its time waiting for memory. A
/// batch knows which words it will need next and prefetches them dozens of items ahead, so that
/// many fetches are in flight at once.
#[inline]
#[cfg_attr(
    any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))),
    allow(unused_variables)
)]
pub fn prefetch<T>(value: &T) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch never faults, whatever the address, and this address is that of a live
        // value. Every x86-64 processor has the instruction.
        #[allow(unsafe_code)]
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(value).cast());
        }
    }
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    {
        // SAFETY: as above. The instruction writes no register and no memory.
        #[allow(unsafe_code)]
        unsafe {
            std::arch::asm!(
                "prfm pldl1keep, [{address}]",
                address = in(reg) std::ptr::from_ref(value),
                options(nostack, preserves_flags, readonly),
            );
        }
    }
}

/// Gives the pages that these values fill back to the system, which provides them again when they are written. All of
/// them are zero, and stay so: nothing depends on whether the system takes the pages. Other threads may read them
/// meanwhile. Returns the number of bytes that it took.
pub fn give_back<T>(zeros: &[T]) -> usize {
    let pages = &zeros[pages::within(zeros)];
    if !pages.is_empty() && pages::drop(pages) { size_of_val(pages) } else { 0 }
}

#[cfg(all(target_os = "linux", not(any(loom, shuttle, miri))))]
mod pages {
    use std::ops::Range;

    /// Returns the values that fill whole pages.
    pub fn within<T>(values: &[T]) -> Range<usize> {
        // SAFETY: `sysconf` only returns a number.
        #[allow(unsafe_code)]
        let page = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(0);
        let Some(in_a_page) = page.checked_div(size_of::<T>()).filter(|in_a_page| *in_a_page > 0)
        else {
            return 0..0;
        };
        let start = values.as_ptr().align_offset(page).min(values.len());
        start..start + (values.len() - start) / in_a_page * in_a_page
    }

    /// Returns whether the system took these zeros, which fill whole pages.
    pub fn drop<T>(zeros: &[T]) -> bool {
        let start = zeros.as_ptr().cast_mut().cast();
        // SAFETY: these are whole pages of this program's own memory, all of whose bytes are zero. The system forgets
        // them, or leaves them as they are: in either case they read as zeros.
        #[allow(unsafe_code)]
        let result = unsafe { libc::madvise(start, size_of_val(zeros), libc::MADV_DONTNEED) };
        result == 0
    }
}

/// Elsewhere, memory is not given back.
#[cfg(not(all(target_os = "linux", not(any(loom, shuttle, miri)))))]
mod pages {
    pub fn within<T>(_: &[T]) -> std::ops::Range<usize> {
        0..0
    }

    pub fn drop<T>(_: &[T]) -> bool {
        false
    }
}

/// The words of a table.
#[cfg(any(loom, shuttle))]
mod words {
    pub type Words = Box<[crate::sync::AtomicU64]>;
    pub use crate::sync::zeroed_words as zeroed;

    pub fn prefaulted(_: usize) -> Option<Words> {
        None
    }
}

pub use words::{Words, prefaulted, zeroed};

#[cfg(not(any(loom, shuttle)))]
mod words {
    use super::huge_pages::{HUGE, advise};
    use crate::sync::{AtomicU64, zeroed_words};
    use std::alloc::{Layout, alloc, dealloc};
    use std::ops::Deref;
    use std::ptr::NonNull;

    /// Words that are allocated together.
    pub struct Words {
        start: NonNull<AtomicU64>,
        count: usize,
        /// The alignment of the allocation.
        align: usize,
    }

    // SAFETY: `Words` owns its words as a box of them does, and shares them only as a slice.
    #[allow(unsafe_code)]
    unsafe impl Send for Words {}
    // SAFETY: as above.
    #[allow(unsafe_code)]
    unsafe impl Sync for Words {}

    /// Allocates zeros. The system provides the memory when it is first written.
    pub fn zeroed(count: usize) -> Option<Words> {
        let words = zeroed_words(count)?;
        super::huge_pages::prefer(&words);
        let start = NonNull::new(Box::into_raw(words).cast())?;
        Some(Words { start, count, align: align_of::<AtomicU64>() })
    }

    /// The usual size of a page.
    const PAGE: usize = 4 << 10;

    /// Allocates zeros that fill whole pages, huge ones if possible, and writes them. Returns `None` if they would not
    /// fill pages, or if there is not enough memory.
    pub fn prefaulted(count: usize) -> Option<Words> {
        let layout = Layout::array::<AtomicU64>(count).ok()?;
        let fills = |page: &usize| layout.size() > 0 && layout.size().is_multiple_of(*page);
        let page = [HUGE, PAGE].into_iter().find(fills)?;
        let layout = layout.align_to(page).ok()?;
        // SAFETY: the size is not zero.
        #[allow(unsafe_code)]
        let start = NonNull::new(unsafe { alloc(layout) })?;
        if page == HUGE {
            advise(start.as_ptr(), layout.size());
        }
        // SAFETY: these bytes were just allocated, and zeros are valid words.
        #[allow(unsafe_code)]
        unsafe {
            start.as_ptr().write_bytes(0, layout.size());
        }
        Some(Words { start: start.cast(), count, align: page })
    }

    impl Deref for Words {
        type Target = [AtomicU64];

        #[inline]
        fn deref(&self) -> &[AtomicU64] {
            // SAFETY: `count` words were allocated and zeroed at `start`, and are freed only when this is
            // dropped.
            #[allow(unsafe_code)]
            unsafe {
                std::slice::from_raw_parts(self.start.as_ptr(), self.count)
            }
        }
    }

    impl Drop for Words {
        fn drop(&mut self) {
            let bytes = self.count * size_of::<AtomicU64>();
            if let (1.., Ok(layout)) = (bytes, Layout::from_size_align(bytes, self.align)) {
                // SAFETY: the memory was allocated with this layout (and so is a box).
                #[allow(unsafe_code)]
                unsafe {
                    dealloc(self.start.as_ptr().cast(), layout);
                }
            }
        }
    }
}

/// Huge pages for large tables.
///
/// With pages of 4 KiB, a processor's TLB covers a sixteenth of a table of 128 MiB at best. It looks up the addresses
/// of the other pages in memory, once per bucket. Most Linux systems give huge pages only to programs that ask for
/// them, and only where a whole one fits, so less than one at either end of a table remains in small pages. (A table
/// that began at a huge page would have to ask for 2 MiB more than it uses, and hosts that limit the address space or
/// count what is allocated would count them too. Only the tables of a growing filter of many MiB do
/// (`prefaulted`), whose sizes are multiples of a huge page.)
#[cfg_attr(any(loom, shuttle), allow(dead_code))]
pub mod huge_pages {
    /// The size of a huge page.
    pub const HUGE: usize = 2 << 20;

    /// Asks for huge pages for these values, if they are large enough to fill one. None of them should have
    /// been written yet.
    #[cfg(all(target_os = "linux", not(any(loom, shuttle, miri))))]
    pub fn prefer<T>(values: &[T]) {
        if size_of_val(values) < HUGE {
            return;
        }
        // SAFETY: `sysconf` only returns a number.
        #[allow(unsafe_code)]
        let page = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(0);
        let first = values.as_ptr();
        // The advice starts at the beginning of the first page. The allocator keeps a few bytes of its own
        // there, without which the first huge page would not be whole.
        let before = first.addr().checked_rem(page).unwrap_or(0);
        let start = first.cast_mut().wrapping_byte_sub(before).cast();
        advise(start, before + size_of_val(values));
    }

    /// Asks for huge pages for these bytes, which start at a page boundary.
    #[cfg(all(target_os = "linux", not(any(loom, shuttle, miri))))]
    pub fn advise(start: *mut u8, bytes: usize) {
        // SAFETY: the advice changes neither the contents of memory nor access to it. A system that does not
        // take the advice returns an error, which has no effect.
        #[allow(unsafe_code)]
        unsafe {
            libc::madvise(start.cast(), bytes, libc::MADV_HUGEPAGE);
        }
    }

    #[cfg(not(all(target_os = "linux", not(any(loom, shuttle, miri)))))]
    pub fn prefer<T>(_: &[T]) {}

    #[cfg(not(all(target_os = "linux", not(any(loom, shuttle, miri)))))]
    pub fn advise(_: *mut u8, _: usize) {}
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering::Relaxed;

    const IN_A_PAGE: usize = huge_pages::HUGE / 8;

    #[test]
    fn words_are_zeros_wherever_they_are() {
        let both = [zeroed(1_000), prefaulted(IN_A_PAGE), prefaulted(IN_A_PAGE / 64)];
        for words in both.map(|words| words.expect("memory")) {
            assert!(words.iter().all(|word| word.load(Relaxed) == 0));
            words[words.len() - 1].store(7, Relaxed);
            assert_eq!(words.iter().filter(|word| word.load(Relaxed) == 7).count(), 1);
        }
    }

    #[test]
    fn huge_pages_are_filled_or_not_asked_for() {
        let words = prefaulted(2 * IN_A_PAGE).expect("memory");
        assert_eq!((words.len(), words.as_ptr().addr() % huge_pages::HUGE), (2 * IN_A_PAGE, 0));
        for count in [0, 1, IN_A_PAGE - 1, IN_A_PAGE + 1, usize::MAX] {
            assert!(prefaulted(count).is_none());
        }
        assert!(zeroed(usize::MAX).is_none());
    }
}
