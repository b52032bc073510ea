//! A save reaches the disk in this order: the bytes of the new file, its new name, the folder.

use crate::kind::Kind;
use crate::scene::{BESIDE, both, old_file, saved};
use crate::strace::Call;

pub const TESTS: &[(&str, fn())] =
    &[("a_save_syncs_the_file_before_the_rename_and_the_folder_after", || both(in_order))];

fn in_order(kind: Kind) {
    let old = old_file(kind);
    let (scene, whole) = saved(kind, Some(&old));

    // strace prints the path of each descriptor: `fsync(3</tmp/…>)`.
    let folder = scene.folder().canonicalize().expect("a folder");
    let (beside, folder) =
        (format!("<{}>", folder.join(BESIDE).display()), format!("<{}>", folder.display()));
    let calls = whole.calls();
    let only = |name: &str, file: &str| {
        let is_it = |call: &Call| call.is(name) && call.text.contains(file) && call.succeeded();
        let mut places = (0..calls.len()).filter(|place| is_it(&calls[*place]));
        let place = places.next().unwrap_or_else(|| panic!("no {name} of {file}: {calls:#?}"));
        assert_eq!(places.next(), None, "more than one {name} of {file}");
        place
    };
    let locked = only("flock", &beside);
    let permitted = only("fchmod", &beside);
    let synced = only("fsync", &beside);
    let renamed = only("rename", BESIDE);
    let folder_synced = only("fsync", &folder);
    let order = [locked, permitted, synced, renamed, folder_synced];
    assert!(order.is_sorted(), "{calls:#?}");
    let writes: Vec<usize> = (0..calls.len()).filter(|place| calls[*place].is("write")).collect();
    assert!(writes.len() >= 4, "a header, two shards and an index, or more: {calls:#?}");
    for place in writes {
        assert!(locked < place && place < permitted, "{calls:#?}");
        assert!(calls[place].text.contains(&beside), "a write to another file: {calls:#?}");
    }
    println!("    {}: {} system calls", kind.name(), calls.len());
}
