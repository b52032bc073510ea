//! Pseudo-terminals, and what the command shows on one: summaries, for example, are printed nowhere else.

use crate::common::*;
use rustix::io::Errno;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use std::env;
use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::thread;

/// A terminal, and what was written to it.
pub struct Terminal {
    sent: Arc<Mutex<Vec<u8>>>,
    own: File,
}

impl Terminal {
    /// `None` if the machine has no pseudo-terminals, as in some containers, unless `KOEL_TERMINALS=required`.
    pub fn new() -> Option<Terminal> {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let other = match openpt(flags) {
            Err(Errno::NODEV | Errno::NOENT) => {
                let required =
                    env::var_os("KOEL_TERMINALS").is_some_and(|value| value == "required");
                assert!(!required, "KOEL_TERMINALS=required, and there are no pseudo-terminals");
                println!("SKIPPED: there are no pseudo-terminals, so NOTHING WAS TESTED here");
                return None;
            }
            opened => opened.unwrap(),
        };
        grantpt(&other).unwrap();
        unlockpt(&other).unwrap();
        let size = Winsize { ws_row: 24, ws_col: 120, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&other, size).unwrap();
        let name = ptsname(&other, Vec::new()).unwrap();
        let path = OsStr::from_bytes(name.as_bytes());
        let own = OpenOptions::new().read(true).write(true).open(path).unwrap();
        let sent = Arc::new(Mutex::new(Vec::new()));
        let to = Arc::clone(&sent);
        thread::spawn(move || {
            let mut other = File::from(other);
            let mut bytes = [0; 4_096];
            while let Ok(length @ 1..) = other.read(&mut bytes) {
                to.lock().unwrap().extend_from_slice(&bytes[..length]);
            }
        });
        Some(Terminal { sent, own })
    }

    pub fn end(&self) -> Stdio {
        Stdio::from(self.own.try_clone().unwrap())
    }

    pub fn sent(&self) -> String {
        String::from_utf8_lossy(&self.sent.lock().unwrap()).into_owned()
    }

    /// Waits for the last line, and returns what the screen shows then.
    pub fn shows_at_last(&self, end: &str) -> String {
        wait_until(end, || self.sent().trim_end().ends_with(end));
        // A bar of one line needs only carriage returns, newlines and the clearing of a line.
        let mut lines = vec![String::new()];
        let sent = self.sent();
        let mut rest = &sent[..];
        while let Some(next) = rest.chars().next() {
            let mut length = next.len_utf8();
            match next {
                '\x1B' => {
                    let end = rest[2..].find(|byte: char| byte.is_ascii_alphabetic()).unwrap();
                    length = end + 3;
                    match &rest[2..length] {
                        "2K" => lines.last_mut().unwrap().clear(),
                        other => assert!(other.ends_with('m'), "{other}"),
                    }
                }
                '\r' => {}
                '\n' => lines.push(String::new()),
                other => lines.last_mut().unwrap().push(other),
            }
            rest = &rest[length..];
        }
        lines.join("\n")
    }

    pub fn own(&self) -> File {
        self.own.try_clone().unwrap()
    }
}

impl Place {
    /// Runs the command with these words, and with a terminal as standard error. `None` if there are no terminals.
    pub fn shown(&self, words: &str) -> Option<Ran> {
        self.shown_on(words, b"")
    }

    /// The same, with this standard input.
    pub fn shown_on(&self, words: &str, input: &[u8]) -> Option<Ran> {
        let terminal = Terminal::new()?;
        let words: Vec<&str> = words.split_whitespace().collect();
        let mut command = self.command(&words);
        command.env("TERM", "xterm").env_remove("NO_COLOR");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(terminal.end());
        let mut going = Going::start_as_it_is(&mut command);
        let (mut stdin, input) = (going.stdin.take().expect("a pipe"), input.to_vec());
        let writer = thread::spawn(move || drop(stdin.write_all(&input)));
        let reader = collect(going.stdout.take().expect("a pipe"));
        let (status, _) = going.wait();
        writer.join().expect("the writer");
        let stdout = reader.join().expect("the reader");
        terminal.own().write_all(b"THE END\n").expect("a terminal");
        let shown = terminal.shows_at_last("THE END");
        let stderr = shown.trim_end().trim_end_matches("THE END").to_owned();
        Some(ran(status, stdout, stderr))
    }
}
