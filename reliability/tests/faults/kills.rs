//! A killed save leaves the old file or the new one.

use crate::child::saving;
use crate::kind::Kind;
use crate::rounds::rounds;
use crate::scene::{Holds, Scene, both, old_file, saved};
use crate::strace::{Call, watch};

use std::collections::HashMap;

pub const TESTS: &[(&str, fn())] = &[
    ("a_killed_save_leaves_the_old_file_or_the_new", || {
        both(|kind| kill_everywhere(kind, Some(&old_file(kind))))
    }),
    ("a_first_save_that_is_killed_leaves_no_file_or_the_new", || {
        both(|kind| kill_everywhere(kind, None))
    }),
];

/// Returns whether every save makes this call. The other calls, for memory or for locks, depend on
/// how the threads run.
fn is_about_files(call: &Call) -> bool {
    let names = ["readlink", "statx", "open", "flock", "fchmod", "ftruncate", "write", "fsync"];
    names.iter().chain(&["rename", "close"]).any(|name| call.is(name))
}

/// Kills a save at each of its system calls, before the call takes effect.
fn kill_everywhere(kind: Kind, old: Option<&[u8]>) {
    const SIGKILL: i32 = 9;
    let (scene, whole) = saved(kind, old);
    assert_eq!(scene.holds(), Holds::New);

    let (mut before, mut after, mut unfinished, mut elsewhere) = (0, 0, 0, 0);
    let mut waits = HashMap::new();
    // A short run kills at every third call, and at different ones for each kind of filter.
    let wanted = |number: usize| number % 3 == kind.name().len() % 3 || rounds(false, true);
    for (_, call) in whole.calls().iter().enumerate().filter(|(number, _)| wanted(*number)) {
        if !is_about_files(call) {
            // There may be hundreds, if another thread was preempted while it held a lock.
            let times: &mut u32 = waits.entry(&call.name).or_default();
            *times += 1;
            if *times > 3 {
                continue;
            }
        }
        let scene = Scene::new(kind, old);
        let kill = format!("{}:signal=SIGKILL:when={}", call.name, call.nth);
        let killed = watch(&saving(kind, &scene.path), &[kill]);
        let last = killed.calls().last().filter(|last| last.name == call.name);
        let Some(last) = last.filter(|_| killed.signal == Some(SIGKILL)) else {
            assert!(!is_about_files(call), "no kill at {call:?}: {:?}", killed.outcome);
            elsewhere += 1;
            continue;
        };
        let carried_out = last.succeeded() || last.text.contains(" = -1");
        assert!(!carried_out, "{last:?}");
        if killed.has_renamed() {
            assert_eq!(scene.holds(), Holds::New, "{call:?}");
            assert!(!scene.has_unfinished(), "{call:?}");
            after += 1;
        } else {
            assert_eq!(scene.holds(), scene.before(), "{call:?}");
            unfinished += u32::from(scene.has_unfinished());
            before += 1;
        }
        scene.go_on();
    }
    println!(
        "    {}: {unfinished} unfinished files; {elsewhere} calls did not occur again",
        kind.name()
    );
    println!("checked: {} kills of a save: 0 files that are neither old nor new", before + after);
    assert!(before >= rounds(4, 15) && after >= rounds(1, 3) && unfinished >= rounds(2, 10));
}
