//! When a run ends early, the number of known lines in its summary is that of the state, although
//! threads were still running.

use crate::common::rounds;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use tempfile::TempDir;

const KOEL: &str = env!("CARGO_BIN_EXE_koel");

fn number(json: &[u8], name: &str) -> u64 {
    let json: serde_json::Value = serde_json::from_slice(json).unwrap();
    json[name].as_u64().unwrap()
}

fn ends_early(folder: &Path, threads: &str, bytes: usize) {
    let mut koel = Command::new(KOEL)
        .args(["dedup", "--json", "--state", "state", "--sample", "1000000", "--threads", threads])
        .current_dir(folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    koel.stdout.take().unwrap().read_exact(&mut vec![0; bytes]).unwrap();
    let said = koel.wait_with_output().unwrap().stderr;
    let info = Command::new(KOEL).args(["info", "--json", "state"]).current_dir(folder).output();
    assert_eq!(number(&said, "known"), number(&info.unwrap().stdout, "items"));
}

#[test]
fn after_a_broken_pipe_the_summary_counts_what_was_saved() {
    let (most, times) = rounds((4_000_000, 2), (16_000_000, 8));
    for round in 0..times {
        for threads in rounds(&["8"][..], &["2", "8", "64"]) {
            let folder = TempDir::new().unwrap();
            ends_early(folder.path(), threads, 1 + round * most / times);
        }
    }
}
