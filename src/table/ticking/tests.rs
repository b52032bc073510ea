use super::*;
use crate::layout::bucket::Lanes;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::thread::{scope, yield_now};

/// A filter of `segments` segments that only counts how often each was swept in the present tick.
struct Counted<'a> {
    expired: Vec<AtomicUsize>,
    /// The call that panics, once.
    panics: Mutex<Option<(&'static str, usize)>>,
    /// Called before a tick begins.
    before: Option<&'a (dyn Fn() + Sync)>,
    /// The lock that a tick acquires before it begins.
    transfers: Mutex<()>,
    is_waited_for: AtomicBool,
}

impl Counted<'_> {
    fn of(segments: usize) -> Self {
        Counted {
            expired: (0..segments).map(|_| AtomicUsize::new(0)).collect(),
            panics: Mutex::new(None),
            before: None,
            transfers: Mutex::new(()),
            is_waited_for: AtomicBool::new(false),
        }
    }

    fn may_panic(&self, call: &str, segments: Range<usize>) {
        let mut panics = self.panics.lock();
        if panics.is_some_and(|(name, segment)| name == call && segments.contains(&segment)) {
            *panics = None;
            drop(panics);
            std::panic::resume_unwind(Box::new("as planned"));
        }
    }

    fn expired(&self) -> Vec<usize> {
        self.expired.iter().map(|count| count.swap(0, SeqCst)).collect()
    }
}

impl SweepTarget for Counted<'_> {
    fn lanes(&self) -> Lanes {
        Lanes::of_bits(16).remembering(3)
    }

    fn begin(&self, set: impl FnOnce() -> Option<Moment>) {
        self.is_waited_for.store(true, SeqCst);
        self.before.inspect(|before| before());
        let _transfers = self.transfers.lock();
        self.may_panic("begin", 0..1);
        set();
    }

    fn segments(&self) -> usize {
        self.expired.len()
    }

    fn sweep(&self, segments: Range<usize>, _: Moment) {
        let (first, rest) = self.expired[segments.clone()].split_at(segments.len() / 2);
        first.iter().for_each(|count| _ = count.fetch_add(1, SeqCst));
        self.may_panic("sweep", segments);
        rest.iter().for_each(|count| _ = count.fetch_add(1, SeqCst));
    }

    fn finish_tick(&self, _: Moment) {
        self.may_panic("close", 0..1);
    }
}

/// Whether a single thread can finish the tick. (If it waits for others, it returns.)
fn finishes(ticking: &Ticking, target: &Counted) -> bool {
    (0..100).any(|_| ticking.work(target, 1_000))
}

fn wait_until(ticking: &Ticking, condition: impl Fn(&Progress) -> bool) {
    while !condition(&ticking.progress.lock()) {
        yield_now();
    }
}

#[test]
fn a_tick_goes_on_after_a_panic_and_passes_by_nothing() {
    for panics in [("begin", 0), ("sweep", 0), ("sweep", 200), ("close", 0)] {
        let (ticking, counted) = (Ticking::new(), Counted::of(300));
        *counted.panics.lock() = Some(panics);
        let result = catch_unwind(AssertUnwindSafe(|| {
            assert!(ticking.begin(&counted));
            finishes(&ticking, &counted);
        }));
        assert!(result.is_err(), "no panic in {panics:?}");
        if panics.0 == "begin" {
            assert!(ticking.begin(&counted));
        }
        assert!(finishes(&ticking, &counted), "{panics:?} is waited for");
        let expired = counted.expired();
        assert!(expired.iter().all(|count| *count > 0), "{panics:?}: {expired:?}");
        // And the next one passes.
        assert!(ticking.begin(&counted) && finishes(&ticking, &counted));
        assert_eq!(counted.expired(), [1; 300]);
        let held = ticking.pause(&counted);
        assert_eq!(held.time().tick, 2, "after {panics:?}");
    }
}

/// A tick waits for the copies that it finds, and copies that arrive later wait for the tick.
#[test]
fn a_tick_passes_between_copies_that_overlap() {
    let (ticking, counted) = (Ticking::new(), Counted::of(10));
    let (first, is_early) = (ticking.pause(&counted), AtomicBool::new(false));
    scope(|scope| {
        let ticks: Vec<_> = (0..2).map(|_| scope.spawn(|| ticking.tick(&counted))).collect();
        wait_until(&ticking, |progress| progress.beginning == 2);
        let copies: Vec<_> = (0..3)
            .map(|_| {
                scope.spawn(|| {
                    let one = ticking.pause(&counted).time().tick;
                    is_early.store(true, SeqCst);
                    [one, ticking.pause_in_a_tick().time().tick]
                })
            })
            .collect();
        wait_until(&ticking, |progress| progress.later_copies == 3 || is_early.load(SeqCst));
        assert_eq!(ticking.clock.now().tick(), 0, "a tick began while a copy was made");
        drop(first);
        for copy in copies {
            let [one, next] = copy.join().unwrap();
            assert!(one == 1 || one == 2, "a copy came before the tick, in {one}");
            assert!(next >= one);
        }
        ticks.into_iter().for_each(|tick| tick.join().unwrap());
    });
    assert_eq!(ticking.clock.now().tick(), 2);
}

/// A copy that arrives while a tick is passing is made after that tick, and before the next one.
#[test]
fn a_copy_waits_for_one_tick() {
    let (ticking, counted) = (Ticking::new(), Counted::of(10));
    assert!(ticking.begin(&counted));
    // Now the tick cannot end yet.
    ticking.progress.lock().at_work += 1;
    scope(|scope| {
        let copy = scope.spawn(|| ticking.pause(&counted));
        wait_until(&ticking, |progress| progress.copies == 1);
        let next = scope.spawn(|| ticking.tick(&counted));
        ticking.progress.lock().at_work -= 1;
        let held = copy.join().unwrap();
        assert_eq!(held.time().tick, 1);
        wait_until(&ticking, |progress| progress.beginning == 1);
        assert_eq!(ticking.clock.now().tick(), 1, "a tick began while a copy was made");
        drop(held);
        next.join().unwrap();
    });
    assert_eq!(ticking.clock.now().tick(), 2);
}

/// A copy that waits for a tick is made even if the tick does not begin.
#[test]
fn a_copy_does_not_wait_for_a_tick_that_never_begins() {
    let (ticking, counted) = (Ticking::new(), Counted::of(10));
    let beginning = Beginning::new(&ticking);
    scope(|scope| {
        let copy = scope.spawn(|| ticking.pause(&counted).time().tick);
        wait_until(&ticking, |progress| progress.later_copies == 1);
        drop(beginning);
        let is_waiting = ticking.progress.lock().later_copies > 0;
        // Lets a copy that still waits go on, so that the test fails instead of hanging.
        is_waiting.then(|| ticking.tick(&counted));
        assert_eq!(copy.join().unwrap(), 0);
    });
    assert_eq!(ticking.progress.lock().copies, 0);
}

/// Reading the time does not wait while a tick waits for a lock that it needs to begin.
#[test]
fn the_time_is_told_while_a_tick_waits_to_begin() {
    let (ticking, counted) = (Ticking::new(), Counted::of(10));
    assert_eq!(ticking.tick_to(&counted, 5), 0);
    scope(|scope| {
        let transfers = counted.transfers.lock();
        let tick = scope.spawn(|| ticking.tick_to(&counted, 6));
        while !counted.is_waited_for.load(SeqCst) {
            yield_now();
        }
        assert!(ticking.progress.try_lock().is_some(), "it holds the lock of the time meanwhile");
        assert_eq!(ticking.number(), Some(5));
        assert_eq!(ticking.tick_to(&counted, 5), 0);
        assert!(ticking.work(&counted, 0));
        assert!(!ticking.clock().is_passing());
        drop(transfers);
        assert_eq!(tick.join().unwrap(), 1);
    });
    assert_eq!(ticking.number(), Some(6));
}

/// The other filter ticks whenever it can.
#[test]
fn two_filters_are_held_though_the_other_goes_on() {
    let (here, there) = (Ticking::new(), Ticking::new());
    let through_there = Counted::of(10);
    assert_eq!([here.tick_to(&through_there, 1), there.tick_to(&through_there, 2)], [0, 0]);
    let rounds = AtomicUsize::new(0);
    let go_on = || {
        assert!(rounds.fetch_add(1, SeqCst) < 100, "it begins again and again");
        if there.progress.lock().copies == 0 {
            there.tick(&through_there);
        }
    };
    let through_here = Counted { before: Some(&go_on), ..Counted::of(10) };
    let held = here.pause_both(&through_here, (&there, &through_there));
    assert_eq!(held.map(|held| held.time().number), [Some(2); 2]);
    // The same for a filter with itself.
    let held = here.pause_both(&through_here, (&here, &through_here));
    assert_eq!(held.map(|held| held.time().number), [Some(2); 2]);
    assert_eq!([&here, &there].map(|it| it.progress.lock().copies), [0, 0]);
}

#[test]
fn the_last_number_stays() {
    let (ticking, counted) = (Ticking::new(), Counted::of(10));
    assert_eq!(ticking.tick_to(&counted, u64::MAX - 2), 0);
    assert_eq!(ticking.tick_to(&counted, u64::MAX - 1), 1);
    for tick in 2..6 {
        ticking.tick(&counted);
        assert_eq!((ticking.number(), ticking.clock.now().tick()), (Some(u64::MAX), tick));
        assert_eq!(ticking.tick_to(&counted, u64::MAX), 0);
        assert_eq!(ticking.tick_to(&counted, 0), 0);
        assert_eq!(ticking.begin_toward(&counted, 1), None);
    }
    let ticking = Ticking::new();
    assert_eq!(ticking.tick_to(&counted, 0), 0);
    assert_eq!(ticking.tick_to(&counted, u64::MAX), u64::MAX);
    assert_eq!(ticking.number(), Some(u64::MAX));
}
