//! A save meets something at its path or at the path of its unfinished file: another file, a link,
//! a folder, a pipe, or another save.
//!
//! Most checks are rows: what is in a folder, where a filter of two items is saved, what is said, and what is in the
//! folder afterwards.

use crate::common::{Raise, bytes_of};
use crate::kind::Fixed;
use crate::process::{Place, again, names, task};
use crate::{Filter, with_items};
use koel::SnapshotErrorKind;
use koel::disk::{DiskErrorKind, Unfinished};
use std::fs::{self, File, Permissions};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio, exit};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

const BESIDE: &str = ".seen.koel-saving";

/// Returns a small filter with the items from 0 on.
fn filter(items: u64) -> Filter {
    with_items(Fixed.filter(1_000), items)
}

/// Returns the number of items in the file, and checks that they are those of [`filter`].
fn items(path: &Path) -> usize {
    let filter = Filter::load(path).expect("a whole file");
    assert!((0..filter.len() as u64).all(|item| filter.contains(&item)));
    filter.len()
}

fn place() -> Place {
    Place::new("seen")
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("a file").permissions().mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).expect("my own file");
}

/// What is in a folder, an entry a line: `folder/`, `filter = items`, `file ~ length`, `link > target`, `pipe |`, and
/// `name & other` for another name of a file. A number at the end is the permissions, if they are not the default.
/// `@` is the path of the folder.
fn make(folder: &Path, entries: &str) {
    let entries = entries.replace(BESIDE_NAME, BESIDE).replace('@', &folder.display().to_string());
    for entry in entries.split(", ").filter(|entry| !entry.is_empty()) {
        let words: Vec<&str> = entry.split(' ').collect();
        let path = folder.join(words[0]);
        let number = |word: &str| word.parse().expect("a number");
        match words[1..] {
            ["/", ..] => fs::create_dir(&path).expect("a folder"),
            ["=", items, ..] => _ = filter(number(items)).save(&path).expect("a file"),
            ["~", bytes, ..] => {
                fs::write(&path, vec![0xFF; number(bytes) as usize]).expect("a file")
            }
            [">", target] => symlink(target, &path).expect("a link"),
            ["|"] => assert!(Command::new("mkfifo").arg(&path).status().expect("mkfifo").success()),
            ["&", other] => fs::hard_link(folder.join(other), &path).expect("a name"),
            _ => panic!("{entry}"),
        }
        if let [_, "=" | "~", _, mode] = words[..] {
            set_mode(&path, u32::from_str_radix(mode, 8).expect("permissions"));
        }
    }
}

/// Describes what is in a folder, as [`make`] takes it.
fn described(root: &Path, folder: &Path, default: u32) -> Vec<String> {
    let describe = |name: String| {
        let path = folder.join(&name);
        let name = path.strip_prefix(root).expect("it is inside").display().to_string();
        let kind = fs::symlink_metadata(&path).expect("an entry").file_type();
        if kind.is_dir() {
            return [vec![format!("{name} /")], described(root, &path, default)].concat();
        }
        let mode = if kind.is_file() && mode(&path) != default {
            format!(" {:o}", mode(&path))
        } else {
            String::new()
        };
        vec![match () {
            () if kind.is_symlink() => {
                format!("{name} > {}", fs::read_link(&path).expect("a link").display())
            }
            () if kind.is_fifo() => format!("{name} |"),
            () => match Filter::load(&path) {
                Ok(_) => format!("{name} = {}{mode}", items(&path)),
                Err(_) => format!("{name} ~ {}{mode}", fs::metadata(&path).expect("a file").len()),
            },
        }]
    };
    names(folder).into_iter().flat_map(describe).collect()
}

/// What the rows call the unfinished file.
const BESIDE_NAME: &str = "BESIDE";

/// Saves to a path, which begins with `@` if it is in a new folder, in which these entries are. Checks what the error
/// says, if there is one, and what is in the folder afterwards: as before if an error is said.
#[track_caller]
fn row(there: &str, path: &str, said: &str, after: &str) {
    row_in(&std::env::temp_dir(), 0o755, there, path, said, after);
}

/// The same in a folder within this one, with these permissions while it is saved.
#[track_caller]
fn row_in(base: &Path, permissions: u32, there: &str, path: &str, said: &str, after: &str) {
    let folder = tempfile::tempdir_in(base).expect("a folder");
    let folder = folder.path();
    let probe = folder.join("probe");
    File::create(&probe).expect("a file");
    let default = mode(&probe);
    fs::remove_file(&probe).expect("the file");
    make(folder, there);
    let before = described(folder, folder, default);
    let path: PathBuf = path.replace('@', &folder.display().to_string()).into();
    set_mode(folder, permissions);
    let saved = filter(2).save(&path);
    set_mode(folder, 0o755);
    let now = described(folder, folder, default);
    match saved {
        Ok(report) => {
            assert!(said.is_empty(), "{there}: it is saved");
            assert_eq!(fs::metadata(&path).expect("a file").len(), report.bytes);
            let root = folder.display().to_string();
            let after = after.replace('@', &root).replace(BESIDE_NAME, BESIDE);
            assert_eq!(now.join(", "), after, "{there}");
        }
        Err(error) => {
            assert!(!said.is_empty() && after.is_empty(), "{there}: {error}");
            let named =
                if path == Path::new("") { "\"\"".into() } else { path.display().to_string() };
            let text = error.to_string();
            let text = text.strip_prefix(&format!("{named}: ")).expect("its path");
            assert!(text.contains(&said.replace(BESIDE_NAME, BESIDE)), "{there}: {text}");
            let kind = match said {
                NO_FILE => SnapshotErrorKind::NotAFile,
                _ => SnapshotErrorKind::Io,
            };
            assert_eq!(error.kind(), kind, "{there}: {error}");
            assert!(!error.is_in_place());
            assert_eq!(error.path(), Some(&*path));
            assert_eq!(now, before, "something was created or removed");
        }
    }
}

const NO_FILE: &str = "this is not a regular file";
const IN_THE_WAY: &str = "BESIDE is in the way, where the new file is written";

// At the path.

#[test]
fn a_link_is_followed_and_stays() {
    let links = "link > elsewhere/file, seen > link";
    row(
        &format!("elsewhere /, elsewhere/file = 1, {links}"),
        "@/seen",
        "",
        &format!("elsewhere /, elsewhere/file = 2, {links}"),
    );
    // To a file that does not exist.
    let links = "elsewhere/link > ../link, link > @/elsewhere/file, seen > elsewhere/link";
    let after = format!("elsewhere /, elsewhere/file = 2, {links}");
    row(&format!("elsewhere /, {links}"), "@/seen", "", &after);
    row("seen > other, other > seen", "@/seen", "Too many levels of symbolic links", "");
    row("seen > other, other > no/such/folder/file", "@/seen", "cannot open its folder: ", "");
}

/// Those of a first save are the default.
#[test]
fn the_new_file_has_the_permissions_of_the_old_one() {
    row("", "@/seen", "", "seen = 2");
    for mode in ["600", "640", "666", "444", "755"] {
        row(&format!("seen = 1 {mode}"), "@/seen", "", &format!("seen = 2 {mode}"));
    }
    // And not those of a leftover.
    row("seen = 1 600, BESIDE ~ 4 666", "@/seen", "", "seen = 2 600");
}

#[test]
fn a_hard_link_to_the_old_file_keeps_the_old_contents() {
    row("seen = 1, kept & seen", "@/seen", "", "kept = 1, seen = 2");
}

#[test]
fn only_a_regular_file_is_replaced() {
    for there in ["seen /", "seen |", "seen > /dev/null"] {
        row(there, "@/seen", NO_FILE, "");
    }
    for path in ["@", "@/seen/", "/dev/null", "/", ".", "..", "", "../", "./.", "/dev"] {
        row("", path, NO_FILE, "");
    }
    row("seen = 1", "@/seen/", NO_FILE, "");
    row("seen = 1", "@/seen/file", "Not a directory", "");
    row("", "@/seen/file", "No such file", "");
}

/// File systems allow names of 255 bytes, but the name of the unfinished file is longer.
#[test]
fn a_long_name_is_refused_or_saved() {
    for length in [1, 241, 242, 243, 255, 256, 5_000] {
        let name = "n".repeat(length);
        let (said, after) = match length {
            ..=255 => ("", format!("{name} = 2")),
            _ => ("name too long", String::new()),
        };
        row("", &format!("@/{name}"), said, &after);
    }
}

#[test]
fn a_name_need_not_be_utf_8() {
    let place = place();
    let path = place.folder().join(std::ffi::OsStr::from_bytes(b"\xFF\n \x01"));
    for saved in [1, 2] {
        filter(saved).save(&path).expect("a file");
        assert_eq!(items(&path) as u64, saved);
        assert_eq!(fs::read_dir(place.folder()).expect("a folder").count(), 1);
    }
}

#[test]
fn a_bare_name_is_saved_in_the_current_folder() {
    let place = place();
    for items_now in [1, 2] {
        let mut process = again("replacing::in_a_process", &["bare", &items_now.to_string()]);
        let output = process.current_dir(place.folder()).output().expect("itself");
        assert!(output.status.success(), "{output:?}");
        assert_eq!(items(&place.path), items_now);
        assert_eq!(place.names(), ["seen"]);
    }
}

// At the path of the unfinished file.

#[test]
fn the_leftover_of_a_killed_save_is_overwritten_however_long_it_is() {
    for length in [0, 1, 2_000, 10_000_000] {
        row(&format!("BESIDE ~ {length}"), "@/seen", "", "seen = 2");
    }
}

#[test]
fn a_link_folder_or_pipe_in_place_of_the_unfinished_file_is_left_alone() {
    for other in
        ["BESIDE > @/precious", "precious ~ 8, BESIDE > @/precious", "BESIDE /", "BESIDE |"]
    {
        row(&format!("seen = 1, {other}"), "@/seen", IN_THE_WAY, "");
    }
}

// Several at once.

#[test]
fn a_new_file_is_alone_until_it_takes_its_place() {
    let place = place();
    for length in [1, 130, 255] {
        let path = place.at(&"n".repeat(length));
        let create = || Unfinished::create(&path, ".new", path.exists());
        let mut new = create().expect("a file");
        let error = create().map(drop).expect_err("another is being written");
        assert_eq!(error.kind(), DiskErrorKind::Busy);
        new.file.write_all(b"new").expect("space");
        new.take_place().expect("a file");
        assert_eq!(fs::read(&path).expect("a file"), b"new");
        drop(create().expect("a file"));
        assert_eq!(place.names().len(), 1);
        let lost = create().expect("a file");
        for name in place.names().iter().filter(|name| name.starts_with('.')) {
            fs::remove_file(place.at(name)).expect("the lost file");
        }
        assert!(lost.take_place().is_err());
        assert_eq!(fs::read(&path).expect("a file"), b"new");
        fs::remove_file(&path).expect("a file");
        assert!(place.names().is_empty());
    }
}

/// Saves repeatedly until `enough` saves have succeeded and been refused. Returns both numbers.
fn save_until(path: &Path, items: u64, mut enough: impl FnMut(u32, u32) -> bool) -> (u32, u32) {
    let begin = Instant::now();
    let filter = filter(items);
    let (mut saved, mut busy) = (0, 0);
    while !enough(saved, busy) {
        match filter.save(path) {
            Ok(_) => saved += 1,
            Err(error) => {
                assert_eq!(error.kind(), SnapshotErrorKind::Busy, "{error}");
                assert!(!error.is_in_place());
                assert!(error.to_string().contains(BESIDE), "{error}");
                busy += 1;
            }
        }
        assert!(begin.elapsed() < Duration::from_secs(300), "{saved} saves, {busy} refused");
    }
    (saved, busy)
}

/// It is always complete while both save to it.
#[test]
fn one_of_two_processes_that_save_to_one_file_is_told_to_wait() {
    let place = place();
    let path = &place.path;
    filter(10).save(path).expect("a file");
    let words = ["both", path.to_str().expect("UTF-8")];
    let mut other =
        again("replacing::in_a_process", &words).stdout(Stdio::null()).spawn().expect("itself");
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Relaxed) {
                assert!([10, 20].contains(&items(path)), "a file that no save has written");
            }
        });
        let _done = Raise(&done);
        // The other process continues until it was refused as busy.
        let mut ended = || other.try_wait().expect("a child").is_some();
        let one = save_until(path, 10, |saved, _| ended() && saved >= 20);
        println!("(saved, busy): {one:?} in this process");
        assert!(other.wait().expect("it has ended").success());
    });
    assert_eq!(place.names(), ["seen"]);
}

// As a user who is not the superuser.

/// Gives up the rights of the superuser, if this process has them. Returns `false` if that fails,
/// as in some containers.
fn become_nobody() -> bool {
    // SAFETY: these functions have no conditions.
    unsafe {
        libc::geteuid() != 0
            || libc::setgroups(0, std::ptr::null()) == 0
                && libc::setgid(65_534) == 0
                && libc::setuid(65_534) == 0
    }
}

#[test]
#[ignore = "the other tests run it"]
fn in_a_process() {
    let Some(task) = task() else { return };
    let path: &Path = task[1].as_ref();
    match &*task[0] {
        "bare" => _ = filter(task[1].parse().expect("a number")).save("seen").expect("a file"),
        "both" => _ = save_until(path, 20, |saved, busy| saved >= 20 && busy > 0),
        "not_own" if become_nobody() => _ = filter(2).save(path).expect("a file"),
        "not_own" => {}
        "nobody" if !become_nobody() || tempfile::tempdir_in(path).is_err() => {
            println!("SKIPPED: this process cannot become another user who can write here");
        }
        "nobody" => as_nobody(path),
        _ => panic!("unknown task: {task:?}"),
    }
    exit(0);
}

fn as_nobody(base: &Path) {
    // A folder that is read-only stays as it is.
    let denied = "where the new file is written first: Permission denied";
    row_in(base, 0o555, "seen = 1", "@/seen", denied, "");
    // One that cannot be synced is refused at once.
    row_in(base, 0o333, "seen = 1", "@/seen", "cannot open its folder: Permission denied", "");
    row_in(base, 0o755, "seen = 1", "@/seen", "", "seen = 2");
    // The leftover of a read-only file does not block a save.
    row_in(base, 0o755, "seen = 1 444, BESIDE ~ 4 444", "@/seen", "", "seen = 2 444");
    let unreadable = base.join("unreadable");
    filter(1).save(&unreadable).expect("a file");
    set_mode(&unreadable, 0o200);
    no_filter(&unreadable, SnapshotErrorKind::Io, "cannot open it: Permission denied");
}

#[test]
fn who_lacks_a_permission_is_told_so_and_nothing_changes() {
    let place = place();
    set_mode(place.folder(), 0o777);
    let words = ["nobody", place.folder().to_str().expect("UTF-8")];
    let output = again("replacing::in_a_process", &words).output().expect("itself");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{}\n{}", text(&output.stdout), text(&output.stderr));
}

#[test]
fn who_cannot_keep_the_owner_gives_nobody_a_permission() {
    let place = place();
    filter(1).save(&place.path).expect("a file");
    set_mode(place.folder(), 0o777);
    set_mode(&place.path, 0o6754);
    let owner = || fs::metadata(&place.path).expect("a file").uid();
    let before = owner();
    let words = ["not_own", place.path.to_str().expect("UTF-8")];
    assert!(again("replacing::in_a_process", &words).status().expect("itself").success());
    // If it could not become another user, nothing has changed.
    assert_eq!(mode(&place.path), if owner() == before { 0o6754 } else { 0o704 });
}

// Loading from something other than a regular file.

#[test]
fn a_filter_can_be_loaded_from_a_pipe() {
    let place = place();
    make(place.folder(), "pipe |");
    let bytes = bytes_of(&with_items(Fixed.filter(300_000), 1_000));
    for cut in [0, 1] {
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut pipe = File::create(place.at("pipe")).expect("a pipe");
                // The reader may close the pipe before the end.
                let mut parts = bytes[..bytes.len() - cut].chunks(10_007);
                while parts.next().is_some_and(|part| pipe.write_all(part).is_ok()) {}
            });
            match Filter::load(place.at("pipe")) {
                Ok(loaded) => {
                    assert_eq!((cut, loaded.len()), (0, 1_000));
                    assert!((0..1_000u64).all(|item| loaded.contains(&item)));
                }
                Err(error) => {
                    assert_eq!(cut, 1, "{error}");
                    assert_eq!(error.kind(), SnapshotErrorKind::Incomplete);
                    assert_eq!(error.offset(), Some(bytes.len() as u64 - 1));
                }
            }
        });
    }
}

fn no_filter(path: &Path, kind: SnapshotErrorKind, words: &str) {
    let error = Filter::load(path).expect_err("no filter");
    assert_eq!(error.kind(), kind, "{error}");
    assert!(error.to_string().contains(words), "{error}");
}

#[test]
fn devices_folders_and_missing_files_are_refused() {
    use SnapshotErrorKind::{Io, NotASnapshot, NotFound};
    no_filter("/dev/null".as_ref(), NotASnapshot, "");
    no_filter("/dev/zero".as_ref(), NotASnapshot, "");
    no_filter(place().folder(), Io, "cannot read: Is a directory");
    no_filter("".as_ref(), NotFound, "cannot open it: No such file");
    no_filter("/no/such/file".as_ref(), NotFound, "cannot open it: No such file");
}
