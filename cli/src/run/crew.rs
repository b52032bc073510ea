//! The threads of a run: one reads, some ask the filter, one writes.
//!
//! # Orderings
//!
//! Both atomics are `Relaxed`, and nothing is read because of what they say.
//!
//! * `full` is stored by who holds a part of the [turns](crate::run::turns), and loaded by who holds one. Between chunks it
//!   only saves work: what is added in spite of it is in the ledger, and taken back. After the end of a run it has to be
//!   seen: then it is stored under a [`Halt`], so by who holds all parts, and the mutex of each part orders it before
//!   the next visit (`tests/known_lines.rs` fails without that store).
//! * `read` is for the progress bar.

use crate::failure::{Failure, Trouble};
use crate::lines::aside::Aside;
use crate::lines::chunk::{Chunk, Rules};
use crate::lines::cutter::{Cutter, Over};
use crate::lines::input::Source;
use crate::lines::output::Sink;
use crate::run::monitor::Monitor;
use crate::run::screen::Screen;
use crate::run::tally::Tally;
use crate::run::turns::{Halt, PARTS, Turns};
use crate::state::seen::Seen;
use crossbeam_channel::{Receiver, Sender, bounded};
use indicatif::HumanCount;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

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

/// What the threads share.
pub struct Shared {
    pub seen: Arc<Seen>,
    pub act: Act,
    pub select: bool,
    pub rules: Rules,
    pub puts_aside: bool,
    /// Whether the lines that are selected go anywhere.
    pub writes: bool,
    /// Whether what was added has to be known until it is written.
    pub notes: bool,
    pub screen: Arc<Screen>,
    pub monitor: Arc<Monitor>,
    pub so_far: SoFar,
}

/// What becomes of a run.
#[derive(Default)]
pub struct SoFar {
    pub turns: Turns,
    /// Nothing more can be added, or is to be.
    full: AtomicBool,
    pub tally: Mutex<Tally>,
    /// Bytes that were read, packed as they are.
    pub read: Arc<AtomicU64>,
    /// Why the input ended early.
    pub stopped: Mutex<Option<Failure>>,
}

impl SoFar {
    /// From here on, threads that are still at work leave the filter as it is.
    pub fn add_no_more(&self, _nobody_is_at_it: &Halt<'_>) {
        self.full.store(true, Relaxed);
    }
}

pub fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub type Writer = JoinHandle<(Sink, Option<Aside>)>;

pub fn start(
    shared: &Arc<Shared>,
    sources: Vec<Source>,
    threads: usize,
    sink: Sink,
    aside: Option<Aside>,
) -> Result<Writer, Failure> {
    // One chunk for each who works on one, and one in between.
    let chunks = threads + 3;
    let (to_pool, pool) = bounded(chunks);
    let (to_work, work) = bounded(chunks);
    let (to_done, done) = bounded(chunks);
    for _ in 0..chunks {
        let _ = to_pool.send(Chunk::default());
    }
    for _ in 0..threads {
        let (the, work, to_done) = (Arc::clone(shared), work.clone(), to_done.clone());
        spawn(move || the.guarded(|| the.work(&work, &to_done)))?;
    }
    let the = Arc::clone(shared);
    let write = move || the.guarded(|| the.write_all(&done, &to_pool, sink, aside));
    let writer = spawn(write)?;
    let the = Arc::clone(shared);
    spawn(move || the.guarded(|| the.read_all(sources, &pool, &to_work)))?;
    Ok(writer)
}

fn spawn<T: Send + 'static>(
    body: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>, Failure> {
    let cannot = |error| Failure::of("cannot start a thread (--threads asks for fewer)", &error);
    thread::Builder::new().spawn(body).map_err(cannot)
}

impl Shared {
    /// If it panics, the run ends.
    fn guarded<T>(&self, body: impl FnOnce() -> T) -> T {
        struct Guard<'a>(&'a Monitor);
        impl Drop for Guard<'_> {
            fn drop(&mut self) {
                if thread::panicking() {
                    let what = Failure::new("a fault of koel's own, told above");
                    self.0.trouble(Trouble::Failed(what));
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
                locked(&self.so_far.tally).unreadable += 1;
                let advice = source.advice(&error);
                self.screen.say(format_args!("{}{advice}", Failure::of(source.name(), &error)));
            };
            let opened = match source.open(&self.so_far.read) {
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
                    *locked(&self.so_far.stopped) = Some(Failure::new(format!(
                        "{}: line {line} is longer than {} bytes, and nothing from there on was read; allow \
                         longer ones with --max-line",
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
        desk.sort(&self.seen);
        let mut all = true;
        for part in 0..PARTS {
            let range = desk.ends[part]..desk.ends[part + 1];
            let (hashes, lines) = (&desk.sorted[range.clone()], &desk.lines[range]);
            let answers = &mut desk.answers;
            self.so_far.turns.visit(part, chunk, || {
                if self.so_far.full.load(Relaxed) {
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
                            self.so_far.full.store(true, Relaxed);
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
                self.so_far.turns.cross_out(chunk.number);
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
        if let Some(aside) = aside {
            aside.put(&chunk.selected, &chunk.aside)?;
        }
        if chunk.selected.is_empty() { Ok(()) } else { sink.write(&chunk.selected) }
    }

    fn no_memory(&self) -> Failure {
        let Tally { lines, yes, .. } = *locked(&self.so_far.tally);
        Failure::new(format!(
            "no more memory for what was seen, after {} lines, {} of them new: a higher --rate takes less, \
             and --max-memory may allow more",
            HumanCount(lines),
            HumanCount(yes)
        ))
    }

    fn count(&self, chunk: &Chunk) {
        let mut tally = locked(&self.so_far.tally);
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
    fn sort(&mut self, seen: &Seen) {
        let Desk { hashes, answers, sorted, lines, ends, .. } = self;
        answers.clear();
        answers.resize(hashes.len(), false);
        sorted.resize(hashes.len(), 0);
        lines.resize(hashes.len(), 0);
        *ends = [0; PARTS + 1];
        for &hash in &*hashes {
            ends[seen.part_of_hash(hash, PARTS) + 1] += 1;
        }
        for part in 0..PARTS {
            ends[part + 1] += ends[part];
        }
        let mut at = *ends;
        for (line, &hash) in hashes.iter().enumerate() {
            let at = &mut at[seen.part_of_hash(hash, PARTS)];
            sorted[*at] = hash;
            lines[*at] = line as u32;
            *at += 1;
        }
    }
}
