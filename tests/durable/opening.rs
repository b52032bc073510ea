//! What was changed is there again when the filter is opened again.

use crate::common::rounds;
use crate::process::{again, names};
use koel::{
    ConcurrentCuckooFilter, DurableError, DurableErrorKind, DurableFilter, DurableOptions,
    SnapshotError, SnapshotErrorKind, SnapshotFile, SnapshotInfo, StableHash, SyncPolicy, Window,
};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

type Builder = koel::Builder<StableHash>;

fn builders() -> [Builder; 4] {
    let builder = || {
        let builder = ConcurrentCuckooFilter::builder().hasher(StableHash::with_seed(7));
        builder.false_positive_rate(1e-7)
    };
    [
        builder().capacity(300_000),
        builder().capacity(300_000).remembers(3),
        builder().capacity(1_000).growing(),
        builder().capacity(1_000).growing().remembers(3),
    ]
}

/// Waits for no other process.
fn options(policy: SyncPolicy) -> DurableOptions {
    DurableOptions::default().sync(policy).wait(Duration::ZERO)
}

fn try_open(path: &Path, builder: &Builder) -> Result<DurableFilter, DurableError> {
    DurableFilter::open_with(path, options(SyncPolicy::Never), builder.clone())
}

fn open(path: &Path, builder: &Builder) -> DurableFilter {
    try_open(path, builder).expect("a filter")
}

#[test]
fn an_interval_and_a_wait_may_be_longer_than_the_clock_can_tell() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("seen.koel");
    let options = DurableOptions::default().sync(SyncPolicy::Every(Duration::MAX));
    let options = options.wait(Duration::MAX);
    let seen = DurableFilter::open_with(&path, options, builders()[0].clone()).expect("a filter");
    assert!(seen.insert_if_absent(&1u64).expect("room"));
    seen.close().expect("a state");
}

#[test]
fn changes_are_there_when_it_is_opened_again() {
    for (number, builder) in builders().iter().enumerate() {
        let many = rounds(50_000, 200_000u64);
        for (checkpoint, count) in [(false, many), (true, many), (true, 50), (false, 50)] {
            let folder = tempfile::tempdir().expect("a folder");
            let path = folder.path().join("seen.koel");
            let seen = open(&path, builder);
            for item in 0..count {
                assert!(seen.insert_if_absent(&item).expect("room"));
                if item == count / 3 && checkpoint {
                    seen.checkpoint().expect("a checkpoint");
                }
            }
            let batch: Vec<u64> = (count / 2..count * 5 / 4).collect();
            let new = seen.insert_if_absent_many(&batch).expect("room");
            assert!(batch.iter().zip(new).all(|(item, new)| new == Ok(*item >= count)), "{number}");
            for item in (0..count).step_by(3) {
                assert!(seen.remove(&item).expect("a change"));
            }
            seen.tick().expect("a tick");
            seen.refresh(&1u64).expect("a change");
            let length = seen.len();
            drop(seen);
            for opened in 0..2 {
                let seen = open(&path, builder);
                assert_eq!(seen.len(), length, "{number} {opened}");
                for item in 0..count * 5 / 4 {
                    let is_in = item >= count || item % 3 != 0;
                    assert_eq!(seen.contains(&item), is_in, "{number}: {item}");
                }
                assert_eq!(seen.age(&1u64), builder_ages(number).then_some(0));
                assert_eq!(seen.age(&2u64), builder_ages(number).then_some(1));
                seen.checkpoint().expect("a checkpoint");
            }
        }
    }
}

#[test]
fn what_each_operation_has_done_is_done_again() {
    for builder in &builders() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("seen.koel");
        let seen = open(&path, builder);
        let (items, others): (Vec<u64>, Vec<u64>) =
            ((0..3_000).collect(), (3_000..6_000).collect());
        assert!(seen.insert_many(&items).expect("room").iter().all(Result::is_ok));
        assert!(
            seen.insert_or_refresh_many(&others).expect("room").iter().all(|it| *it == Ok(true))
        );
        seen.clear().expect("a change");
        seen.insert(&1u64).expect("room");
        seen.insert(&1u64).expect("room");
        assert!(seen.insert_or_refresh(&2u64).expect("room"));
        seen.tick().expect("a tick");
        assert!(!seen.insert_or_refresh(&2u64).expect("room"));
        assert!(seen.insert_many(&items[10..]).expect("room").iter().all(Result::is_ok));
        assert!(seen.remove_many(&items[10..100]).expect("a change").iter().all(|it| *it));
        seen.tick().expect("a tick");
        assert!(seen.refresh_many(&items[100..200]).expect("a change").iter().all(|it| *it));
        let new = seen.insert_if_absent_many(&others).expect("room");
        assert!(new.iter().all(|it| *it == Ok(true)));
        assert!(seen.insert_many(&items[5..10]).expect("room").iter().all(Result::is_ok));
        let removed = seen.remove_many(&others[500..]).expect("a change");
        assert!(removed.iter().all(|it| *it));
        assert!(seen.contains_many(&items[100..]).iter().all(|it| *it));
        let figures = |seen: &DurableFilter| {
            let of = |item: u64| (seen.count(&item), seen.age(&item));
            (seen.len(), (0..6_000).map(of).collect::<Vec<_>>())
        };
        let before = figures(&seen);
        assert_eq!((before.1[1].0, before.1[2].0, before.1[50].0), (2, 1, 0));
        drop(seen);
        assert_eq!(figures(&open(&path, builder)), before);
        assert_eq!(figures(&open(&path, builder)), before);
    }
}

#[test]
fn copies_that_were_taken_are_taken_again() {
    for rate in [0.01, 1e-3, 1e-6] {
        let builder = ConcurrentCuckooFilter::builder().hasher(StableHash::with_seed(7));
        let builder = builder.false_positive_rate(rate).capacity(1_000).growing();
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("seen.koel");
        let seen = open(&path, &builder);
        // All copies of an item after each other, and then those of others, so that shards are split.
        let mut taken = 0;
        for item in 0..rounds(20_000, 200_000u64) {
            for _ in 0..4 {
                taken += usize::from(seen.insert(&item).is_ok());
            }
        }
        assert_eq!(seen.len(), taken);
        drop(seen);
        let seen = open(&path, &builder);
        assert_eq!(seen.len(), taken, "{rate}");
        assert!((0..1_000u64).all(|item| seen.contains(&item)));
    }
}

#[test]
fn a_state_with_a_long_name_has_its_journals() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("s".repeat(230));
    for item in 0..3u64 {
        let seen = open(&path, &builders()[2]);
        assert!((0..item).all(|before| seen.contains(&before)));
        assert!(seen.insert_if_absent(&item).expect("room"));
    }
}

fn builder_ages(number: usize) -> bool {
    number % 2 == 1
}

/// In the order in which its changes are made again, a table that is filled to the last item would not take them all.
#[test]
fn a_filter_that_is_filled_until_it_refuses_fits_again() {
    for rate in [0.05, 0.001, 1e-6] {
        let builder = ConcurrentCuckooFilter::builder().hasher(StableHash::with_seed(7));
        let builder = builder.false_positive_rate(rate).capacity(rounds(20_000, 200_000));
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("seen.koel");
        let seen = open(&path, &builder);
        let (mut there, mut refused) = (Vec::new(), 0);
        for item in 0.. {
            match seen.insert(&item) {
                Ok(()) => there.push(item),
                Err(_) if refused == 1_000 => break,
                Err(_) => refused += 1,
            }
        }
        let length = seen.len();
        drop(seen);
        let seen = open(&path, &builder);
        assert_eq!(seen.len(), length, "{rate}");
        assert!(there.iter().all(|item: &u64| seen.contains(item)), "{rate}");
    }
}

#[test]
fn ticks_pass_again_as_they_did() {
    let builder = ConcurrentCuckooFilter::builder().hasher(StableHash::with_seed(7));
    for builder in [builder.clone().capacity(1_000), builder.capacity(100).growing()] {
        let builder = builder.false_positive_rate(1e-6).remembers(6);
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("seen.koel");
        let seen = open(&path, &builder);
        let mut item = 0..;
        let mut add = || seen.insert(&item.next()).expect("room");
        // By numbers, without, by more numbers than are remembered, and backwards.
        for step in
            [Some(2_000), None, Some(2_003), Some(2_004), None, Some(2_005), Some(1), Some(2_030)]
        {
            add();
            match step {
                Some(number) => drop(seen.tick_to(number).expect("a tick")),
                None => seen.tick().expect("a tick"),
            }
            add();
            if step == Some(2_003) {
                seen.checkpoint().expect("a checkpoint");
            }
        }
        let figures = |seen: &DurableFilter| {
            let ages: Vec<_> = (0..20u64).map(|item| seen.age(&Some(item))).collect();
            (seen.present_tick(), seen.len(), ages)
        };
        let before = figures(&seen);
        drop(seen);
        assert_eq!(figures(&open(&path, &builder)), before);
        // And once more, from the checkpoint that was made of it.
        assert_eq!(figures(&open(&path, &builder)), before);
    }
}

#[test]
fn a_filter_that_is_closed_leaves_one_file_and_one_that_is_dropped_its_journal() {
    for builder in &builders() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("seen.koel");
        let seen = open(&path, builder);
        assert!(seen.insert_if_absent(&1u64).expect("room"));
        drop(seen);
        assert_eq!(names(folder.path()), ["seen.koel", "seen.koel.journal.1"]);
        let seen = open(&path, builder);
        assert!(seen.insert_if_absent(&2u64).expect("room"));
        seen.close().expect("a checkpoint");
        assert_eq!(names(folder.path()), ["seen.koel"]);
        let alone = ConcurrentCuckooFilter::<StableHash>::load(&path).expect("a filter");
        assert!(alone.contains(&1u64) && alone.contains(&2u64) && alone.len() == 2);
        // Nothing has changed, so the state stays as it is.
        let before = std::fs::metadata(&path).expect("a file").modified().expect("a time");
        open(&path, builder).close().expect("nothing to do");
        assert_eq!(std::fs::metadata(&path).expect("a file").modified().expect("a time"), before);
        assert_eq!(names(folder.path()), ["seen.koel"]);
    }
}

#[test]
fn the_description_of_a_file_has_the_bytes_that_only_its_journals_have() {
    let builder = &builders()[2];
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("seen.koel");
    let link = folder.path().join("link");
    std::os::unix::fs::symlink("seen.koel", &link).expect("a link");
    let unread = |name: &Path| {
        let opened = SnapshotFile::open(name).expect("a file").info().journal_bytes;
        assert_eq!(SnapshotInfo::read(name).expect("a file").journal_bytes, opened);
        opened
    };
    let seen = open(&path, builder);
    assert_eq!(unread(&path), 0, "a journal without changes");
    assert!(seen.insert_if_absent(&1u64).expect("room"));
    let bytes = seen.journal_bytes();
    assert_eq!([unread(&path), unread(&link)], [bytes; 2], "while the filter is open");
    drop(seen);
    assert_eq!([unread(&path), unread(&link)], [bytes; 2], "while nobody has it open");
    // Nobody can tell what is in a journal that cannot be read.
    std::fs::write(folder.path().join("seen.koel.journal.9"), [7; 100]).expect("a file");
    assert_eq!(unread(&path), bytes + 100);
    std::fs::remove_file(folder.path().join("seen.koel.journal.9")).expect("a file");
    open(&path, builder).close().expect("a state");
    assert_eq!(unread(&path), 0, "a filter that was closed");
}

/// Neither a load nor a save knows what the journal has.
#[test]
fn a_load_leaves_no_change_out_and_a_save_orphans_none() {
    for builder in &builders() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("seen.koel");
        let link = folder.path().join("link");
        std::os::unix::fs::symlink("seen.koel", &link).expect("a link");
        let load = |name: &Path| ConcurrentCuckooFilter::<StableHash>::load(name);
        let other = builder.clone().build().expect("a filter");
        let is_refused = |error: SnapshotError| {
            assert_eq!(error.kind(), SnapshotErrorKind::HasJournal);
            let text = error.to_string();
            assert!(text.contains("seen.koel.journal.1"), "{text}");
            assert!(text.contains("open it with `DurableFilter::open`"), "{text}");
        };
        let seen = open(&path, builder);
        load(&path).expect("a state without changes in its journal");
        assert!(seen.insert_if_absent(&1u64).expect("room"));
        let copy = seen.try_clone().expect("memory");
        copy.save(folder.path().join("copy")).expect("another path");
        assert!(load(&folder.path().join("copy")).expect("a copy").contains(&1u64));
        let mut seen = Some(seen);
        let before = std::fs::read(&path).expect("a file");
        // While the filter is open, and after it was dropped.
        for _ in 0..2 {
            for name in [&path, &link] {
                is_refused(load(name).expect_err("changes are in the journal"));
                is_refused(other.save(name).expect_err("changes are in the journal"));
                is_refused(copy.save(name).expect_err("changes are in the journal"));
            }
            assert!(std::fs::read(&path).expect("a file") == before);
            // A file that is opened to be read can be loaded without the changes.
            let file = SnapshotFile::open(&path).expect("a file");
            assert!(file.load().expect("a filter").is_empty());
            drop(seen.take());
        }
        open(&path, builder).close().expect("a state");
        assert!(load(&path).expect("a state with all changes").contains(&1u64));
        other.save(&path).expect("nothing is orphaned");
        assert!(!load(&path).expect("another state").contains(&1u64));
    }
}

#[test]
fn to_open_a_filter_and_change_nothing_writes_no_state() {
    use std::os::unix::fs::PermissionsExt;
    for builder in &builders() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("seen.koel");
        drop(open(&path, builder));
        let about = || std::fs::metadata(&path).expect("a file");
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o640)).expect("permissions");
        let before = about().modified().expect("a time");
        for _ in 0..3 {
            drop(open(&path, builder));
            let journal = "seen.koel.journal.1";
            assert_eq!(names(folder.path()), ["seen.koel", journal]);
            // Whoever may read the one may read the other.
            let mode =
                std::fs::metadata(folder.path().join(journal)).expect("a file").permissions();
            assert_eq!(mode.mode() & 0o777, 0o640);
        }
        open(&path, builder).close().expect("nothing to do");
        assert_eq!(about().modified().expect("a time"), before);
        assert_eq!(names(folder.path()), ["seen.koel"]);
    }
}

#[test]
fn a_filter_is_open_once_at_a_time() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("seen.koel");
    let builder = &builders()[2];
    let seen = open(&path, builder);
    let error = try_open(&path, builder).expect_err("in use");
    assert_eq!(error.kind(), DurableErrorKind::InUse);
    assert!(error.to_string().ends_with("this process is using it already"), "{error}");
    drop(seen);
    drop(open(&path, builder));
}

/// Has the state open until it is killed.
#[test]
#[ignore = "a child process of the tests below"]
fn holder() {
    let Some(task) = crate::process::task() else { return };
    let seen = open(Path::new(&task[0]), &builders()[2]);
    assert!(seen.insert_if_absent(&1u64).expect("room"));
    println!("ready");
    loop {
        std::thread::sleep(Duration::from_secs(60));
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

/// As after a kill, when the system has not taken back all memory of the process yet.
#[test]
fn opening_waits_for_a_process_that_is_ending() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("seen.koel");
    let mut holder = held(&path);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(500));
            holder.kill().expect("a child");
            holder.wait().expect("a child");
        });
        let seen = DurableFilter::open(&path, builders()[2].clone()).expect("a filter");
        assert!(seen.contains(&1u64));
    });
}

#[test]
fn opening_waits_as_long_as_the_options_say_and_no_longer() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("seen.koel");
    let mut holder = held(&path);
    let number = format!("process {} is using it", holder.id());
    for wait in [Duration::ZERO, Duration::from_millis(300)] {
        let begin = Instant::now();
        let options = options(SyncPolicy::Never).wait(wait);
        let error = DurableFilter::open_with(&path, options, builders()[2].clone());
        let error = error.expect_err("in use");
        assert_eq!(error.kind(), DurableErrorKind::InUse);
        assert!(error.to_string().contains(&number), "{error}");
        assert!((wait..wait + Duration::from_secs(2)).contains(&begin.elapsed()), "{wait:?}");
    }
    holder.kill().expect("a child");
    holder.wait().expect("a child");
}

#[test]
fn what_a_program_asks_for_and_the_state_contradicts_is_refused() {
    let fixed = || {
        let builder = ConcurrentCuckooFilter::builder().hasher(StableHash::with_seed(7));
        builder.capacity(1_000).false_positive_rate(1e-4)
    };
    let (growing, week) = (|| fixed().growing().expected_growth(100.0), || fixed().remembers(7));
    let plain = || ConcurrentCuckooFilter::builder().hasher(StableHash::with_seed(8));
    type Asked<'a> = (Builder, &'a str);
    let hours = |hours: u64| fixed().forgets_after(Duration::from_secs(3_600 * hours));
    let states: [(Builder, Vec<Asked<'_>>); 4] = [
        (
            fixed(),
            vec![
                (fixed().growing(), "has a fixed size, and the program asks for .growing()"),
                (plain().growing(), "has a fixed size, and the program asks for .growing()"),
                (plain().max_bytes(1 << 30), "fixed size, and the program asks for .max_bytes()"),
                (plain().expected_growth(2.0), "the program asks for .expected_growth()"),
                (fixed().remembers(30), "for ever, and the program asks for .remembers(30)"),
                (
                    fixed().capacity(1_001),
                    "for 1000 items, and the program asks for .capacity(1001)",
                ),
                (plain().false_positive_rate(1e-6), "asks for .false_positive_rate(1e-6)"),
                (plain().false_positive_rate(f64::NAN), "asks for .false_positive_rate(NaN)"),
                (plain(), ""),
                (fixed(), ""),
                (fixed().capacity(999).false_positive_rate(0.01), ""),
            ],
        ),
        (
            growing(),
            vec![
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
            vec![
                (week().remembers(6), "for 7 ticks, and the program asks for .remembers(6)"),
                (week().remembers(8), "for 7 ticks, and the program asks for .remembers(8)"),
                (week().growing(), "the program asks for .growing()"),
                (
                    hours(2),
                    "not by the system's clock, and the program asks for .forgets_after() with 2h",
                ),
                (
                    fixed().forgets_after(Duration::from_secs(7)),
                    "not by the system's clock, and the program asks for .forgets_after() with 7s",
                ),
                (fixed(), ""),
                (week(), ""),
            ],
        ),
        (
            hours(14),
            vec![
                (hours(28), "after 14h, and the program asks for .forgets_after() with 28h"),
                (hours(14), ""),
                (fixed().remembers(14), ""),
                (plain(), ""),
            ],
        ),
    ];
    for (made, others) in states {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("seen.koel");
        let seen = open(&path, &made);
        assert!(seen.insert_if_absent(&1u64).expect("room"));
        drop(seen);
        for (asked, said) in others {
            let before = names(folder.path());
            match try_open(&path, &asked) {
                Ok(seen) => assert!(said.is_empty() && seen.contains(&1u64), "{said}"),
                Err(error) => {
                    assert_eq!(error.kind(), DurableErrorKind::OtherSettings, "{error}");
                    let real = path.canonicalize().expect("a path");
                    assert_eq!(error.path(), Some(&*real));
                    let text = error.to_string();
                    assert!(!said.is_empty() && text.contains(said), "{said:?}: {text}");
                    assert!(
                        text.ends_with("leave that setting out, or use another file"),
                        "{text}"
                    );
                    assert_eq!(names(folder.path()), before);
                }
            }
        }
    }
}

#[test]
fn time_that_has_passed_by_the_clock_is_on_record() {
    let hour = Window::new(Duration::from_secs(3_600));
    for builder in &builders()[..3] {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("seen.koel");
        let builder = builder.clone().false_positive_rate(1e-5);
        let seen = open(&path, &builder.clone().remembers(hour.ticks()));
        // It was last used two hours ago.
        seen.tick_to(hour.number_at(Window::now() - 7_200)).expect("a tick");
        assert!(seen.insert_if_absent("old").expect("room"));
        seen.close().expect("a state");
        let builder = builder.forgets_after(Duration::from_secs(3_600));
        let seen = open(&path, &builder);
        assert_eq!(seen.window(), Some(hour));
        // Opening it lets the time pass.
        assert!(!seen.contains("old"));
        assert_eq!(seen.keep_up().expect("ticks"), 0);
        assert!(seen.insert_if_absent("new").expect("room"));
        let present = seen.present_tick();
        assert!(present >= Some(hour.number_at(Window::now() - 600)), "{present:?}");
        drop(seen);
        let seen = open(&path, &builder);
        assert_eq!((seen.present_tick(), seen.len()), (present, 1));
        assert!(seen.contains("new"));
    }
}

#[test]
fn a_limit_of_memory_that_the_program_sets_replaces_that_of_the_state() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("seen.koel");
    let builder = || builders()[2].clone();
    let limit = |builder: Builder| open(&path, &builder).stats().max_bytes;
    assert_eq!(limit(builder().max_bytes(500_000)), Some(500_000));
    let seen = open(&path, &builder());
    assert_eq!(seen.stats().max_bytes, Some(500_000));
    while seen.insert(&seen.len()).is_ok() {}
    let takes = seen.stats().size_in_bytes;
    drop(seen);
    assert_eq!(limit(builder().max_bytes(1_000_000)), Some(1_000_000));
    // It does not grow any more, but what it has stays.
    let seen = open(&path, &builder().max_bytes(takes / 2));
    assert_eq!(seen.stats().max_bytes, Some(takes / 2));
    assert!((0..seen.len()).all(|item| seen.contains(&item)));
}

/// Each process begins a journal, and none lives long enough for a checkpoint of its own.
#[test]
fn changes_of_several_processes_are_made_again_in_their_order() {
    for builder in &builders() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("seen.koel");
        for process in 0..5u64 {
            let seen = open(&path, builder);
            for item in 0..1_000 {
                let was_there = process > 0 && (item + process) % 3 != 0;
                assert_eq!(seen.contains(&item), was_there, "{process}: {item}");
                if was_there {
                    assert!((item + process + 1) % 3 != 0 || seen.remove(&item).expect("a change"));
                } else if (item + process + 1) % 3 != 0 {
                    assert!(seen.insert_if_absent(&item).expect("room"));
                }
            }
            drop(seen);
            assert_eq!(names(folder.path()).len(), 2);
        }
        let seen = open(&path, builder);
        assert_eq!(seen.len(), (0..1_000).filter(|item| (item + 5) % 3 != 0).count());
        seen.close().expect("a state");
        assert_eq!(names(folder.path()), ["seen.koel"]);
    }
}

/// A folder where the new state has to be written keeps checkpoints from being made.
#[test]
fn a_checkpoint_that_fails_leaves_everything_as_it_was() {
    for builder in &builders() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("seen.koel");
        let in_the_way = folder.path().join(".seen.koel.koel-saving");
        let seen = open(&path, builder);
        assert!(seen.insert_if_absent(&1u64).expect("room"));
        std::fs::create_dir(&in_the_way).expect("a folder");
        let before = names(folder.path());
        seen.checkpoint().expect_err("a folder is in the way");
        assert_eq!(names(folder.path()), before);
        assert!(seen.insert_if_absent(&2u64).expect("room"));
        drop(seen);
        // Opening it makes a checkpoint, too.
        let error = try_open(&path, builder).expect_err("a folder is in the way");
        assert!(error.to_string().contains("is in the way"), "{error}");
        assert!(before.ends_with(&names(folder.path())));
        std::fs::remove_dir(&in_the_way).expect("a folder");
        let seen = open(&path, builder);
        assert!(seen.contains(&1u64) && seen.contains(&2u64));
        // The file that is written is gone before it can take its place.
        for _ in 0..rounds(20, 500) {
            std::thread::scope(|scope| {
                let checkpoint = scope.spawn(|| seen.checkpoint());
                while !checkpoint.is_finished() {
                    let _ = std::fs::remove_file(&in_the_way);
                }
                let _ = checkpoint.join().expect("no panic");
            });
            // With the lock.
            assert_eq!(names(folder.path()).len(), 3, "{:?}", names(folder.path()));
        }
        drop(seen);
        let seen = open(&path, builder);
        assert!(seen.contains(&1u64) && seen.contains(&2u64));
    }
}

/// What a process leaves that is killed in a checkpoint: before the new state took its place, and after that.
#[test]
fn of_two_journals_the_one_of_the_state_counts() {
    for builder in &builders() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("seen.koel");
        let files = || {
            let names = names(folder.path());
            let journal = names.iter().find(|name| name.contains(".journal.")).expect("a journal");
            [path.clone(), folder.path().join(journal)]
                .map(|path| std::fs::read(path).expect("a file"))
        };
        let seen = open(&path, builder);
        assert!(seen.insert_if_absent(&1u64).expect("room"));
        let [old, of_old] = files();
        seen.checkpoint().expect("a state");
        assert!(seen.insert_if_absent(&2u64).expect("room"));
        let [new, of_new] = files();
        drop(seen);
        for (state, has_second) in [(&old, false), (&new, true)] {
            std::fs::write(&path, state).expect("a file");
            std::fs::write(folder.path().join("seen.koel.journal.7"), &of_old).expect("a file");
            std::fs::write(folder.path().join("seen.koel.journal.8"), &of_new).expect("a file");
            let seen = open(&path, builder);
            assert!(seen.contains(&1u64) && seen.contains(&2u64) == has_second);
            assert_eq!(names(folder.path()).len(), 3, "{:?}", names(folder.path()));
        }
        // The journal of the next state alone has not all changes.
        std::fs::remove_file(folder.path().join(&names(folder.path())[1])).expect("a file");
        std::fs::write(&path, &old).expect("a file");
        std::fs::write(folder.path().join("seen.koel.journal.8"), &of_new).expect("a file");
        let error = try_open(&path, builder).expect_err("its own journal is gone");
        assert_eq!(error.kind(), DurableErrorKind::OtherState);
    }
}

/// Where somebody has emptied the folder, another process may have begun anew.
#[test]
fn a_folder_that_was_emptied_is_left_to_its_present_user() {
    for has_changes in [false, true] {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("seen.koel");
        let builder = &builders()[2];
        let old = open(&path, builder);
        for entry in std::fs::read_dir(folder.path()).expect("a folder") {
            std::fs::remove_file(entry.expect("a file").path()).expect("a file");
        }
        let new = open(&path, builder);
        assert!(new.insert_if_absent(&2u64).expect("room"));
        if has_changes {
            assert!(old.insert_if_absent(&1u64).expect("room"));
            let error = old.checkpoint().expect_err("its files are gone").to_string();
            assert!(error.contains("another process may use the state"), "{error}");
        }
        assert!(old.close().is_err());
        drop(new);
        let again = open(&path, builder);
        assert!(again.contains(&2u64) && !again.contains(&1u64));
    }
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
        // SAFETY: no other thread of this process runs.
        let child = unsafe { libc::fork() };
        if child == 0 {
            drop(open(&Path::new(&task[0]).join(name), &builders()[2]));
            // SAFETY: it ends the child.
            unsafe { libc::_exit(0) };
        }
        // SAFETY: it is a child of this process.
        assert_eq!(unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) }, child);
    }
}

/// A journal of one would otherwise pass for one of the other.
#[cfg(target_os = "linux")]
#[test]
fn forked_processes_draw_numbers_of_their_own() {
    let folder = tempfile::tempdir().expect("a folder");
    let words = [folder.path().to_str().expect("text")];
    let status = again("opening::forker", &words).status().expect("a process");
    assert!(status.success());
    let bytes = |name: &str| std::fs::read(folder.path().join(name)).expect("a file");
    let key = |name: &str| bytes(name)[16..24].to_vec();
    assert_ne!(key("a.koel.journal.1"), key("b.koel.journal.1"));
    assert_ne!(bytes("a.koel"), bytes("b.koel"));
}

/// A child has the mappings of its parent, and must not write there.
#[cfg(target_os = "linux")]
#[test]
fn a_child_changes_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("seen.koel");
    let seen = open(&path, &builders()[2]);
    assert!(seen.insert_if_absent(&1u64).expect("room"));
    // SAFETY: the child calls only what needs no other thread, and ends at once.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let refused = |result: Result<bool, DurableError>| {
            result.is_err_and(|error| error.kind() == DurableErrorKind::Forked)
        };
        let right = refused(seen.insert_if_absent(&2u64))
            && refused(seen.remove(&1u64))
            && refused(seen.insert_if_absent_many(&[2u64]).map(|_| true))
            && refused(seen.clear().map(|()| true))
            && refused(seen.checkpoint().map(|()| true))
            && refused(seen.sync().map(|()| true))
            && seen.contains(&1u64);
        drop(seen);
        // SAFETY: it ends the child.
        unsafe { libc::_exit(if right { 0 } else { 1 }) };
    }
    let mut status = 0;
    // SAFETY: it is a child of this process.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(status, 0);
    assert!(seen.contains(&1u64) && seen.insert_if_absent(&2u64).expect("room"));
    drop(seen);
    let seen = open(&path, &builders()[2]);
    assert!(seen.contains(&1u64) && seen.contains(&2u64));
}

/// A lock that another thread held when the process forked stays locked in the child.
#[cfg(target_os = "linux")]
#[test]
fn a_child_is_refused_before_it_waits_for_a_lock_of_its_parent() {
    let builder = ConcurrentCuckooFilter::builder().hasher(StableHash::with_seed(7));
    for builder in [
        builder.clone().capacity(10_000).remembers(3),
        builder.capacity(100).growing().remembers(3),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("seen.koel");
        let seen = DurableFilter::open_with(&path, options(SyncPolicy::Each), builder);
        let seen = seen.expect("a filter");
        let stop = std::sync::atomic::AtomicBool::new(false);
        let relaxed = std::sync::atomic::Ordering::Relaxed;
        std::thread::scope(|scope| {
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
            let children: Vec<_> = (0..rounds(20, 200))
                .map(|_| {
                    std::thread::sleep(Duration::from_millis(5));
                    // SAFETY: the child calls only what waits for no other thread, and ends at once.
                    let child = unsafe { libc::fork() };
                    if child == 0 {
                        // SAFETY: it ends the child if it waits.
                        unsafe { libc::alarm(10) };
                        let is_refused =
                            |error: DurableError| error.kind() == DurableErrorKind::Forked;
                        let mut right = true;
                        for item in 1 << 40..(1 << 40) + 2_000u64 {
                            right &= seen.insert_if_absent(&item).is_err_and(is_refused);
                            right &= seen.insert(&item).is_err_and(is_refused);
                            right &= seen.remove(&item).is_err_and(is_refused);
                            right &= seen.refresh(&item).is_err_and(is_refused);
                            right &= seen.insert_or_refresh(&item).is_err_and(is_refused);
                        }
                        right &= seen.tick().is_err_and(is_refused);
                        right &= seen.tick_to(7).is_err_and(is_refused);
                        right &= seen.clear().is_err_and(is_refused);
                        right &= seen.insert_many::<u64>(&[]).is_err_and(is_refused);
                        right &= seen.remove_many(&[1u64]).is_err_and(is_refused);
                        right &= seen.shrink() == 0;
                        // SAFETY: it ends the child.
                        unsafe { libc::_exit(if right { 0 } else { 1 }) };
                    }
                    child
                })
                .collect();
            stop.store(true, relaxed);
            for child in children {
                let mut status = 0;
                // SAFETY: it is a child of this process.
                assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
                assert_eq!(status, 0, "a child waited, or changed something");
            }
        });
    }
}

/// Some file systems leave that of a file that was written before a power failure.
#[test]
fn a_lock_file_of_zeros_is_no_obstacle() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("seen.koel");
    assert!(open(&path, &builders()[2]).insert_if_absent(&1u64).expect("room"));
    for zeros in [0, 1, 6, 32] {
        std::fs::write(folder.path().join(".seen.koel.koel-claim"), vec![0; zeros])
            .expect("a file");
        assert!(open(&path, &builders()[2]).contains(&1u64), "{zeros}");
    }
}

/// The bytes on disk of all files in a folder.
fn on_disk(folder: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let entries = std::fs::read_dir(folder).expect("a folder");
    entries.map(|entry| 512 * entry.expect("an entry").metadata().expect("a file").blocks()).sum()
}

#[test]
fn a_thousand_changes_take_little_space() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("seen.koel");
    let is_little = |what: &str| {
        let bytes = on_disk(folder.path());
        println!("{what}: {bytes} bytes on disk");
        assert!(bytes <= 4 << 20, "{what}: {bytes} bytes on disk");
    };
    let mut seen = open(&path, &builders()[2]);
    is_little("no change");
    for item in 0..1_000u64 {
        assert!(seen.insert_if_absent(&item).expect("room"));
    }
    is_little("a thousand changes");
    for round in 1..4u64 {
        drop(seen);
        is_little("closed");
        seen = open(&path, &builders()[2]);
        is_little("opened again");
        for item in 1_000 * round..1_000 * (round + 1) {
            assert!(seen.insert_if_absent(&item).expect("room"));
            if item % 100 == 0 {
                is_little("a thousand more");
            }
        }
        seen.checkpoint().expect("a checkpoint");
        is_little("a checkpoint");
    }
}

#[test]
fn a_durable_filter_is_unwind_safe_and_tells_its_figures() {
    fn is_unwind_safe<T: std::panic::UnwindSafe + std::panic::RefUnwindSafe>(_: &T) {}
    let folder = tempfile::tempdir().expect("a folder");
    let seen = open(&folder.path().join("seen.koel"), &builders()[2]);
    is_unwind_safe(&seen);
    assert!(seen.is_empty());
    assert!(seen.insert_if_absent(&1u64).expect("room"));
    let figures = (seen.len(), seen.stats().items, seen.count(&1u64));
    assert_eq!(figures, (1, 1, 1));
    let copy = seen.try_clone().expect("memory");
    copy.insert(&2u64).expect("room");
    assert!(!seen.contains(&2u64));
}

#[test]
fn an_error_of_the_system_is_the_source_of_its_error() {
    use std::error::Error;
    let folder = tempfile::tempdir().expect("a folder");
    let builder = &builders()[2];
    let path = folder.path().join("nowhere/seen.koel");
    let error = try_open(&path, builder).expect_err("no folder");
    let source = error.source().and_then(|error| error.downcast_ref::<std::io::Error>());
    assert_eq!(source.expect("an error").kind(), std::io::ErrorKind::NotFound);
    let path = folder.path().join("seen.koel");
    std::fs::create_dir(folder.path().join("seen.koel.journal.1")).expect("a folder");
    let error = try_open(&path, builder).expect_err("a folder");
    assert!(error.source().is_some_and(|error| error.is::<std::io::Error>()), "{error}");
}

#[test]
fn a_state_has_its_journals_whatever_it_is_called() {
    let builder = &builders()[2];
    let folder = tempfile::tempdir().expect("a folder");
    let (real, link) = (folder.path().join("real"), folder.path().join("link"));
    std::fs::create_dir(&real).expect("a folder");
    std::os::unix::fs::symlink("real/seen.koel", &link).expect("a link");
    for item in 0..10u64 {
        let path = if item % 2 == 0 { link.clone() } else { real.join("seen.koel") };
        let seen = open(&path, builder);
        assert!((0..item).all(|before| seen.contains(&before)), "{item}");
        assert!(seen.insert_if_absent(&item).expect("room"));
        if item == 5 {
            seen.checkpoint().expect("a checkpoint");
        }
    }
}

/// To give memory back is no change: nothing is recorded, and what was recorded is right for the smaller filter.
#[test]
fn a_filter_that_gives_memory_back_keeps_what_it_has() {
    for builder in &builders()[2..] {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("seen.koel");
        let seen = open(&path, builder);
        let add = |seen: &DurableFilter, items: std::ops::Range<u64>| {
            items.for_each(|item| assert!(seen.insert_if_absent(&item).expect("room")));
        };
        add(&seen, 0..200_000);
        (10_000..200_000u64).for_each(|item| assert!(seen.remove(&item).expect("a record")));
        let before = seen.journal_bytes();
        assert!(seen.shrink() > 0 || cfg!(not(target_os = "linux")));
        assert_eq!(seen.journal_bytes(), before);
        add(&seen, 200_000..210_000);
        // Opened again with the journal, and then from a state alone.
        drop(seen);
        let seen = open(&path, builder);
        let is_right = |seen: &DurableFilter| {
            assert_eq!(seen.len(), 20_000);
            assert!((0..10_000).chain(200_000..210_000u64).all(|item| seen.contains(&item)));
        };
        is_right(&seen);
        seen.shrink();
        seen.tick().expect("a record");
        seen.checkpoint().expect("a checkpoint");
        let bytes = std::fs::metadata(&path).expect("a state").len();
        assert!(bytes < 1_000_000, "{bytes}");
        is_right(&seen);
        seen.close().expect("a state");
        is_right(&open(&path, builder));
    }
}

/// A filter that was saved two hours ago, by its clock.
#[test]
fn a_filter_that_is_opened_has_the_present_time() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("seen.koel");
    let builder = ConcurrentCuckooFilter::builder().capacity(100).hasher(StableHash::with_seed(7));
    let builder = builder.forgets_after(Duration::from_secs(3_600));
    let window = builder.clone().build().expect("memory").window().expect("a window");
    let old = builder.clone().remembers(window.ticks()).build().expect("memory");
    old.tick_to(window.number_at(koel::Window::now() - 7_200));
    old.insert(&1u64).expect("room");
    old.save(&path).expect("a file");
    let seen = DurableFilter::open(&path, builder).expect("a filter");
    assert!(!seen.contains(&1u64) && seen.insert_if_absent(&2u64).expect("room"));
    assert_eq!(seen.keep_up().expect("a journal"), 0);
    assert!(seen.contains(&2u64));
}
