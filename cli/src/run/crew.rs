//! The threads of a run: a reader, several [workers](crate::run::worker), and a writer.

use crate::failure::{End, Failure};
use crate::lines::aside::Aside;
use crate::lines::chunk::{Chunk, Trouble};
use crate::lines::cutter::{Cut, Cutter, LONGEST};
use crate::lines::input::Source;
use crate::lines::rules::Keys;
use crate::run::shared::{Operation, Shared, locked};
use crate::run::worker::Worker;
use crossbeam_channel::{Receiver, Sender, bounded};
use std::collections::BTreeMap;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

/// Starts the threads of a run. Returns the writer, which ends with what was set aside.
pub fn start(
    shared: &Arc<Shared>,
    sources: Vec<Source>,
    workers: usize,
    aside: Option<Aside>,
) -> Result<JoinHandle<Option<Aside>>, Failure> {
    // One chunk for each thread, and one in transit.
    let chunks = workers + 3;
    let (to_pool, pool) = bounded(chunks);
    let (to_work, work) = bounded(chunks);
    let (to_done, done) = bounded(chunks);
    for _ in 0..chunks {
        let _ = to_pool.send(Chunk::default());
    }
    for _ in 0..workers {
        let (work, to_done) = (work.clone(), to_done.clone());
        spawn(shared, move |shared| Worker::new(shared).work(&work, &to_done))?;
    }
    let writer = spawn(shared, move |shared| shared.write_all(&done, &to_pool, aside))?;
    spawn(shared, move |shared| shared.read_all(sources, &pool, &to_work))?;
    Ok(writer)
}

/// Starts a thread. If it panics, the run ends.
fn spawn<T: Send + 'static>(
    shared: &Arc<Shared>,
    body: impl FnOnce(&Shared) -> T + Send + 'static,
) -> Result<JoinHandle<T>, Failure> {
    let shared = Arc::clone(shared);
    let guarded = move || {
        catch_unwind(AssertUnwindSafe(|| body(&shared))).unwrap_or_else(|panic| {
            let what = Failure::new("internal error, reported above");
            shared.monitor.trouble(End::Failed(what));
            resume_unwind(panic)
        })
    };
    let cannot = |error| Failure::of("cannot start a thread; use fewer --threads", &error);
    thread::Builder::new().spawn(guarded).map_err(cannot)
}

/// The reader.
impl Shared {
    /// Reads all sources, and hands in their lines in chunks.
    fn read_all(&self, sources: Vec<Source>, pool: &Receiver<Chunk>, work: &Sender<Chunk>) {
        // A closed channel means that the run has ended early.
        let Ok(mut chunk) = pool.recv() else { return };
        let mut hand_in = |chunk: &mut Chunk| {
            let handed = self.monitor.hand_in(|number| {
                chunk.number = number;
                let _ = work.send(std::mem::take(chunk));
            });
            match pool.recv() {
                Ok(next) if handed => *chunk = next,
                _ => return false,
            }
            true
        };
        for source in sources {
            if let Err(error) = self.read(&source, &mut chunk, &mut hand_in) {
                // It is said in its turn: of an error after the last line that may be written, nothing is said.
                chunk.clear();
                chunk.trouble = Some(Trouble::Unreadable(Failure::of(source.name(), &error)));
                if !hand_in(&mut chunk) {
                    return;
                }
            }
        }
        self.monitor.read_to_the_end();
    }

    /// Reads a source, and passes its chunks to `hand_in` until that returns `false`.
    fn read(
        &self,
        source: &Source,
        chunk: &mut Chunk,
        mut hand_in: impl FnMut(&mut Chunk) -> bool,
    ) -> io::Result<()> {
        let opened = source.open(&self.so_far.read)?;
        locked(&self.so_far.tally).opened += 1;
        let mut cutter = Cutter::new(opened, self.task.rules.terminator);
        loop {
            match cutter.fill(chunk)? {
                Cut::Lines => {}
                Cut::TooLong => {
                    let (name, most) = (source.name(), LONGEST >> 20);
                    let what =
                        format!("{name}: a line is longer than {most} MiB, so it is left out");
                    chunk.trouble = Some(Trouble::TooLong(Failure::new(what)));
                }
                Cut::End => return Ok(()),
            }
            if !hand_in(chunk) {
                return Ok(());
            }
        }
    }
}

/// The writer.
impl Shared {
    /// Writes the chunks in the order in which they were handed in.
    fn write_all(
        &self,
        done: &Receiver<Chunk>,
        pool: &Sender<Chunk>,
        mut aside: Option<Aside>,
    ) -> Option<Aside> {
        let mut early = BTreeMap::new();
        let mut next = 0;
        for chunk in done {
            early.insert(chunk.number, chunk);
            while let Some(mut chunk) = early.remove(&next) {
                if let Some(trouble) = chunk.trouble.take() {
                    let mut tally = locked(&self.so_far.tally);
                    let (count, failure) = match trouble {
                        Trouble::Unreadable(failure) => (&mut tally.unreadable, failure),
                        Trouble::TooLong(failure) => (&mut tally.too_long, failure),
                    };
                    *count += 1;
                    drop(tally);
                    self.task.screen.say(failure);
                }
                if !self.monitor.begin_write() {
                    return aside;
                }
                let is_enough = self.cut_off(&mut chunk);
                if let Err(trouble) = self.write(&mut chunk, aside.as_mut()) {
                    self.monitor.wrote_not(trouble);
                    return aside;
                }
                next += 1;
                self.so_far.turns.cross_out(chunk.number);
                self.count(&chunk);
                self.monitor.wrote(is_enough);
                if is_enough {
                    return aside;
                }
                let _ = pool.send(chunk);
            }
        }
        aside
    }

    /// Leaves out of a chunk what comes after the last line that may be written, and returns whether
    /// that line is in it. Lines that were added and are left out are removed from the filter.
    fn cut_off(&self, chunk: &mut Chunk) -> bool {
        let (Some(limit), Operation::Add(seen)) = (self.task.limit, &self.task.operation) else {
            return false;
        };
        let left = limit.saturating_sub(locked(&self.so_far.tally).selected);
        if chunk.selected_lines < left {
            return false;
        }
        let chosen = chunk.answers.iter().enumerate().filter(|(_, chosen)| **chosen);
        let lines = chosen.map(|(line, _)| line + 1).nth(left as usize - 1);
        let lines = lines.unwrap_or(chunk.lines());
        let mut keys = Keys::new(self.task.rules, *seen.hasher());
        let (mut hashes, mut not_urls, mut without_field) = (Vec::new(), 0, 0);
        for (line, added) in chunk.iter().zip(&chunk.answers).skip(lines) {
            let key = keys.key(line);
            not_urls += u64::from(!key.is_expected);
            without_field += u64::from(!key.has_field);
            if *added {
                hashes.push(key.hash);
            }
        }
        seen.remove_many(&hashes);
        chunk.truncate(lines);
        (chunk.yes, chunk.selected_lines) = (left, left);
        chunk.not_urls -= not_urls;
        chunk.without_field -= without_field;
        true
    }

    /// Writes a chunk.
    fn write(&self, chunk: &mut Chunk, aside: Option<&mut Aside>) -> Result<(), End> {
        if let Some(failure) = chunk.failure.take() {
            return Err(End::Failed(failure));
        }
        if let Some(aside) = aside {
            aside.put(&chunk.selected, &chunk.aside)?;
        }
        let Some(noting) = self.noting.as_ref().filter(|_| chunk.selected_lines > 0) else {
            return self.task.sink.write(&chunk.selected);
        };
        noting.begin()?;
        self.task.sink.write(&chunk.selected)?;
        noting.wrote(self.task.sink.end()?);
        Ok(())
    }

    fn count(&self, chunk: &Chunk) {
        let mut tally = locked(&self.so_far.tally);
        tally.lines += chunk.lines() as u64;
        tally.bytes += chunk.bytes();
        tally.yes += chunk.yes;
        tally.selected += chunk.selected_lines;
        tally.not_urls += chunk.not_urls;
        tally.without_field += chunk.without_field;
        if let Operation::Add(seen) = &self.task.operation {
            if self.task.refreshes {
                tally.refreshed += chunk.lines() as u64 - chunk.yes;
            }
            let added = tally.yes;
            tally.doubt.update(seen, added, false);
        }
    }
}
