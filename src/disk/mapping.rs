//! Files as words in memory: mapped, so that stores reach the file, and loads come from the system's cache of it.

use memmap2::{Advice, MmapOptions, MmapRaw};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::atomic::AtomicU64;

/// A part of a file that is mapped into memory.
pub(crate) struct Mapping {
    raw: MmapRaw,
}

impl Mapping {
    /// The words of the mapping, in the byte order of the file.
    #[inline]
    pub(crate) fn words(&self) -> &[AtomicU64] {
        // SAFETY: the mapping begins at a page, has this length, and lives as long as the result. This process accesses
        // it only as atomics. Another process that writes to the file changes the words at any moment, which atomics
        // allow. Read-only memory is mapped on 64-bit targets only, where a relaxed load of an aligned word never
        // writes, and its words are only loaded. If another process makes the file shorter, the system kills this one
        // when it accesses a word that is gone, as with any mapping.
        #[allow(unsafe_code)]
        unsafe {
            std::slice::from_raw_parts(self.raw.as_mut_ptr().cast(), self.raw.len() / 8)
        }
    }
}

impl Mapping {
    /// Maps the first `length` bytes of a file, or copies them into memory where the system does not map it. Only load
    /// their words: the memory is read-only.
    pub(crate) fn of_file(file: &File, length: u64) -> io::Result<Self> {
        let length = length.try_into().map_err(|_| io::ErrorKind::OutOfMemory)?;
        // On other targets, a load of 64 bits may be an instruction that writes.
        if cfg!(target_pointer_width = "64")
            && let Ok(raw) = MmapOptions::new().len(length).map_raw_read_only(file)
        {
            // Where the system has huge pages for files.
            #[cfg(target_os = "linux")]
            let _ = raw.advise(Advice::HugePage);
            return Ok(Mapping { raw });
        }
        Self::copy_of(file, length)
    }

    fn copy_of(file: &File, length: usize) -> io::Result<Self> {
        let mut copy = MmapOptions::new().len(length).map_anon()?;
        file.read_exact_at(&mut copy, 0)?;
        Ok(Mapping { raw: copy.into() })
    }

    /// Asks the system to read these bytes from the disk, and does not wait for them.
    pub(crate) fn will_need(&self, at: u64, length: usize) {
        let _ = self.raw.advise_range(Advice::WillNeed, at as usize, length);
    }
}

#[cfg(feature = "durable")]
impl Mapping {
    /// Maps bytes that are allocated in a file, which is open for reading and writing.
    pub(crate) fn writable(file: &File, at: u64, length: usize) -> io::Result<Self> {
        Ok(Mapping { raw: MmapOptions::new().offset(at).len(length).map_raw(file)? })
    }

    /// Writes everything that was stored to the disk.
    pub(crate) fn flush(&self) -> io::Result<()> {
        self.raw.flush()
    }

    /// Maps some pages now and together, and not each when it is first written.
    pub(crate) fn populate(&self, at: usize, length: usize) {
        #[cfg(target_os = "linux")]
        let _ = self.raw.advise_range(Advice::PopulateWrite, at, length);
        #[cfg(not(target_os = "linux"))]
        let _ = (at, length);
    }
}

#[cfg(all(test, feature = "durable", not(miri)))]
mod tests {
    use super::*;
    use std::io::Write;
    use std::sync::atomic::Ordering;

    #[test]
    fn a_copy_of_a_file_has_the_words_of_its_mapping() {
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(&(0..1_000u64).flat_map(u64::to_ne_bytes).collect::<Vec<u8>>())
            .expect("a write");
        let both = [Mapping::of_file(&file, 8_000), Mapping::copy_of(&file, 8_000)];
        let both = both.map(|mapping| mapping.expect("a mapping"));
        for mapping in &both {
            mapping.will_need(4_096, 800);
            let words = mapping.words().iter().map(|word| word.load(Ordering::Relaxed));
            assert!(words.eq(0..1_000));
        }
        assert!(Mapping::copy_of(&file, 8_001).is_err());
    }
}
