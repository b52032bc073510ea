//! A save meets something at its path or at the path of its unfinished file: another file, a link,
//! a folder, a pipe, or another save.

use crate::kind::{Fixed, Kind, Saved};
use crate::process::{again, names, task};
use koel::disk::{DiskErrorKind, Unfinished};
use koel::{SnapshotError, SnapshotErrorKind};
use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio, exit};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

type Filter = Saved;

const BESIDE: &str = ".seen.koel-saving";

/// Returns a small filter with the items from 1 to `items`.
fn filter(items: u64) -> Filter {
    let filter = Fixed::filter(1_000);
    (1..=items).for_each(|item| filter.insert(&item).expect("room"));
    filter
}

/// Returns the number of items in the file, and checks that they are those of [`filter`].
fn items(path: &Path) -> usize {
    let filter = Filter::load(path).expect("a whole file");
    assert!((1..=filter.len() as u64).all(|item| filter.contains(&item)));
    filter.len()
}

fn folder() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("seen");
    (folder, path)
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("a file").permissions().mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).expect("my own file");
}

fn pipe(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().expect("mkfifo").success());
}

fn is_pipe(path: &Path) -> bool {
    use std::os::unix::fs::FileTypeExt;
    fs::symlink_metadata(path).expect("something").file_type().is_fifo()
}

/// Checks that a save to the path is refused because it is not a regular file.
fn refused_as_no_file(path: &Path) {
    let error = filter(1).save(path).unwrap_err();
    assert_eq!(error.kind(), SnapshotErrorKind::NotAFile, "{error}");
    assert!(!error.is_in_place());
    assert_eq!(error.path(), Some(path));
    let named = if path == Path::new("") { "\"\"".into() } else { path.display().to_string() };
    let words = format!("{named}: this is not a regular file");
    assert!(error.to_string().starts_with(&words), "{error}");
}

// At the path.

#[test]
fn a_link_is_followed_and_stays() {
    let (folder, path) = folder();
    let elsewhere = folder.path().join("elsewhere");
    fs::create_dir(&elsewhere).expect("a folder");
    filter(1).save(elsewhere.join("file")).expect("a file");
    symlink("elsewhere/file", elsewhere.parent().expect("a folder").join("link")).expect("a link");
    symlink("link", &path).expect("a link");
    filter(2).save(&path).expect("a file at the end of two links");
    assert_eq!(fs::read_link(&path).expect("a link"), Path::new("link"));
    assert_eq!(items(&elsewhere.join("file")), 2);
    assert_eq!(names(&elsewhere), ["file"]);
    assert_eq!(names(folder.path()), ["elsewhere", "link", "seen"]);
}

#[test]
fn a_link_to_a_file_that_does_not_exist_is_followed() {
    let (folder, path) = folder();
    let elsewhere = folder.path().join("elsewhere");
    fs::create_dir(&elsewhere).expect("a folder");
    symlink("../link", elsewhere.join("link")).expect("a link");
    symlink(elsewhere.join("file"), folder.path().join("link")).expect("a link");
    symlink("elsewhere/link", &path).expect("a link");
    filter(3).save(&path).expect("a file at the end of three links");
    assert!(fs::symlink_metadata(&path).expect("a link").is_symlink());
    assert!(fs::symlink_metadata(elsewhere.join("file")).expect("a file").is_file());
    assert_eq!(items(&path), 3);
    assert_eq!(names(&elsewhere), ["file", "link"]);
}

#[test]
fn circular_links_and_links_into_missing_folders_are_refused() {
    let (folder, path) = folder();
    symlink("other", &path).expect("a link");
    symlink("seen", folder.path().join("other")).expect("a link");
    let error = filter(1).save(&path).unwrap_err();
    assert!(error.to_string().contains("Too many levels of symbolic links"), "{error}");
    fs::remove_file(folder.path().join("other")).expect("a link");
    symlink("no/such/folder/file", folder.path().join("other")).expect("a link");
    let error = filter(1).save(&path).unwrap_err();
    assert!(error.to_string().contains("cannot open its folder: "), "{error}");
    assert_eq!(names(folder.path()), ["other", "seen"]);
}

#[test]
fn the_new_file_has_the_permissions_of_the_old_one() {
    let (_folder, path) = folder();
    filter(1).save(&path).expect("a file");
    // A first save gives the file the default permissions.
    let made = path.with_file_name("made");
    File::create(&made).expect("a file");
    assert_eq!(mode(&path), mode(&made));
    for permissions in [0o600, 0o640, 0o666, 0o444, 0o755] {
        set_mode(&path, permissions);
        filter(2).save(&path).expect("a file");
        assert_eq!(mode(&path), permissions, "{permissions:o}");
        assert_eq!(items(&path), 2);
    }
}

#[test]
fn a_hard_link_to_the_old_file_keeps_the_old_contents() {
    let (folder, path) = folder();
    filter(1).save(&path).expect("a file");
    fs::hard_link(&path, folder.path().join("kept")).expect("a name");
    filter(2).save(&path).expect("a file");
    assert_eq!(items(&path), 2);
    assert_eq!(items(&folder.path().join("kept")), 1);
}

#[test]
fn only_a_regular_file_is_replaced() {
    let (folder, path) = folder();
    fs::create_dir(&path).expect("a folder");
    refused_as_no_file(&path);
    fs::remove_dir(&path).expect("it is empty");
    pipe(&path);
    refused_as_no_file(&path);
    assert!(is_pipe(&path));
    fs::remove_file(&path).expect("a pipe");
    symlink("/dev/null", &path).expect("a link");
    refused_as_no_file(&path);
    refused_as_no_file("/dev/null".as_ref());
    refused_as_no_file(folder.path());
    assert_eq!(names(folder.path()), ["seen"]);
    for path in ["/", ".", "..", "", "../", "./.", "/dev"] {
        refused_as_no_file(path.as_ref());
    }
}

#[test]
fn a_path_whose_parent_is_no_folder_is_refused() {
    let (folder, path) = folder();
    refused_as_no_file(&path.join(""));
    let error = filter(1).save(path.join("file")).unwrap_err();
    assert_eq!(error.kind(), SnapshotErrorKind::Io);
    assert!(names(folder.path()).is_empty(), "{error}");
    filter(1).save(&path).expect("a file");
    refused_as_no_file(&path.join(""));
    let error = filter(2).save(path.join("file")).unwrap_err();
    assert!(error.to_string().contains("Not a directory"), "{error}");
    assert_eq!(items(&path), 1);
    assert_eq!(names(folder.path()), ["seen"]);
}

#[test]
fn a_long_name_is_refused_or_saved() {
    let (folder, _) = folder();
    // File systems allow names of 255 bytes, but the name of the unfinished file is longer.
    for length in [1, 241, 242, 243, 255, 256, 5_000] {
        let path = folder.path().join("n".repeat(length));
        match filter(1).save(&path) {
            Ok(_) => assert_eq!(items(&path), 1),
            Err(error) => {
                assert!(length > 255, "{error}");
                assert!(error.to_string().contains("name too long"), "{error}");
                assert!(!path.exists());
            }
        }
    }
    assert_eq!(names(folder.path()).len(), 5);
}

#[test]
fn a_name_need_not_be_utf_8() {
    use std::os::unix::ffi::OsStrExt;
    let (folder, _) = folder();
    let path = folder.path().join(OsStr::from_bytes(b"\xFF\n \x01"));
    filter(1).save(&path).expect("a file");
    filter(2).save(&path).expect("a file");
    assert_eq!(items(&path), 2);
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1);
}

#[test]
fn a_bare_name_is_saved_in_the_current_folder() {
    let (folder, path) = folder();
    for items_now in [1, 2] {
        let mut process = again("replacing::in_a_process", &["bare", &items_now.to_string()]);
        let output = process.current_dir(folder.path()).output().expect("itself");
        assert!(output.status.success(), "{output:?}");
        assert_eq!(items(&path), items_now);
        assert_eq!(names(folder.path()), ["seen"]);
    }
}

// At the path of the unfinished file.

#[test]
fn the_leftover_of_a_killed_save_is_overwritten_however_long_it_is() {
    for length in [0, 1, 2_000, 10_000_000] {
        let (folder, path) = folder();
        fs::write(folder.path().join(BESIDE), vec![0xFF; length]).expect("a file");
        let report = filter(5).save(&path).expect("nothing is in the way");
        assert_eq!(fs::metadata(&path).expect("a file").len(), report.bytes);
        assert_eq!(items(&path), 5);
        assert_eq!(names(folder.path()), ["seen"]);
    }
}

#[test]
fn a_leftover_does_not_pass_on_its_permissions() {
    let (folder, path) = folder();
    filter(1).save(&path).expect("a file");
    set_mode(&path, 0o600);
    fs::write(folder.path().join(BESIDE), "left").expect("a file");
    set_mode(&folder.path().join(BESIDE), 0o666);
    filter(2).save(&path).expect("nothing is in the way");
    assert_eq!(mode(&path), 0o600);
}

/// Checks that a save reports what is in place of the unfinished file, and leaves it as it is.
fn in_the_way(folder: &TempDir) {
    let path = folder.path().join("seen");
    let before = names(folder.path());
    let error = filter(2).save(&path).unwrap_err();
    assert_eq!(error.kind(), SnapshotErrorKind::Io);
    let words = format!("{BESIDE} is in the way, where the new file is written");
    assert!(error.to_string().contains(&words), "{error}");
    assert_eq!(names(folder.path()), before, "something was created or removed");
    assert_eq!(items(&path), 1);
}

#[test]
fn a_link_in_place_of_the_unfinished_file_is_not_followed() {
    let (folder, path) = folder();
    filter(1).save(&path).expect("a file");
    let precious = folder.path().join("precious");
    symlink(&precious, folder.path().join(BESIDE)).expect("a link");
    in_the_way(&folder);
    fs::write(&precious, "precious").expect("a file");
    in_the_way(&folder);
    assert_eq!(fs::read(&precious).expect("a file"), b"precious");
}

#[test]
fn a_folder_or_pipe_in_place_of_the_unfinished_file_is_left_alone() {
    let (folder, path) = folder();
    filter(1).save(&path).expect("a file");
    fs::create_dir(folder.path().join(BESIDE)).expect("a folder");
    in_the_way(&folder);
    fs::remove_dir(folder.path().join(BESIDE)).expect("it is empty");
    pipe(&folder.path().join(BESIDE));
    in_the_way(&folder);
    assert!(is_pipe(&folder.path().join(BESIDE)));
}

// Several at once.

#[test]
fn a_new_file_is_alone_until_it_takes_its_place() {
    let (folder, _) = folder();
    for length in [1, 130, 255] {
        let path = folder.path().join("n".repeat(length));
        let create = || Unfinished::create(&path, ".new", path.exists());
        let mut new = create().expect("a file");
        let error = create().map(drop).expect_err("another is being written");
        assert_eq!(error.kind(), DiskErrorKind::Busy);
        new.file.write_all(b"new").expect("space");
        new.take_place().expect("a file");
        assert_eq!(fs::read(&path).expect("a file"), b"new");
        drop(create().expect("a file"));
        assert_eq!(names(folder.path()).len(), 1);
        let lost = create().expect("a file");
        for name in names(folder.path()).iter().filter(|name| name.starts_with('.')) {
            fs::remove_file(folder.path().join(name)).expect("the lost file");
        }
        assert!(lost.take_place().is_err());
        assert_eq!(fs::read(&path).expect("a file"), b"new");
        fs::remove_file(&path).expect("a file");
        assert!(names(folder.path()).is_empty());
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

/// Loads the file all the time while others save to it, and checks that it is always complete.
fn look_while(path: &Path, others: impl FnOnce()) {
    struct Done<'a>(&'a AtomicBool);
    impl Drop for Done<'_> {
        fn drop(&mut self) {
            self.0.store(true, Relaxed);
        }
    }
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let looks = scope.spawn(|| {
            let look =
                || assert!([10, 20].contains(&items(path)), "a file that no save has written");
            look();
            while !done.load(Relaxed) {
                look();
            }
        });
        // Dropped even if `others` panics.
        let others_are_done = Done(&done);
        others();
        drop(others_are_done);
        looks.join().expect("whole files");
    });
}

#[test]
fn one_of_two_threads_that_save_to_one_file_is_told_to_wait() {
    let (folder, path) = folder();
    filter(10).save(&path).expect("a file");
    look_while(&path, || {
        let waiting = AtomicU32::new(0);
        let enough = |saved, busy| {
            waiting.fetch_max(busy, Relaxed);
            saved >= 20 && waiting.load(Relaxed) > 0
        };
        thread::scope(|scope| {
            let other = scope.spawn(|| save_until(&path, 20, enough));
            let one = save_until(&path, 10, enough);
            let other = other.join().expect("no other error");
            println!("(saved, busy): {one:?} and {other:?}");
        });
    });
    assert_eq!(names(folder.path()), ["seen"]);
}

#[test]
fn one_of_two_processes_that_save_to_one_file_is_told_to_wait() {
    let (folder, path) = folder();
    filter(10).save(&path).expect("a file");
    look_while(&path, || {
        let words = ["both", path.to_str().expect("UTF-8")];
        let mut other =
            again("replacing::in_a_process", &words).stdout(Stdio::null()).spawn().expect("itself");
        // The other process continues until it was refused as busy.
        let mut ended = || other.try_wait().expect("a child").is_some();
        let one = save_until(&path, 10, |saved, _| ended() && saved >= 20);
        println!("(saved, busy): {one:?} in this process");
        assert!(other.wait().expect("it has ended").success());
    });
    assert_eq!(names(folder.path()), ["seen"]);
}

// As a user who is not the superuser.

#[test]
fn a_folder_that_is_read_only_is_refused_and_stays_as_it_is() {
    as_nobody("read_only");
}

#[test]
fn the_leftover_of_a_read_only_file_does_not_block_a_save() {
    as_nobody("left");
}

#[test]
fn a_file_without_read_permission_is_reported_as_such() {
    as_nobody("unreadable");
}

#[test]
fn who_cannot_keep_the_owner_gives_nobody_a_permission() {
    let (folder, path) = folder();
    filter(1).save(&path).expect("a file");
    set_mode(folder.path(), 0o777);
    set_mode(&path, 0o6754);
    let owner = || fs::metadata(&path).expect("a file").uid();
    let before = owner();
    let words = ["not_own", path.to_str().expect("UTF-8")];
    assert!(again("replacing::in_a_process", &words).status().expect("itself").success());
    // If it could not become another user, nothing has changed.
    assert_eq!(mode(&path), if owner() == before { 0o6754 } else { 0o704 });
}

#[test]
fn a_folder_that_cannot_be_synced_is_refused_at_once() {
    as_nobody("unlisted");
}

/// Runs the task in a process without the rights of the superuser.
fn as_nobody(what: &str) {
    let (folder, path) = folder();
    set_mode(folder.path(), 0o777);
    let words = [what, path.to_str().expect("UTF-8")];
    let output = again("replacing::in_a_process", &words).output().expect("itself");
    let (said, said_too) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{said}\n{said_too}");
}

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
    let path = task[1].as_ref();
    match &*task[0] {
        "bare" => _ = filter(task[1].parse().expect("a number")).save("seen").expect("a file"),
        "both" => {
            save_until(path, 20, |saved, busy| saved >= 20 && busy > 0);
        }
        "read_only" => read_only(path),
        "left" => left(path),
        "unreadable" => unreadable(path),
        "unlisted" => unlisted(path),
        "not_own" if become_nobody() => _ = filter(2).save(path).expect("a file"),
        "not_own" => {}
        _ => panic!("unknown task: {task:?}"),
    }
    exit(0);
}

/// Becomes a user who is not the superuser, and saves a file in a folder of that user. Returns the
/// folder and the file.
fn inside(path: &Path) -> (PathBuf, PathBuf) {
    let folder = path.with_file_name("folder");
    if !become_nobody() || fs::create_dir(&folder).is_err() {
        println!(
            "SKIPPED: this process cannot become another user, or that user cannot write here"
        );
        exit(0);
    }
    let path = folder.join("seen");
    filter(1).save(&path).expect("a file");
    (folder, path)
}

fn is_denied(error: &SnapshotError, words: &str) {
    let words = format!("{words}: Permission denied");
    assert!(error.to_string().contains(&words), "{error}");
    assert_eq!(error.kind(), SnapshotErrorKind::Io);
}

fn read_only(path: &Path) {
    let (folder, path) = inside(path);
    set_mode(&folder, 0o555);
    let error = filter(2).save(&path).unwrap_err();
    is_denied(&error, "where the new file is written first");
    assert!(!error.is_in_place());
    assert_eq!(items(&path), 1);
    assert_eq!(names(&folder), ["seen"]);
    set_mode(&folder, 0o755);
    filter(2).save(&path).expect("a file");
    assert_eq!(items(&path), 2);
}

fn left(path: &Path) {
    let (folder, path) = inside(path);
    set_mode(&path, 0o444);
    fs::write(folder.join(BESIDE), "left").expect("a file");
    set_mode(&folder.join(BESIDE), 0o444);
    filter(2).save(&path).expect("a file");
    assert_eq!(items(&path), 2);
    assert_eq!(mode(&path), 0o444);
    assert_eq!(names(&folder), ["seen"]);
}

fn unreadable(path: &Path) {
    let (_, path) = inside(path);
    set_mode(&path, 0o200);
    is_denied(&Filter::load(&path).unwrap_err(), "cannot open it");
}

fn unlisted(path: &Path) {
    let (folder, path) = inside(path);
    set_mode(&folder, 0o333);
    let error = filter(2).save(&path).unwrap_err();
    is_denied(&error, "cannot open its folder");
    assert!(!error.is_in_place(), "{error}");
    assert_eq!(items(&path), 1);
    set_mode(&folder, 0o755);
    assert_eq!(names(&folder), ["seen"]);
}

// Loading from something other than a regular file.

#[test]
fn a_filter_can_be_loaded_from_a_pipe() {
    let (_folder, path) = folder();
    let pipe_path = path.with_file_name("pipe");
    pipe(&pipe_path);
    let mut bytes = Vec::new();
    let sent = Fixed::filter(300_000);
    (1..=1_000u64).for_each(|item| sent.insert(&item).expect("room"));
    sent.write_to(&mut bytes).expect("memory");
    for cut in [0, 1] {
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut pipe = File::create(&pipe_path).expect("a pipe");
                // The reader may close the pipe before the end.
                for part in bytes[..bytes.len() - cut].chunks(10_007) {
                    if pipe.write_all(part).is_err() {
                        break;
                    }
                }
            });
            match Filter::load(&pipe_path) {
                Ok(loaded) => {
                    assert_eq!(cut, 0);
                    assert_eq!(loaded.len(), 1_000);
                    assert!((1..=1_000u64).all(|item| loaded.contains(&item)));
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

#[test]
fn devices_folders_and_missing_files_are_refused() {
    let error = Filter::load("/dev/null").unwrap_err();
    assert_eq!(error.kind(), SnapshotErrorKind::NotASnapshot, "{error}");
    let error = Filter::load("/dev/zero").unwrap_err();
    assert_eq!(error.kind(), SnapshotErrorKind::NotASnapshot, "{error}");
    let (folder, _) = folder();
    let error = Filter::load(folder.path()).unwrap_err();
    assert_eq!(error.kind(), SnapshotErrorKind::Io);
    assert!(error.to_string().contains("cannot read: Is a directory"), "{error}");
    for path in ["", "/no/such/file"] {
        let error = Filter::load(path).unwrap_err();
        assert!(error.to_string().contains("cannot open it: No such file"), "{error}");
    }
}
