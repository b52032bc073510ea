//! A load reports which system call failed, and it tolerates interruptions and short reads.

use crate::child::loading;
use crate::kind::Kind;
use crate::scene::{NAME, Scene, both, old_file};
use crate::strace::{Call, watch};

pub const TESTS: &[(&str, fn())] =
    &[("a_load_reports_the_call_that_failed_and_survives_interruptions_and_short_reads", || {
        both(fail_everything)
    })];

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

fn fail_everything(kind: Kind) {
    let old = old_file(kind);
    let scene = Scene::new(kind, Some(&old));
    let load = loading(kind, &scene.path);
    let whole = watch(&load, &[]);
    assert_eq!(whole.outcome.as_deref(), Some("done"));
    let path = scene.path.display();
    let (mut refused, mut interrupted, mut short) = (0, 0, 0);
    let run = |call: &Call, injection: &str, begin: &str| {
        let run = watch(&load, &[format!("{}:{injection}:when={}", call.name, call.nth)]);
        let outcome = run.outcome.as_deref().expect("the process lives");
        assert_eq!(run.injected().len(), 1, "{call:?}: {outcome}");
        assert!(outcome.starts_with(begin), "{injection} at {call:?}: {outcome}");
        run.calls().iter().filter(|call| call.is("pread64")).count()
    };
    let reads = whole.calls().iter().filter(|call| call.is("pread64")).count();
    // The other calls ask for the number of cores.
    let folder = scene.folder().display().to_string();
    for call in whole.calls().iter().filter(|call| call.text.contains(&folder)) {
        for (name, part, errors, words) in REFUSALS {
            for error in errors.iter().filter(|_| call.is(name) && call.text.contains(part)) {
                let begin = format!("Io, in place: false: {path}: {words}");
                run(call, &format!("error={error}"), &begin);
                refused += 1;
            }
        }
        if call.is("pread64") || call.is("open") && call.text.contains(NAME) {
            run(call, "error=EINTR", "done");
            interrupted += 1;
        }
        if !call.is("pread64") {
            continue;
        }
        // As if the file had been truncated after it was opened.
        run(call, "retval=0", &format!("Incomplete, in place: false: {path}: "));
        refused += 1;
        let (at, whole_length) = part(call);
        // More does not fit into a command line.
        let lengths = [1, 8, 47, whole_length - 1].into_iter();
        for length in lengths.filter(|length| *length < whole_length.min(1_000)) {
            // strace answers instead of the system, with the bytes of the file.
            let bytes: String = old[at..][..length].iter().map(|b| format!("{b:02x}")).collect();
            let answer = format!("retval={length}:poke_exit=@arg2={bytes}");
            assert_eq!(run(call, &answer, "done"), reads + 1, "one more read fetches the rest");
            short += 1;
        }
    }
    println!("checked: {refused} failing calls of a load: 0 that were not reported");
    println!(
        "checked: {interrupted} interrupted calls of a load, {short} short reads: 0 loads that failed"
    );
    assert!(refused >= 11 && interrupted >= 4 && short >= 10);
    assert!(!scene.has_unfinished());
}
