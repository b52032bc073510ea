//! Memory: the bytes that a set holds, and how fast random lines can be read.
//!
//! Not all peers report their memory, and some report too little. So the program's allocator can count bytes: those
//! that a set frees when it is dropped, or allocates while it is watched. It counts only then, and what is timed
//! meanwhile seldom allocates.

use super::arguments::Result;
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

static COUNTS: AtomicBool = AtomicBool::new(false);
static TAKEN: AtomicUsize = AtomicUsize::new(0);
static FREED: AtomicUsize = AtomicUsize::new(0);

fn count(counter: &AtomicUsize, bytes: usize) {
    if COUNTS.load(Relaxed) {
        counter.fetch_add(bytes, Relaxed);
    }
}

// SAFETY: every call is passed on to `System` unchanged, and `System` keeps the contract.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(&TAKEN, layout.size());
        // SAFETY: the caller keeps the same contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(&TAKEN, layout.size());
        // SAFETY: the caller keeps the same contract.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, old: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(&TAKEN, size);
        count(&FREED, layout.size());
        // SAFETY: the caller keeps the same contract.
        unsafe { System.realloc(old, layout, size) }
    }

    unsafe fn dealloc(&self, old: *mut u8, layout: Layout) {
        count(&FREED, layout.size());
        // SAFETY: the caller keeps the same contract.
        unsafe { System.dealloc(old, layout) }
    }
}

/// The bytes that koel allocates beside each large table and never touches, so that the table can begin at a huge page.
/// The system provides no memory for them.
const UNTOUCHED: usize = 2 << 20;

/// Returns how many of the allocated bytes a set holds, if it may report the bytes that it touches. The difference has
/// to be a multiple of [`UNTOUCHED`].
pub fn touched(bytes: usize, said: Option<usize>) -> usize {
    let touched = said.unwrap_or(bytes);
    let untouched = bytes.checked_sub(touched).expect("a set holds what it says");
    assert!(untouched.is_multiple_of(UNTOUCHED), "{bytes} bytes, of which it says {touched}");
    touched
}

/// Returns a figure in bytes from a file of the system, such as `4711/status` of a process.
pub fn in_proc(file: &str, field: &str) -> Result<f64> {
    let text = std::fs::read_to_string(format!("/proc/{file}"))?;
    let line = text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    Ok(kib.ok_or(format!("/proc/{file} has no {field}"))? * 1024.0)
}

/// Counts bytes from its start until it is dropped. There may be one at a time, and only one thread may run meanwhile.
pub struct Watch(());

impl Watch {
    pub fn start() -> Self {
        TAKEN.store(0, Relaxed);
        FREED.store(0, Relaxed);
        COUNTS.store(true, Relaxed);
        Watch(())
    }

    /// Returns the bytes that have been allocated since the start, less those that have been freed.
    pub fn held(&self) -> i64 {
        TAKEN.load(Relaxed) as i64 - FREED.load(Relaxed) as i64
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        COUNTS.store(false, Relaxed);
    }
}

/// Returns words that take this many bytes, in huge pages if the system has them.
pub fn words(bytes: usize) -> Vec<AtomicU64> {
    let mut words: Vec<AtomicU64> = Vec::with_capacity(bytes / 8);
    #[cfg(target_os = "linux")]
    {
        let (start, page) = (words.as_ptr() as usize, 4096);
        let first = start.next_multiple_of(page);
        let length = (start + bytes).saturating_sub(first) / page * page;
        // SAFETY: the advice changes neither the contents of memory nor access to it.
        unsafe { libc::madvise(first as *mut _, length, libc::MADV_HUGEPAGE) };
    }
    words.extend((0..bytes / 8).map(|_| AtomicU64::new(1)));
    words
}

/// The number of reads by which [`read_lines`] prefetches ahead.
const AHEAD: u64 = 32;

/// Reads a word of each of `LINES` random lines, `count` times. No read waits for another one, so this is the limit for
/// tables in which an operation reads so many lines.
pub fn read_lines<const LINES: usize>(words: &[AtomicU64], seed: u64, count: u64) -> u64 {
    let place = |number: u64| {
        let mut random = (seed + number).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        random = (random ^ (random >> 32)).wrapping_mul(0xD6E8_FEB8_6659_FD93);
        let scale = |half: u64| ((half * words.len() as u64) >> 32) as usize;
        std::array::from_fn::<usize, LINES, _>(|at| {
            scale(random.rotate_left(32 * at as u32 + 32) & 0xFFFF_FFFF)
        })
    };
    let mut sum = 0_u64;
    for number in 0..count {
        place(number + AHEAD).into_iter().for_each(|at| prefetch(&words[at]));
        let read = place(number).map(|at| words[at].load(Relaxed));
        sum = read.into_iter().fold(sum, u64::wrapping_add);
    }
    sum
}

#[inline]
fn prefetch(word: &AtomicU64) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch is a hint, and the address is that of a live word.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(word.as_ptr().cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = word;
}
