//! Runs tests on the main thread, one after the other, for programs that cannot have the threads of libtest.

use std::env::args;
use std::panic::catch_unwind;
use std::time::Instant;

/// A name and a test.
pub type Test = (&'static str, fn());

/// Makes a list of tests of their functions.
#[allow(unused_macros)] // not every test program uses it
macro_rules! tests {
    ($($test:ident),+ $(,)?) => { [$((stringify!($test), $test as fn())),+] };
}
#[allow(unused_imports)] // likewise
pub(crate) use tests;

/// Returns the tests whose names contain one of the arguments, or all if there is none. Flags are for libtest and are
/// ignored, but for `--list`, which prints the names.
pub fn wanted(mut tests: Vec<Test>) -> Vec<Test> {
    let (flags, names): (Vec<_>, Vec<_>) = args().skip(1).partition(|word| word.starts_with('-'));
    if flags.iter().any(|flag| flag == "--list") {
        tests.drain(..).for_each(|(name, _)| println!("{name}: test"));
    }
    tests.retain(|(name, _)| names.is_empty() || names.iter().any(|part| name.contains(part)));
    tests
}

/// Runs the tests, and panics if one has failed.
pub fn run(tests: Vec<Test>) {
    let (count, mut failed) = (tests.len(), Vec::new());
    for (name, test) in tests {
        let begin = Instant::now();
        println!("test {name}");
        let passed = catch_unwind(test).is_ok();
        let how = if passed { "ok" } else { "FAILED" };
        println!("    {how}, {:.1} s", begin.elapsed().as_secs_f64());
        failed.extend((!passed).then_some(name));
    }
    let how = if failed.is_empty() { "ok" } else { "FAILED" };
    println!("\ntest result: {how}. {} passed; {} failed", count - failed.len(), failed.len());
    assert!(failed.is_empty(), "failed: {}", failed.join(", "));
}
