//! Hints to the machine about memory, and allocations that suit them. No hint changes what a read returns, only how
//! soon. `benches/results/hints.txt` has the measurements that justify them.

/// Starts fetching the cache line of `value`.
#[inline]
#[cfg_attr(
    any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))),
    allow(unused_variables)
)]
pub(crate) fn prefetch<T>(value: &T) {
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
pub(crate) fn give_back<T>(zeros: &[T]) -> usize {
    let pages = &zeros[pages::within(zeros)];
    if !pages.is_empty() && pages::drop(pages) { size_of_val(pages) } else { 0 }
}

#[cfg(all(target_os = "linux", not(any(loom, shuttle, miri))))]
mod pages {
    use std::ops::Range;

    /// Returns the values that fill whole pages.
    pub(super) fn within<T>(values: &[T]) -> Range<usize> {
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
    pub(super) fn drop<T>(zeros: &[T]) -> bool {
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
    pub(crate) fn within<T>(_: &[T]) -> std::ops::Range<usize> {
        0..0
    }

    pub(crate) fn drop<T>(_: &[T]) -> bool {
        false
    }
}

pub(crate) const HUGE: usize = 2 << 20;

pub(crate) use words::{TableWords, words_mut, zeroed};

/// The words of a table.
#[cfg(any(loom, shuttle))]
mod words {
    use crate::sync::AtomicU64;

    pub(crate) type TableWords = Box<[AtomicU64]>;

    pub(crate) fn zeroed(count: usize, _: bool) -> Option<TableWords> {
        Some((0..count).map(|_| AtomicU64::new(0)).collect())
    }

    /// The words of a checker are not in one place.
    pub(crate) fn words_mut(_: &mut TableWords) -> &mut [u64] {
        &mut []
    }
}

/// The words of a table, in huge pages if it is large.
///
/// With small pages, a processor looks up the addresses of most pages of a large table in memory, once per bucket. Most
/// Linux systems give huge pages only to programs that ask for them, and only where a whole one fits, so less than one
/// at either end of a table remains in small pages. Only the tables of a growing filter of many MiB begin at a huge
/// page, since their sizes are multiples of one. Another table would have to ask for 2 MiB more than it uses, which
/// counts on hosts that limit the address space or what is allocated.
#[cfg(not(any(loom, shuttle)))]
mod words {
    use super::HUGE;
    use crate::sync::AtomicU64;
    use std::alloc::{Layout, alloc, alloc_zeroed, dealloc};
    use std::ops::Deref;
    use std::ptr::NonNull;

    /// The words of a table, which are allocated together.
    pub(crate) struct TableWords {
        start: NonNull<AtomicU64>,
        layout: Layout,
    }

    // SAFETY: `TableWords` owns its words as a box of them does, and shares them only as a slice.
    #[allow(unsafe_code)]
    unsafe impl Send for TableWords {}
    // SAFETY: as above.
    #[allow(unsafe_code)]
    unsafe impl Sync for TableWords {}

    /// The usual size of a page.
    const PAGE: usize = 4 << 10;

    /// Allocates zeros. The system provides their memory when it is first written. Only if they are needed soon, and
    /// fill pages, huge or small, they begin at one, and are written at once.
    pub(crate) fn zeroed(count: usize, soon: bool) -> Option<TableWords> {
        let layout = Layout::array::<AtomicU64>(count).ok()?;
        if count == 0 {
            return Some(TableWords { start: NonNull::dangling(), layout });
        }
        let fills = |page: &usize| soon && layout.size().is_multiple_of(*page);
        let Some(page) = [HUGE, PAGE].into_iter().find(fills) else {
            // SAFETY: the size is not zero.
            #[allow(unsafe_code)]
            let start = NonNull::new(unsafe { alloc_zeroed(layout) })?;
            prefer_huge_pages(start, layout.size());
            return Some(TableWords { start: start.cast(), layout });
        };
        let layout = layout.align_to(page).ok()?;
        // SAFETY: the size is not zero.
        #[allow(unsafe_code)]
        let start = NonNull::new(unsafe { alloc(layout) })?;
        prefer_huge_pages(start, layout.size());
        // SAFETY: these bytes were just allocated, and zeros are valid words.
        #[allow(unsafe_code)]
        unsafe {
            start.write_bytes(0, layout.size());
        }
        Some(TableWords { start: start.cast(), layout })
    }

    /// Asks for huge pages for these bytes, if they can fill one. None of them should have been written yet.
    #[cfg(all(target_os = "linux", not(miri)))]
    fn prefer_huge_pages(first: NonNull<u8>, bytes: usize) {
        if bytes < HUGE {
            return;
        }
        // SAFETY: `sysconf` only returns a number.
        #[allow(unsafe_code)]
        let page = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(0);
        // The advice starts at the beginning of the first page. The allocator keeps a few bytes of its own
        // there, without which the first huge page would not be whole.
        let before = first.addr().get().checked_rem(page).unwrap_or(0);
        let start = first.as_ptr().wrapping_byte_sub(before);
        // SAFETY: the advice changes neither the contents of memory nor access to it. A system that does not
        // take the advice returns an error, which has no effect.
        #[allow(unsafe_code)]
        unsafe {
            libc::madvise(start.cast(), before + bytes, libc::MADV_HUGEPAGE);
        }
    }

    #[cfg(not(all(target_os = "linux", not(miri))))]
    fn prefer_huge_pages(_: NonNull<u8>, _: usize) {}

    impl Deref for TableWords {
        type Target = [AtomicU64];

        #[inline]
        fn deref(&self) -> &[AtomicU64] {
            // SAFETY: these words were allocated and zeroed at `start`, and are freed only when this is dropped.
            #[allow(unsafe_code)]
            unsafe {
                std::slice::from_raw_parts(
                    self.start.as_ptr(),
                    self.layout.size() / size_of::<AtomicU64>(),
                )
            }
        }
    }

    pub(crate) fn words_mut(words: &mut TableWords) -> &mut [u64] {
        let count = words.len();
        // SAFETY: these words were allocated and zeroed at `start`, and nobody else has them while they are borrowed. An
        // atomic has the size and the values of its number, and its alignment or more.
        #[allow(unsafe_code)]
        unsafe {
            std::slice::from_raw_parts_mut(words.start.as_ptr().cast(), count)
        }
    }

    impl Drop for TableWords {
        fn drop(&mut self) {
            if self.layout.size() > 0 {
                // SAFETY: the memory was allocated with this layout.
                #[allow(unsafe_code)]
                unsafe {
                    dealloc(self.start.as_ptr().cast(), self.layout);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering::Relaxed;

    const IN_A_PAGE: usize = HUGE / 8;

    #[test]
    fn words_are_zeros_wherever_they_are() {
        for (count, soon) in [(1_000, false), (IN_A_PAGE, true), (IN_A_PAGE, false), (64, true)] {
            let words = zeroed(count, soon).expect("memory");
            assert_eq!(words.len(), count);
            assert!(words.iter().all(|word| word.load(Relaxed) == 0));
            words[count - 1].store(7, Relaxed);
            assert_eq!(words.iter().filter(|word| word.load(Relaxed) == 7).count(), 1);
        }
        assert!(zeroed(0, true).expect("nothing").is_empty());
    }

    #[test]
    fn words_that_fill_huge_pages_begin_at_one_if_they_are_needed_soon() {
        let words = zeroed(2 * IN_A_PAGE, true).expect("memory");
        assert_eq!(words.as_ptr().addr() % HUGE, 0);
        assert!(zeroed(usize::MAX, false).is_none() && zeroed(usize::MAX, true).is_none());
    }
}
