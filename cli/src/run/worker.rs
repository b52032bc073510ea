//! A worker thread: asks the filter about the lines of one chunk after the other.

use crate::failure::Failure;
use crate::lines::chunk::Chunk;
use crate::lines::rules::Keys;
use crate::run::recent::Recent;
use crate::run::shared::{Operation, Shared};
use crate::run::turns::PARTS;
use crate::state::seen::Seen;
use crossbeam_channel::{Receiver, Sender};
use koel::Prehashed;

/// A worker and its buffers, which are reused from chunk to chunk.
pub struct Worker<'a> {
    shared: &'a Shared,
    keys: Keys,
    /// The hashes that the filter is asked about, and the numbers of their lines.
    hashes: Vec<Prehashed>,
    asked: Vec<u32>,
    recent: Recent,
    /// The number of the tick in which they were met.
    tick: u64,
    answers: Vec<bool>,
    /// The hashes grouped by part, each group in line order, and the number of each hash's line.
    sorted: Vec<Prehashed>,
    lines: Vec<u32>,
    /// Where the group of each part begins in `sorted`.
    ends: [usize; PARTS + 1],
}

impl<'a> Worker<'a> {
    pub fn new(shared: &'a Shared) -> Self {
        Worker {
            shared,
            keys: Keys::new(shared.rules, *shared.operation.hasher()),
            hashes: Vec::new(),
            asked: Vec::new(),
            recent: Recent::new(),
            tick: 0,
            answers: Vec::new(),
            sorted: Vec::new(),
            lines: Vec::new(),
            ends: [0; PARTS + 1],
        }
    }

    /// Processes chunks until there are no more.
    pub fn work(&mut self, work: &Receiver<Chunk>, done: &Sender<Chunk>) {
        for mut chunk in work {
            self.process(&mut chunk);
            if done.send(chunk).is_err() {
                return;
            }
        }
    }

    /// Determines the answer for each line of a chunk, and sorts the lines by it.
    fn process(&mut self, chunk: &mut Chunk) {
        let Shared { operation, select, limit, sets_aside, writes, .. } = self.shared;
        self.pass_time();
        let Worker { keys, hashes, asked, recent, .. } = self;
        hashes.clear();
        asked.clear();
        let adds = matches!(operation, Operation::Add(_));
        let (mut not_urls, mut without_field) = (0, 0);
        let (mut last, mut last_was_no_url, mut last_had_no_field) = (&[][..], 0, 0);
        for (number, line) in chunk.iter().enumerate() {
            if adds && line == last {
                not_urls += last_was_no_url;
                without_field += last_had_no_field;
                continue;
            }
            let key = keys.key(line);
            (last, last_was_no_url, last_had_no_field) =
                (line, u64::from(!key.is_expected), u64::from(!key.has_field));
            not_urls += last_was_no_url;
            without_field += last_had_no_field;
            if !(adds && recent.met(key.hash.0)) {
                hashes.push(key.hash);
                asked.push(number as u32);
            }
        }
        (chunk.not_urls, chunk.without_field) = (not_urls, without_field);
        match operation {
            Operation::Add(seen) if self.add(seen, chunk) => {}
            Operation::Add(seen) => {
                let advice = match seen.stats().max_bytes {
                    Some(..usize::MAX) => "raise --max-memory",
                    _ => "make more memory available",
                };
                chunk.failure = Some(Failure::new(format!(
                    "out of memory for the lines seen; use a higher --rate, or {advice}"
                )));
            }
            Operation::Find(lookups) => match lookups.find(&self.hashes) {
                Ok(answers) => self.answers = answers,
                Err(failure) => {
                    chunk.failure = Some(failure);
                    return;
                }
            },
            Operation::Remove(seen) => self.answers = seen.remove_many(&self.hashes),
        }
        let yes = self.answers.iter().filter(|answer| **answer).count() as u64;
        chunk.yes = yes;
        chunk.selected_lines = if *select { yes } else { chunk.lines() as u64 - yes };
        if *writes {
            chunk.sort_out(&self.answers, *select, *sets_aside);
        }
        if limit.is_some() {
            chunk.answers.clone_from(&self.answers);
        }
    }

    /// Lets the ticks pass that are due. What was met before one is asked about again: it may be forgotten
    /// by now, or has to be refreshed.
    fn pass_time(&mut self) {
        let tick = self.shared.pass_time();
        if tick != self.tick {
            (self.tick, self.recent) = (tick, Recent::new());
        }
    }

    /// Adds the lines of a chunk, part by part, in its turns. Returns `false` if there was not
    /// enough memory for all of them.
    fn add(&mut self, seen: &Seen, chunk: &Chunk) -> bool {
        // Lines that the filter is not asked about are not new.
        self.answers.clear();
        self.answers.resize(chunk.lines(), false);
        self.sort(seen);
        let Worker { shared, answers, sorted, lines, ends, .. } = self;
        let mut all = true;
        for part in 0..PARTS {
            let range = ends[part]..ends[part + 1];
            let (hashes, lines) = (&sorted[range.clone()], &lines[range]);
            shared.so_far.turns.visit(part, chunk.number, || {
                let mut added = Vec::new();
                let results = match shared.refreshes {
                    true => seen.insert_or_refresh_many(hashes),
                    false => seen.insert_if_absent_many(hashes),
                };
                for ((result, line), hash) in results.into_iter().zip(lines).zip(hashes) {
                    match result {
                        Ok(new) => {
                            answers[*line as usize] = new;
                            if new && shared.records {
                                added.push(*hash);
                            }
                        }
                        Err(_) => all = false,
                    }
                }
                added
            });
        }
        all
    }

    /// Groups the hashes by part with a counting sort, which keeps lines of one part in order.
    fn sort(&mut self, seen: &Seen) {
        let Worker { hashes, asked, sorted, lines, ends, .. } = self;
        sorted.resize(hashes.len(), Prehashed(0));
        lines.resize(hashes.len(), 0);
        *ends = [0; PARTS + 1];
        for hash in &*hashes {
            ends[seen.part_of(hash, PARTS) + 1] += 1;
        }
        for part in 0..PARTS {
            ends[part + 1] += ends[part];
        }
        let mut at = *ends;
        for (&line, hash) in asked.iter().zip(&*hashes) {
            let at = &mut at[seen.part_of(hash, PARTS)];
            sorted[*at] = *hash;
            lines[*at] = line;
            *at += 1;
        }
    }
}
