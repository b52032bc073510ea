//! What a filter says that it gave back is what the system has: by the allocator's account, and by the memory of the
//! process.

use crate::common::rounds;
use crate::now;
use crate::runner::{Test, tests};
use koel::ConcurrentCuckooFilter;

pub const TESTS: &[Test] = &tests![what_was_given_back_is_not_in_memory];

/// The pages of the process that are in memory and of no file, in bytes.
fn resident() -> usize {
    let figures = std::fs::read_to_string("/proc/self/smaps_rollup").expect("the system's figures");
    let line = figures.lines().find(|line| line.starts_with("Anonymous:")).expect("a figure");
    let kibibytes = line.split_whitespace().nth(1).expect("a number");
    1024 * kibibytes.parse::<usize>().expect("a number")
}

/// Lets the system make huge pages of small ones for this process, or keeps it from that. (It soon makes one again of
/// what a huge page that was given back in part has left.) Huge pages that are there stay.
fn let_the_system_make_huge_pages(may: bool) {
    const NONE: libc::c_ulong = 0;
    // SAFETY: this option takes a number and no address.
    let result = unsafe {
        libc::prctl(libc::PR_SET_THP_DISABLE, libc::c_ulong::from(!may), NONE, NONE, NONE)
    };
    assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
}

fn what_was_given_back_is_not_in_memory() {
    // Tables in small pages, and in huge ones.
    for (usual, most, is_huge) in [
        (30_000, rounds(1_000_000, 2_000_000u64), false),
        (200_000, rounds(5_000_000, 12_000_000), true),
    ] {
        let (allocated, in_memory) = (now(), resident());
        let builder = ConcurrentCuckooFilter::builder().capacity(usual as usize).growing();
        let filter = builder.false_positive_rate(0.001).build().expect("memory");
        (0..most).for_each(|item| filter.insert(&item).expect("memory"));
        let full = filter.size_in_bytes();
        assert_eq!(full > 16 << 20, is_huge, "{full} bytes");
        let beside = size_of_val(&filter);
        let account = now() - allocated + beside;
        // The thread keeps a few words of its own.
        assert!(account.abs_diff(full) < 1_000, "{account}, not {full}");
        (usual..most).for_each(|item| _ = filter.remove(&item));

        let_the_system_make_huge_pages(false);
        let given_back = filter.shrink();
        let size = filter.size_in_bytes();
        assert!(size < full / 8, "{size} of {full} bytes");
        // The allocator may have kept memory of the filter before, which this one took.
        let grown = resident().saturating_sub(in_memory);
        assert!(grown < size + full / 50 + 300_000, "{grown} bytes in memory, not {size}");
        let_the_system_make_huge_pages(true);
        let short = now() - allocated + beside - size;
        // A shorter list of the directory may have been made.
        assert!(short.abs_diff(given_back) < 10_000, "{short}, not {given_back}");
        assert!((0..usual).all(|item| filter.contains(&item)));

        // Another burst uses the same places.
        (most..2 * most).for_each(|item| filter.insert(&item).expect("memory"));
        let again = now() - allocated + beside;
        assert!(again < full + full / 5, "{again} bytes after {full}");
        assert!(filter.size_in_bytes() <= again);
        assert!((0..usual).all(|item| filter.contains(&item)));
    }
}
