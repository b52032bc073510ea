//! Memory that is shared with a file, and memory that is not shared with a child.

use memmap2::{MmapOptions, MmapRaw};
use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

/// A part of a file, mapped into memory.
pub struct Mapping {
    raw: MmapRaw,
}

impl Mapping {
    /// Maps bytes that are allocated in the file, which is open for reading and writing.
    pub fn of(file: &File, at: u64, length: usize) -> io::Result<Self> {
        Ok(Mapping { raw: MmapOptions::new().offset(at).len(length).map_raw(file)? })
    }

    /// Lets what was stored be written to the file's disk.
    pub fn flush(&self) -> io::Result<()> {
        self.raw.flush()
    }

    /// Lets the system map some pages now, at once, and not when each of them is first written to.
    pub fn populate(&self, at: usize, length: usize) {
        #[cfg(target_os = "linux")]
        let _ = self.raw.advise_range(memmap2::Advice::PopulateWrite, at, length);
        #[cfg(not(target_os = "linux"))]
        let _ = (at, length);
    }

    /// The words of the mapping.
    #[inline]
    pub fn words(&self) -> &[AtomicU64] {
        // SAFETY: the mapping begins at a page, has a length that is a multiple of a page, and lives as long as the
        // result. All of this process access it as atomics. Another process that writes to the file changes what is
        // there at any moment, which an atomic may do. (One that makes the file shorter has this process killed, as
        // with any mapping.)
        #[allow(unsafe_code)]
        unsafe {
            std::slice::from_raw_parts(self.raw.as_mut_ptr().cast(), self.raw.len() / 8)
        }
    }
}

/// Knows whether this process is the one that made it, or a child that was forked since. A child has the same mappings
/// of the journal, and must not write there.
pub struct Origin {
    process: u32,
    /// A page that Linux clears in a child, so that nobody needs to ask the system. Its mark is stored before the first
    /// other thread sees it, and never by a thread again, so `Relaxed` is enough.
    page: Option<MmapRaw>,
}

impl Origin {
    pub fn new() -> io::Result<Self> {
        let page = MmapRaw::from(MmapOptions::new().len(1).map_anon()?);
        let origin = Origin { process: std::process::id(), page: cleared_in_a_child(page) };
        origin.mark().inspect(|mark| mark.store(1, Ordering::Relaxed));
        Ok(origin)
    }

    #[inline]
    fn mark(&self) -> Option<&AtomicU64> {
        // SAFETY: a page is aligned, is longer than a word, and lives as long as the result.
        #[allow(unsafe_code)]
        self.page.as_ref().map(|page| unsafe { &*page.as_ptr().cast() })
    }

    #[inline]
    pub fn is_here(&self) -> bool {
        match self.mark() {
            Some(mark) => mark.load(Ordering::Relaxed) == 1,
            None => std::process::id() == self.process,
        }
    }
}

#[cfg(target_os = "linux")]
fn cleared_in_a_child(page: MmapRaw) -> Option<MmapRaw> {
    // SAFETY: the page is anonymous and private, and nobody has anything there.
    #[allow(unsafe_code)]
    let done =
        unsafe { libc::madvise(page.as_mut_ptr().cast(), page.len(), libc::MADV_WIPEONFORK) };
    (done == 0).then_some(page)
}

#[cfg(not(target_os = "linux"))]
fn cleared_in_a_child(_: MmapRaw) -> Option<MmapRaw> {
    None
}
