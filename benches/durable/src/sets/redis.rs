//! A set in a Redis server with an append-only file, which is synced every second.

use crate::set::{Kind, Result, Set, item};
use std::io::{BufRead, BufReader, Write};
use std::ops::Range;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

/// Where the server's program is.
pub const SERVERS: &str = "KOEL_SERVERS";

pub fn program() -> Option<PathBuf> {
    let program = Path::new(&std::env::var_os(SERVERS)?).join("redis-server");
    program.is_file().then_some(program)
}

struct Server {
    process: Child,
    stream: BufReader<UnixStream>,
    /// How many commands go before their answers are read.
    pipeline: u64,
}

pub fn open(kind: &Kind, folder: &Path, _: u64) -> Result<Box<dyn Set>> {
    let program = program().ok_or("no redis-server")?;
    let socket = folder.join("socket");
    let _ = std::fs::remove_file(&socket);
    let mut command = Command::new(program);
    command.args(["--port", "0", "--save", "", "--appendonly", "yes", "--appendfsync", "everysec"]);
    command.arg("--dir").arg(folder).arg("--unixsocket").arg(&socket);
    let mut process = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    let stream = loop {
        if let Ok(stream) = UnixStream::connect(&socket) {
            break stream;
        }
        if let Some(status) = process.try_wait()? {
            return Err(format!("the server ended with {status}").into());
        }
        sleep(Duration::from_micros(200));
    };
    let mut server = Server { process, stream: BufReader::new(stream), pipeline: kind.step };
    while server.ask("SISMEMBER", 0..1).is_err() {
        // It answers with an error while it reads its file.
        sleep(Duration::from_micros(200));
    }
    Ok(Box::new(server))
}

impl Server {
    /// Sends a command for each item, and adds up the answers.
    fn ask(&mut self, command: &str, items: Range<u64>) -> Result<u64> {
        let (mut sum, mut items) = (0, items.peekable());
        while items.peek().is_some() {
            let mut text = Vec::new();
            let mut sent = 0;
            for number in items.by_ref().take(self.pipeline as usize) {
                let (length, hash) = (command.len(), item(number).to_le_bytes());
                write!(text, "*3\r\n${length}\r\n{command}\r\n$4\r\nseen\r\n$8\r\n")?;
                text.extend(hash);
                text.extend(b"\r\n");
                sent += 1;
            }
            self.stream.get_mut().write_all(&text)?;
            for _ in 0..sent {
                let mut line = String::new();
                self.stream.read_line(&mut line)?;
                let answer =
                    line.strip_prefix(':').and_then(|it| it.trim_end().parse::<u64>().ok());
                sum += answer.ok_or_else(|| format!("the server answers: {line}"))?;
            }
        }
        Ok(sum)
    }
}

impl Set for Server {
    fn add(&mut self, items: Range<u64>) -> Result<u64> {
        self.ask("SADD", items)
    }

    fn look_up(&mut self, items: Range<u64>) -> Result<u64> {
        self.ask("SISMEMBER", items)
    }

    fn process(&self) -> u32 {
        self.process.id()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It writes its file, and ends.
        let _ = self.stream.get_mut().write_all(b"*1\r\n$8\r\nSHUTDOWN\r\n");
        let _ = self.process.wait();
    }
}
