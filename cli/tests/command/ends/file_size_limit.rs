//! Exceeding the file size limit is reported as an error. What was written is saved, and ends in a
//! whole line.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use tempfile::TempDir;

fn shell(folder: &Path, command: &str) -> Output {
    let command = command.replace("koel", env!("CARGO_BIN_EXE_koel"));
    Command::new("sh").args(["-c", &command]).current_dir(folder).output().unwrap()
}

#[test]
fn lines_beyond_the_file_size_limit_come_in_the_next_run() {
    let folder = TempDir::new().unwrap();
    let folder = folder.path();
    // The unit is 512 or 1024 bytes, depending on the shell.
    let limited = "ulimit -f 2000; koel dedup -q --state state -o output --sample 100000";
    let limited = shell(folder, limited);
    let said = String::from_utf8_lossy(&limited.stderr);
    assert_eq!(limited.status.code(), Some(2), "{said}");
    assert!(said.contains("too large"), "{said}");
    assert!(fs::read(folder.join("output")).unwrap().ends_with(b"\n"));

    let rest = shell(folder, "koel dedup -q --state state -o output --sample 100000");
    assert!(rest.status.success());
    let all = shell(folder, "koel dedup -q --rate 1e-7 --sample 100000").stdout;
    assert!(fs::read(folder.join("output")).unwrap() == all);
}
