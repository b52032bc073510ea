//! Helpers of all tests: a temporary folder to run the command in, runs that are waited for or
//! stopped, generated lines, and a state in which none of these lines share a fingerprint.

use koel::{Builder, ConcurrentCuckooFilter, StableHash, Window};
pub use rustix::process::Signal;
pub use serde_json::{Value, json};
use std::collections::HashSet;
use std::fmt::Display;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::channel;
use std::sync::{Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The time after which something is considered hung.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Returns `short`, or `long` if `KOEL_LONG_TESTS` is set: how often, or on what, a long test runs.
pub fn rounds<T>(short: T, long: T) -> T {
    match std::env::var_os("KOEL_LONG_TESTS") {
        None => short,
        Some(_) => long,
    }
}

/// Waits until a condition is true.
pub fn wait_until(what: &str, mut is_true: impl FnMut() -> bool) {
    let start = Instant::now();
    // Most of what is waited for takes a few milliseconds.
    let mut pause = Duration::from_micros(200);
    while !is_true() {
        assert!(start.elapsed() < PATIENCE, "timed out: {what}");
        thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(5));
    }
}

/// Runs something that may block, and fails if it takes too long.
pub fn with_patience<T: Send + 'static>(what: &str, act: impl FnOnce() -> T + Send + 'static) -> T {
    let (sender, done) = channel();
    thread::spawn(move || sender.send(act()));
    done.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("timed out: {what}"))
}

/// A temporary folder in which the command runs. File names are relative to it.
pub struct Place(TempDir);

/// How a run ended, and what it wrote.
pub struct Ran {
    pub code: Option<i32>,
    pub stdout: Vec<u8>,
    pub stderr: String,
}

/// Returns whether SIGHUP, SIGINT or SIGTERM is ignored here, as under `nohup` and in the background of a script. A
/// program that is started ignores it then, too.
fn inherits_ignored_signals() -> bool {
    let ignored = u64::from_str_radix(&status_of("self", "SigIgn:"), 16).expect("hex");
    ignored & (1 << 0 | 1 << 1 | 1 << 14) != 0
}

/// Returns what the system says of a process in this line of its status.
pub fn status_of(process: impl Display, line: &str) -> String {
    let text = fs::read_to_string(format!("/proc/{process}/status")).expect("a process");
    let found = text.lines().find_map(|text| text.strip_prefix(line));
    found.expect("the line").trim().to_owned()
}

impl Ran {
    /// Fails unless standard error contains this, or is empty if this is.
    #[track_caller]
    pub fn has(&self, said: &str) {
        let has = if said.is_empty() { self.stderr.is_empty() } else { self.stderr.contains(said) };
        assert!(has, "{said:?} is not in {:?}", self.stderr);
    }

    #[track_caller]
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.stdout).expect("UTF-8")
    }
}

impl Place {
    pub fn new() -> Place {
        Place(tempfile::tempdir().expect("a folder"))
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Writes a file, in a folder that is made if it is not there.
    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect(name);
        fs::write(path, bytes).expect(name);
    }

    pub fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).expect(name)
    }

    /// Returns the names of the files in the folder, sorted.
    pub fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.path()).expect("the folder");
        let name = |entry: Result<fs::DirEntry, _>| entry.expect("an entry").file_name();
        let mut names: Vec<_> =
            entries.map(|entry| name(entry).into_string().expect("UTF-8")).collect();
        names.sort();
        names
    }

    /// Returns the regular files in the folder, by name, with their contents.
    pub fn all(&self) -> Vec<(String, Vec<u8>)> {
        let is_file = |name: &String| self.path(name).symlink_metadata().is_ok_and(|m| m.is_file());
        self.names()
            .into_iter()
            .filter(is_file)
            .map(|name| (name.clone(), self.read(&name)))
            .collect()
    }

    /// The command with these words.
    pub fn command(&self, words: &str) -> Command {
        let koel = env!("CARGO_BIN_EXE_koel");
        let mut command = Command::new(if inherits_ignored_signals() { "env" } else { koel });
        if inherits_ignored_signals() {
            command.args(["--default-signal=HUP,INT,TERM", koel]);
        }
        command.args(words.split_whitespace()).current_dir(self.0.path());
        command
    }

    /// Runs the command with these words and empty standard input.
    pub fn koel(&self, words: &str) -> Ran {
        self.koel_on(words, b"")
    }

    /// Runs the command with these words and this standard input.
    pub fn koel_on(&self, words: &str, input: &[u8]) -> Ran {
        self.start(words).run(input)
    }

    /// Runs the command, which succeeds.
    #[track_caller]
    pub fn ok(&self, words: &str, input: impl AsRef<[u8]>) -> Ran {
        let ran = self.koel_on(words, input.as_ref());
        assert_eq!(ran.code, Some(0), "{words}: {}", ran.stderr);
        ran
    }

    /// Runs the command with `--json`, and returns what it says, whatever its exit code.
    #[track_caller]
    pub fn json(&self, words: &str, input: impl AsRef<[u8]>) -> Value {
        json(&self.koel_on(&format!("{words} --json"), input.as_ref()))
    }

    /// Runs a row of a table: words, standard input, the exit code, all of standard output, and a part of standard
    /// error, or `""` if it has to be empty. The words may have [alternatives](each).
    #[track_caller]
    pub fn row(
        &self,
        words: &str,
        input: impl AsRef<[u8]>,
        code: i32,
        output: impl AsRef<[u8]>,
        said: &str,
    ) {
        for words in each(words) {
            let ran = self.koel_on(&words, input.as_ref());
            assert_eq!(ran.code, Some(code), "{words}: {}", ran.stderr);
            assert_same(&ran.stdout, output.as_ref(), &words);
            ran.has(said);
        }
    }

    /// Runs a row with `--json`, which succeeds: words, standard input, all of standard output, and fields of the summary.
    #[track_caller]
    pub fn tells(&self, words: &str, input: impl AsRef<[u8]>, output: &str, fields: Value) {
        for words in each(words) {
            let ran = self.ok(&format!("{words} --json"), &input);
            assert_same(&ran.stdout, output.as_bytes(), &words);
            has(&json(&ran), fields.clone());
        }
    }

    /// Runs rows one after the other: words, standard input, and what they write to standard output. All succeed.
    #[track_caller]
    pub fn assert_outputs(&self, rows: &[(&str, &[u8], &[u8])]) {
        for (words, input, output) in rows {
            assert_same(&self.ok(words, input).stdout, output, words);
        }
    }

    /// Runs rows of words with [alternatives](each), on one line. All are refused, for reasons that contain the other
    /// text of the row, write nothing and change no file.
    #[track_caller]
    pub fn assert_refused(&self, rows: &[(&str, &str)]) {
        let before = self.all();
        for (words, why) in rows {
            for words in each(words) {
                let ran = self.koel_on(&words, b"a\n");
                assert_eq!((ran.code, ran.stdout.len()), (Some(2), 0), "{words}: {}", ran.stderr);
                assert!(ran.stderr.contains(why), "{words}: {}", ran.stderr);
                // A value of an option is no file.
                for internal in ["use '-- ", "panicked", "(os error"] {
                    assert!(!ran.stderr.contains(internal), "{words}: {}", ran.stderr);
                }
                assert!(self.all() == before, "{words} has changed a file");
            }
        }
    }

    /// Starts the command with these words, without waiting for it.
    pub fn start(&self, words: &str) -> Going {
        Going::start(&mut self.command(words))
    }

    /// Creates a state with a fixed seed. No two lines of these tests share a fingerprint in it, so
    /// the tests do not depend on chance.
    pub fn make_state(&self, name: &str) {
        builder_of_states().build().expect("a filter").save(self.path(name)).expect("a state");
    }

    /// Makes a state with that seed of lines that are forgotten after 28 days, each with its age in ticks of two days,
    /// the oldest first. No tick passes in the middle of a test but once in a blue moon.
    pub fn make_aged_state(
        &self,
        name: &str,
        lines: impl IntoIterator<Item = (i64, impl AsRef<str>)>,
    ) {
        let window = Window::of_seconds(28 * 86_400);
        let builder = builder_of_states().remembers(window.ticks()).expected_growth(128.0);
        let filter = builder.build().expect("a filter");
        for (age, line) in lines {
            filter.tick_to(window.number_now().wrapping_add_signed(-age));
            filter.insert(line.as_ref()).expect("memory");
        }
        filter.save(self.path(name)).expect("a state");
    }

    /// Returns what `koel info --json` says of a state.
    #[track_caller]
    pub fn info(&self, state: &str) -> Value {
        serde_json::from_slice(&self.ok(&format!("info --json {state}"), "").stdout).expect("JSON")
    }

    /// Returns how many lines of a state go with each of the next ticks.
    pub fn expiring(&self, state: &str) -> Vec<u64> {
        let info = self.info(state);
        let ticks = info["forgets"]["expiring"].as_array().expect("ticks").clone();
        ticks.iter().map(|tick| tick["items"].as_u64().expect("a number")).collect()
    }

    /// Returns those of the lines that are in a state.
    pub fn known(&self, state: &str, lines: &[u8]) -> Vec<u8> {
        let ran = self.koel_on(&format!("query --quiet {state}"), lines);
        assert!(matches!(ran.code, Some(0 | 1)), "{}", ran.stderr);
        ran.stdout
    }
}

/// Builds filters as [`Place::make_state`] does.
pub fn builder_of_states() -> Builder<StableHash> {
    let builder = ConcurrentCuckooFilter::builder().capacity(10_000).false_positive_rate(1e-6);
    builder.hasher(StableHash::with_seed(7)).growing().expected_growth(8_192.0)
}

/// Returns words with each of the alternatives that they have, as a shell does: `{add,forget} STATE`. The first braces
/// change slowest.
pub fn each(words: &str) -> Vec<String> {
    let Some((before, (some, after))) =
        words.split_once('{').and_then(|(before, rest)| Some((before, rest.split_once('}')?)))
    else {
        return vec![words.to_owned()];
    };
    some.split(',').flat_map(|one| each(&format!("{before}{one}{after}"))).collect()
}

/// Runs a script, in which `koel` is the command.
pub fn shell(place: &Place, script: &str) -> Ran {
    let script = format!("koel() {{ {} \"$@\"; }}; {script}", env!("CARGO_BIN_EXE_koel"));
    Going::start(Command::new("sh").args(["-c", &script]).current_dir(place.path(""))).run(b"")
}

/// Reads to the end on a thread.
pub fn collect(mut from: impl Read + Send + 'static) -> JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        from.read_to_end(&mut bytes).expect("what is written");
        bytes
    })
}

/// Held while a process is started. Until it runs its own program, it has what all other tests have open.
static SPAWNING: Mutex<()> = Mutex::new(());

fn locked<T>(lock: &Mutex<()>, act: impl FnOnce() -> T) -> T {
    let _held = lock.lock().unwrap_or_else(PoisonError::into_inner);
    act()
}

/// A running process. It is killed when it is dropped.
pub struct Going {
    pub child: Child,
    pub stdin: Option<ChildStdin>,
    pub stdout: Option<ChildStdout>,
    stderr: Option<JoinHandle<Vec<u8>>>,
}

impl Going {
    /// Starts a process with pipes as its input and outputs. Standard error is collected.
    pub fn start(command: &mut Command) -> Going {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Going::start_as_it_is(command)
    }

    pub fn start_as_it_is(command: &mut Command) -> Going {
        let mut child = locked(&SPAWNING, || command.spawn()).expect("koel");
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let stderr = child.stderr.take().map(collect);
        Going { child, stdin, stdout, stderr }
    }

    /// Gives it this standard input, and waits for its end.
    pub fn run(mut self, input: &[u8]) -> Ran {
        let mut stdin = self.stdin.take().expect("a pipe");
        let input = input.to_vec();
        let writer = thread::spawn(move || {
            // The command may have ended already.
            let _ = stdin.write_all(&input);
        });
        let reader = collect(self.stdout.take().expect("a pipe"));
        let (status, stderr) = self.wait();
        writer.join().expect("the writer");
        Ran { code: status.code(), stdout: reader.join().expect("the reader"), stderr }
    }

    pub fn feed(&mut self, lines: &[u8]) {
        let (mut pipe, lines) = (self.stdin.take().expect("a pipe"), lines.to_vec());
        let fed = with_patience("a reader", move || pipe.write_all(&lines).map(|()| pipe));
        self.stdin = Some(fed.expect("a reader"));
    }

    /// Reads this number of bytes of its output.
    pub fn next(&mut self, bytes: usize) -> Vec<u8> {
        let (mut pipe, mut read) = (self.stdout.take().expect("a pipe"), vec![0; bytes]);
        let next =
            with_patience("output", move || pipe.read_exact(&mut read).map(|()| (pipe, read)));
        let (pipe, read) = next.expect("output");
        self.stdout = Some(pipe);
        read
    }

    /// Closes the pipe of its output for good: no process that is being started has a copy.
    pub fn stop_reading(&mut self) {
        locked(&SPAWNING, || drop(self.stdout.take()));
    }

    /// Waits for its end, and returns its status and standard error.
    pub fn wait(mut self) -> (ExitStatus, String) {
        let mut status = None;
        wait_until("the end of a process", || {
            status = self.child.try_wait().expect("a process");
            status.is_some()
        });
        let stderr = self.stderr.take().map(|reader| reader.join().expect("the reader"));
        let stderr = String::from_utf8(stderr.unwrap_or_default()).expect("UTF-8");
        (status.expect("a status"), stderr)
    }

    /// Waits until SIGINT and SIGTERM are handled. Before that, they would end the process
    /// immediately.
    pub fn is_watchful(&self) {
        wait_until("that it watches for signals", || {
            let caught = status_of(self.child.id(), "SigCgt:");
            let caught = u64::from_str_radix(&caught, 16).expect("hex");
            let of = |signal: Signal| 1u64 << (signal.as_raw() - 1);
            let both = of(Signal::INT) | of(Signal::TERM);
            caught & both == both
        });
        // The thread that acts on signals starts after that.
        thread::sleep(Duration::from_millis(5));
    }

    /// Waits until all threads sleep for a while, because the reader waits for lines or the writer
    /// for a reader.
    pub fn is_idle(&self) {
        let tasks = PathBuf::from(format!("/proc/{}/task", self.child.id()));
        let sleeps = |task: fs::DirEntry| {
            // The state comes after the name, which is in parentheses.
            let about = fs::read_to_string(task.path().join("stat")).unwrap_or_default();
            about.rsplit_once(") ").is_none_or(|(_, about)| about.starts_with('S'))
        };
        let mut quiet = 0;
        wait_until("that it is idle", || {
            thread::sleep(Duration::from_millis(5));
            let mut tasks = fs::read_dir(&tasks).expect("its threads");
            quiet = if tasks.all(|task| task.is_ok_and(sleeps)) { quiet + 1 } else { 0 };
            quiet == 12
        });
    }

    /// Ends its input, and waits for its end, which is a success.
    #[track_caller]
    pub fn end(mut self) -> String {
        drop(self.stdin.take());
        let (status, stderr) = self.wait();
        assert_eq!(status.code(), Some(0), "{stderr}");
        stderr
    }

    /// Sends it a signal, and waits for its end by that signal.
    #[track_caller]
    pub fn end_by(self, signal: Signal) -> String {
        self.signal(signal);
        let (status, stderr) = self.wait();
        assert_eq!(status.signal(), Some(signal.as_raw()), "{stderr}");
        stderr
    }

    /// Feeds it lines, and waits until it prints them.
    #[track_caller]
    pub fn passes(&mut self, lines: &[u8]) {
        self.feed(lines);
        assert_same(&self.next(lines.len()), lines, "what is printed");
    }

    pub fn signal(&self, signal: Signal) {
        let process = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(process, signal).expect("a process");
    }
}

impl Drop for Going {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Splits a text into lines, each with its newline.
pub fn lines_of(text: &[u8]) -> Vec<&[u8]> {
    text.split_inclusive(|byte| *byte == b'\n').collect()
}

/// Generates distinct lines from a range of numbers.
pub fn numbered(numbers: std::ops::Range<u32>) -> Vec<u8> {
    numbers.flat_map(|number| format!("line number {number}\n").into_bytes()).collect()
}

/// Generates distinct lines of 64 bytes, 16,384 of which fill a chunk.
pub fn padded(numbers: std::ops::Range<u32>) -> Vec<u8> {
    numbers.flat_map(|number| format!("{number:063}\n").into_bytes()).collect()
}

pub fn is_subset(some: &[u8], all: &[u8]) -> bool {
    let all: HashSet<_> = lines_of(all).into_iter().collect();
    lines_of(some).into_iter().all(|line| all.contains(line))
}

/// Returns the distinct lines, sorted.
pub fn set(text: &[u8]) -> Vec<&[u8]> {
    let mut lines = lines_of(text);
    lines.sort_unstable();
    lines.dedup();
    lines
}

/// Fails if two texts differ, without printing all of them.
#[track_caller]
pub fn assert_same(is: &[u8], expected: &[u8], what: &str) {
    if is == expected {
        return;
    }
    let (is, expected) = (lines_of(is), lines_of(expected));
    let at = is.iter().zip(&expected).take_while(|(one, other)| one == other).count();
    let show = |lines: &[&[u8]]| {
        let line = lines.get(at).map(|line| &line[..line.len().min(100)]);
        line.map(|line| line.escape_ascii().to_string())
    };
    panic!(
        "{what}: {} lines instead of {}; line {} is {:?} instead of {:?}",
        is.len(),
        expected.len(),
        at + 1,
        show(&is),
        show(&expected)
    );
}

/// Reproducible pseudo-random numbers.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) as usize % end
    }
}

/// Returns the JSON that a run printed to standard error.
#[track_caller]
pub fn json(ran: &Ran) -> Value {
    let line = ran.stderr.lines().find(|line| line.starts_with('{'));
    serde_json::from_str(line.unwrap_or_else(|| panic!("no JSON: {}", ran.stderr))).expect("JSON")
}

/// Fails unless an object has these fields, among others.
#[track_caller]
pub fn has(object: &Value, fields: Value) {
    for (name, is) in fields.as_object().expect("an object") {
        assert_eq!(&object[name], is, "{name}: {object}");
    }
}

/// Returns the names of the fields of an object, sorted, with a space between two.
pub fn fields(json: &Value) -> String {
    let mut names: Vec<&str> =
        json.as_object().expect("an object").keys().map(String::as_str).collect();
    names.sort_unstable();
    names.join(" ")
}

/// Returns `true` if a path exists, even as a broken link.
pub fn is_there(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}
