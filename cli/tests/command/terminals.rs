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
    pub fn of_columns(columns: u16) -> Option<Terminal> {
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
        let size = Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
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

    fn end(&self) -> Stdio {
        Stdio::from(self.own.try_clone().unwrap())
    }

    pub fn sent(&self) -> String {
        String::from_utf8_lossy(&self.sent.lock().unwrap()).into_owned()
    }

    /// Waits for the last line, and returns what the screen shows then.
    pub fn shows_at_last(&self, end: &str) -> String {
        wait_until(end, || self.sent().trim_end().ends_with(end));
        // A bar of one line needs only carriage returns, newlines and the clearing of a line.
        let sent = self.sent().replace("\r\n", "\n");
        let shown = sent.split('\n').map(|line| line.rsplit("\x1B[2K").next().unwrap_or_default());
        shown.map(|line| line.trim_matches('\r')).collect::<Vec<_>>().join("\n")
    }

    /// Returns what the screen shows when the command has ended.
    pub fn shows_in_the_end(&self) -> String {
        (&self.own).write_all(b"THE END\n").expect("a terminal");
        let shown = self.shows_at_last("THE END");
        shown.trim_end().trim_end_matches("THE END").to_owned()
    }
}

impl Place {
    /// Runs a row of a table with a terminal as standard error, if there are terminals: words, standard input, the exit
    /// code, and a part of what is shown. The words may have [alternatives](each).
    #[track_caller]
    pub fn shows(&self, words: &str, input: impl AsRef<[u8]>, code: i32, said: &str) {
        for words in each(words) {
            let Some(ran) = self.shown_on(&words, input.as_ref()) else { return };
            assert_eq!(ran.code, Some(code), "{words}: {}", ran.stderr);
            ran.has(said);
        }
    }

    /// Runs the command with a terminal as standard error. `None` if there are no terminals.
    pub fn shown_on(&self, words: &str, input: &[u8]) -> Option<Ran> {
        let (terminal, going) = self.start_shown(words, false)?;
        let ran = going.run(input);
        Some(Ran { stderr: terminal.shows_in_the_end(), ..ran })
    }

    /// Starts the command with a terminal as standard error, and perhaps as standard output.
    pub fn start_shown(&self, words: &str, is_output: bool) -> Option<(Terminal, Going)> {
        let terminal = Terminal::of_columns(120)?;
        let going = self.start_shown_on(&terminal, words, is_output);
        Some((terminal, going))
    }

    /// The same, on this terminal.
    pub fn start_shown_on(&self, terminal: &Terminal, words: &str, is_output: bool) -> Going {
        let mut command = self.command(words);
        command.env("TERM", "xterm").env_remove("NO_COLOR").stdin(Stdio::piped());
        command.stdout(if is_output { terminal.end() } else { Stdio::piped() });
        Going::start_as_it_is(command.stderr(terminal.end()))
    }
}
