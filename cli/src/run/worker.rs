//! A worker thread: asks the filter about the lines of one chunk after the other.

use crate::failure::Failure;
use crate::lines::chunk::{Chunk, Fault};
use crate::lines::input::Source;
use crate::lines::json;
use crate::lines::packing::Form;
use crate::lines::paragraphs::Paragraph;
use crate::lines::rules::{Field, Keys};
use crate::run::plan::Plan;
use crate::run::shared::Shared;
use crate::run::turns::PARTS;
use crate::state::seen::Seen;
use crossbeam_channel::{Receiver, Sender};
use koel::Prehashed;
use std::mem;

/// A worker and its buffers, which are reused from chunk to chunk.
pub struct Worker<'a> {
    shared: &'a Shared,
    keys: Keys,
    /// The hashes that the filter is asked about, and the numbers of their lines.
    hashes: Vec<Prehashed>,
    asked: Vec<u32>,
    /// The paragraphs of a chunk, if they are compared, in the place of lines.
    paragraphs: Vec<Paragraph>,
    recent: Recent,
    /// The number of the tick in which they were met.
    tick: u64,
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
            keys: Keys::new(shared.plan.rules, *shared.filter.hasher()),
            hashes: Vec::new(),
            asked: Vec::new(),
            paragraphs: Vec::new(),
            recent: Recent::new(),
            tick: 0,
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
        let Shared { plan, filter, .. } = self.shared;
        self.pass_time();
        let Worker { keys, hashes, asked, recent, paragraphs, .. } = self;
        hashes.clear();
        asked.clear();
        let adds = self.shared.adds();
        let mut counts = chunk.counts;
        (counts.lines, counts.bytes) = (chunk.lines() as u64, chunk.bytes());
        if let Some(Field::Paragraphs(_)) = plan.rules.field {
            paragraphs.clear();
            let mut at = 0;
            for line in chunk.iter() {
                keys.add_paragraphs(line, at, paragraphs);
                at += line.len();
            }
            (counts.records, counts.lines) = (counts.lines, paragraphs.len() as u64);
            for (number, paragraph) in paragraphs.iter().enumerate() {
                counts.not_urls += u64::from(!paragraph.is_expected);
                counts.without_field += u64::from(!paragraph.has_field);
                hashes.push(paragraph.hash);
                asked.push(number as u32);
            }
        } else {
            for (number, line) in chunk.iter().enumerate() {
                let key = keys.key(line);
                counts.not_urls += u64::from(!key.is_expected);
                counts.without_field += u64::from(!key.has_field);
                if !(adds.is_some() && recent.met(key.hash.0)) {
                    hashes.push(key.hash);
                    asked.push(number as u32);
                }
            }
        }
        keys.shrink();
        let answered = match (adds, self.shared.changes()) {
            (Some(seen), _) => self.add(seen, chunk.number, counts.lines as usize),
            (None, Some(seen)) => {
                let removed = seen.remove_many(hashes);
                let others = hashes.iter().zip(&removed).filter(|(_, removed)| !**removed);
                let others: Vec<_> = others.map(|(hash, _)| *hash).collect();
                counts.kept =
                    seen.contains_many(&others).into_iter().filter(|is| *is).count() as u64;
                Ok(removed)
            }
            (None, None) => filter.find(&self.hashes),
        };
        match answered {
            Ok(answers) => chunk.answers = answers,
            Err(failure) => return chunk.fault = Some(Fault::Failed(failure)),
        }
        counts.yes = chunk.answers.iter().filter(|answer| **answer).count() as u64;
        counts.selected = if plan.select { counts.yes } else { counts.lines - counts.yes };
        chunk.counts = counts;
        if !plan.writes() {
            return;
        }
        let mut done = Ok(());
        if let Some(path) = plan.annotate {
            done = annotate(chunk, plan, &path.names()[0]);
        } else if counts.records > 0 {
            self.keep_new_paragraphs(chunk);
        } else {
            chunk.sort_out(plan.select, plan.is_lossless);
        }
        if plan.folder.is_some() && chunk.form == Some(Form::Gzip) {
            let packed = chunk.packed.pack(&chunk.selected);
            done = done.and(packed.map_err(|error| Failure::of("cannot compress", &error)));
        }
        if let Err(failure) = done {
            chunk.fault = Some(Fault::Failed(failure));
        }
    }

    /// Selects the records of a chunk without the paragraphs that are not new, or not at all if none is.
    fn keep_new_paragraphs(&self, chunk: &mut Chunk) {
        let Chunk { text, ends, answers, selected, counts, .. } = chunk;
        let mut rest = self.paragraphs.iter().zip(&*answers).peekable();
        let mut start = 0;
        for end in ends.iter().map(|&end| end as usize) {
            let (before, mut is_kept) = (selected.len(), false);
            while let Some((Paragraph { range, .. }, new)) =
                rest.next_if(|it| it.0.range.start < end)
            {
                // What is before the first one, or after the last one, stays.
                selected.extend_from_slice(&text[start..range.start]);
                if *new {
                    selected.extend_from_slice(&text[range.clone()]);
                    is_kept = true;
                }
                start = range.end;
            }
            selected.extend_from_slice(&text[start..end]);
            start = end;
            if !is_kept {
                selected.truncate(before);
                counts.emptied += 1;
            }
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

    /// Adds all lines of the chunk of this number, part by part, in its turns, and returns which are new.
    fn add(&mut self, seen: &Seen, chunk: u64, all: usize) -> Result<Vec<bool>, Failure> {
        self.sort(seen);
        let Worker { shared, sorted, lines, ends, .. } = self;
        // Lines that the filter is not asked about are not new.
        let mut answers = vec![false; all];
        let refreshes = shared.plan.refreshes();
        let mut all = true;
        for part in 0..PARTS {
            let range = ends[part]..ends[part + 1];
            let (hashes, lines) = (&sorted[range.clone()], &lines[range]);
            shared.turns.visit(part, chunk, || {
                let mut added = Vec::new();
                let results = match refreshes {
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
        if all {
            return Ok(answers);
        }
        let advice = match seen.stats().max_bytes {
            Some(..usize::MAX) => "raise --max-memory",
            _ => "make more memory available",
        };
        Err(Failure::new(format_args!(
            "out of memory for the lines seen; use a higher --rate, or {advice}"
        )))
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

/// Selects all lines of a chunk, each with a field that tells whether it is repeated.
fn annotate(chunk: &mut Chunk, plan: &Plan, name: &str) -> Result<(), Failure> {
    let mut selected = mem::take(&mut chunk.selected);
    for (line, new) in chunk.iter().zip(&chunk.answers) {
        let record = plan.rules.bare(line);
        json::annotate(record, name, !new, &mut selected).map_err(|why| {
            let begin = String::from_utf8_lossy(&record[..record.len().min(60)]);
            let begin = begin.replace(char::is_control, " ");
            let input = plan.sources.get(chunk.source).map_or_else(String::new, Source::name);
            Failure::of(input, format_args!("{why}: {begin}"))
        })?;
        selected.extend_from_slice(&line[record.len()..]);
    }
    (chunk.selected, chunk.counts.selected) = (selected, chunk.counts.lines);
    Ok(())
}

/// The lines that a worker has met lately, by their hashes.
///
/// Real input repeats itself: most lines of a log were there a moment ago. Such a line need not be added again,
/// wherever the filter is. A worker processes its chunks in the order of the input, so a line that it has met before is not the
/// first of its kind.
struct Recent {
    /// The hash that was met last, of those that belong into each slot.
    slots: Box<[u64]>,
}

/// The number of bits of a hash that choose its slot: 64 KiB stay in the cache of a core.
const BITS: u32 = 13;

impl Recent {
    fn new() -> Self {
        // Each slot begins with a hash that does not belong into it.
        Recent { slots: (0..1 << BITS).map(|slot: u64| !(slot << (64 - BITS))).collect() }
    }

    /// Whether this hash was met lately. It is met now.
    #[inline]
    fn met(&mut self, hash: u64) -> bool {
        let slot = &mut self.slots[(hash >> (64 - BITS)) as usize];
        std::mem::replace(slot, hash) == hash
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_met_once_it_has_come() {
        let mut recent = Recent::new();
        let hashes = (0..1 << 16).map(|n: u64| n << 48);
        for hash in hashes.clone().flat_map(|hash| [hash, !hash, hash | 1]) {
            assert!(!recent.met(hash), "{hash:x}");
            assert!(recent.met(hash), "{hash:x}");
        }
        assert_eq!(hashes.filter(|hash| recent.met(*hash)).count(), 0);
    }
}
