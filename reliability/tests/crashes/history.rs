//! Threads that change a durable filter at once, their notes, and a check of the filter that a kill or a power failure
//! leaves.
//!
//! A thread notes a change before it begins and after it was answered. A change without an answer may have been made or
//! not. Each note has the time by a common clock, and the number of a tick: at the beginning, of the last tick that had
//! passed, and at the end, of the last that had begun. So the check knows which changes came before a `clear`, and how
//! old an item may be.
//!
//! There are three groups of items:
//!
//! * the *own* items of each thread: the answers say exactly what must be there;
//! * *shared* items that all threads add if they are absent, and remove. There is one winner: between two adds that
//!   were answered with `true`, the item has gone;
//! * items of which all threads add *copies*, and remove them.

#![allow(dead_code)]

use koel::{
    Builder, ConcurrentCuckooFilter, DurableError, DurableErrorKind, DurableFilter, DurableOptions,
    StableHash, SyncPolicy,
};
use reliability::common::SplitMix;
use std::collections::{BTreeMap, VecDeque};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};

pub const THREADS: u64 = 3;

const SHARED: u64 = 1 << 60;
const COPIES: u64 = 2 << 60;
const NEVER: u64 = 3 << 60;

/// Ticks for which items are remembered, where they are.
const REMEMBERED: u64 = 3;

/// Bytes of a note: the operation, the item, the time and the tick.
const NOTE: usize = 32;

/// The seed of the hasher. With it, no two items of which there are copies share a bucket. After a power failure, copies
/// of both could be there that never were together, and not fit: that is `TooFull`, as documented.
const SEED: u64 = 0;

#[test]
fn items_of_which_there_are_copies_have_room_beside_each_other() {
    for number in 0..8 {
        let kind = Kind::of(number);
        let other =
            || (0..100).find(|seed| (0..8).all(|it| Kind::of(it).has_room_for_copies(*seed)));
        assert!(kind.has_room_for_copies(SEED), "{kind:?}: take the seed {:?}", other());
    }
}

/// A filter and what happens to it.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    pub grows: bool,
    pub forgets: bool,
    /// Own items of a thread, and the most items of a batch.
    pub items: u64,
    pub batch: u64,
}

impl Kind {
    pub fn of(number: u64) -> Kind {
        let is_large = number & 4 != 0;
        let (items, batch) = if is_large { (20_000, 3_000) } else { (300, 40) };
        Kind { grows: number & 1 == 1, forgets: number & 2 == 2, items, batch }
    }

    pub fn open(self, path: &Path, policy: SyncPolicy) -> Result<DurableFilter, DurableError> {
        DurableFilter::open_with(path, DurableOptions::default().sync(policy), self.builder(SEED))
    }

    fn builder(self, seed: u64) -> Builder<StableHash> {
        let builder = ConcurrentCuckooFilter::builder().hasher(StableHash::with_seed(seed));
        // So low that no two of the items are one to the filter.
        let builder = builder.false_positive_rate(if self.forgets { 1e-7 } else { 1e-8 });
        let builder = match self.grows {
            true => builder.capacity(100).growing(),
            false => builder.capacity(4 * self.items as usize + 1_000),
        };
        if self.forgets { builder.remembers(REMEMBERED as u32) } else { builder }
    }

    /// Whether any two of the items of which there are copies have room for all of both.
    fn has_room_for_copies(self, seed: u64) -> bool {
        let filter = self.builder(seed).build().expect("memory");
        let items: Vec<u64> = (0..8).map(|number| COPIES | number).collect();
        let added = |item: &u64| (0..).take_while(|_| filter.insert(item).is_ok()).count();
        let alone = items.iter().map(|item| (filter.clear(), added(item)).1).collect::<Vec<_>>();
        let pairs = (0..items.len()).flat_map(|one| (0..one).map(move |other| (one, other)));
        pairs.into_iter().all(|(one, other)| {
            filter.clear();
            (added(&items[one]), added(&items[other])) == (alone[one], alone[other])
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
enum Operation {
    Insert,
    InsertIfAbsent,
    Remove,
    Refresh,
    InsertOrRefresh,
    Clear,
    Tick,
}

use Operation::{Clear, Insert, InsertIfAbsent, InsertOrRefresh, Refresh, Remove, Tick};

const OPERATIONS: [Operation; 7] =
    [Insert, InsertIfAbsent, Remove, Refresh, InsertOrRefresh, Clear, Tick];

/// An answer: `Refused` changes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
enum Answer {
    No,
    Yes,
    Refused,
}

const ANSWERS: [Answer; 3] = [Answer::No, Answer::Yes, Answer::Refused];

/// What the threads of a process share.
pub struct Crew<'a> {
    pub seen: &'a DurableFilter,
    pub kind: Kind,
    pub seed: u64,
    pub stop: AtomicBool,
    clock: AtomicU64,
    /// Number of the last tick that has begun, and of the last that has ended.
    begun: AtomicU64,
    ended: AtomicU64,
}

impl<'a> Crew<'a> {
    /// `round` is greater than in the processes before.
    pub fn new(seen: &'a DurableFilter, kind: Kind, seed: u64, round: u64) -> Self {
        if kind.forgets && seen.present_tick().is_none() {
            seen.tick_to(1).expect("a tick");
        }
        let tick = seen.present_tick().unwrap_or(0);
        let [begun, ended] = [tick, tick].map(AtomicU64::new);
        let clock = AtomicU64::new((round + 1) << 40);
        Crew { seen, kind, seed, stop: AtomicBool::new(false), clock, begun, ended }
    }

    /// Makes a checkpoint whose new state is removed before it takes its place, unless the checkpoint is faster.
    pub fn fail_checkpoint(&self) {
        let written = self.seen.path().with_file_name(".seen.koel.koel-saving");
        std::thread::scope(|scope| {
            let checkpoint = scope.spawn(|| self.seen.checkpoint());
            while !checkpoint.is_finished() {
                let _ = std::fs::remove_file(&written);
            }
            let _ = checkpoint.join().expect("no panic");
        });
    }

    /// Stops all threads when it is dropped, also after a panic.
    pub fn stop_at_end(&self) -> impl Sized + '_ {
        struct Stop<'a>(&'a AtomicBool);
        impl Drop for Stop<'_> {
            fn drop(&mut self) {
                self.0.store(true, SeqCst);
            }
        }
        Stop(&self.stop)
    }

    fn note(&self, notes: &mut File, is_end: bool, all: &[(Operation, u64, Answer)]) {
        let (now, tick) = match is_end {
            false => (self.clock.fetch_add(1, SeqCst), self.ended.load(SeqCst)),
            true => {
                let tick = self.begun.load(SeqCst);
                (self.clock.fetch_add(1, SeqCst), tick)
            }
        };
        let note = |(operation, item, answer): &(Operation, u64, Answer)| {
            let what = *operation as u64 | u64::from(is_end) << 8 | (*answer as u64) << 16;
            [what, *item, now, tick].map(u64::to_le_bytes).concat()
        };
        notes.write_all(&all.iter().flat_map(note).collect::<Vec<u8>>()).expect("a note");
    }

    /// Makes changes until it is told to stop, or for a number of calls.
    pub fn work(&self, thread: u64, notes: &Path, calls: u64) {
        let mut notes = OpenOptions::new().append(true).create(true).open(notes).expect("a file");
        let mut random = SplitMix(self.seed ^ thread << 48);
        for call in 0..calls {
            if self.stop.load(SeqCst) {
                return;
            }
            if thread == 0 && call % 40 == 39 && self.kind.forgets {
                let number = self.ended.load(SeqCst) + 1 + random.less_than(2);
                self.note(&mut notes, false, &[(Tick, number, Answer::No)]);
                self.begun.store(number, SeqCst);
                self.seen.tick_to(number).expect("a tick");
                self.ended.store(number, SeqCst);
                self.note(&mut notes, true, &[(Tick, number, Answer::Yes)]);
            }
            if thread == 1 && call % 200 == 199 && random.less_than(3) == 0 {
                self.note(&mut notes, false, &[(Clear, 0, Answer::No)]);
                self.seen.clear().expect("a change");
                self.note(&mut notes, true, &[(Clear, 0, Answer::Yes)]);
            }
            // It changes nothing that a note could tell.
            if thread == 2 && call % 100 == 99 && random.less_than(3) == 0 {
                self.seen.shrink();
            }
            self.change(thread, &mut random, &mut notes);
        }
    }

    fn change(&self, thread: u64, random: &mut SplitMix, notes: &mut File) {
        let (operation, group) = match random.less_than(20) {
            0..3 => (Insert, COPIES),
            3..5 => (Remove, COPIES),
            5..9 => (InsertIfAbsent, SHARED),
            9..12 => (Remove, SHARED),
            12..15 => (InsertIfAbsent, 0),
            15..17 => (Remove, 0),
            17 => (Refresh, 0),
            18 => (InsertOrRefresh, 0),
            _ => (InsertOrRefresh, SHARED),
        };
        let item = |random: &mut SplitMix| match group {
            0 => thread << 32 | random.less_than(self.kind.items),
            COPIES => COPIES | random.less_than(8),
            // All threads mostly change the same one at the same time.
            _ if random.less_than(4) > 0 => SHARED | ((self.clock.load(SeqCst) >> 5) % 12),
            _ => SHARED | random.less_than(12),
        };
        let count =
            if random.less_than(4) == 0 { 1 + random.less_than(self.kind.batch) } else { 1 };
        let mut items: Vec<u64> = (0..count).map(|_| item(random)).collect();
        if group == COPIES {
            // More than a few copies are refused.
            items.truncate(4);
        }
        let begin: Vec<_> = items.iter().map(|item| (operation, *item, Answer::No)).collect();
        self.note(notes, false, &begin);
        let answers = if let [item] = items[..] {
            vec![self.call(operation, item)]
        } else {
            self.call_many(operation, &items)
        };
        let end: Vec<_> =
            items.iter().zip(answers).map(|(item, answer)| (operation, *item, answer)).collect();
        self.note(notes, true, &end);
    }

    fn call(&self, operation: Operation, item: u64) -> Answer {
        let seen = self.seen;
        let answer = match operation {
            Insert => seen.insert(&item).map(|()| true),
            InsertIfAbsent => seen.insert_if_absent(&item),
            Remove => seen.remove(&item),
            Refresh => seen.refresh(&item),
            _ => seen.insert_or_refresh(&item),
        };
        match answer {
            Ok(false) => Answer::No,
            Ok(true) => Answer::Yes,
            Err(error) if matches!(error.kind(), DurableErrorKind::Full(_)) => Answer::Refused,
            Err(error) => panic!("{error}"),
        }
    }

    fn call_many(&self, operation: Operation, items: &[u64]) -> Vec<Answer> {
        let seen = self.seen;
        let answer = |yes: bool| if yes { Answer::Yes } else { Answer::No };
        let refusable = |result: Result<bool, koel::Full>| result.map_or(Answer::Refused, answer);
        let of_bools = |all: Vec<bool>| all.into_iter().map(answer).collect();
        let refusable_all = |all: Vec<_>| all.into_iter().map(refusable).collect();
        match operation {
            Insert => {
                let all = seen.insert_many(items).expect("a change").into_iter();
                refusable_all(all.map(|result| result.map(|()| true)).collect())
            }
            InsertIfAbsent => refusable_all(seen.insert_if_absent_many(items).expect("a change")),
            Remove => of_bools(seen.remove_many(items).expect("a change")),
            Refresh => of_bools(seen.refresh_many(items).expect("a change")),
            _ => refusable_all(seen.insert_or_refresh_many(items).expect("a change")),
        }
    }
}

/// The path of a thread's notes.
pub fn notes_of(folder: &Path, thread: u64) -> PathBuf {
    folder.join(format!("notes-{thread}"))
}

/// A change of an item, or of all.
#[derive(Clone, Copy, Debug)]
struct Event {
    operation: Operation,
    begin: u64,
    end: u64,
    /// `None` if there may be no answer, and the change was perhaps not made.
    answer: Option<Answer>,
    /// Numbers of the first and the last tick in which it may have been made.
    ticks: [u64; 2],
}

#[derive(Clone, Default)]
pub struct History {
    /// In the order of each thread.
    items: BTreeMap<u64, Vec<Event>>,
    clears: Vec<Event>,
    /// Number of the last tick that has certainly passed, and of the last that may have.
    ticks: [u64; 2],
}

impl History {
    /// Adds the notes of a thread. What is noted behind `answered` bytes may not have been answered.
    pub fn add(&mut self, notes: &[u8], answered: usize) {
        let mut open = VecDeque::new();
        let events = notes.as_chunks::<NOTE>().0.iter().zip(1..);
        let events: Vec<_> = events
            .map(|(note, number)| {
                let words = note.as_chunks::<8>().0;
                let [what, item, time, tick] = [0, 1, 2, 3].map(|at| u64::from_le_bytes(words[at]));
                (what, item, time, tick, number * NOTE <= answered)
            })
            .collect();
        for (what, item, time, tick, is_sure) in events {
            let operation = OPERATIONS[what as u8 as usize];
            let answer = ANSWERS[(what >> 16) as usize];
            if what >> 8 & 1 == 0 {
                let (end, ticks) = (u64::MAX, [tick, u64::MAX]);
                open.push_back((item, Event { operation, begin: time, end, answer: None, ticks }));
                continue;
            }
            let (own, mut event): (u64, Event) = open.pop_front().expect("a beginning");
            assert!(own == item && event.operation == operation, "the notes are in another order");
            if is_sure {
                (event.end, event.answer, event.ticks[1]) = (time, Some(answer), tick);
            }
            self.push(item, event);
        }
        for (item, event) in open {
            self.push(item, event);
        }
    }

    fn push(&mut self, item: u64, event: Event) {
        match event.operation {
            Clear => self.clears.push(event),
            Tick => {
                let sure = event.answer.map_or(0, |_| item);
                self.ticks = [self.ticks[0].max(sure), self.ticks[1].max(item)];
            }
            _ => self.items.entry(item).or_default().push(event),
        }
    }

    /// Ends a process: what it has not done by now, it does not do. `tick` is the present tick of the filter.
    pub fn end_process(&mut self, round: u64, tick: u64, kind: Kind) {
        let end = ((round + 2) << 40) - 1;
        for event in self.items.values_mut().flatten().chain(&mut self.clears) {
            event.end = event.end.min(end);
            event.ticks[1] = event.ticks[1].min(tick);
        }
        self.ticks = [tick; 2];
        // What has no consequences any more.
        let at = At { clears: &[], ..self.at(tick, kind) };
        let (last_clear, clears) = (at.last_clear, std::mem::take(&mut self.clears));
        self.clears = clears.into_iter().filter(|clear| clear.end >= last_clear).collect();
        self.items.retain(|item, events| {
            events.retain(|event| event.end >= last_clear);
            if *item < SHARED {
                let is_last = |event: &Event| match (event.operation, event.answer) {
                    (Remove, Some(_)) | (InsertOrRefresh, Some(Answer::Yes | Answer::No)) => true,
                    (_, answer) => answer == Some(Answer::Yes),
                };
                events.drain(..events.iter().rposition(is_last).unwrap_or(0));
            }
            true
        });
    }

    fn at(&self, now: u64, kind: Kind) -> At<'_> {
        let sure = self.clears.iter().filter(|clear| clear.answer.is_some());
        let last_clear = sure.map(|clear| clear.begin).max().unwrap_or(0);
        let last_end = self.clears.iter().map(|clear| clear.end).max().unwrap_or(0);
        At { clears: &self.clears, now, forgets: kind.forgets, last_clear, last_end }
    }

    /// Checks a filter that was opened after a failure. Returns an error that says what is wrong.
    pub fn check(&self, seen: &DurableFilter, kind: Kind) -> Result<(), String> {
        let now = seen.present_tick().unwrap_or(0);
        // A process begins with the first tick.
        if !(self.ticks[0]..=self.ticks[1].max(1)).contains(&now) && kind.forgets {
            return Err(format!("the tick is {now}, and not in {:?}", self.ticks));
        }
        let at = self.at(now, kind);
        let mut length = 0;
        for (item, events) in &self.items {
            let count = seen.count(item);
            let range = if *item < SHARED { at.own(events) } else { at.of_all(events) };
            let told = || {
                format!(
                    "item {item:x} at tick {now}: {count} of {range:?} copies; clears: {:?}; {:?}",
                    self.clears,
                    &events[events.len().saturating_sub(12)..]
                )
            };
            if !(range.0..=range.1).contains(&count) {
                return Err(told());
            }
            if *item & COPIES == 0 {
                if count > 1 {
                    return Err(told());
                }
                if let Some(pair) = at.two_winners(events) {
                    return Err(format!("two winners, {pair:?}: {}", told()));
                }
            }
            if *item < SHARED && count == 1 && kind.forgets {
                let age = seen.age(item).unwrap_or(u64::MAX);
                if let Some([first, last]) = at.touched(events)
                    && !(now.saturating_sub(last)..=now - first.min(now)).contains(&age)
                {
                    return Err(format!("age {age}, touched in {first}..={last}: {}", told()));
                }
            }
            length += count;
        }
        if let Some(item) = (NEVER..NEVER + 500).find(|item| seen.contains(item)) {
            return Err(format!("{item:x} was never added"));
        }
        match seen.len() == length {
            true => Ok(()),
            false => Err(format!("{} items, and {length} of those that were added", seen.len())),
        }
    }

    pub fn events(&self) -> usize {
        self.items.values().map(Vec::len).sum::<usize>()
    }
}

/// The moment of a check.
struct At<'a> {
    clears: &'a [Event],
    now: u64,
    forgets: bool,
    /// When the last clear began that was made for certain, and when the last ended that may have been made.
    last_clear: u64,
    last_end: u64,
}

impl At<'_> {
    /// Whether a clear came after an event for certain.
    fn is_cleared(&self, event: &Event) -> bool {
        event.end < self.last_clear
    }

    /// Whether a clear may have come after an event.
    fn may_be_cleared(&self, event: &Event) -> bool {
        event.begin <= self.last_end
    }

    /// Whether what was touched then is still there, or may be.
    fn is_alive(&self, [first, _]: [u64; 2]) -> bool {
        !self.forgets || self.now <= first + REMEMBERED
    }

    fn may_be_alive(&self, [_, last]: [u64; 2]) -> bool {
        !self.forgets || self.now <= last.saturating_add(REMEMBERED)
    }

    /// Copies of an item that one thread has changed: the first and the last number that is right.
    fn own(&self, events: &[Event]) -> (usize, usize) {
        let Some(last) =
            events.iter().rposition(|event| event.answer.is_some_and(|it| it != Answer::Refused))
        else {
            return (0, 1);
        };
        // Changes that were perhaps not made.
        if events[last + 1..].iter().any(|event| event.answer.is_none()) {
            return (0, 1);
        }
        let event = &events[last];
        let is_in = matches!(
            (event.operation, event.answer),
            (InsertIfAbsent | InsertOrRefresh, _) | (Refresh, Some(Answer::Yes))
        );
        let Some(touched) = self.touched(events).filter(|_| is_in) else {
            return (0, usize::from(is_in));
        };
        let least = self.is_alive(touched) && !self.may_be_cleared(event);
        let most = self.may_be_alive(touched) && !self.is_cleared(event);
        (least.into(), most.into())
    }

    /// In which ticks an own item was touched for the last time, if that is known.
    fn touched(&self, events: &[Event]) -> Option<[u64; 2]> {
        for event in events.iter().rev() {
            match (event.operation, event.answer) {
                (InsertIfAbsent | InsertOrRefresh | Refresh, None) => return None,
                (InsertIfAbsent | Refresh, Some(Answer::Yes)) => return Some(event.ticks),
                (InsertOrRefresh, Some(Answer::Yes | Answer::No)) => return Some(event.ticks),
                _ => {}
            }
        }
        None
    }

    /// Copies of an item that all threads change.
    fn of_all(&self, events: &[Event]) -> (usize, usize) {
        let (mut sure_adds, mut adds, mut sure_removals, mut removals) = (0, 0, 0, 0);
        // A refresh may let any copy live longer.
        let is_touched = events
            .iter()
            .any(|event| event.operation == InsertOrRefresh && self.may_be_alive(event.ticks));
        for event in events.iter().filter(|event| !self.is_cleared(event)) {
            let (is_sure, may_be) = match event.answer {
                Some(answer) => (answer == Answer::Yes, answer == Answer::Yes),
                None => (false, true),
            };
            let is_after = !self.may_be_cleared(event);
            if event.operation == Remove {
                removals += usize::from(may_be);
                sure_removals += usize::from(is_sure && is_after && !self.forgets);
            } else {
                adds += usize::from(may_be && (is_touched || self.may_be_alive(event.ticks)));
                sure_adds += usize::from(is_sure && is_after && self.is_alive(event.ticks));
            }
        }
        (sure_adds.saturating_sub(removals), adds.saturating_sub(sure_removals))
    }

    /// Returns two adds that have won although the item cannot have gone between them.
    fn two_winners(&self, events: &[Event]) -> Option<[Event; 2]> {
        let has_won = |event: &&Event| {
            matches!(event.operation, InsertIfAbsent | InsertOrRefresh)
                && event.answer == Some(Answer::Yes)
        };
        let mut wins: Vec<&Event> = events.iter().filter(has_won).collect();
        wins.sort_unstable_by_key(|event| event.begin);
        let may_remove = |event: &&Event| {
            let is_removal = event.operation == Remove && event.answer != Some(Answer::No);
            is_removal || event.operation == Clear
        };
        let all = events.iter().chain(self.clears).filter(may_remove);
        let mut removals: Vec<[u64; 2]> = all.map(|event| [event.begin, event.end]).collect();
        removals.sort_unstable();
        let mut latest = 0;
        for [_, end] in &mut removals {
            latest = latest.max(*end);
            *end = latest;
        }
        let is_right = |[one, other]: [&Event; 2]| {
            let before_end =
                removals.partition_point(|[begin, _]| *begin <= one.end.max(other.end));
            let may_be_removed =
                removals[..before_end].last().is_some_and(|[_, end]| *end >= one.begin);
            // Of two that overlap, either may have been first.
            let expires = |one: &Event, other: &Event| {
                one.begin <= other.end && other.ticks[1] > one.ticks[0] + REMEMBERED
            };
            let may_expire = self.forgets && (expires(one, other) || expires(other, one));
            may_be_removed || may_expire
        };
        let pairs = wins.windows(2).map(|pair| [pair[0], pair[1]]);
        pairs.into_iter().find(|pair| !is_right(*pair)).map(|pair| pair.map(|event| *event))
    }
}
