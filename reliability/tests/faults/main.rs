//! Saves and loads whose system calls fail, are cut short, or are killed, one call after the other.
//!
//! `strace` injects the faults into a child process, which runs a task from `child`. Without a
//! working strace, the tests are skipped with a message; with `KOEL_STRACE=required` in the
//! environment, they fail instead.
//!
//! The child has to work on its main thread, but libtest runs tests on threads of its own. So this
//! program has its own `main` instead of libtest.

#[cfg(target_os = "linux")]
mod child;
#[cfg(target_os = "linux")]
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
use reliability::{common, common::rounds, kind, process, runner};

#[cfg(target_os = "linux")]
fn main() {
    if let Some(task) = process::task() {
        if task[0] == "durable" {
            durable::work(&task);
        }
        child::run(&task);
    }
    let parts = [order::TESTS, kills::TESTS, refusals::TESTS, short::TESTS, reads::TESTS];
    let tests = runner::wanted([parts.concat(), durable::TESTS.to_vec()].concat());
    if !tests.is_empty() && strace::is_there() {
        runner::run(tests);
    }
}

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("SKIPPED: these tests inject faults with strace, which exists only on Linux");
}
