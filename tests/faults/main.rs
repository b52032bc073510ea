//! Saves and loads that the system refuses, cuts short or kills, at one system call after the other.
//!
//! `strace` does that to a process of its own, which does what is in `child`. Where there is no strace,
//! nothing is tested, and that is said; with `KOEL_STRACE=required` in the environment it is a failure.
//!
//! The threads of libtest would be in the way, so `main` does here what libtest does elsewhere.

#[cfg(target_os = "linux")]
#[path = "../common/kind.rs"]
mod kind;
#[cfg(target_os = "linux")]
#[path = "../common/process.rs"]
mod process;

#[cfg(target_os = "linux")]
#[path = "../common/rounds.rs"]
mod rounds;

#[cfg(target_os = "linux")]
mod child;
#[cfg(target_os = "linux")]
mod kills;
#[cfg(target_os = "linux")]
mod order;
#[cfg(target_os = "linux")]
mod reads;
#[cfg(target_os = "linux")]
mod refusals;
#[cfg(target_os = "linux")]
mod scene;
#[cfg(target_os = "linux")]
mod short;
#[cfg(target_os = "linux")]
mod strace;

#[cfg(target_os = "linux")]
fn main() {
    if let Some(task) = process::task() {
        child::run(&task);
    }
    let mut tests: Vec<(&str, fn())> = Vec::new();
    for part in [order::TESTS, kills::TESTS, refusals::TESTS, short::TESTS, reads::TESTS] {
        tests.extend(part);
    }
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.iter().any(|argument| argument == "--list") {
        tests.iter().for_each(|(name, _)| println!("{name}: test"));
        return;
    }
    // Other flags are for libtest; what is no flag is a part of the names of the tests to be run.
    let wanted: Vec<&String> = arguments.iter().filter(|word| !word.starts_with('-')).collect();
    tests.retain(|(name, _)| wanted.is_empty() || wanted.iter().any(|part| name.contains(*part)));
    if tests.is_empty() || !strace::is_there() {
        return;
    }
    let mut failed = 0;
    for (name, test) in tests {
        let begin = std::time::Instant::now();
        println!("{name}");
        let passed = std::panic::catch_unwind(test).is_ok();
        failed += u32::from(!passed);
        let how = if passed { "ok" } else { "FAILED" };
        println!("    {how}, {:.1} s", begin.elapsed().as_secs_f64());
    }
    assert_eq!(failed, 0, "some tests have failed");
}

/// Both kinds of filters at once; it is mostly waiting.
#[cfg(target_os = "linux")]
fn both(fixed: impl FnOnce() + Send, growing: impl FnOnce()) {
    std::thread::scope(|scope| {
        scope.spawn(fixed);
        growing();
    });
}

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("SKIPPED: saves and loads are interrupted with strace, which is for Linux");
}
