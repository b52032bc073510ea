//! Two hints to the machine about memory: the only `unsafe` code of the crate.
//!
//! Neither changes what any read returns, only how soon. `benches/results/hints.txt` has the
//! measurements that justify them.

/// Starts fetching the cache line of `value`.
///
/// A lookup in a table that does not fit the caches spends most of its time waiting for memory. A
/// batch knows which words it will need next and prefetches them dozens of items ahead, so that
/// many fetches are in flight at once.
#[inline]
#[cfg_attr(not(any(target_arch = "x86_64", target_arch = "aarch64")), allow(unused_variables))]
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

/// Huge pages for large tables.
///
/// With pages of 4 KiB, a processor's TLB covers a sixteenth of a table of 128 MiB at best. It
/// looks up the addresses of the other pages in memory, once for each bucket. Most Linux systems
/// give huge pages only to programs that ask for them, and only where a whole one fits. So a table
/// begins at a huge-page boundary.
pub mod huge_pages {
    const PAGE: usize = 2 << 20;

    #[cfg(all(target_os = "linux", not(any(loom, shuttle, miri))))]
    const WANTED: bool = true;
    #[cfg(not(all(target_os = "linux", not(any(loom, shuttle, miri)))))]
    const WANTED: bool = false;

    /// Returns how many extra values to allocate so that `count` of them can begin at a huge page.
    /// The values left over are never touched, so the system provides no memory for them.
    pub fn slack<T>(count: usize) -> usize {
        let in_a_page = PAGE / size_of::<T>();
        if WANTED && count >= in_a_page { in_a_page } else { 0 }
    }

    /// Asks for huge pages for `count` of these values, and returns the index of the first of them.
    /// The values should be fresh, so that none has been written.
    pub fn prefer<T>(values: &[T], count: usize) -> usize {
        if slack::<T>(count) == 0 {
            return 0;
        }
        let start = values.as_ptr().align_offset(PAGE).min(values.len() - count);
        advise(&values[start..start + count]);
        start
    }

    #[cfg(all(target_os = "linux", not(any(loom, shuttle, miri))))]
    fn advise<T>(values: &[T]) {
        // A whole number of huge pages is a whole number of pages of any size.
        let bytes = size_of_val(values) & !(PAGE - 1);
        if values.as_ptr().addr().is_multiple_of(PAGE) {
            let start = values.as_ptr().cast_mut().cast();
            // SAFETY: the range consists of whole pages inside `values`, and the advice changes
            // neither their contents nor who may use them. A system that does not take the advice
            // returns an error, which makes no difference.
            #[allow(unsafe_code)]
            unsafe {
                libc::madvise(start, bytes, libc::MADV_HUGEPAGE);
            }
        }
    }

    #[cfg(not(all(target_os = "linux", not(any(loom, shuttle, miri)))))]
    fn advise<T>(_: &[T]) {}
}
