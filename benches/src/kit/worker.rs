//! Child processes that have a set, say figures of it, and wait for their end.

use super::arguments::Result;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

/// The figures that a process has said: a name and a number in each line.
pub type Said = BTreeMap<String, f64>;

/// A process that works on a set.
pub struct Worker {
    child: Child,
    /// The process waits as long as this is open.
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Worker {
    /// Starts this program again, for a bench and its work.
    pub fn of(bench: &str, work: &str) -> Result<Worker> {
        Worker::start(Command::new(std::env::current_exe()?).args([bench, "--work", work]))
    }

    pub fn start(command: &mut Command) -> Result<Worker> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let (input, output) = input.zip(output).ok_or("a process without pipes")?;
        Ok(Worker { child, input, output: BufReader::new(output) })
    }

    /// Reads what the process says, until it names the process that has the set, or ends.
    pub fn figures(&mut self) -> Result<Said> {
        let mut figures = Said::new();
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
        drop(self.input);
        let status = self.child.wait()?;
        if status.success() { Ok(()) } else { Err(format!("a worker ended with {status}").into()) }
    }

    /// Kills the process that has the set, which the worker has named, and the worker, if that is another one.
    pub fn kill(mut self, figures: &Said) -> Result<()> {
        let Some(process) = figures.get("process") else {
            self.end()?;
            return Err("it has ended too early".into());
        };
        Command::new("kill").args(["-9", &process.to_string()]).status()?;
        self.child.kill()?;
        self.child.wait()?;
        // The worker cannot wait for its own child any more.
        while Path::new(&format!("/proc/{process}/fd/0")).exists() {
            sleep(Duration::from_millis(1));
        }
        Ok(())
    }
}

/// Names the process that has the set.
pub fn name(process: u32) -> Result<()> {
    println!("process {process}");
    Ok(std::io::stdout().flush()?)
}

/// Names the process that has the set, and waits until the parent ends it or closes the input.
pub fn wait(process: u32) -> Result<()> {
    name(process)?;
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}
