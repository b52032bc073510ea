//! A state is never overwritten as an output, and an output is never an input, whatever their
//! names.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use tempfile::TempDir;

fn koel(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_koel"));
    command.args(arguments).current_dir(folder).output().unwrap()
}

fn refusal(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(2));
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_state_that_is_named_as_output_stays_as_it_is() {
    let folder = TempDir::new().unwrap();
    let folder = folder.path();
    fs::write(folder.join("lines"), "a\nb\n").unwrap();
    assert!(koel(folder, &["add", "-q", "state", "lines"]).status.success());
    fs::hard_link(folder.join("state"), folder.join("another-name")).unwrap();
    std::os::unix::fs::symlink("state", folder.join("link")).unwrap();
    let before = fs::read(folder.join("state")).unwrap();
    for name in ["state", "another-name", "link"] {
        for arguments in [
            ["dedup", "--state", "state", "-o", name, "lines"].as_slice(),
            ["dedup", "--count", "--state", "state", "-o", name, "lines"].as_slice(),
            ["query", "state", "-o", name, "lines"].as_slice(),
            ["query", "--count", "state", "-o", name, "lines"].as_slice(),
        ] {
            let said = refusal(&koel(folder, arguments));
            assert!(said.contains("this is the state"), "{said}");
            assert!(fs::read(folder.join("state")).unwrap() == before, "{arguments:?}");
        }
    }
}

#[test]
fn an_output_that_was_not_there_is_no_input_either() {
    let folder = TempDir::new().unwrap();
    let folder = folder.path();
    fs::write(folder.join("lines"), "a\na\n").unwrap();
    // What is written has no name yet, so it is not read again, as repeated lines without end.
    let ran = koel(folder, &["dedup", "-d", "lines", "new", "-o", "new"]);
    assert_eq!(ran.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&ran.stderr).contains("new: No such file"));
    assert_eq!(fs::read(folder.join("new")).unwrap(), b"a\n");
}
