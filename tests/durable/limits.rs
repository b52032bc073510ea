//! A process that may write no long files.

use crate::process::{again, task};
use crate::{bare, try_open};
use koel::{DurableError, DurableErrorKind, DurableFilter};
use std::io::ErrorKind;
use std::path::Path;

/// Sets how long the files of this process may become.
fn limit_files(bytes: u64) {
    let limit = libc::rlimit { rlim_cur: bytes, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: it reads one structure.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &raw const limit) }, 0);
}

fn open(path: &Path, capacity: usize) -> Result<DurableFilter, DurableError> {
    try_open(path, &bare().capacity(capacity).growing())
}

/// Checks an error that the limit causes.
fn check(error: &DurableError) {
    assert_eq!(error.io_error().expect("of the system").kind(), ErrorKind::FileTooLarge, "{error}");
    assert!(error.to_string().contains("raise its limit (`ulimit -f`)"), "{error}");
}

#[test]
#[ignore = "a child process of the test below"]
fn under_a_limit() {
    let Some(task) = task() else { return };
    let path = Path::new(&task[0]).join("seen.koel");
    // Less than the state, than the journal, than its header, and than the number in the lock file.
    for most in [1 << 20, 100_000, 10, 1] {
        limit_files(most);
        check(&open(&path, if most == 1 << 20 { 1_000_000 } else { 1_000 }).expect_err("a limit"));
    }
    // A save that has nothing to do with a durable filter has the same limit.
    limit_files(100_000);
    let filter = bare().capacity(1_000_000).build().expect("memory");
    let error = filter.save(Path::new(&task[0]).join("plain.koel")).expect_err("a limit");
    assert_eq!(error.io_error().expect("of the system").kind(), ErrorKind::FileTooLarge, "{error}");
    // A journal of 256 KiB cannot get longer, nor can the state get as long as a million items need.
    limit_files(300_000);
    let seen = open(&path, 1_000).expect("a filter");
    let (refused, error) =
        (0..).find_map(|item| Some((item, seen.insert(&item).err()?))).expect("a limit");
    assert_eq!(error.kind(), DurableErrorKind::NoSpace, "{error}");
    check(&error);
    limit_files(100_000_000);
    let count = 1_000_000u64;
    (refused..count).for_each(|item| seen.insert(&item).expect("room"));
    limit_files(300_000);
    check(&seen.checkpoint().expect_err("a limit"));
    limit_files(100_000_000);
    seen.checkpoint().expect("room");
    // In memory, the filter takes more.
    let state = std::fs::metadata(&path).expect("a state").len();
    assert!(seen.stats().size_in_bytes as u64 > state + 20_000, "{state}");
    limit_files(state);
    assert!(seen.remove(&0u64).expect("room"));
    seen.checkpoint().expect("as much room as the state takes");
    assert_eq!(seen.len() as u64, count - 1);
    assert!((1..count).all(|item| seen.contains(&item)));
    seen.close().expect("nothing to do");
}

#[test]
fn a_limit_of_the_length_of_files_is_an_error_and_no_signal() {
    let folder = tempfile::tempdir().expect("a folder");
    let words = [folder.path().to_str().expect("text")];
    let status = again("limits::under_a_limit", &words).status().expect("a process");
    assert!(status.success(), "{status}");
}
