//! A load reports which system call failed, and it tolerates interruptions and short reads.

use crate::child::loading;
use crate::kind::Kind;
use crate::scene::{NAME, Scene, both, old_file};
use crate::strace::{Call, watch};

pub const TESTS: &[(&str, fn())] = &[
    ("a_load_reports_the_system_call_that_failed", || both(refuse_everything)),
    ("a_load_survives_interruptions_and_short_reads", || both(get_little_at_a_time)),
];

/// The system calls of a load, a part of their arguments, the errors that they may return, and how the error message
/// begins.
const REFUSALS: [(&str, &str, &[&str], &str); 6] = [
    // To look for a journal.
    ("statx", "NOFOLLOW", &["EIO", "EOVERFLOW"], "cannot inspect it: "),
    ("open", "O_DIRECTORY", &["EMFILE", "EIO"], "cannot open its folder: "),
    ("getdents", "", &["EIO"], "cannot open its folder: "),
    ("open", NAME, &["EACCES", "EMFILE", "EIO"], "cannot open it: "),
    ("statx", "EMPTY_PATH", &["EIO", "EOVERFLOW"], "cannot read: "),
    ("pread64", "", &["EIO", "ENOMEM"], "cannot read: "),
];

/// Returns the offset and the length of a read: `pread64(3</…>, "…"..., 152, 0) = 152`.
fn part(read: &Call) -> (usize, usize) {
    let (arguments, _) = read.text.rsplit_once(") = ").expect("a result");
    let mut numbers = arguments.rsplit(", ").map(|word| word.parse().expect("a number"));
    let at = numbers.next().expect("the offset");
    (at, numbers.next().expect("the length"))
}

fn refuse_everything(kind: Kind) {
    let old = old_file(kind);
    let scene = Scene::new(kind, Some(&old));
    let load = loading(kind, &scene.path);
    let whole = watch(&load, &[]);
    assert_eq!(whole.outcome.as_deref(), Some("done"));
    let path = scene.path.display();
    let mut refused = 0;
    let mut check = |call: &Call, injection: &str, begin: &str| {
        let injection = format!("{}:{injection}:when={}", call.name, call.nth);
        let run = watch(&load, &[injection]);
        let outcome = run.outcome.as_deref().expect("the process lives");
        assert!(run.calls().iter().any(Call::was_injected), "{call:?}: {outcome}");
        assert!(outcome.starts_with(begin), "{call:?}: {outcome}");
        refused += 1;
    };
    // The other calls ask for the number of cores.
    let folder = scene.folder().display().to_string();
    for call in whole.calls().iter().filter(|call| call.text.contains(&folder)) {
        for (name, part, errors, words) in REFUSALS {
            for error in errors.iter().filter(|_| call.is(name) && call.text.contains(part)) {
                let begin = format!("Io, in place: false: {path}: {words}");
                check(call, &format!("error={error}"), &begin);
            }
        }
        if call.is("pread64") {
            // As if the file had been truncated after it was opened.
            check(call, "retval=0", &format!("Incomplete, in place: false: {path}: "));
        }
    }
    println!("checked: {refused} failing calls of a load: 0 that were not reported");
    assert!(refused >= 11);
    assert!(!scene.has_unfinished());
}

/// Interrupts the calls of a load, and lets its reads return fewer bytes than requested.
fn get_little_at_a_time(kind: Kind) {
    let old = old_file(kind);
    let scene = Scene::new(kind, Some(&old));
    let load = loading(kind, &scene.path);
    let whole = watch(&load, &[]);
    let (mut interrupted, mut short) = (0, 0);
    // The other calls ask for the number of cores.
    for call in whole.calls().iter().filter(|call| call.text.contains(NAME)) {
        let injection = |what: &str| format!("{}:{what}:when={}", call.name, call.nth);
        if ["open", "pread64"].iter().any(|name| call.is(name)) {
            let run = watch(&load, &[injection("error=EINTR")]);
            assert_eq!(run.injected().len(), 1, "{call:?}");
            assert_eq!(run.outcome.as_deref(), Some("done"), "{call:?}");
            interrupted += 1;
        }
        if call.is("pread64") {
            let (at, whole_length) = part(call);
            for length in [1, 8, 47, whole_length - 1] {
                // More does not fit into a command line.
                if length >= whole_length.min(1_000) {
                    continue;
                }
                // strace answers instead of the system, with the bytes of the file.
                let bytes: String =
                    old[at..][..length].iter().map(|b| format!("{b:02x}")).collect();
                let answer = injection(&format!("retval={length}:poke_exit=@arg2={bytes}"));
                let run = watch(&load, &[answer]);
                assert_eq!(run.injected().len(), 1, "{call:?}");
                assert_eq!(run.outcome.as_deref(), Some("done"), "{length} bytes of {call:?}");
                // One more read fetches the rest.
                let reads = |calls: &[Call]| calls.iter().filter(|c| c.is("pread64")).count();
                assert_eq!(reads(run.calls()), reads(whole.calls()) + 1);
                short += 1;
            }
        }
    }
    println!(
        "checked: {interrupted} interrupted calls of a load, {short} short reads: 0 loads that failed"
    );
    assert!(interrupted >= 4 && short >= 10);
}
