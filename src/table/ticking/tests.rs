use super::*;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::thread::{scope, yield_now};

/// A filter of `segments` segments that only counts how often each was swept in the present tick.
struct Counted {
    expired: Vec<AtomicUsize>,
    /// The call that panics, once.
    panics: Mutex<Option<(&'static str, usize)>>,
    /// The lock that a tick acquires before it begins.
    transfers: Mutex<()>,
    is_waited_for: AtomicBool,
}

impl Counted {
    fn of(segments: usize) -> Self {
        Counted {
            expired: (0..segments).map(|_| AtomicUsize::new(0)).collect(),
            panics: Mutex::new(None),
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

impl SweepTarget for Counted {
    fn lanes(&self) -> Lanes {
        Lanes::of_bits(16).remembering(3)
    }

    fn begin(&self, set: impl FnOnce() -> Option<Moment>) {
        self.is_waited_for.store(true, SeqCst);
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
        assert_eq!(ticking.present().0.tick, 2, "after {panics:?}");
    }
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

/// Once it has passed, a tick that expired everything does not expire what arrives with an older stamp.
#[test]
fn a_tick_that_expires_everything_ends() {
    let (ticking, counted) = (Ticking::new(), Counted::of(10));
    assert_eq!(ticking.tick_to(&counted, 1), 0);
    assert_eq!(ticking.begin_toward(&counted, 9), Some(8));
    assert!(ticking.present().1.ends_all());
    ticking.finish(&counted);
    assert!(!ticking.present().1.ends_all());
    assert_eq!(ticking.present().0, Time { tick: 1, elapsed: 8, number: Some(9) });
}
