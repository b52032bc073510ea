//! A save whose system call fails leaves the old file unchanged, and reports the call.

use crate::child::saving;
use crate::kind::{Fixed, Growing, Kind};
use crate::rounds::rounds;
use crate::scene::{BESIDE, Holds, NAME, Scene, both, old_file, saved};
use crate::strace::{Call, watch};

pub const TESTS: &[(&str, fn())] = &[
    ("a_save_that_fails_leaves_the_old_file_and_one_that_is_interrupted_goes_on", || {
        both(|kind| refuse_everything(kind, Some(&old_file(kind))))
    }),
    ("a_first_save_that_fails_leaves_no_file", || both(|kind| refuse_everything(kind, None))),
    ("a_lock_that_is_held_is_reported_as_busy", busy),
    ("an_unfinished_file_that_cannot_be_removed_does_not_block_later_saves", not_removed),
    ("a_folder_that_does_not_support_fsync_is_no_error", nothing_to_sync),
];

/// The system calls of a save, and the errors that they may return.
const REFUSALS: [(&str, &[&str]); 9] = [
    ("readlink", &["EACCES", "EIO", "ELOOP"]),
    ("statx", &["EACCES", "EIO"]),
    ("open", &["EACCES", "EROFS", "EMFILE", "EIO", "ENOSPC", "EDQUOT"]),
    ("flock", &["ENOLCK", "EIO", "EOPNOTSUPP"]),
    ("fchmod", &["EPERM", "EIO", "EROFS"]),
    ("write", &["ENOSPC", "EIO", "EDQUOT", "EFBIG"]),
    ("fsync", &["EIO", "ENOSPC", "EDQUOT"]),
    ("rename", &["EACCES", "EIO", "ENOSPC", "EXDEV", "EBUSY"]),
    // Closing is the last step for a file, and its error is ignored.
    ("close", &["EIO"]),
];

/// The calls that signals interrupt.
const INTERRUPTED: [&str; 5] = ["open", "flock", "fchmod", "write", "fsync"];

/// Returns how the error message begins, after the path, if this call fails; `None` if the save
/// succeeds nevertheless.
fn words_for(call: &Call, error: &str) -> Option<&'static str> {
    if error == "EINTR" {
        return None;
    }
    let beside = call.text.contains(BESIDE);
    Some(match &*call.name {
        name if name.starts_with("readlink") => "cannot read the symbolic link: ",
        "statx" => "cannot inspect it: ",
        name if name.starts_with("open") && beside => "cannot create ",
        name if name.starts_with("open") => "cannot open its folder: ",
        "flock" => "cannot lock ",
        "fchmod" => "cannot give the new file the permissions of the old one: ",
        "write" => "cannot write: ",
        "fsync" if beside => "cannot sync the new file: ",
        name if name.starts_with("rename") => "cannot rename ",
        "fsync" => "the new file is in place and complete, but its folder could not be synced (",
        "close" => return None,
        _ => panic!("unexpected call: {call:?}"),
    })
}

fn refuse_everything(kind: Kind, old: Option<&[u8]>) {
    let (scene, whole) = saved(kind, old);
    let (mut refused, mut interrupted) = (0, 0);
    // The standard library panics if the folder that it lists cannot be closed, which no file system does.
    let folder = format!("<{}>", scene.folder().canonicalize().expect("a folder").display());
    let closes_folder = |call: &&Call| call.is("close") && call.text.contains(&folder);
    for call in whole.calls().iter().filter(|call| !closes_folder(call)) {
        let errors = REFUSALS.iter().filter(|(name, _)| call.is(name)).flat_map(|(_, all)| *all);
        // A short run tries one error per call, and not always the first.
        let one_of = |all: usize| (call.nth % all)..=(call.nth % all);
        let all = errors.clone().count();
        // And for a first save, only every other call.
        let skips = old.is_none() && call.nth.is_multiple_of(2) && rounds(true, false);
        let wanted = rounds(one_of(all.max(1)), 0..=all);
        let is_wanted = |number: &usize| !skips && wanted.contains(number);
        let errors = errors.enumerate().filter(|(number, _)| is_wanted(number));
        // The first of each, and in a long run all.
        let is_interrupted = INTERRUPTED.iter().any(|name| call.is(name))
            && old.is_some()
            && call.nth <= rounds(1, usize::MAX);
        let interruption = is_interrupted.then_some(&"EINTR");
        for error in errors.map(|(_, error)| error).chain(interruption) {
            let scene = Scene::new(kind, old);
            let refusal = format!("{}:error={error}:when={}", call.name, call.nth);
            let run = watch(&saving(kind, &scene.path), &[refusal]);
            let what = format!("{error} at {}: {:?}", call.text, run.outcome);
            assert_eq!(run.injected().len(), 1, "no call has failed: {what}");
            assert!(run.calls().iter().any(Call::was_injected), "{what}");
            *if *error == "EINTR" { &mut interrupted } else { &mut refused } += 1;

            let outcome = run.outcome.as_deref().expect("the process lives");
            let in_place = run.has_renamed();
            let expected = if in_place { Holds::New } else { scene.before() };
            if call.is("statx") && call.text.contains(BESIDE) {
                // The save cannot find out whose file it is, so it creates a new one or gives up.
                assert_eq!(outcome == "done", in_place, "{what}");
                assert_eq!(scene.holds(), expected, "{what}");
                scene.go_on();
                continue;
            }
            let Some(words) = words_for(call, error) else {
                assert_eq!(outcome, "done", "{what}");
                assert_eq!((scene.holds(), scene.has_unfinished()), (Holds::New, false), "{what}");
                continue;
            };
            let path = scene.path.display();
            let kind = if in_place { "NotSynced" } else { "Io" };
            let begin = format!("{kind}, in place: {in_place}: {path}: {words}");
            assert!(outcome.starts_with(&begin), "not {begin}, but {what}");
            assert!(outcome.contains("(os error "), "{what}");
            assert_eq!(scene.holds(), expected, "{what}");
            assert!(!scene.has_unfinished(), "an unfinished file is left: {what}");
            scene.go_on();
        }
    }
    println!("checked: {refused} failing calls of a save: 0 files that are neither old nor new");
    assert!(refused >= rounds(8, 40));
    if old.is_some() {
        println!("checked: {interrupted} interrupted calls of a save: 0 saves that failed");
        assert!(interrupted >= rounds(4, 10));
    }
}

/// What is injected into a save, how its outcome begins, what the file holds, and whether an unfinished one is left.
fn injected(kind: Kind, faults: [&str; 2], said: &str, holds: Holds, is_left: bool) {
    let old = old_file(kind);
    let scene = Scene::new(kind, Some(&old));
    let faults: Vec<String> =
        faults.into_iter().filter(|it| !it.is_empty()).map(String::from).collect();
    let run = watch(&saving(kind, &scene.path), &faults);
    assert!(!run.injected().is_empty());
    let outcome =
        run.outcome.expect("the process lives").replace(&*scene.path.to_string_lossy(), NAME);
    assert!(outcome.starts_with(said), "{outcome}");
    assert_eq!((scene.holds(), scene.has_unfinished()), (holds, is_left));
    scene.go_on();
}

/// A save must not remove the unfinished file of another.
fn busy() {
    let said = "Busy, in place: false: seen.koel: another save to it";
    injected(Fixed, ["flock:error=EAGAIN", ""], said, Holds::Old, true);
}

fn not_removed() {
    let said = "Io, in place: false: seen.koel: cannot write: No space left";
    let faults = ["write:error=ENOSPC:when=2", "unlink:error=EIO"];
    injected(Growing, faults, said, Holds::Old, true);
}

fn nothing_to_sync() {
    injected(Fixed, ["fsync:error=EINVAL:when=2", ""], "done", Holds::New, false);
}
