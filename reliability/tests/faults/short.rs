//! Writes that are cut off in the middle.
//!
//! strace can report that a write was short, but cannot make it short. So here it only watches: a
//! limit on the length of files cuts off the writes, or a full disk does.

use crate::child::{filling, saving};
use crate::kind::Kind;
use crate::rounds::rounds;
use crate::scene::{Holds, Scene, both, old_file, saved};
use crate::strace::watch;

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::Command;

pub const TESTS: &[(&str, fn())] = &[
    ("a_save_that_exceeds_a_file_size_limit_leaves_the_old_file", || both(limit)),
    ("a_save_that_fills_the_disk_leaves_the_old_file", || both(fill)),
];

/// Returns the process, started by a shell that runs this script first.
fn after(shell: &str, words: &[&str], process: &Command) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", shell, "sh"]).args(words);
    command.arg(process.get_program()).args(process.get_args());
    for (name, value) in process.get_envs() {
        command.env(name, value.expect("a value"));
    }
    command
}

const IGNORE_THE_SIGNAL: &str = r#"trap '' XFSZ; exec prlimit --fsize="$@""#;
const BE_KILLED: &str = r#"exec prlimit --core=0 --fsize="$@""#;

fn limit(kind: Kind) {
    let old = old_file(kind);
    let (scene, _) = saved(kind, Some(&old));
    let length = std::fs::metadata(&scene.path).expect("a file").len();

    let limits = [1, 8, 151, 152, 153, 4_096, length / 3, length - 49, length - 48, length - 1];
    // A short run tries every third limit, and others for the other kind of filter.
    let (first, step) = rounds((kind.name().len() % 3, 3), (0, 1));
    let limits = limits.iter().skip(first).step_by(step);
    for &limit in limits.clone() {
        // Whether or not the signal for exceeding the limit would kill the process.
        for signal in [IGNORE_THE_SIGNAL, BE_KILLED] {
            let scene = Scene::new(kind, Some(&old));
            let process = after(signal, &[&limit.to_string()], &saving(kind, &scene.path));
            let run = watch(&process, &[]);
            let outcome = run.outcome.as_deref().expect("the process lives");
            assert!(outcome.contains("cannot write: File too large"), "{limit}: {outcome}");
            assert_eq!(scene.holds(), Holds::Old, "{limit}");
            assert!(!scene.has_unfinished(), "{limit}");
            scene.go_on();
        }
    }
    println!(
        "checked: {} limits of the length of a file that a save exceeds: 0 files that are neither old nor new",
        limits.count()
    );
    let enough = (length + (1 << 17)).to_string();
    let run = watch(&after(IGNORE_THE_SIGNAL, &[&enough], &saving(kind, &scene.path)), &[]);
    assert_eq!(run.outcome.as_deref(), Some("done"));
}

/// Fills the disk with a file, but for so many pages.
pub fn fill_but(filler: &Path, pages: u64) {
    let mut file = File::create(filler).expect("a file");
    for size in [1 << 20, 4_096] {
        while file.write(&vec![1; size]).is_ok_and(|written| written > 0) {}
    }
    let length = file.metadata().expect("a file").len();
    file.set_len(length.saturating_sub(4_096 * pages)).expect("a shorter file");
}

/// Saves to a small file system in memory.
fn fill(kind: Kind) {
    let folder = tempfile::tempdir().expect("a folder");
    if let Some(said) = on_small_disk(folder.path(), "8m", &filling(kind, folder.path())) {
        println!("{said}");
    }
}

/// Runs a process with a file system in memory at a folder, which only the process sees and which ends with it. Returns
/// what it said, or `None` if no file system can be mounted here.
pub fn on_small_disk(folder: &Path, size: &str, process: &Command) -> Option<String> {
    let folder = folder.to_str().expect("a path in UTF-8");
    let mount = format!(r#"mount -t tmpfs -o size={size} tmpfs "$0" && exec "$@""#);
    let alone = || {
        let mut unshare = Command::new("unshare");
        unshare.args(["--mount", "--user", "--map-root-user", "sh", "-c", &mount, folder]);
        unshare
    };
    if !alone().arg("true").output().is_ok_and(|output| output.status.success()) {
        println!(
            "    SKIPPED: the full disk was not tested, because no file system can be mounted here"
        );
        return None;
    }
    let mut unshare = alone();
    unshare.arg(process.get_program()).args(process.get_args());
    unshare.envs(process.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output = unshare.output().expect("unshare");
    let said = String::from_utf8_lossy(&output.stdout);
    let said_too = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}\n{said_too}");
    Some(said.trim().to_string())
}
