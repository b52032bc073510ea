//! Each system call of an open filter fails, or is the last one of its process.

use crate::child::{BEGIN, END};
use crate::process::{again, names};
use crate::rounds::rounds;
use crate::short;
use crate::strace::{Call, Watched, watch};
use koel::{
    ConcurrentCuckooFilter, DurableError, DurableFilter, DurableOptions, StableHash, SyncPolicy,
};
use std::fs::{self, File};
use std::io::Write;
use std::ops::Range;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

pub const TESTS: &[(&str, fn())] = &[
    ("whatever_fails_no_answer_of_a_durable_filter_is_lost", whatever_fails),
    ("whenever_it_is_killed_no_answer_of_a_durable_filter_is_lost", whenever_it_is_killed),
    ("each_answer_of_a_durable_filter_is_synced", each_answer_is_synced),
    ("a_full_disk_takes_no_answer_of_a_durable_filter", a_full_disk),
];

const NAME: &str = "seen.koel";

/// What an earlier process has added, and had no time to put into the state.
const EARLIER: Range<u64> = 1_000..1_020;

fn open(path: &Path, policy: SyncPolicy) -> Result<DurableFilter, DurableError> {
    let builder = ConcurrentCuckooFilter::builder().hasher(StableHash::with_seed(7));
    let builder = builder.false_positive_rate(1e-7).capacity(100).growing();
    DurableFilter::open_with(path, DurableOptions::default().sync(policy), builder)
}

/// Notes what was answered: which item, and whether it is there from then on.
struct Notes(File);

impl Notes {
    fn add(&mut self, item: u64, is_there: bool) {
        self.0.write_all(&(item << 1 | u64::from(is_there)).to_le_bytes()).expect("a note");
    }
}

fn step(seen: &DurableFilter, notes: &mut Notes, adds: Range<u64>, removes: Range<u64>) -> String {
    let mut said = String::new();
    let mut note = |error: DurableError| {
        if said.is_empty() {
            said = format!("; {:?}: {error}", error.kind());
        }
    };
    for item in adds {
        match seen.insert_if_absent(&item) {
            Ok(new) => {
                assert!(new);
                notes.add(item, true);
            }
            Err(error) => note(error),
        }
    }
    for item in removes.filter(|item| seen.contains(item)) {
        match seen.remove(&item) {
            Ok(removed) => {
                assert!(removed);
                notes.add(item, false);
            }
            Err(error) => note(error),
        }
    }
    said
}

fn told(what: &str, result: Result<(), DurableError>) -> String {
    let failed = |error: DurableError| format!("; {what}: {:?}: {error}", error.kind());
    result.err().map(failed).unwrap_or_default()
}

/// Adds items until the disk is full, from each of many places on, and goes on when there is room again.
fn fill_disk(folder: &Path) -> ! {
    let (path, filler) = (folder.join(NAME), folder.join("filler"));
    let (mut refused, mut made) = ([0; 3], 0);
    let mut items = 0..;
    let mut there = Vec::new();
    let is_full = |error: &DurableError| {
        let io = error.io_error().expect("an error of the system");
        assert_eq!(io.kind(), std::io::ErrorKind::StorageFull, "{error}");
    };
    for room in (0..60).step_by(rounds(4, 1)) {
        let fill = |pages: u64| short::fill_but(&filler, pages);
        fill(8 * room);
        // There may be no room for the journal.
        let seen = match open(&path, SyncPolicy::Never) {
            Ok(seen) => seen,
            Err(error) => {
                is_full(&error);
                refused[0] += 1;
                fs::remove_file(&filler).expect("a file");
                open(&path, SyncPolicy::Never).expect("room on the disk")
            }
        };
        assert!(there.iter().all(|item: &u64| seen.contains(item)), "{room}");
        fill(if room % 8 == 0 { 1_500 } else { room % 7 });
        let before = refused[1];
        for item in items.by_ref().take(20_000) {
            match seen.insert_if_absent(&item) {
                Ok(new) => {
                    assert!(new);
                    there.push(item);
                }
                Err(error) => {
                    assert_eq!(error.kind(), koel::DurableErrorKind::NoSpace, "{error}");
                    assert!(!seen.contains(&item));
                    refused[1] += 1;
                }
            }
            if refused[1] == before + 100 {
                break;
            }
        }
        match seen.checkpoint() {
            Ok(()) => made += 1,
            Err(error) => {
                is_full(&error);
                refused[2] += 1;
            }
        }
        assert_eq!(seen.len(), there.len(), "{room}");
        fs::remove_file(&filler).expect("a file");
        // Now there is room for all.
        let item = items.next().expect("an item");
        assert!(seen.insert_if_absent(&item).expect("room on the disk"));
        there.push(item);
        if room % 3 == 0 {
            seen.checkpoint().expect("room on the disk");
        }
        match room % 3 {
            1 => seen.close().expect("room on the disk"),
            _ => drop(seen),
        }
        // So that the state stays small.
        if room % 12 == 8 {
            let seen = open(&path, SyncPolicy::Never).expect("room on the disk");
            assert_eq!(seen.len(), there.len(), "{room}");
            seen.clear().expect("room on the disk");
            there.clear();
            seen.shrink();
            seen.close().expect("room on the disk");
        }
    }
    assert!(refused.iter().all(|count| *count > 0) && made > 0, "{refused:?}, {made}");
    let [openings, changes, checkpoints] = refused;
    println!(
        "checked: a disk that is full refused {openings} openings, {changes} changes and {checkpoints} checkpoints: \
         0 answers lost"
    );
    std::process::exit(0);
}

fn a_full_disk() {
    let folder = tempfile::tempdir().expect("a folder");
    let words = ["durable", folder.path().to_str().expect("text"), "full"];
    if let Some(said) = short::on_small_disk(folder.path(), "24m", &again("", &words)) {
        println!("{said}");
    }
}

/// Lets one thread replay the journal, so that the calls of each run are the same.
fn stay_on_one_core() {
    // SAFETY: the set is a plain value of this function.
    unsafe {
        let mut cores: libc::cpu_set_t = std::mem::zeroed();
        let core = usize::try_from(libc::sched_getcpu()).expect("a core");
        libc::CPU_SET(core, &mut cores);
        assert_eq!(libc::sched_setaffinity(0, size_of_val(&cores), &raw const cores), 0);
    }
}

/// The task of a child process.
pub fn work(task: &[String]) -> ! {
    if task[2] == "full" {
        fill_disk(Path::new(&task[1]));
    }
    let (path, notes) = (Path::new(&task[1]), File::create(&task[2]).expect("a file"));
    let policy = match &*task[3] {
        "each" => SyncPolicy::Each,
        "often" => SyncPolicy::Every(Duration::from_millis(5)),
        _ => SyncPolicy::Never,
    };
    let mut notes = Notes(notes);
    stay_on_one_core();
    let _ = fs::metadata(BEGIN);
    let said = match open(path, policy) {
        Err(error) => format!("cannot open: {:?}: {error}", error.kind()),
        // Until a sync has failed.
        Ok(seen) if task[3] == "often" => {
            let failed = (0..).find_map(|item| {
                std::thread::sleep(Duration::from_millis(1));
                seen.insert_if_absent(&(item % 10_000 + 50_000)).err()
            });
            told("add", failed.map_or(Ok(()), Err))
        }
        Ok(seen) => {
            let mut said = String::from("open");
            said += &step(&seen, &mut notes, 0..10, 1_000..1_002);
            said += &told("checkpoint", seen.checkpoint());
            said += &step(&seen, &mut notes, 10..20, 0..5);
            said += &told("sync", seen.sync());
            said += &step(&seen, &mut notes, 20..30, 5..15);
            said += &told("close", seen.close());
            said
        }
    };
    let _ = fs::metadata(END);
    println!("OUTCOME {said}");
    std::process::exit(0);
}

struct Scene {
    folder: tempfile::TempDir,
    notes: tempfile::NamedTempFile,
}

impl Scene {
    /// A state with a journal.
    fn new() -> Scene {
        let folder = tempfile::tempdir().expect("a folder");
        let seen = open(&folder.path().join(NAME), SyncPolicy::Never).expect("a filter");
        EARLIER.for_each(|item| assert!(seen.insert_if_absent(&item).expect("room")));
        drop(seen);
        Scene { folder, notes: tempfile::NamedTempFile::new().expect("a file") }
    }

    fn worker(&self, policy: &str) -> Command {
        let path = self.folder.path().join(NAME);
        let words = [Some("durable"), path.to_str(), self.notes.path().to_str(), Some(policy)];
        again("", &words.map(|word| word.expect("text")))
    }

    /// All that was answered is as it was answered, and nothing is in the way of another process.
    fn check(&self, what: &str) {
        let path = self.folder.path().join(NAME);
        await_locks(self.folder.path());
        let seen = open(&path, SyncPolicy::Never).unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(seen.lost_changes(), 0, "{what}");
        let notes = fs::read(self.notes.path()).expect("a file");
        let mut last = std::collections::BTreeMap::from_iter(EARLIER.map(|item| (item, true)));
        for note in notes.as_chunks::<8>().0 {
            let note = u64::from_le_bytes(*note);
            last.insert(note >> 1, note & 1 == 1);
        }
        // The last change of a process that was killed, or that an error has stopped, may have been made.
        let wrong = last.iter().filter(|(item, is_in)| seen.contains(*item) != **is_in).count();
        assert!(wrong <= usize::from(what.contains("KILL")), "{what}: {wrong} answers are lost");
        assert!((2_000..3_000u64).all(|item| !seen.contains(&item)), "{what}");
        seen.close().unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(names(self.folder.path()), [NAME], "{what}");
    }
}

/// Waits until nobody has a lock on a file in the folder: a process that was killed may still be closing its files.
fn await_locks(folder: &Path) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let file = File::open(entry.expect("an entry").path());
        while file.as_ref().is_ok_and(|file| file.try_lock().is_err()) {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// The system calls that may fail, and how.
const FAILURES: [(&str, &[&str]); 14] = [
    ("readlink", &["EIO"]),
    ("statx", &["EIO", "EACCES"]),
    ("open", &["EMFILE", "ENOSPC", "EROFS", "EACCES"]),
    ("flock", &["EIO", "ENOLCK"]),
    ("getdents", &["EIO"]),
    ("pread", &["EIO", "EINTR"]),
    ("read", &["EIO"]),
    ("pwrite", &["ENOSPC", "EIO", "EINTR"]),
    ("write", &["ENOSPC", "EIO"]),
    ("fallocate", &["ENOSPC", "EIO", "EOPNOTSUPP", "EINTR"]),
    ("mmap", &["ENOMEM"]),
    ("ftruncate", &["EIO", "EINTR"]),
    ("fsync", &["EIO"]),
    ("fdatasync", &["EIO", "EINTR"]),
];

/// Also those that cannot fail, or whose failure is of no consequence.
const OTHERS: [&str; 3] = ["rename", "unlink", "munmap"];

/// Those of the files of the filter.
fn calls(scene: &Scene, policy: &str) -> Vec<Call> {
    let whole = watch(&scene.worker(policy), &[]);
    assert_eq!(whole.outcome.as_deref(), Some("open"));
    let (folder, notes) = (scene.folder.path().to_str(), scene.notes.path().to_str());
    let (folder, notes) = (folder.expect("text"), notes.expect("text"));
    let is_own = |call: &&Call| call.text.contains(folder) && !call.text.contains(notes);
    let calls: Vec<Call> = whole.calls().iter().filter(is_own).cloned().collect();
    assert!(calls.len() > 50, "{calls:?}");
    calls
}

/// Runs the worker with a fault in one of its calls. How many calls a thread makes for its own memory differs from run to
/// run, so the call may not come: then the next run has the fault.
fn with_fault(fault: &str, came: impl Fn(&Watched) -> bool) -> (Scene, Watched) {
    let runs = (0..10).map(|_| {
        let scene = Scene::new();
        let run = watch(&scene.worker("never"), &[fault.to_string()]);
        (scene, run)
    });
    let mut that_came = runs.filter(|(_, run)| came(run));
    that_came.next().unwrap_or_else(|| panic!("the call did not come: {fault}"))
}

fn whatever_fails() {
    let (mut skipped, mut failures, mut reported) = (0, 0, 0);
    for call in calls(&Scene::new(), "never") {
        let errors = FAILURES.iter().filter(|(name, _)| call.is(name)).flat_map(|(_, all)| *all);
        let others = OTHERS.iter().filter(|name| call.is(name)).map(|_| &"EIO");
        for (number, error) in errors.chain(others).enumerate() {
            // A short run takes one error for every third call, and for each of the few syncs of the folder.
            let is_third =
                number == call.nth % 2 && (call.nth + failures + skipped).is_multiple_of(3);
            let is_short = is_third || call.is("fsync");
            if !rounds(is_short, true) {
                skipped += usize::from(number == 0);
                continue;
            }
            let failure = format!("{}:error={error}:when={}", call.name, call.nth);
            let (scene, run) = with_fault(&failure, |run| run.injected().len() == 1);
            let said = run.outcome.clone().unwrap_or_default();
            let what = format!("{error} at {}: {said}", call.text);
            assert!(said.starts_with("open") || said.starts_with("cannot open"), "{what}");
            reported += usize::from(said != "open");
            failures += 1;
            scene.check(&what);
        }
    }
    // What the calling thread can do alone, it does.
    let no_threads = "clone3:error=EAGAIN:when=1+";
    let (scene, run) = with_fault(no_threads, |run| !run.injected().is_empty());
    let said = run.outcome.clone().unwrap_or_default();
    assert!(said.starts_with("cannot open") && said.contains("cannot start a thread"), "{said}");
    scene.check(no_threads);
    println!(
        "checked: {failures} failing calls of a filter with a journal, {reported} of them reported: 0 answers lost"
    );
    assert!(reported > rounds(10, 100));
}

fn whenever_it_is_killed() {
    let calls = calls(&Scene::new(), "never");
    for call in calls.iter().step_by(rounds(9, 1)) {
        let kill = format!("{}:signal=KILL:when={}", call.name, call.nth);
        let (scene, _) = with_fault(&kill, |run| run.signal == Some(9));
        scene.check(&format!("KILL at {}", call.text));
    }
    let kills = calls.len().div_ceil(rounds(9, 1));
    println!(
        "checked: {kills} kills, each at a system call of a filter with a journal: 0 answers lost"
    );
}

/// An answer comes after a sync that began after the change; and none comes after one that failed.
fn each_answer_is_synced() {
    let log = tempfile::NamedTempFile::new().expect("a file");
    let run = |scene: &Scene, policy: &str, options: &[&str]| {
        let worker = scene.worker(policy);
        let mut strace = Command::new("strace");
        strace.args(["-f", "-y", "-e", "trace=write,fdatasync", "-o"]).arg(log.path());
        strace.args(options).arg(worker.get_program()).args(worker.get_args());
        let variables = worker.get_envs().filter_map(|(name, value)| Some((name, value?)));
        let output = strace.envs(variables).output().expect("strace");
        let log = fs::read_to_string(log.path()).expect("a log");
        (String::from_utf8(output.stdout).expect("text"), log)
    };
    let scene = Scene::new();
    let (said, log) = run(&scene, "each", &[]);
    assert!(said.contains("OUTCOME open\n"), "{said}");
    let notes = scene.notes.path().to_str().expect("text");
    let (mut is_synced, mut answers) = (false, 0);
    for line in log.lines() {
        let is_sync = line.contains("fdatasync") && line.contains(".journal.");
        if (is_sync || line.contains("fdatasync resumed")) && line.ends_with("= 0") {
            is_synced = true;
        } else if line.contains("write(") && line.contains(notes) {
            assert!(is_synced, "{line}");
            (is_synced, answers) = (false, answers + 1);
        }
    }
    assert_eq!(answers, 47);
    scene.check("each");
    let scene = Scene::new();
    let (said, _) = run(&scene, "each", &["-e", "inject=fdatasync:error=EIO:when=3+"]);
    assert!(said.contains("NotSynced"), "{said}");
    let answered = |scene: &Scene| fs::read(scene.notes.path()).expect("a file").len() / 8;
    assert!(answered(&scene) < 5, "{}", answered(&scene));
    // The system tells of a write that has failed once, and its next sync succeeds.
    let mut of_others = 0;
    for failing in 2..rounds(20, 60) {
        let scene = Scene::new();
        let inject = format!("inject=fdatasync:error=EIO:when={failing}");
        let (said, log) = run(&scene, "each", &["-e", &inject]);
        let Some(failed) = log.lines().position(|line| line.contains("(INJECTED)")) else {
            assert!(failing > 20, "there were only {failing} syncs");
            break;
        };
        if !said.contains("NotSynced") {
            of_others += 1;
            assert_eq!(answered(&scene), 47, "{said}");
            scene.check(&said);
            continue;
        }
        let notes = scene.notes.path().to_str().expect("text");
        let later = log.lines().skip(failed).filter(|line| line.contains(notes)).count();
        assert_eq!(later, 0, "an answer after a sync that has failed: {log}");
    }
    // The new journal of the checkpoint that is asked for, that of the one in `close`, and the same journal once more,
    // when the filter is dropped: nothing is lost with one of these.
    assert_eq!(of_others, rounds(1, 3));
    // At an interval, it is told with the next change.
    let scene = Scene::new();
    let (said, _) = run(&scene, "often", &["-e", "inject=fdatasync:error=EIO:when=5+"]);
    assert!(said.contains("NotSynced"), "{said}");
}
