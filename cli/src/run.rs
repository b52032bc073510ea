//! Lines through the filter, as fast as they come.
//!
//! ```text
//!            work                  done
//! reader ──────────▶ worker × n ──────────▶ writer
//!    ▲    chunks                    chunks    │
//!    └───────────────── pool ◀────────────────┘
//! ```
//!
//! The reader cuts the input into chunks of whole lines. Workers compare the lines and ask the filter, which they do in
//! [turns](crate::turns), so that the answers are as if one thread had done it. The writer puts the chunks
//! into their order again and writes. There are a few chunks, which go round.
//!
//! The thread that calls is the coordinator. It saves the state, for which it lets everything that was handed in be
//! written first; and when the run has to end early, it takes back what was added for lines that were not
//! written. So a line is never saved as seen without having been written.

use crate::aside::Aside;
use crate::chunk::{Chunk, Cutter, Over, Rules};
use crate::failure::Failure;
use crate::input::Source;
pub use crate::monitor::Trouble;
use crate::monitor::{Event, Idle, Monitor};
use crate::output::{Sink, Syncer};
use crate::screen::Screen;
use crate::state::{Keeper, Seen};
use crate::tally::Tally;
use crate::turns::{PARTS, Turns};
use crossbeam_channel::{Receiver, Sender, bounded};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// What is done with each line.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// It is added, unless it is there: yes if it was not.
    Add,
    /// It is looked for: yes if it is there.
    Find,
    /// It is taken out: yes if it was there.
    Remove,
}

/// What is to be done.
pub struct Run {
    pub seen: Seen,
    pub act: Act,
    /// Which answer makes a line one to be written.
    pub select: bool,
    pub sources: Vec<Source>,
    pub rules: Rules,
    pub threads: Option<usize>,
    pub sink: Sink,
    /// Where lines go that are not selected, if they are to be kept.
    pub aside: Option<Aside>,
    pub keeper: Option<Keeper>,
    /// How often the state is saved.
    pub checkpoint: Option<Duration>,
    pub screen: Arc<Screen>,
    /// What the bar calls lines with the answer yes.
    pub yes_is: &'static str,
}

/// What became of it.
pub struct Outcome {
    pub seen: Arc<Seen>,
    pub tally: Tally,
    pub end: End,
    /// If all has been written.
    pub written: Option<(Sink, Option<Aside>)>,
    pub took: Duration,
}

pub enum End {
    /// All lines have been read.
    Reached,
    Signal(i32),
    /// Nobody reads the output any more.
    BrokenPipe,
    Failed(Failure),
}

impl From<Trouble> for End {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::BrokenPipe => End::BrokenPipe,
            Trouble::Failed(failure) => End::Failed(failure),
        }
    }
}

/// What the threads share.
struct Shared {
    seen: Arc<Seen>,
    act: Act,
    select: bool,
    rules: Rules,
    puts_aside: bool,
    writes: bool,
    /// Whether what was added has to be known until it is written.
    notes: bool,
    screen: Arc<Screen>,
    monitor: Arc<Monitor>,
    turns: Turns,
    /// Nothing more can be added.
    full: AtomicBool,
    tally: Mutex<Tally>,
    /// Bytes that were read, packed as they are.
    read: Arc<AtomicU64>,
    /// Why the input ended early.
    stopped: Mutex<Option<Failure>>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How long a writer that gets on with nothing is waited for when the run has to end.
const GRACE: Duration = Duration::from_secs(1);

/// How often the bar moves.
const TICK: Duration = Duration::from_millis(100);

/// Goes through all lines, and saves the state.
pub fn run(run: Run, monitor: &Arc<Monitor>) -> Result<Outcome, Failure> {
    let start = Instant::now();
    let threads =
        run.threads.unwrap_or_else(|| thread::available_parallelism().map_or(1, usize::from));
    let shared = Arc::new(Shared {
        seen: Arc::new(run.seen),
        act: run.act,
        select: run.select,
        rules: run.rules,
        puts_aside: run.aside.is_some(),
        writes: run.sink.is_somewhere() || run.aside.is_some(),
        notes: run.keeper.is_some(),
        screen: run.screen,
        monitor: Arc::clone(monitor),
        turns: Turns::default(),
        full: AtomicBool::new(false),
        tally: Mutex::default(),
        read: Arc::default(),
        stopped: Mutex::default(),
    });
    let keeping = match run.keeper {
        None => None,
        Some(keeper) => Some(Keeping {
            keeper,
            syncer: run.sink.syncer()?,
            period: run.checkpoint,
            next: run.checkpoint.map(|period| start + period),
            saved: 0,
        }),
    };
    let writer = start_threads(&shared, run.sources, threads, run.sink, run.aside);
    let mut coordinator = Coordinator { shared: &shared, keeping, yes_is: run.yes_is };
    let end = coordinator.wait();
    // If something has gone wrong, it may wait for ever.
    let written = matches!(end, End::Reached).then(|| writer.join().ok()).flatten();
    let end = coordinator.finish(end);
    shared.screen.clear();
    let tally = locked(&shared.tally).clone();
    Ok(Outcome { seen: Arc::clone(&shared.seen), tally, end, written, took: start.elapsed() })
}

type Writer = JoinHandle<(Sink, Option<Aside>)>;

fn start_threads(
    shared: &Arc<Shared>,
    sources: Vec<Source>,
    threads: usize,
    sink: Sink,
    aside: Option<Aside>,
) -> Writer {
    // One chunk for each who works on one, and one in between.
    let chunks = threads + 3;
    let (to_pool, pool) = bounded(chunks);
    let (to_work, work) = bounded(chunks);
    let (to_done, done) = bounded(chunks);
    for _ in 0..chunks {
        let _ = to_pool.send(Chunk::default());
    }
    let the = Arc::clone(shared);
    thread::spawn(move || the.guarded(|| the.read_all(sources, &pool, &to_work)));
    for _ in 0..threads {
        let (the, work, to_done) = (Arc::clone(shared), work.clone(), to_done.clone());
        thread::spawn(move || the.guarded(|| the.work(&work, &to_done)));
    }
    let the = Arc::clone(shared);
    thread::spawn(move || the.guarded(|| the.write_all(&done, &to_pool, sink, aside)))
}

impl Shared {
    /// If it panics, the run ends.
    fn guarded<T>(&self, body: impl FnOnce() -> T) -> T {
        struct Guard<'a>(&'a Monitor);
        impl Drop for Guard<'_> {
            fn drop(&mut self) {
                if thread::panicking() {
                    let what =
                        "a fault of koel's own, told above; what was saved last is as it was";
                    self.0.trouble(Trouble::Failed(Failure::new(what)));
                }
            }
        }
        let _guard = Guard(&self.monitor);
        body()
    }

    fn read_all(&self, sources: Vec<Source>, pool: &Receiver<Chunk>, work: &Sender<Chunk>) {
        // Whoever has gone needs no more.
        let Ok(mut chunk) = pool.recv() else { return };
        for source in sources {
            let failed = |error| {
                locked(&self.tally).unreadable += 1;
                self.screen.say(Failure::of(source.name(), &error));
            };
            let opened = match source.open(&self.read) {
                Ok(opened) => opened,
                Err(error) => {
                    failed(error);
                    continue;
                }
            };
            let mut cutter = Cutter::new(opened, self.rules);
            let over = loop {
                if let Err(over) = cutter.fill(&mut chunk) {
                    break over;
                }
                let handed = self.monitor.hand_in(|number| {
                    chunk.number = number;
                    let _ = work.send(std::mem::take(&mut chunk));
                });
                match pool.recv() {
                    Ok(next) if handed => chunk = next,
                    _ => return,
                }
            };
            match over {
                Over::End => {}
                Over::Unreadable(error) => failed(error),
                Over::TooLong { line } => {
                    *locked(&self.stopped) = Some(Failure::new(format!(
                        "{}: line {line} is longer than {} bytes; allow longer ones with --max-line",
                        source.name(),
                        self.rules.longest
                    )));
                    break;
                }
            }
        }
        self.monitor.read_to_the_end();
    }

    fn work(&self, work: &Receiver<Chunk>, done: &Sender<Chunk>) {
        let mut desk = Desk::default();
        for mut chunk in work {
            self.ask(&mut chunk, &mut desk);
            if done.send(chunk).is_err() {
                return;
            }
        }
    }

    /// Finds the answer for each line of a chunk, and sorts the lines out by it.
    fn ask(&self, chunk: &mut Chunk, desk: &mut Desk) {
        let hasher = self.seen.hasher();
        let comparison = hasher.comparison();
        desk.hashes.clear();
        let mut not_urls = 0;
        for line in chunk.iter() {
            let (key, as_expected) = comparison.key(self.rules.bare(line), &mut desk.scratch);
            not_urls += u64::from(!as_expected);
            desk.hashes.push(hasher.of_key(key));
        }
        chunk.not_urls = not_urls;
        match self.act {
            Act::Add => chunk.full = !self.add(chunk.number, desk),
            Act::Find => desk.answers = self.seen.contains_hash_many(&desk.hashes),
            Act::Remove => desk.answers = self.seen.remove_hash_many(&desk.hashes),
        }
        let yes = desk.answers.iter().filter(|answer| **answer).count() as u64;
        chunk.yes = yes;
        chunk.selected_lines = if self.select { yes } else { chunk.lines() as u64 - yes };
        if self.writes {
            chunk.sort_out(&desk.answers, self.select, self.puts_aside);
        }
    }

    /// Adds the lines of a chunk in its turns; `false` if there was no memory for some.
    fn add(&self, chunk: u64, desk: &mut Desk) -> bool {
        desk.sort();
        let mut all = true;
        for part in 0..PARTS {
            let range = desk.ends[part]..desk.ends[part + 1];
            let (hashes, lines) = (&desk.sorted[range.clone()], &desk.lines[range]);
            let answers = &mut desk.answers;
            self.turns.visit(part, chunk, || {
                if self.full.load(Relaxed) {
                    all = false;
                    return Vec::new();
                }
                let mut added = Vec::new();
                let results = self.seen.insert_hash_if_absent_many(hashes);
                for ((result, line), hash) in results.into_iter().zip(lines).zip(hashes) {
                    match result {
                        Ok(new) => {
                            answers[*line as usize] = new;
                            if new && self.notes {
                                added.push(*hash);
                            }
                        }
                        Err(_) => {
                            all = false;
                            self.full.store(true, Relaxed);
                        }
                    }
                }
                added
            });
        }
        all
    }

    fn write_all(
        &self,
        done: &Receiver<Chunk>,
        pool: &Sender<Chunk>,
        mut sink: Sink,
        mut aside: Option<Aside>,
    ) -> (Sink, Option<Aside>) {
        let mut early = BTreeMap::new();
        let mut next = 0;
        for chunk in done {
            early.insert(chunk.number, chunk);
            while let Some(chunk) = early.remove(&next) {
                if let Err(trouble) = self.write(&chunk, &mut sink, aside.as_mut()) {
                    self.monitor.trouble(trouble);
                    return (sink, aside);
                }
                next += 1;
                self.turns.cross_out(chunk.number);
                self.count(&chunk);
                self.monitor.wrote();
                let _ = pool.send(chunk);
            }
        }
        (sink, aside)
    }

    fn write(
        &self,
        chunk: &Chunk,
        sink: &mut Sink,
        aside: Option<&mut Aside>,
    ) -> Result<(), Trouble> {
        if chunk.full {
            return Err(Trouble::Failed(self.no_memory()));
        }
        if !chunk.selected.is_empty() {
            sink.write(&chunk.selected)?;
        }
        match aside {
            Some(aside) => Ok(aside.put(&chunk.selected, &chunk.aside)?),
            None => Ok(()),
        }
    }

    fn no_memory(&self) -> Failure {
        let lines = locked(&self.tally).lines;
        Failure::new(format!(
            "no more memory for what was seen, after {lines} lines and {} different ones: a higher --rate takes \
             less, and --max-memory may allow more",
            self.seen.len()
        ))
    }

    fn count(&self, chunk: &Chunk) {
        let mut tally = locked(&self.tally);
        tally.lines += chunk.lines() as u64;
        tally.bytes += chunk.bytes() as u64;
        tally.yes += chunk.yes;
        tally.selected += chunk.selected_lines;
        tally.not_urls += chunk.not_urls;
        if self.act == Act::Add {
            let added = tally.yes;
            tally.doubt.update(&self.seen, added, false);
        }
    }
}

/// What a worker writes on.
#[derive(Default)]
struct Desk {
    scratch: String,
    hashes: Vec<u64>,
    answers: Vec<bool>,
    /// The hashes by their parts, each part's in their order; and which lines they are of.
    sorted: Vec<u64>,
    lines: Vec<u32>,
    ends: [usize; PARTS + 1],
}

impl Desk {
    fn sort(&mut self) {
        let Desk { hashes, answers, sorted, lines, ends, .. } = self;
        answers.clear();
        answers.resize(hashes.len(), false);
        sorted.resize(hashes.len(), 0);
        lines.resize(hashes.len(), 0);
        *ends = [0; PARTS + 1];
        for &hash in &*hashes {
            ends[Turns::part_of(hash) + 1] += 1;
        }
        for part in 0..PARTS {
            ends[part + 1] += ends[part];
        }
        let mut at = *ends;
        for (line, &hash) in hashes.iter().enumerate() {
            let at = &mut at[Turns::part_of(hash)];
            sorted[*at] = hash;
            lines[*at] = line as u32;
            *at += 1;
        }
    }
}

struct Coordinator<'a> {
    shared: &'a Shared,
    keeping: Option<Keeping>,
    yes_is: &'static str,
}

struct Keeping {
    keeper: Keeper,
    syncer: Syncer,
    period: Option<Duration>,
    next: Option<Instant>,
    /// How much had been written when it was saved last.
    saved: u64,
}

impl Coordinator<'_> {
    /// Until the run ends, by itself or early.
    fn wait(&mut self) -> End {
        loop {
            let now = Instant::now();
            let tick = if self.shared.screen.has_bar() {
                now + TICK
            } else {
                now + Duration::from_secs(3_600)
            };
            let due = self.keeping.as_ref().and_then(|keeping| keeping.next);
            match self.shared.monitor.wait(due.map_or(tick, |due| due.min(tick))) {
                Event::Finished => return End::Reached,
                Event::Signal(signal) => return End::Signal(signal),
                Event::Trouble(trouble) => return End::from(trouble),
                Event::Time => self.show(),
            }
            if due.is_some_and(|due| due <= Instant::now()) {
                self.checkpoint();
            }
        }
    }

    fn show(&self) {
        let tally = locked(&self.shared.tally);
        let read = self.shared.read.load(Relaxed);
        self.shared.screen.progress(read, tally.lines, tally.yes, self.yes_is);
    }

    /// Saves the state when all that was handed in is written. If anything happens first, that is looked at first.
    fn checkpoint(&mut self) {
        let Shared { monitor, screen, seen, .. } = self.shared;
        if self.keeping.as_ref().is_none_or(|keeping| keeping.saved == monitor.written()) {
            return self.postpone(Duration::ZERO);
        }
        monitor.hold();
        let idle = loop {
            match monitor.wait_until_idle(Instant::now() + TICK) {
                Idle::Late => self.show(),
                idle => break idle,
            }
        };
        if idle == Idle::Reached
            && let Some(keeping) = &mut self.keeping
        {
            let start = Instant::now();
            match keeping.save(seen, monitor.written()) {
                Ok(()) => {}
                Err(failure) => screen.say(format!("{failure} (it will be tried again)")),
            }
            self.postpone(start.elapsed());
        }
        monitor.go_on();
    }

    /// At most a tenth of the time is for saves.
    fn postpone(&mut self, took: Duration) {
        if let Some(keeping) = &mut self.keeping {
            keeping.next = keeping.period.map(|period| Instant::now() + period.max(9 * took));
        }
    }

    /// Sees to it that the state has what was written, and saves it.
    fn finish(&mut self, end: End) -> End {
        let Shared { monitor, turns, seen, act, .. } = self.shared;
        monitor.close();
        if let End::Signal(_) = end {
            let mut written = monitor.written();
            while monitor.wait_until_idle(Instant::now() + GRACE) == Idle::Late {
                if written == monitor.written() {
                    break;
                }
                written = monitor.written();
            }
        }
        let Some(halt) = turns.halt() else { return end };
        seen.remove_hash_many(&halt.added());
        if *act == Act::Add {
            let mut tally = locked(&self.shared.tally);
            let added = tally.yes;
            tally.doubt.update(seen, added, true);
        }
        let saved = match &mut self.keeping {
            Some(keeping) => keeping.save(seen, monitor.written()),
            None => Ok(()),
        };
        let stopped = locked(&self.shared.stopped).take();
        match (end, saved, stopped) {
            // One is told; and if the state could not be saved, that is the one.
            (_, Err(failure), _) => End::Failed(failure),
            (End::Reached, Ok(()), Some(failure)) => End::Failed(failure),
            (end, Ok(()), _) => end,
        }
    }
}

impl Keeping {
    /// What was written has to stay before it is saved as seen.
    fn save(&mut self, seen: &Seen, written: u64) -> Result<(), Failure> {
        self.syncer.sync()?;
        self.keeper.save(seen)?;
        self.saved = written;
        Ok(())
    }
}
