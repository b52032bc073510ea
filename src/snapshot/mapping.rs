//! A file that is mapped into memory to be read.

pub use imp::Mapping;

#[cfg(all(unix, target_pointer_width = "64", not(any(loom, shuttle))))]
mod imp {
    use memmap2::{Advice, MmapOptions, MmapRaw};
    use std::fs::File;
    use std::sync::atomic::AtomicU64;

    /// The first bytes of a file, mapped into memory.
    pub struct Mapping {
        raw: MmapRaw,
    }

    impl Mapping {
        /// Maps the first `length` bytes. Returns `None` if the system cannot map this file.
        pub fn new(file: &File, length: u64) -> Option<Self> {
            let length = usize::try_from(length).ok()?;
            let raw = MmapOptions::new().len(length).map_raw_read_only(file).ok()?;
            Some(Mapping { raw })
        }

        /// Asks the system to read these bytes from the disk, and does not wait for them.
        pub fn will_need(&self, at: u64, length: usize) {
            let _ = self.raw.advise_range(Advice::WillNeed, at as usize, length);
        }

        /// The words of the file, in its byte order. Only load them: the memory is read-only.
        #[inline]
        pub fn words(&self) -> &[AtomicU64] {
            // SAFETY: the mapping begins at a page, has this length, and lives as long as the result. A relaxed load
            // of an aligned word is allowed in read-only memory on every 64-bit target, and nothing stores to these
            // words or loads them in another way. Another process that writes to the file may change them at any
            // moment, which is no data race, because they are atomics. (If it makes the file shorter, the system kills
            // this process when it loads a word that is gone.)
            #[allow(unsafe_code)]
            unsafe {
                std::slice::from_raw_parts(self.raw.as_ptr().cast(), self.raw.len() / 8)
            }
        }
    }
}

/// No mapping. On a machine of 32 bits, a load of 64 bits may be an instruction that writes, and a large file does not
/// fit into the address space.
#[cfg(not(all(unix, target_pointer_width = "64", not(any(loom, shuttle)))))]
mod imp {
    use std::fs::File;
    use std::sync::atomic::AtomicU64;

    pub enum Mapping {}

    impl Mapping {
        pub fn new(_: &File, _: u64) -> Option<Self> {
            None
        }

        pub fn will_need(&self, _: u64, _: usize) {
            match *self {}
        }

        pub fn words(&self) -> &[AtomicU64] {
            match *self {}
        }
    }
}
