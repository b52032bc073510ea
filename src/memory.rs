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

/// Asks the system to back a large table, fresh and not yet written, with huge pages.
///
/// Of a table of 128 MiB in pages of 4 KiB, a processor knows the addresses of a sixteenth at best,
/// and looks the others up in memory, once for each bucket. Most Linux systems give huge pages only
/// to those who ask.
#[cfg_attr(any(loom, shuttle, not(target_os = "linux")), allow(unused_variables))]
pub fn prefer_huge_pages<T>(values: &[T]) {
    #[cfg(all(target_os = "linux", not(any(loom, shuttle, miri))))]
    {
        /// No page of the ordinary kind is larger.
        const PAGE: usize = 1 << 16;
        const WORTH_IT: usize = 4 << 20;
        let start = values.as_ptr().addr().next_multiple_of(PAGE);
        let end = (values.as_ptr().addr() + size_of_val(values)) & !(PAGE - 1);
        if end.saturating_sub(start) >= WORTH_IT {
            let start = values.as_ptr().with_addr(start).cast_mut().cast();
            // SAFETY: the range is whole pages inside `values`, and the advice changes neither
            // their contents nor who may use them. A system that does not take it says so, which
            // makes no difference.
            #[allow(unsafe_code)]
            unsafe {
                libc::madvise(start, end - start.addr(), libc::MADV_HUGEPAGE);
            }
        }
    }
}
