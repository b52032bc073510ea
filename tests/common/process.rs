//! Test programs that run themselves again, to be killed or refused things, or to get in the way.

use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;

/// This test program, to be run again: it does nothing but its ignored test of this name, on its main thread, with
/// `task` to be found by [`task`].
pub fn again(test: &str, task: &[&str]) -> Command {
    let mut command = Command::new(env::current_exe().expect("the path of this program"));
    command.args([test, "--exact", "--ignored", "--nocapture", "--test-threads=1"]);
    command.env("KOEL_TASK", task.join("\n"));
    command
}

/// What this process was started for, if it was started by [`again`].
pub fn task() -> Option<Vec<String>> {
    let task = env::var("KOEL_TASK").ok()?;
    Some(task.split('\n').map(str::to_string).collect())
}

/// The names of what is in a folder.
pub fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder");
    let name = |entry: fs::DirEntry| entry.file_name().into_string().expect("a name in UTF-8");
    let mut names: Vec<String> = entries.map(|entry| name(entry.expect("an entry"))).collect();
    names.sort();
    names
}
