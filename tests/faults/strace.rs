//! Processes whose system calls are watched, and some of them refused or answered with a signal.

use crate::child::{BEGIN, END};
use std::collections::HashMap;
use std::env;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;

/// Whether there is an strace that works. If it is required and there is none, this panics.
pub fn is_there() -> bool {
    let there = Command::new("strace").args(["-o", "/dev/null", "true"]).output();
    if there.is_ok_and(|output| output.status.success()) {
        return true;
    }
    let required = env::var_os("KOEL_STRACE").is_some_and(|value| value == "required");
    assert!(!required, "KOEL_STRACE=required, and there is no strace that works");
    println!(
        "SKIPPED: there is no strace that works, so NOTHING WAS TESTED of what a save does when"
    );
    println!("         the system refuses something or the process is killed; install strace");
    false
}

/// What a process did on its main thread.
pub struct Watched {
    calls: Vec<Call>,
    /// What it said of the save or load, if it came to that.
    pub outcome: Option<String>,
    /// The signal that killed it, if one did.
    pub signal: Option<i32>,
}

/// A system call, as strace writes it.
#[derive(Clone, Debug)]
pub struct Call {
    pub name: String,
    /// Which one of this name it is in the process, from 1.
    pub nth: usize,
    pub text: String,
}

impl Call {
    pub fn is(&self, name: &str) -> bool {
        // `renameat2`, where there is no `rename`.
        self.name.starts_with(name)
    }

    pub fn was_injected(&self) -> bool {
        self.text.contains(" (INJECTED") && self.text.ends_with(')')
    }

    pub fn succeeded(&self) -> bool {
        // As `= 0` or `= 3<path>`; `= -1 EIO` and `= ?` are no success.
        let result = self.text.rsplit(" = ").next();
        result.is_some_and(|result| result.starts_with(|first: char| first.is_ascii_digit()))
    }
}

impl Watched {
    /// The system calls of the save or load itself, if it came to that.
    pub fn calls(&self) -> &[Call] {
        let at = |mark| self.calls.iter().position(|call| call.text.contains(mark));
        let Some(begin) = at(BEGIN) else { return &[] };
        &self.calls[begin + 1..at(END).unwrap_or(self.calls.len())]
    }

    /// Those that were tampered with.
    pub fn injected(&self) -> Vec<&Call> {
        self.calls.iter().filter(|call| call.was_injected()).collect()
    }

    pub fn has_renamed(&self) -> bool {
        self.calls().iter().any(|call| call.is("rename") && call.succeeded())
    }
}

/// Runs it, and does to its system calls what is asked for, in the words of strace's `inject`.
pub fn watch(process: &Command, injections: &[String]) -> Watched {
    let log = tempfile::NamedTempFile::new().expect("a file");
    let mut strace = Command::new("strace");
    // Without -f: what other threads do has no influence on the counts.
    strace.args(["-y", "-s", "300", "-e", "trace=all", "-o"]).arg(log.path());
    for injection in injections {
        strace.args(["-e", &format!("inject={injection}")]);
    }
    strace.arg(process.get_program()).args(process.get_args());
    for (name, value) in process.get_envs() {
        strace.env(name, value.expect("a value"));
    }
    let output = strace.output().expect("strace");
    let log = fs::read_to_string(log.path()).expect("what strace has seen");
    let said = String::from_utf8_lossy(&output.stdout);
    // strace ends as the process ended.
    let (code, signal) = (output.status.code(), output.status.signal());
    if signal.is_none() && code != Some(0) {
        let said_too = String::from_utf8_lossy(&output.stderr);
        panic!("{:?}: {injections:?}\n{said}\n{said_too}\n{log}", output.status);
    }
    let mut nths = HashMap::new();
    let mut call = |line: &str| {
        let (name, _) = line.split_once('(')?;
        let nth: &mut usize = nths.entry(name.to_string()).or_default();
        *nth += 1;
        Some(Call { name: name.to_string(), nth: *nth, text: line.to_string() })
    };
    let lines = log.lines().filter(|line| !line.starts_with(['+', '-']));
    Watched {
        calls: lines.filter_map(&mut call).collect(),
        outcome: said.split_once("OUTCOME ").map(|(_, outcome)| outcome.trim().to_string()),
        signal,
    }
}
