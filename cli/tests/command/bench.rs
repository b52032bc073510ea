//! `koel bench`: the table, the plot, and errors. No result is compared with anything.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

fn bench(arguments: &[&str], svg: Option<&Path>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_koel"));
    command.arg("bench").args(arguments).stdin(Stdio::null());
    if let Some(path) = svg {
        command.arg("--svg").arg(path);
    }
    command
}

/// Runs a command that has to fail, and returns its standard error.
fn refusal(mut command: Command) -> String {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let said = String::from_utf8(stderr).unwrap();
    assert_eq!(status.code(), Some(2), "{said}");
    assert!(stdout.is_empty() && !said.contains("panicked"), "{said}");
    said
}

const NAMES: [&str; 6] =
    ["insert, new", "insert, known", "lookup, hit", "lookup, miss", "remove", "mix 9 : 1"];
const GROUPS: [&str; 3] = ["One by one", "In batches", "Growing"];

#[test]
fn each_workload_has_a_row_and_a_curve() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("figures.svg");
    let done = bench(&["--size", "64K", "--threads", "2,1"], Some(&path)).output().unwrap();
    let said = String::from_utf8(done.stderr).unwrap();
    assert!(done.status.success() && said.is_empty(), "{said}");

    let text = String::from_utf8(done.stdout).unwrap();
    assert!(text.contains("A table of 6") && text.contains(" items of 16 bits, "), "{text}");
    let header = "1 thread   2 threads   2 threads : 1";
    let table = text.lines().skip_while(|line| line.trim_start() != header).skip(1);
    let rows: Vec<&str> = table.take_while(|line| !line.is_empty()).collect();
    assert_eq!(rows.len(), 3 + 11, "{text}");
    for row in rows.iter().filter(|row| !GROUPS.contains(row)) {
        let name = NAMES.iter().find(|name| row.trim_start().starts_with(**name)).unwrap();
        let (_, cells) = row.split_once(name).unwrap();
        let figures = cells.split_whitespace().map(|cell| cell.parse::<f64>().unwrap());
        let figures: Vec<f64> = figures.collect();
        assert!(figures.len() == 3 && figures.iter().all(|figure| *figure > 0.0), "{row}");
    }

    let svg = fs::read_to_string(&path).unwrap();
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"), "{svg}");
    for name in NAMES.iter().chain(&GROUPS) {
        assert!(svg.contains(&format!(">{name}</text>")), "{name}: {svg}");
    }
    assert_eq!(svg.matches("<polyline").count(), 11, "{svg}");
    assert_eq!(svg.matches("<text").count(), svg.matches("</text>").count());
    assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    // No temporary file is left.
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn what_makes_no_sense_is_refused() {
    for (arguments, message) in [
        (["--threads", "0"], "a number from 1 to 256"),
        (["--threads", "1,,2"], "a number from 1 to 256"),
        (["--size", "0"], "a number of bytes"),
        (["--size", "1K"], "at least 64.00 KiB"),
        (["--size", "100T"], "smaller --size"),
        (["--size", "16000000T"], "smaller --size"),
    ] {
        let said = refusal(bench(&arguments, None));
        assert!(said.contains(message), "{arguments:?}: {said}");
    }
}

/// The error comes before anything is measured: this size would take minutes.
#[test]
fn a_picture_that_cannot_be_written_is_refused_at_once() {
    let folder = TempDir::new().unwrap();
    let (missing, file) = (folder.path().join("missing"), folder.path().join("file"));
    fs::write(&file, "not a folder").unwrap();
    for path in [&missing.join("figures.svg"), &file.join("figures.svg"), folder.path()] {
        let said = refusal(bench(&["--size", "1G"], Some(path)));
        assert!(said.contains(path.to_str().unwrap()), "{said}");
        assert!(
            said.contains("cannot write the plot") && said.contains("choose another file"),
            "{said}"
        );
    }
    assert_eq!(fs::read_to_string(&file).unwrap(), "not a folder");
}

#[test]
fn a_picture_replaces_the_one_before() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("figures.svg");
    fs::write(&path, "before").unwrap();
    assert!(
        bench(&["--size", "64K", "--threads", "1"], Some(&path)).output().unwrap().status.success()
    );
    assert!(fs::read_to_string(&path).unwrap().starts_with("<svg "));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

/// A reader that has gone is no error; a full disk is one.
#[cfg(target_os = "linux")]
#[test]
fn a_table_that_cannot_be_printed_is_no_panic() {
    let small = || bench(&["--size", "64K", "--threads", "1"], None);
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let done = small().stdout(writer).stderr(Stdio::piped()).output().unwrap();
    assert!(done.status.success() && done.stderr.is_empty(), "{done:?}");

    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let mut command = small();
    let said = refusal({
        command.stdout(full);
        command
    });
    assert!(said.contains("standard output"), "{said}");
}
