//! The threads of a run: a reader, several [workers](crate::run::worker), and a writer.

use crate::failure::{End, Failure, locked};
use crate::lines::aside::Aside;
use crate::lines::chunk::{Chunk, Fault};
use crate::lines::cutter::{Cut, Cutter, LONGEST};
use crate::lines::input::Source;
use crate::lines::rules::Keys;
use crate::run::shared::Shared;
use crate::run::worker::Worker;
use crate::unsaved::output::Noting;
use crossbeam_channel::{Receiver, Sender, bounded};
use std::collections::BTreeMap;
use std::io;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

/// Starts the threads of a run. Returns the writer, which ends with what was set aside.
pub fn start(
    shared: &Arc<Shared>,
    aside: Option<Aside>,
) -> Result<JoinHandle<Option<Aside>>, Failure> {
    let workers = shared.plan.workers();
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
    spawn(shared, move |shared| shared.read_all(&pool, &to_work))?;
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
            shared.monitor.end_early(End::Failed(what));
            resume_unwind(panic)
        })
    };
    let cannot = |error| Failure::of("cannot start a thread; use fewer --threads", &error);
    thread::Builder::new().spawn(guarded).map_err(cannot)
}

/// The reader.
impl Shared {
    /// Reads all sources, and hands in their lines in chunks.
    fn read_all(&self, pool: &Receiver<Chunk>, work: &Sender<Chunk>) {
        // A closed channel means that the run has ended early.
        let Ok(mut chunk) = pool.recv() else { return };
        let mut hand_in = |chunk: &mut Chunk| {
            let is_handed_in = self.monitor.hand_in(|number| {
                chunk.number = number;
                let _ = work.send(mem::take(chunk));
            });
            *chunk = pool.recv().ok().filter(|_| is_handed_in)?;
            Some(())
        };
        for (number, source) in self.plan.sources.iter().enumerate() {
            if let Err(error) = self.read(number, source, &mut chunk, &mut hand_in) {
                chunk.clear();
                (chunk.source, chunk.is_last) = (number, true);
                chunk.counts.unreadable = 1;
                chunk.fault = Some(Fault::LeftOut(Failure::of(source.name(), &error)));
                if hand_in(&mut chunk).is_none() {
                    return;
                }
            }
        }
        self.monitor.read_to_the_end();
    }

    /// Reads a source, and passes its chunks to `hand_in` until that returns `None`.
    fn read(
        &self,
        number: usize,
        source: &Source,
        chunk: &mut Chunk,
        mut hand_in: impl FnMut(&mut Chunk) -> Option<()>,
    ) -> io::Result<()> {
        let opened = source.open(&self.read)?;
        locked(&self.tally).opened += 1;
        let form = opened.form;
        let mut cutter = Cutter::new(opened, self.plan.rules.terminator);
        loop {
            let cut = cutter.fill(chunk)?;
            (chunk.source, chunk.form) = (number, form);
            match cut {
                Cut::Lines => {}
                Cut::TooLong => {
                    let (name, most) = (source.name(), LONGEST >> 20);
                    let what =
                        format!("{name}: a line is longer than {most} MiB, so it is left out");
                    chunk.counts.too_long = 1;
                    chunk.fault = Some(Fault::LeftOut(Failure::new(what)));
                }
                Cut::End if self.plan.folder.is_none() => return Ok(()),
                Cut::End => chunk.is_last = true,
            }
            if hand_in(chunk).is_none() || cut == Cut::End {
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
                if let Some(Fault::LeftOut(failure)) = &chunk.fault {
                    self.plan.screen.say(failure);
                }
                if !self.monitor.begin_write() {
                    return aside;
                }
                let is_enough = match self.write(&mut chunk, aside.as_mut()) {
                    Ok(is_enough) => is_enough,
                    Err(why) => {
                        self.monitor.wrote_not(why);
                        return aside;
                    }
                };
                next += 1;
                // Until a file is in place, its lines are not written.
                if self.plan.folder.is_none() || chunk.is_last {
                    self.turns.cross_out(chunk.number);
                }
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
        let (Some(limit), Some(seen)) = (self.plan.limit, self.adds()) else { return false };
        let left = limit.saturating_sub(locked(&self.tally).counts.selected);
        if chunk.counts.selected < left {
            return false;
        }
        let chosen = chunk.answers.iter().enumerate().filter(|(_, chosen)| **chosen);
        let lines = chosen.map(|(line, _)| line + 1).nth(left as usize - 1);
        let lines = lines.unwrap_or(chunk.lines());
        let mut keys = Keys::new(self.plan.rules, *seen.hasher());
        let (mut hashes, mut counts) = (Vec::new(), chunk.counts);
        for (line, added) in chunk.iter().zip(&chunk.answers).skip(lines) {
            let key = keys.key(line);
            counts.not_urls -= u64::from(!key.is_expected);
            counts.without_field -= u64::from(!key.has_field);
            if *added {
                hashes.push(key.hash);
            }
        }
        seen.remove_many(&hashes);
        chunk.truncate(lines);
        (counts.lines, counts.bytes) = (lines as u64, chunk.bytes());
        (counts.yes, counts.selected) = (left, left);
        chunk.counts = counts;
        true
    }

    /// Writes a chunk. Returns whether it has the last line that may be written.
    fn write(&self, chunk: &mut Chunk, aside: Option<&mut Aside>) -> Result<bool, End> {
        if let Some(Fault::Failed(failure)) = chunk.fault.take() {
            return Err(End::Failed(failure));
        }
        if let Some(folder) = &self.plan.folder {
            folder.write(chunk, |path, file, kept| {
                self.noting.as_ref().map_or(Ok(()), |noting| noting.places(path, file, kept))
            })?;
            return Ok(false);
        }
        let is_enough = self.cut_off(chunk);
        if let Some(aside) = aside {
            aside.put(&chunk.selected, &chunk.aside)?;
        }
        let noting = self.noting.as_ref().filter(|_| chunk.counts.selected > 0);
        noting.map_or(Ok(()), Noting::begin)?;
        let sink = &self.plan.sink;
        sink.write(&chunk.selected)?;
        if let Some(noting) = noting {
            noting.wrote(sink.end()?);
        }
        Ok(is_enough)
    }

    fn count(&self, chunk: &Chunk) {
        let mut tally = locked(&self.tally);
        tally.counts += chunk.counts;
        if let Some(seen) = self.adds() {
            if self.plan.refreshes() {
                tally.refreshed += chunk.counts.lines - chunk.counts.yes;
            }
            let added = tally.counts.yes;
            tally.doubt.update(seen, added, false);
        }
        if chunk.is_last {
            tally.placed = tally.counts;
        }
    }
}
