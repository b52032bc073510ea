//! Other processes can append to an output that koel appends to, or truncate it: no line overwrites
//! another, and no hole appears.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

fn wait_for(path: &Path, text: &str) {
    let start = Instant::now();
    while fs::read_to_string(path).unwrap_or_default() != text {
        assert!(start.elapsed() < Duration::from_secs(20), "{:?}", fs::read_to_string(path));
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn lines_come_after_those_that_others_have_added() {
    let folder = TempDir::new().unwrap();
    let output = folder.path().join("output");
    let mut koel = Command::new(env!("CARGO_BIN_EXE_koel"))
        .args(["dedup", "-q", "--state", "state", "-o", "output"])
        .current_dir(folder.path())
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = koel.stdin.take().unwrap();
    input.write_all(b"a\n").unwrap();
    wait_for(&output, "a\n");
    OpenOptions::new().append(true).open(&output).unwrap().write_all(b"theirs\n").unwrap();
    input.write_all(b"b\n").unwrap();
    wait_for(&output, "a\ntheirs\nb\n");
    fs::write(&output, "").unwrap();
    input.write_all(b"c\n").unwrap();
    wait_for(&output, "c\n");
    drop(input);
    assert!(koel.wait().unwrap().success());
}
