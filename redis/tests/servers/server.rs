//! A server with the module, in a process and a folder of its own.

use crate::client::{Client, Reply};
use std::fs::File;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A kind of server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Redis,
    Valkey,
}

impl Kind {
    /// The server, or the client that comes with it, if it is there: where `KOEL_SERVERS` says, or in `PATH`.
    pub fn tool(self, tool: &str) -> Option<PathBuf> {
        let name = match self {
            Kind::Redis => format!("redis-{tool}"),
            Kind::Valkey => format!("valkey-{tool}"),
        };
        let folders = ["KOEL_SERVERS", "PATH"].into_iter().filter_map(std::env::var_os);
        let folders: Vec<_> =
            folders.flat_map(|paths| std::env::split_paths(&paths).collect::<Vec<_>>()).collect();
        folders.into_iter().map(|folder| folder.join(&name)).find(|program| program.is_file())
    }
}

/// Does this with each server that is there. `KOEL_SERVERS_REQUIRED` makes a missing one an error.
pub fn each_server(test: impl Fn(Kind)) {
    for kind in [Kind::Redis, Kind::Valkey] {
        if kind.tool("server").is_some() {
            test(kind);
        } else {
            let text = "put its server into PATH, or name its folder in KOEL_SERVERS";
            skip(&format!("no {kind:?}: {text}"), "KOEL_SERVERS_REQUIRED");
        }
    }
}

/// Says that something is missing, which a variable makes an error.
fn skip(text: &str, required: &str) {
    assert!(std::env::var_os(required).is_none(), "{text}");
    eprintln!("skipped: {text}");
}

/// Python, if it has this: `KOEL_PYTHON`, or `python3`. A variable makes it an error if not.
pub fn python(import: &str, install: &str, required: &str) -> Option<PathBuf> {
    let program = PathBuf::from(std::env::var_os("KOEL_PYTHON").unwrap_or("python3".into()));
    let check = Command::new(&program).args(["-c", import]).output();
    if check.is_ok_and(|output| output.status.success()) {
        return Some(program);
    }
    let text = format!("{install}, and name its interpreter in KOEL_PYTHON");
    skip(&format!("no Python for `{import}`: {text}"), required);
    None
}

/// Does this with a client of each server that is there.
#[allow(dead_code, reason = "those of the cluster have clients of their own")]
pub fn each_client(test: impl Fn(Kind, &mut Client)) {
    each_server(|kind| test(kind, &mut Server::start(kind).client()));
}

/// The settings of a server that appends each change to a file, and syncs it; with a snapshot at its beginning, or not.
#[allow(dead_code, reason = "those of the cluster have no such file")]
pub fn appending(preamble: &str) -> [&str; 6] {
    let settings = ["--appendonly", "yes", "--appendfsync", "always", "--aof-use-rdb-preamble"];
    std::array::from_fn(|at| settings.get(at).copied().unwrap_or(preamble))
}

/// The module, which cargo has built beside this test.
pub fn module() -> PathBuf {
    let test = std::env::current_exe().expect("a path");
    let folder = test.parent().expect("a folder");
    folder.join(format!(
        "{}koel_redis{}",
        std::env::consts::DLL_PREFIX,
        std::env::consts::DLL_SUFFIX
    ))
}

/// A server that runs until this is dropped.
pub struct Server {
    kind: Kind,
    pub port: u16,
    process: Child,
    settings: Vec<String>,
    folder: TempDir,
}

impl Server {
    pub fn start(kind: Kind) -> Self {
        Self::with(kind, &[])
    }

    /// Starts one with these settings: names and values.
    pub fn with(kind: Kind, settings: &[&str]) -> Self {
        let port = TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr());
        Self::at(kind, port.expect("a port").port(), settings)
    }

    /// Starts one at this port.
    pub fn at(kind: Kind, port: u16, settings: &[&str]) -> Self {
        let folder = TempDir::new().expect("a folder");
        let settings: Vec<_> = settings.iter().map(|setting| (*setting).to_owned()).collect();
        let process = run(kind, port, folder.path(), &settings);
        let server = Server { kind, port, process, settings, folder };
        server.await_loaded();
        server
    }

    pub fn client(&self) -> Client {
        Client::connect(self.port)
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(self.path().join("log")).unwrap_or_default()
    }

    pub fn process_id(&self) -> u32 {
        self.process.id()
    }

    /// Ends it at once, as a power cut would.
    pub fn kill(&mut self) {
        self.process.kill().expect("it runs");
        self.process.wait().expect("it has ended");
    }

    /// The same, and starts it again with what is in its folder.
    pub fn kill_and_restart(&mut self) {
        self.kill();
        self.restart();
    }

    /// Starts it again after it has ended.
    pub fn restart(&mut self) {
        self.process.wait().expect("it has ended");
        self.process = run(self.kind, self.port, self.folder.path(), &self.settings);
        self.await_loaded();
    }

    /// Saves and ends.
    pub fn save_and_stop(&mut self) {
        let _ = self.client().try_ask("SHUTDOWN SAVE");
        self.process.wait().expect("it has ended");
    }

    /// Saves, ends and starts again.
    pub fn save_and_restart(&mut self) {
        self.save_and_stop();
        self.restart();
    }

    fn await_loaded(&self) {
        let start = Instant::now();
        while !matches!(Client::connect(self.port).try_ask("PING"), Ok(Reply::Simple(_))) {
            assert!(start.elapsed() < Duration::from_secs(60), "it does not start: {}", self.log());
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

fn run(kind: Kind, port: u16, folder: &Path, settings: &[String]) -> Child {
    let log = File::options().create(true).append(true).open(folder.join("log")).expect("a log");
    let mut command = Command::new(kind.tool("server").expect("it was there"));
    command.args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", ""]);
    command.args(["--enable-debug-command", "yes", "--repl-diskless-sync-delay", "0"]);
    command.arg("--dir").arg(folder).arg("--loadmodule").arg(module()).args(settings);
    command.stdin(Stdio::null()).stdout(log.try_clone().expect("a log")).stderr(log);
    command.spawn().expect("the server starts")
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        if std::thread::panicking() {
            eprintln!("the log of {:?} at port {}:\n{}", self.kind, self.port, self.log());
        }
    }
}

/// Waits until this holds.
pub fn await_that(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < Duration::from_secs(60), "in vain: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Rewrites the append-only file, and waits for that.
#[allow(dead_code, reason = "those of the cluster have no such file")]
pub fn rewrite_file(client: &mut Client) {
    client.ask("BGREWRITEAOF");
    await_that("the file is rewritten", || {
        let info = client.ask("INFO persistence").text();
        info.contains("aof_rewrite_in_progress:0") && info.contains("aof_rewrite_scheduled:0")
    });
}

/// Lets a server map this number of bytes more, where the system has a tool for that.
#[allow(dead_code, reason = "those of the cluster lack no memory")]
pub fn limit_address_space(server: &Server, more: u64) -> Option<()> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.process_id())).ok()?;
    let size =
        status.lines().find_map(|line| line.strip_prefix("VmSize:")?.trim().strip_suffix(" kB"));
    let size: u64 = 1_024 * size?.trim().parse::<u64>().ok()?;
    let limit = format!("--as={}:", size + more);
    let id = server.process_id().to_string();
    let limited = Command::new("prlimit").args(["--pid", &id, &limit]).status();
    if !limited.is_ok_and(|status| status.success()) {
        skip("no prlimit (Debian: util-linux)", "KOEL_SERVERS_REQUIRED");
        return None;
    }
    Some(())
}

/// Whether the tests may take long.
pub fn long() -> bool {
    std::env::var_os("KOEL_LONG_TESTS").is_some()
}
