//! Tests that run their own program again as a child process: to kill it, to make its system calls
//! fail, or to let it compete with the parent.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// A folder that is removed in the end, and a path in it.
pub struct Place {
    folder: TempDir,
    pub path: PathBuf,
}

#[allow(dead_code)] // not every test program uses all of it
impl Place {
    pub fn new(name: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(name);
        Place { folder, path }
    }

    /// Returns the path of this name in the folder.
    pub fn at(&self, name: &str) -> PathBuf {
        self.folder().join(name)
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the names in the folder that do not begin with a point, sorted.
    pub fn visible(&self) -> Vec<String> {
        self.names().into_iter().filter(|name| !name.starts_with('.')).collect()
    }

    /// Returns the names in the folder, sorted.
    pub fn names(&self) -> Vec<String> {
        names(self.folder())
    }
}

/// Returns a command that runs this test program again. It runs only the ignored test of this name,
/// on its main thread, and [`task`] returns `task` there.
pub fn again(test: &str, task: &[&str]) -> Command {
    let mut command = Command::new(env::current_exe().expect("the path of this program"));
    command.args([test, "--exact", "--ignored", "--nocapture", "--test-threads=1"]);
    command.env("KOEL_TASK", task.join("\n"));
    command
}

/// Returns the task of this process, if it was started by [`again`].
pub fn task() -> Option<Vec<String>> {
    let task = env::var("KOEL_TASK").ok()?;
    Some(task.split('\n').map(str::to_string).collect())
}

/// Returns the names in a folder, sorted.
pub fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder");
    let name = |entry: fs::DirEntry| entry.file_name().into_string().expect("a name in UTF-8");
    let mut names: Vec<String> = entries.map(|entry| name(entry.expect("an entry"))).collect();
    names.sort();
    names
}
