//! Watches the system calls of a process, and lets some of them fail or raise a signal.

use crate::child::{BEGIN, END};
use std::collections::HashMap;
use std::env;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;

/// Returns whether strace works. Panics if it is required and does not.
pub fn is_there() -> bool {
    let there = Command::new("strace").args(["-o", "/dev/null", "true"]).output();
    if there.is_ok_and(|output| output.status.success()) {
        return true;
    }
    let required = env::var_os("KOEL_STRACE").is_some_and(|value| value == "required");
    assert!(!required, "KOEL_STRACE=required, but strace is missing or does not work");
    println!(
        "SKIPPED: strace is missing or does not work, so NOTHING WAS TESTED of how saves and loads"
    );
    println!("         behave when system calls fail or the process is killed; install strace");
    false
}

/// The system calls of a process on its main thread, and its result.
pub struct Watched {
    calls: Vec<Call>,
    /// The outcome that it printed, if the save or load returned.
    pub outcome: Option<String>,
    /// The signal that killed it, if one did.
    pub signal: Option<i32>,
}

/// A system call, as strace prints it.
#[derive(Clone, Debug)]
pub struct Call {
    pub name: String,
    /// Counts the calls of this name in the process, from 1.
    pub nth: usize,
    pub text: String,
}

impl Call {
    pub fn is(&self, name: &str) -> bool {
        // A prefix is enough, as some systems have `renameat2` instead of `rename`.
        self.name.starts_with(name)
    }

    pub fn was_injected(&self) -> bool {
        self.text.contains(" (INJECTED") && self.text.ends_with(')')
    }

    pub fn succeeded(&self) -> bool {
        // `= 0` or `= 3<path>` is a success; `= -1 EIO` and `= ?` are not.
        let result = self.text.rsplit(" = ").next();
        result.is_some_and(|result| result.starts_with(|first: char| first.is_ascii_digit()))
    }
}

impl Watched {
    /// Returns the system calls of the save or load itself; none if it did not begin.
    pub fn calls(&self) -> &[Call] {
        let at = |mark| self.calls.iter().position(|call| call.text.contains(mark));
        let Some(begin) = at(BEGIN) else { return &[] };
        &self.calls[begin + 1..at(END).unwrap_or(self.calls.len())]
    }

    /// Returns the calls into which strace injected a fault.
    pub fn injected(&self) -> Vec<&Call> {
        self.calls.iter().filter(|call| call.was_injected()).collect()
    }

    pub fn has_renamed(&self) -> bool {
        self.calls().iter().any(|call| call.is("rename") && call.succeeded())
    }
}

/// Runs the process under strace, with faults in the syntax of strace's `inject`.
pub fn watch(process: &Command, injections: &[String]) -> Watched {
    let log = tempfile::NamedTempFile::new().expect("a file");
    let mut strace = Command::new("strace");
    // Without -f, so that other threads do not influence the counts.
    strace.args(["-y", "-s", "300", "-e", "trace=all", "-o"]).arg(log.path());
    for injection in injections {
        strace.args(["-e", &format!("inject={injection}")]);
    }
    strace.arg(process.get_program()).args(process.get_args());
    for (name, value) in process.get_envs() {
        strace.env(name, value.expect("a value"));
    }
    let output = strace.output().expect("strace");
    let log = fs::read_to_string(log.path()).expect("the log of strace");
    let said = String::from_utf8_lossy(&output.stdout);
    // strace exits with the status of the process, or dies by the same signal.
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
