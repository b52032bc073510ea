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
/// give huge pages only to programs that ask for them, and only where a whole one fits, so less
/// than one at either end of a table remains in small pages. (A table that began at a huge page
/// would have to ask for 2 MiB more than it uses. Hosts that limit the address space or count what
/// is allocated would count them too.)
pub mod huge_pages {
    /// Asks for huge pages for these values, if they are large enough to have any. They should be
    /// fresh, so that none has been written.
    #[cfg(all(target_os = "linux", not(any(loom, shuttle, miri))))]
    pub fn prefer<T>(values: &[T]) {
        const HUGE: usize = 2 << 20;

        if size_of_val(values) < HUGE {
            return;
        }
        // SAFETY: a plain question.
        #[allow(unsafe_code)]
        let page = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(0);
        let first = values.as_ptr();
        // From the beginning of the first page on: the allocator keeps a few bytes of its own there,
        // and without them the first huge page would not be whole.
        let before = first.addr().checked_rem(page).unwrap_or(0);
        // SAFETY: the advice changes neither the contents of any memory nor who may use it, and the
        // pages are those of `values`. A system that does not take the advice returns an error, which
        // makes no difference.
        #[allow(unsafe_code)]
        unsafe {
            let start = first.cast_mut().wrapping_byte_sub(before).cast();
            libc::madvise(start, before + size_of_val(values), libc::MADV_HUGEPAGE);
        }
    }

    #[cfg(not(all(target_os = "linux", not(any(loom, shuttle, miri)))))]
    pub fn prefer<T>(_: &[T]) {}
}
