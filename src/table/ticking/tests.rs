use super::*;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

/// A filter of `segments` segments that only counts how often each was swept in the present tick.
struct Counted {
    ticking: Ticking,
    expired: Vec<AtomicUsize>,
    /// The segment whose sweep panics, once.
    panics: Mutex<Option<usize>>,
}

impl Counted {
    fn of(segments: usize) -> Self {
        Counted {
            ticking: Ticking::new(3),
            expired: (0..segments).map(|_| AtomicUsize::new(0)).collect(),
            panics: Mutex::new(None),
        }
    }

    fn expired(&self) -> Vec<usize> {
        self.expired.iter().map(|count| count.swap(0, SeqCst)).collect()
    }

    fn sweep(&self, segments: Range<usize>) {
        let (first, rest) = self.expired[segments.clone()].split_at(segments.len() / 2);
        first.iter().for_each(|count| _ = count.fetch_add(1, SeqCst));
        let mut panics = self.panics.lock();
        if panics.is_some_and(|segment| segments.contains(&segment)) {
            *panics = None;
            drop(panics);
            std::panic::resume_unwind(Box::new("as planned"));
        }
        rest.iter().for_each(|count| _ = count.fetch_add(1, SeqCst));
    }

    /// Whether a single thread can finish the tick. If it waits for others, it returns.
    fn finishes(&self) -> bool {
        let work =
            || self.ticking.work(1_000, || self.expired.len(), |segments, _| self.sweep(segments));
        (0..100).any(|_| work())
    }

    /// Lets a tick pass toward the one with this number. Returns how many it makes up for.
    fn tick_to(&self, number: u64) -> u64 {
        if self.ticking.has_reached(number) {
            return 0;
        }
        let begun = self.ticking.begin(Goal::Number(number));
        assert!(self.finishes());
        begun.unwrap_or(0)
    }
}

#[test]
fn a_tick_goes_on_after_a_panic_and_passes_by_nothing() {
    for panics in [0, 200] {
        let counted = Counted::of(300);
        *counted.panics.lock() = Some(panics);
        assert!(counted.ticking.begin(Goal::Next).is_some());
        let result = catch_unwind(AssertUnwindSafe(|| counted.finishes()));
        assert!(result.is_err(), "no panic at {panics}");
        assert!(counted.finishes(), "{panics} is waited for");
        let expired = counted.expired();
        assert!(expired.iter().all(|count| *count > 0), "{panics}: {expired:?}");
        // And the next one passes.
        assert!(counted.ticking.begin(Goal::Next).is_some() && counted.finishes());
        assert_eq!(counted.expired(), [1; 300]);
        assert_eq!(counted.ticking.time().0.tick, 2, "after {panics}");
    }
}

#[test]
fn no_tick_begins_while_one_passes() {
    let counted = Counted::of(10);
    assert!(!counted.ticking.has_reached(6) || counted.ticking.number() == Some(6));
    for goal in [Goal::Next, Goal::Number(9)] {
        assert!(counted.ticking.is_due(goal) && counted.ticking.begin(goal).is_some());
        for goal in [Goal::Next, Goal::Number(20)] {
            assert!(!counted.ticking.is_due(goal) && counted.ticking.begin(goal).is_none());
        }
        assert!(counted.finishes());
    }
}

#[test]
fn the_last_number_stays() {
    let counted = Counted::of(10);
    assert_eq!((counted.tick_to(u64::MAX - 2), counted.tick_to(u64::MAX - 1)), (0, 1));
    for tick in 2..6 {
        assert!(counted.ticking.begin(Goal::Next).is_some() && counted.finishes());
        let ticking = &counted.ticking;
        assert_eq!((ticking.number(), ticking.clock.now().tick()), (Some(u64::MAX), tick));
        assert_eq!([counted.tick_to(u64::MAX), counted.tick_to(0)], [0, 0]);
        assert_eq!(ticking.begin(Goal::Number(1)), None);
    }
    let counted = Counted::of(10);
    assert_eq!((counted.tick_to(0), counted.tick_to(u64::MAX)), (0, u64::MAX));
    assert_eq!(counted.ticking.number(), Some(u64::MAX));
}

/// Once it has passed, a tick that expired everything does not expire what arrives with an older stamp.
#[test]
fn a_tick_that_expires_everything_ends() {
    let counted = Counted::of(10);
    assert_eq!(counted.tick_to(1), 0);
    assert!(counted.ticking.begin(Goal::Number(9)).is_some_and(|passes| passes == 8));
    assert!(counted.ticking.time().1.ends_all());
    assert!(counted.finishes());
    assert!(!counted.ticking.time().1.ends_all());
    assert_eq!(counted.ticking.time().0, Time { tick: 1, elapsed: 8, number: Some(9) });
}
