//! What was changed is there again when the filter is opened again.

use crate::common::rounds;
use crate::process::again;
use crate::{
    Builder, add, bare, builders, has, open, options, place, remove, try_open, with_items,
};
use koel::{
    ConcurrentCuckooFilter, DurableError, DurableErrorKind, DurableFilter, DurableOptions,
    SnapshotError, SnapshotErrorKind, SnapshotFile, SnapshotInfo, StableHash, SyncPolicy, Window,
};
use std::fmt::Debug;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Changes a filter, and opens it again twice: with its journal, and from the checkpoint that was made of that. It is
/// as it was, by these figures, which are returned.
#[track_caller]
fn changed<T: PartialEq + Debug>(
    builder: &Builder,
    change: impl FnOnce(&DurableFilter),
    figures: impl Fn(&DurableFilter) -> T,
) -> T {
    let place = place();
    let seen = open(&place.path, builder);
    change(&seen);
    let before = figures(&seen);
    drop(seen);
    for opened in ["with its journal", "from its checkpoint"] {
        assert!(figures(&open(&place.path, builder)) == before, "{builder:?}, {opened}");
    }
    before
}

/// How many items it has, and how often each of these, and how old.
fn figures(seen: &DurableFilter, items: u64) -> (usize, Vec<(usize, Option<u64>)>) {
    let of = |item: u64| (seen.count(&item), seen.age(&item));
    (seen.len(), (0..items).map(of).collect())
}

#[test]
fn an_interval_and_a_wait_may_be_longer_than_the_clock_can_tell() {
    let options = DurableOptions::default().sync(SyncPolicy::Every(Duration::MAX));
    let options = options.wait(Duration::MAX);
    let place = place();
    let seen = DurableFilter::open_with(&place.path, options, builders()[0].clone());
    let seen = seen.expect("a filter");
    add(&seen, [1]);
    seen.close().expect("a state");
}

/// Of each operation, of few items and of many, with a checkpoint in the middle and without.
#[test]
fn changes_are_there_when_it_is_opened_again() {
    let many = rounds(50_000, 200_000u64);
    let lives = [(false, many), (true, many), (true, 50), (false, 50)];
    for (builder, (checkpoint, count)) in
        builders().iter().flat_map(|builder| lives.map(|life| (builder, life)))
    {
        let items: Vec<u64> = (0..count).collect();
        let (items, others) = items.split_at(items.len() / 2);
        let tenth = count as usize / 10;
        let change = |seen: &DurableFilter| {
            let insert = |items: &[u64]| {
                assert!(seen.insert_many(items).expect("room").iter().all(Result::is_ok));
            };
            insert(items);
            let new = seen.insert_or_refresh_many(others).expect("room");
            assert!(new.iter().all(|new| *new == Ok(true)));
            seen.clear().expect("a change");
            seen.insert(&1u64).expect("room");
            seen.insert(&1u64).expect("room");
            assert!(seen.insert_or_refresh(&2u64).expect("room"));
            seen.tick().expect("a tick");
            assert!(!seen.insert_or_refresh(&2u64).expect("room"));
            insert(&items[tenth..]);
            if checkpoint {
                seen.checkpoint().expect("a checkpoint");
            }
            let gone = &items[tenth..2 * tenth];
            assert!(seen.remove_many(gone).expect("a change").iter().all(|it| *it));
            seen.tick().expect("a tick");
            let refreshed = &items[2 * tenth..3 * tenth];
            assert!(seen.refresh_many(refreshed).expect("a change").iter().all(|it| *it));
            let batch = [&items[2 * tenth..], others].concat();
            let new = seen.insert_if_absent_many(&batch).expect("room");
            assert!(batch.iter().zip(new).all(|(item, new)| new == Ok(*item >= others[0])));
            add(seen, items[tenth / 2 + 1..tenth].iter().copied());
            remove(seen, others[tenth..].iter().copied());
            seen.refresh(&1u64).expect("a change");
        };
        let (length, items) = changed(builder, change, |seen| figures(seen, count));
        let copies = [1, 2, tenth + 1, 3 * tenth, 6 * tenth - 1].map(|item| items[item].0);
        assert_eq!((length, copies), (5 * tenth - tenth / 2 + 2, [2, 1, 0, 1, 1]));
    }
}

#[test]
fn copies_that_were_taken_are_taken_again() {
    for rate in [0.01, 1e-3, 1e-6] {
        let builder = bare().false_positive_rate(rate).capacity(1_000).growing();
        let change = |seen: &DurableFilter| {
            // All copies of an item after each other, and then those of others, so that shards are split.
            let copies = (0..rounds(20_000, 200_000u64)).flat_map(|item| [item; 4]);
            assert_eq!(copies.filter(|item| seen.insert(item).is_ok()).count(), seen.len());
        };
        changed(&builder, change, |seen| (seen.len(), has(seen, 0..1_000)));
    }
}

/// In the order in which its changes are made again, a table that is filled to the last item would not take them all.
#[test]
fn a_filter_that_is_filled_until_it_refuses_fits_again() {
    for rate in [0.05, 0.001, 1e-6] {
        let builder = bare().false_positive_rate(rate).capacity(rounds(20_000, 200_000));
        let fill = |seen: &DurableFilter| {
            let refused = (0..).filter(|item: &u64| seen.insert(item).is_err());
            assert_eq!(refused.take(1_000).count(), 1_000);
        };
        let most = rounds(30_000, 300_000);
        let (length, items) = changed(&builder, fill, |seen| figures(seen, most));
        assert!(items.iter().filter(|(copies, _)| *copies > 0).count() >= length, "{rate}");
    }
}

#[test]
fn ticks_pass_again_as_they_did() {
    for builder in [bare().capacity(1_000), bare().capacity(100).growing()] {
        let change = |seen: &DurableFilter| {
            let mut item = 0..;
            let mut add = || seen.insert(&item.next().expect("a number")).expect("room");
            // By numbers, without, by more numbers than are remembered, and backwards.
            let steps = [2_000, 0, 2_003, 2_004, 0, 2_005, 1, 2_030];
            for step in steps {
                add();
                match step {
                    0 => seen.tick().expect("a tick"),
                    number => _ = seen.tick_to(number).expect("a tick"),
                }
                add();
                if step == 2_003 {
                    seen.checkpoint().expect("a checkpoint");
                }
            }
        };
        let builder = builder.false_positive_rate(1e-6).remembers(6);
        changed(&builder, change, |seen| (seen.present_tick(), figures(seen, 20)));
    }
}

/// A name of 230 bytes; and a link to the state, and its own name.
#[test]
fn a_state_has_its_journals_whatever_it_is_called() {
    let builder = &builders()[2];
    let place = place();
    fs::create_dir(place.at("real")).expect("a folder");
    std::os::unix::fs::symlink("real/seen.koel", place.at("link")).expect("a link");
    let long = "s".repeat(230);
    for [name, other] in [[&*long; 2], ["link", "real/seen.koel"]] {
        for item in 0..10 {
            let seen = open(&place.at(if item % 2 == 0 { name } else { other }), builder);
            assert!(has(&seen, 0..item), "{item}");
            add(&seen, [item]);
            if item == 5 {
                seen.checkpoint().expect("a checkpoint");
            }
        }
    }
}

const JOURNAL: &str = "seen.koel.journal.1";

#[test]
fn a_filter_that_is_closed_leaves_one_file_and_one_that_is_dropped_its_journal() {
    use std::os::unix::fs::PermissionsExt;
    for builder in &builders() {
        let place = place();
        let about = |name: &str| fs::metadata(place.at(name)).expect("a file");
        with_items(&place.path, builder, [1]);
        assert_eq!(place.names(), ["seen.koel", JOURNAL]);
        let seen = open(&place.path, builder);
        add(&seen, [2]);
        seen.close().expect("a checkpoint");
        assert_eq!(place.names(), ["seen.koel"]);
        let alone = ConcurrentCuckooFilter::<StableHash>::load(&place.path).expect("a filter");
        assert!(alone.contains(&1u64) && alone.contains(&2u64) && alone.len() == 2);
        // Nothing has changed, so the state stays as it is.
        fs::set_permissions(&place.path, PermissionsExt::from_mode(0o640)).expect("permissions");
        let before = about("seen.koel").modified().expect("a time");
        for is_closed in [false, false, true] {
            let seen = open(&place.path, builder);
            assert_eq!(place.visible(), ["seen.koel", JOURNAL]);
            // Whoever may read the one may read the other.
            assert_eq!(about(JOURNAL).permissions().mode() & 0o777, 0o640);
            match is_closed {
                true => seen.close().expect("nothing to do"),
                false => drop(seen),
            }
            assert_eq!(place.names().len(), if is_closed { 1 } else { 2 });
            assert_eq!(about("seen.koel").modified().expect("a time"), before);
        }
    }
}

#[test]
fn the_description_of_a_file_has_the_bytes_that_only_its_journals_have() {
    let builder = &builders()[2];
    let place = place();
    let link = place.at("link");
    std::os::unix::fs::symlink("seen.koel", &link).expect("a link");
    let unread = || {
        let unread = |name: &Path| {
            let opened = SnapshotFile::open(name).expect("a file").info().journal_bytes;
            assert_eq!(SnapshotInfo::read(name).expect("a file").journal_bytes, opened);
            opened
        };
        let bytes = unread(&place.path);
        assert_eq!(unread(&link), bytes);
        bytes
    };
    let seen = open(&place.path, builder);
    assert_eq!(unread(), 0, "a journal without changes");
    add(&seen, [1]);
    let bytes = seen.journal_bytes();
    assert_eq!(unread(), bytes, "while the filter is open");
    drop(seen);
    assert_eq!(unread(), bytes, "while nobody has it open");
    // Nobody can tell what is in a journal that cannot be read.
    fs::write(place.at("seen.koel.journal.9"), [7; 100]).expect("a file");
    assert_eq!(unread(), bytes + 100);
    fs::remove_file(place.at("seen.koel.journal.9")).expect("a file");
    open(&place.path, builder).close().expect("a state");
    assert_eq!(unread(), 0, "a filter that was closed");
}

/// Neither a load nor a save knows what the journal has.
#[test]
fn a_load_leaves_no_change_out_and_a_save_orphans_none() {
    let load = |name: &Path| ConcurrentCuckooFilter::<StableHash>::load(name);
    fn is_refused<T: Debug>(result: Result<T, SnapshotError>) {
        let error = result.expect_err("changes are in the journal");
        assert_eq!(error.kind(), SnapshotErrorKind::HasJournal);
        for words in [JOURNAL, "open it with `DurableFilter::open`"] {
            assert!(error.to_string().contains(words), "{error}");
        }
    }
    for builder in &builders() {
        let place = place();
        let (path, link) = (&place.path, &place.at("link"));
        std::os::unix::fs::symlink("seen.koel", link).expect("a link");
        let other = builder.clone().build().expect("a filter");
        let seen = open(path, builder);
        load(path).expect("a state without changes in its journal");
        add(&seen, [1]);
        let copy = seen.try_clone().expect("memory");
        copy.save(place.at("copy")).expect("another path");
        assert!(load(&place.at("copy")).expect("a copy").contains(&1u64));
        let mut seen = Some(seen);
        let before = fs::read(path).expect("a file");
        // While the filter is open, and after it was dropped.
        for _ in 0..2 {
            for name in [path, link] {
                is_refused(load(name));
                is_refused(other.save(name));
                is_refused(copy.save(name));
            }
            assert!(fs::read(path).expect("a file") == before);
            // A file that is opened to be read can be loaded without the changes.
            let file = SnapshotFile::open(path).expect("a file");
            assert!(file.load().expect("a filter").is_empty());
            drop(seen.take());
        }
        open(path, builder).close().expect("a state");
        assert!(load(path).expect("a state with all changes").contains(&1u64));
        other.save(path).expect("nothing is orphaned");
        assert!(!load(path).expect("another state").contains(&1u64));
    }
}

#[test]
fn a_filter_is_open_once_at_a_time() {
    let place = place();
    let builder = &builders()[2];
    let seen = open(&place.path, builder);
    let error = try_open(&place.path, builder).expect_err("in use");
    assert_eq!(error.kind(), DurableErrorKind::InUse);
    assert!(error.to_string().ends_with("this process is using it already"), "{error}");
    drop(seen);
    drop(open(&place.path, builder));
}

/// Has the state open until it is killed.
#[test]
#[ignore = "a child process of the tests below"]
fn holder() {
    let Some(task) = crate::process::task() else { return };
    let seen = open(Path::new(&task[0]), &builders()[2]);
    add(&seen, [1]);
    println!("ready");
    loop {
        thread::sleep(Duration::from_secs(60));
    }
}

/// Starts a process that has the state open.
fn held(path: &Path) -> Child {
    let mut again = again("opening::holder", &[path.to_str().expect("text")]);
    let mut holder = again.stdout(Stdio::piped()).spawn().expect("a child");
    let out = BufReader::new(holder.stdout.take().expect("its output"));
    assert!(out.lines().any(|line| line.expect("text").ends_with("ready")), "it has ended");
    holder
}

/// At last as after a kill, when the system has not taken back all memory of the process yet.
#[test]
fn opening_waits_for_a_process_that_is_ending_as_long_as_the_options_say_and_no_longer() {
    let place = place();
    let mut holder = held(&place.path);
    let number = format!("process {} is using it", holder.id());
    for wait in [Duration::ZERO, Duration::from_millis(300)] {
        let begin = Instant::now();
        let options = options(SyncPolicy::Never).wait(wait);
        let error = DurableFilter::open_with(&place.path, options, builders()[2].clone());
        let error = error.expect_err("in use");
        assert_eq!(error.kind(), DurableErrorKind::InUse);
        assert!(error.to_string().contains(&number), "{error}");
        assert!((wait..wait + Duration::from_secs(2)).contains(&begin.elapsed()), "{wait:?}");
    }
    thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(Duration::from_millis(500));
            holder.kill().expect("a child");
            holder.wait().expect("a child");
        });
        let seen = DurableFilter::open(&place.path, builders()[2].clone()).expect("a filter");
        assert!(has(&seen, [1]));
    });
}

#[test]
fn what_a_program_asks_for_and_the_state_contradicts_is_refused() {
    let fixed = || bare().capacity(1_000).false_positive_rate(1e-4);
    let (growing, week) = (|| fixed().growing().expected_growth(100.0), || fixed().remembers(7));
    let plain = || ConcurrentCuckooFilter::builder().hasher(StableHash::with_seed(8));
    let hours = |hours: u64| fixed().forgets_after(Duration::from_secs(3_600 * hours));
    let week_of = |clock: Duration| fixed().forgets_after(clock);
    let states: [(Builder, &[(Builder, &str)]); 4] = [
        (
            fixed(),
            &[
                (fixed().growing(), "has a fixed size, and the program asks for .growing()"),
                (plain().growing(), "has a fixed size, and the program asks for .growing()"),
                (plain().max_bytes(1 << 30), "fixed size, and the program asks for .max_bytes()"),
                (plain().expected_growth(2.0), "the program asks for .expected_growth()"),
                (fixed().remembers(30), "for ever, and the program asks for .remembers(30)"),
                (fixed().capacity(1_001), "1000 items, and the program asks for .capacity(1001)"),
                (plain().false_positive_rate(1e-6), "asks for .false_positive_rate(1e-6)"),
                (plain().false_positive_rate(f64::NAN), "asks for .false_positive_rate(NaN)"),
                (plain(), ""),
                (fixed(), ""),
                (fixed().capacity(999).false_positive_rate(0.01), ""),
            ],
        ),
        (
            growing(),
            &[
                (growing().remembers(1), "for ever, and the program asks for .remembers(1)"),
                (growing().expected_growth(101.0), "a factor of 100, and the program asks for"),
                (growing().false_positive_rate(1e-6), "asks for .false_positive_rate(1e-6)"),
                (plain(), ""),
                (fixed(), ""),
                (growing(), ""),
                (growing().capacity(1_000_000).expected_growth(1.0), ""),
            ],
        ),
        (
            week(),
            &[
                (week().remembers(6), "for 7 ticks, and the program asks for .remembers(6)"),
                (week().remembers(8), "for 7 ticks, and the program asks for .remembers(8)"),
                (week().growing(), "the program asks for .growing()"),
                (hours(2), "the system's clock, and the program asks for .forgets_after() with 2h"),
                (week_of(Duration::from_secs(7)), "not by the system's clock, and the program"),
                (week_of(Duration::from_secs(7)), "asks for .forgets_after() with 7s"),
                (fixed(), ""),
                (week(), ""),
            ],
        ),
        (
            hours(14),
            &[
                (hours(28), "after 14h, and the program asks for .forgets_after() with 28h"),
                (hours(14), ""),
                (fixed().remembers(14), ""),
                (plain(), ""),
            ],
        ),
    ];
    for (made, others) in states {
        let place = place();
        with_items(&place.path, &made, [1]);
        for (asked, said) in others {
            let before = place.names();
            match try_open(&place.path, asked) {
                Ok(seen) => assert!(said.is_empty() && has(&seen, [1]), "{said}"),
                Err(error) => {
                    assert_eq!(error.kind(), DurableErrorKind::OtherSettings, "{error}");
                    assert_eq!(error.path(), Some(&*place.path.canonicalize().expect("a path")));
                    let text = error.to_string();
                    assert!(!said.is_empty() && text.contains(said), "{said:?}: {text}");
                    let advice = "leave that setting out, or use another file";
                    assert!(text.ends_with(advice), "{text}");
                    assert_eq!(place.names(), before);
                }
            }
        }
    }
}

/// A filter that was last used two hours ago, by its clock, as one with a journal or as one that was saved.
#[test]
fn time_that_has_passed_by_the_clock_is_on_record() {
    let hour = Window::new(Duration::from_secs(3_600));
    let cases = builders().into_iter().take(3).flat_map(|it| [(it.clone(), false), (it, true)]);
    for (builder, is_saved) in cases {
        let place = place();
        let builder = builder.false_positive_rate(1e-5);
        let counted = builder.clone().remembers(hour.ticks());
        let long_ago = hour.number_at(Window::now() - 7_200);
        if is_saved {
            let old = counted.build().expect("memory");
            old.tick_to(long_ago);
            old.insert("old").expect("room");
            old.save(&place.path).expect("a file");
        } else {
            let old = open(&place.path, &counted);
            old.tick_to(long_ago).expect("a tick");
            old.insert("old").expect("room");
            old.close().expect("a state");
        }
        let builder = builder.forgets_after(Duration::from_secs(3_600));
        let seen = open(&place.path, &builder);
        assert_eq!(seen.window(), Some(hour));
        // Opening it lets the time pass.
        assert!(!seen.contains("old"));
        assert_eq!(seen.keep_up().expect("ticks"), 0);
        assert!(seen.insert_if_absent("new").expect("room"));
        let present = seen.present_tick();
        assert!(present >= Some(hour.number_at(Window::now() - 600)), "{present:?}");
        drop(seen);
        let seen = open(&place.path, &builder);
        assert_eq!((seen.present_tick(), seen.len()), (present, 1));
        assert!(seen.contains("new"));
    }
}

#[test]
fn a_limit_of_memory_that_the_program_sets_replaces_that_of_the_state() {
    let place = place();
    let builder = || builders()[2].clone();
    let limited = |builder: Builder, limit: usize| {
        let seen = open(&place.path, &builder);
        assert_eq!(seen.stats().max_bytes, Some(limit));
        seen
    };
    drop(limited(builder().max_bytes(500_000), 500_000));
    let seen = limited(builder(), 500_000);
    while seen.insert(&(seen.len() as u64)).is_ok() {}
    let takes = seen.stats().size_in_bytes;
    drop(seen);
    drop(limited(builder().max_bytes(1_000_000), 1_000_000));
    // It does not grow any more, but what it has stays.
    let seen = limited(builder().max_bytes(takes / 2), takes / 2);
    assert!(has(&seen, 0..seen.len() as u64));
}

/// A folder where the new state has to be written keeps checkpoints from being made.
#[test]
fn a_checkpoint_that_fails_leaves_everything_as_it_was() {
    for builder in &builders() {
        let place = place();
        let in_the_way = place.at(".seen.koel.koel-saving");
        let seen = open(&place.path, builder);
        add(&seen, [1]);
        fs::create_dir(&in_the_way).expect("a folder");
        let before = place.names();
        seen.checkpoint().expect_err("a folder is in the way");
        assert_eq!(place.names(), before);
        add(&seen, [2]);
        drop(seen);
        // Opening it makes a checkpoint, too.
        let error = try_open(&place.path, builder).expect_err("a folder is in the way");
        assert!(error.to_string().contains("is in the way"), "{error}");
        assert!(before.ends_with(&place.names()));
        fs::remove_dir(&in_the_way).expect("a folder");
        assert!(has(&open(&place.path, builder), [1, 2]));
    }
}

/// What a process leaves that is killed in a checkpoint: before the new state took its place, and after that.
#[test]
fn of_two_journals_the_one_of_the_state_counts() {
    for builder in &builders() {
        let place = place();
        let write = |name: &str, bytes: &[u8]| fs::write(place.at(name), bytes).expect("a file");
        let files = || {
            let names = place.names();
            let journal = names.iter().find(|name| name.contains(".journal.")).expect("a journal");
            ["seen.koel", journal].map(|name| fs::read(place.at(name)).expect("a file"))
        };
        let seen = open(&place.path, builder);
        add(&seen, [1]);
        let [old, of_old] = files();
        seen.checkpoint().expect("a state");
        add(&seen, [2]);
        let [new, of_new] = files();
        drop(seen);
        for (state, has_second) in [(&old, false), (&new, true)] {
            write("seen.koel", state);
            write("seen.koel.journal.7", &of_old);
            write("seen.koel.journal.8", &of_new);
            let seen = open(&place.path, builder);
            assert!(has(&seen, [1]) && has(&seen, [2]) == has_second);
            assert_eq!(place.names().len(), 3, "{:?}", place.names());
        }
        // The journal of the next state alone has not all changes.
        fs::remove_file(place.at(&place.names()[1])).expect("a file");
        write("seen.koel", &old);
        write("seen.koel.journal.8", &of_new);
        let error = try_open(&place.path, builder).expect_err("its own journal is gone");
        assert_eq!(error.kind(), DurableErrorKind::OtherState);
    }
}

/// Where somebody has emptied the folder, another process may have begun anew.
#[test]
fn a_folder_that_was_emptied_is_left_to_its_present_user() {
    let builder = &builders()[2];
    for has_changes in [false, true] {
        let place = place();
        let old = open(&place.path, builder);
        place.names().iter().for_each(|name| fs::remove_file(place.at(name)).expect("a file"));
        let new = open(&place.path, builder);
        add(&new, [2]);
        if has_changes {
            add(&old, [1]);
            let error = old.checkpoint().expect_err("its files are gone").to_string();
            assert!(error.contains("another process may use the state"), "{error}");
        }
        assert!(old.close().is_err());
        drop(new);
        let again = open(&place.path, builder);
        assert!(has(&again, [2]) && !again.contains(&1u64));
    }
}

/// Forks a child that does only this, and returns its number.
///
/// # Safety
///
/// What it does may wait for no other thread of this process.
#[cfg(target_os = "linux")]
unsafe fn forked(work: impl FnOnce() -> bool) -> libc::pid_t {
    // SAFETY: the caller's promise. The child ends at once.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let code = i32::from(!work());
        // SAFETY: it ends the child.
        unsafe { libc::_exit(code) };
    }
    child
}

/// Waits for a child, and checks that it has done what it should.
#[cfg(target_os = "linux")]
fn ends_well(child: libc::pid_t) {
    let mut status = 0;
    // SAFETY: it is a child of this process.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(status, 0, "a child waited, or changed something");
}

/// Forks two children, which make filters alike.
#[cfg(target_os = "linux")]
#[test]
#[ignore = "a child process of the test below"]
fn forker() {
    let Some(task) = crate::process::task() else { return };
    // It has drawn its keys before it forks.
    drop(ConcurrentCuckooFilter::with_capacity(1));
    for name in ["a.koel", "b.koel"] {
        let make = || {
            drop(open(&Path::new(&task[0]).join(name), &builders()[2]));
            true
        };
        // SAFETY: no other thread of this process runs.
        ends_well(unsafe { forked(make) });
    }
}

/// A journal of one would otherwise pass for one of the other.
#[cfg(target_os = "linux")]
#[test]
fn forked_processes_draw_numbers_of_their_own() {
    let place = place();
    let words = [place.folder().to_str().expect("text")];
    assert!(again("opening::forker", &words).status().expect("a process").success());
    let bytes = |name: &str| fs::read(place.at(name)).expect("a file");
    let key = |name: &str| bytes(name)[16..24].to_vec();
    assert_ne!(key("a.koel.journal.1"), key("b.koel.journal.1"));
    assert_ne!(bytes("a.koel"), bytes("b.koel"));
}

/// Whether each change is refused, since this process is a child of the one that opened the filter.
#[cfg(target_os = "linux")]
fn refuses_changes(seen: &DurableFilter, mut items: std::ops::Range<u64>) -> bool {
    fn is_refused<T>(result: Result<T, DurableError>) -> bool {
        result.is_err_and(|error| error.kind() == DurableErrorKind::Forked)
    }
    items.all(|item| {
        is_refused(seen.insert_if_absent(&item))
            && is_refused(seen.insert(&item))
            && is_refused(seen.remove(&item))
            && is_refused(seen.refresh(&item))
            && is_refused(seen.insert_or_refresh(&item))
    }) && is_refused(seen.tick())
        && is_refused(seen.tick_to(7))
        && is_refused(seen.clear())
        && is_refused(seen.insert_many::<u64>(&[]))
        && is_refused(seen.insert_if_absent_many(&[2u64]))
        && is_refused(seen.remove_many(&[1u64]))
        && is_refused(seen.checkpoint())
        && is_refused(seen.sync())
        && seen.shrink() == 0
}

/// A child has the mappings of its parent, and must not write there.
#[cfg(target_os = "linux")]
#[test]
fn a_child_changes_nothing() {
    for builder in [&builders()[1], &builders()[3]] {
        let place = place();
        let seen = open(&place.path, builder);
        add(&seen, [1]);
        let work = || refuses_changes(&seen, 1..3) && has(&seen, [1]);
        // SAFETY: no other thread uses the filter.
        ends_well(unsafe { forked(work) });
        assert!(has(&seen, [1]));
        add(&seen, [2]);
        drop(seen);
        assert!(has(&open(&place.path, builder), [1, 2]));
    }
}

/// A lock that another thread held when the process forked stays locked in the child.
#[cfg(target_os = "linux")]
#[test]
fn a_child_is_refused_before_it_waits_for_a_lock_of_its_parent() {
    for builder in [bare().capacity(10_000), bare().capacity(100).growing()] {
        let place = place();
        let builder = builder.remembers(3);
        let seen = DurableFilter::open_with(&place.path, options(SyncPolicy::Each), builder);
        let seen = seen.expect("a filter");
        let stop = std::sync::atomic::AtomicBool::new(false);
        let relaxed = std::sync::atomic::Ordering::Relaxed;
        thread::scope(|scope| {
            for thread in 0..3u64 {
                let (seen, stop) = (&seen, &stop);
                scope.spawn(move || {
                    let items: Vec<u64> = (0..3_000).map(|item| thread << 32 | item).collect();
                    while !stop.load(relaxed) {
                        seen.insert_many(&items).expect("room");
                        seen.remove_many(&items).expect("a change");
                    }
                });
            }
            let fork = |_| {
                thread::sleep(Duration::from_millis(5));
                let work = || {
                    // SAFETY: it ends the child if it waits.
                    unsafe { libc::alarm(10) };
                    refuses_changes(&seen, 1 << 40..(1 << 40) + 2_000)
                };
                // SAFETY: what is refused waits for no other thread, as this test checks.
                unsafe { forked(work) }
            };
            let children: Vec<_> = (0..rounds(20, 200)).map(fork).collect();
            stop.store(true, relaxed);
            children.into_iter().for_each(ends_well);
        });
    }
}

/// Some file systems leave that of a file that was written before a power failure.
#[test]
fn a_lock_file_of_zeros_is_no_obstacle() {
    let place = place();
    with_items(&place.path, &builders()[2], [1]);
    for zeros in [0, 1, 6, 32] {
        fs::write(place.at(".seen.koel.koel-claim"), vec![0; zeros]).expect("a file");
        assert!(has(&open(&place.path, &builders()[2]), [1]), "{zeros}");
    }
}

#[test]
fn a_thousand_changes_take_little_space() {
    use std::os::unix::fs::MetadataExt;
    let place = place();
    let is_little = |what: &str| {
        let on_disk = |name| 512 * fs::metadata(place.at(name)).expect("a file").blocks();
        let bytes: u64 = place.names().iter().map(|name| on_disk(name)).sum();
        println!("{what}: {bytes} bytes on disk");
        assert!(bytes <= 4 << 20, "{what}: {bytes} bytes on disk");
    };
    for round in 0..4u64 {
        let seen = open(&place.path, &builders()[2]);
        is_little("opened");
        for item in 1_000 * round..1_000 * (round + 1) {
            add(&seen, [item]);
            if item % 100 == 99 {
                is_little("a thousand changes");
            }
        }
        // The first is closed without one.
        if round > 0 {
            seen.checkpoint().expect("a checkpoint");
            is_little("a checkpoint");
        }
        drop(seen);
        is_little("closed");
    }
}

#[test]
fn a_durable_filter_is_unwind_safe_and_tells_its_figures() {
    fn is_unwind_safe<T: std::panic::UnwindSafe + std::panic::RefUnwindSafe>(_: &T) {}
    let place = place();
    let seen = open(&place.path, &builders()[2]);
    is_unwind_safe(&seen);
    assert!(seen.is_empty());
    add(&seen, [1]);
    assert_eq!((seen.len(), seen.stats().items, seen.count(&1u64)), (1, 1, 1));
    let copy = seen.try_clone().expect("memory");
    copy.insert(&2u64).expect("room");
    assert!(!seen.contains(&2u64));
}

#[test]
fn an_error_of_the_system_is_the_source_of_its_error() {
    use std::error::Error;
    use std::io::{Error as IoError, ErrorKind};
    let place = place();
    fs::create_dir(place.at(JOURNAL)).expect("a folder");
    for (name, kind) in [("nowhere/seen.koel", Some(ErrorKind::NotFound)), ("seen.koel", None)] {
        let error = try_open(&place.at(name), &builders()[2]).expect_err("no folder, or a folder");
        let source = error.source().and_then(|error| error.downcast_ref::<IoError>());
        let source = source.expect("an error").kind();
        assert!(kind.is_none_or(|kind| kind == source), "{error}");
    }
}

/// To give memory back is no change: nothing is recorded, and what was recorded is right for the smaller filter.
#[test]
fn a_filter_that_gives_memory_back_keeps_what_it_has() {
    for builder in &builders()[2..] {
        let place = place();
        let seen = open(&place.path, builder);
        add(&seen, 0..200_000);
        remove(&seen, 10_000..200_000);
        let before = seen.journal_bytes();
        assert!(seen.shrink() > 0 || cfg!(not(target_os = "linux")));
        assert_eq!(seen.journal_bytes(), before);
        add(&seen, 200_000..210_000);
        // Opened again with the journal, and then from a state alone.
        drop(seen);
        let seen = open(&place.path, builder);
        let is_right = |seen: &DurableFilter| {
            assert!(seen.len() == 20_000 && has(seen, (0..10_000).chain(200_000..210_000)));
        };
        is_right(&seen);
        seen.shrink();
        seen.tick().expect("a record");
        seen.checkpoint().expect("a checkpoint");
        let bytes = fs::metadata(&place.path).expect("a state").len();
        assert!(bytes < 1_000_000, "{bytes}");
        is_right(&seen);
        seen.close().expect("a state");
        is_right(&open(&place.path, builder));
    }
}
