//! Asking for memory before it is needed: the only `unsafe` code of the crate.
//!
//! A lookup in a table that does not fit the caches waits for memory most of its time. A batch
//! knows which words it will need next, and asks for them dozens of items ahead, so that many
//! fetches are under way at once.
//!
//! What earned it, `cargo bench --bench many`, 128 MiB, one thread: lookups in batches with it
//! PREFETCH_WITH M/s, without it PREFETCH_WITHOUT M/s.

/// Starts fetching the cache line of `value`. It changes nothing but how soon a read of it is done.
#[inline]
#[cfg_attr(not(target_arch = "x86_64"), allow(unused_variables))]
pub fn prefetch<T>(value: &T) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch is a hint that never faults, whatever the address, and this one is of
        // a value that is there. Every x86-64 has the instruction.
        #[allow(unsafe_code)]
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(value).cast());
        }
    }
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    {
        // SAFETY: as above; the instruction reads no register but the address and writes nothing.
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
