//! Two hints to the machine about memory: the only `unsafe` code of the crate.
//!
//! Neither changes what any read returns, only how soon. What earned them, in
//! `benches/results/hints.txt`.

/// Starts fetching the cache line of `value`.
///
/// A lookup in a table that does not fit the caches waits for memory most of its time. A batch
/// knows which words it will need next, and asks for them dozens of items ahead, so that many
/// fetches are under way at once.
#[inline]
#[cfg_attr(not(any(target_arch = "x86_64", target_arch = "aarch64")), allow(unused_variables))]
pub fn prefetch<T>(value: &T) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch never faults, whatever the address, and this one is of a value that is
        // there. Every x86-64 has the instruction.
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
/// Of a table of 128 MiB in pages of 4 KiB, a processor knows the addresses of a sixteenth at best,
/// and looks the others up in memory, once for each bucket. Most Linux systems give huge pages only
/// to those who ask, and only for whole ones. So a table begins where one does.
pub mod huge_pages {
    const PAGE: usize = 2 << 20;

    #[cfg(all(target_os = "linux", not(any(loom, shuttle, miri))))]
    const WANTED: bool = true;
    #[cfg(not(all(target_os = "linux", not(any(loom, shuttle, miri)))))]
    const WANTED: bool = false;

    /// How many values more than wanted leave room to begin at a huge page. Those that are left over
    /// are never touched, so the system gives no memory for them.
    pub fn slack<T>(count: usize) -> usize {
        let in_a_page = PAGE / size_of::<T>();
        if WANTED && count >= in_a_page { in_a_page } else { 0 }
    }

    /// Asks for huge pages for `count` of these values, fresh and not yet written; says where they
    /// begin.
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
        // Whole huge pages, which are whole pages of any kind.
        let bytes = size_of_val(values) & !(PAGE - 1);
        if values.as_ptr().addr().is_multiple_of(PAGE) {
            let start = values.as_ptr().cast_mut().cast();
            // SAFETY: the range is whole pages inside `values`, and the advice changes neither their
            // contents nor who may use them. A system that does not take it says so, which makes no
            // difference.
            #[allow(unsafe_code)]
            unsafe {
                libc::madvise(start, bytes, libc::MADV_HUGEPAGE);
            }
        }
    }

    #[cfg(not(all(target_os = "linux", not(any(loom, shuttle, miri)))))]
    fn advise<T>(_: &[T]) {}
}
