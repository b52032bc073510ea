//! Child processes: what they say, when they are killed, and what they have on disk meanwhile.

use crate::set::{Kind, Maker, Result};
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::sleep;
use std::time::Duration;

/// A Python that has Scrapy.
pub const PYTHON: &str = "KOEL_PYTHON";

/// A process that works on a set.
pub struct Work {
    child: Child,
    /// Whoever holds it open lets the process wait.
    _input: ChildStdin,
    output: BufReader<ChildStdout>,
}

/// What the process has said.
pub type Figures = BTreeMap<String, f64>;

pub fn python() -> Option<PathBuf> {
    let python = PathBuf::from(std::env::var_os(PYTHON)?);
    let mut command = Command::new(&python);
    command.args(["-c", "import scrapy"]).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success()).then_some(python)
}

pub fn start(kind: &Kind, task: &str, folder: &Path, items: u64) -> Result<Work> {
    let mut command = match kind.maker {
        Maker::Here(_) => {
            let mut command = Command::new(std::env::current_exe()?);
            command.args(["worker", kind.name]);
            command
        }
        Maker::Scrapy => {
            let mut command = Command::new(python().ok_or("no Python with Scrapy")?);
            command.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/src/seen.py"));
            command
        }
    };
    command.arg(task).arg(folder).arg(items.to_string());
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let (input, output) = (child.stdin.take(), child.stdout.take());
    let (input, output) = input.zip(output).ok_or("a process without pipes")?;
    Ok(Work { child, _input: input, output: BufReader::new(output) })
}

impl Work {
    /// Reads what the process says, until it names the process that has the set, or ends.
    pub fn figures(&mut self) -> Result<Figures> {
        let mut figures = Figures::new();
        let mut line = String::new();
        while !figures.contains_key("process") && self.output.read_line(&mut line)? > 0 {
            let (name, figure) = line.trim_end().split_once(' ').ok_or("not a figure")?;
            figures.insert(name.into(), figure.parse()?);
            line.clear();
        }
        Ok(figures)
    }

    /// Waits for the end, which has to be a good one.
    pub fn end(mut self) -> Result<()> {
        let status = self.child.wait()?;
        if status.success() { Ok(()) } else { Err(format!("a worker ended with {status}").into()) }
    }

    /// Kills the process that has the set. The worker ends, too.
    pub fn kill(mut self, process: f64) -> Result<()> {
        if process as u32 != self.child.id() {
            // It is a child of the worker.
            Command::new("kill").args(["-9", &(process as u32).to_string()]).status()?;
        }
        self.child.kill()?;
        self.child.wait()?;
        // The worker cannot wait for its own child any more.
        while Path::new(&format!("/proc/{}/fd/0", process as u32)).exists() {
            sleep(Duration::from_millis(1));
        }
        Ok(())
    }
}

/// The bytes that a folder takes on disk.
pub fn on_disk(folder: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(folder) else { return 0 };
    let bytes = |entry: fs::DirEntry| match entry.metadata() {
        Ok(about) if about.is_dir() => on_disk(&entry.path()),
        Ok(about) => about.blocks() * 512,
        // It has just gone.
        Err(_) => 0,
    };
    entries.flatten().map(bytes).sum()
}

/// Does something while the folder is watched, and returns the most that it took on disk as well.
pub fn watched<T>(folder: &Path, work: impl FnOnce() -> T) -> (T, u64) {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let watch = || {
            let mut most = 0;
            while !is_over.load(Relaxed) {
                most = most.max(on_disk(folder));
                sleep(Duration::from_millis(20));
            }
            most
        };
        let watch = scope.spawn(watch);
        let done = work();
        is_over.store(true, Relaxed);
        (done, watch.join().expect("no watch panics").max(on_disk(folder)))
    })
}
