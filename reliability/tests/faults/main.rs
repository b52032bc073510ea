//! Saves and loads whose system calls fail, are cut short, or are killed, one call after the other.
//!
//! `strace` injects the faults into a child process, which runs a task from `child`. Without a
//! working strace, the tests are skipped with a message; with `KOEL_STRACE=required` in the
//! environment, they fail instead.
//!
//! The child has to work on its main thread, but libtest runs tests on threads of its own. So this
//! program has its own `main` instead of libtest.

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
#[cfg(all(target_os = "linux", feature = "durable"))]
mod durable;
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
        #[cfg(feature = "durable")]
        if task[0] == "durable" {
            durable::work(&task);
        }
        child::run(&task);
    }
    let mut tests: Vec<(&str, fn())> = Vec::new();
    for part in [order::TESTS, kills::TESTS, refusals::TESTS, short::TESTS, reads::TESTS] {
        tests.extend(part);
    }
    #[cfg(feature = "durable")]
    tests.extend(durable::TESTS);
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.iter().any(|argument| argument == "--list") {
        tests.iter().for_each(|(name, _)| println!("{name}: test"));
        return;
    }
    // Flags are for libtest and are ignored. Other arguments select tests whose name contains them.
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

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("SKIPPED: these tests inject faults with strace, which exists only on Linux");
}
