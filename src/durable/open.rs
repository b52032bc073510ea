//! From a state and its journals to a filter.

use crate::durable::claim::Claim;
use crate::durable::error::{DurableError, DurableErrorKind};
use crate::durable::filter::DurableFilter;
use crate::durable::journals::{Journaled, Journals, journal_after, save_state};
use crate::durable::journals::{Shared, SyncPolicy};
use crate::durable::keeper::Keeper;
use crate::error::{BuildError, Full};
use crate::filter::ConcurrentCuckooFilter;
use crate::filter::builder::Builder;
use crate::journal::file::header::{Header, StateId};
use crate::journal::file::names::{journals_of, number_of};
use crate::journal::file::read::Reader;
use crate::journal::file::write::Writer;
use crate::journal::streams::{Change, STREAMS, Sink, Streams};
use crate::layout::geometry::Mixed;
use crate::snapshot::error::SnapshotErrorKind;
use crate::snapshot::format::End;
use crate::snapshot::load::SnapshotInfo;
use crate::snapshot::replace::sync_folder_of;
use crate::stable_hash::PersistentHasher;
use crate::sync::Mutex;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::ScopedJoinHandle;
use std::time::Duration;

impl<S: PersistentHasher + Clone + Send + Sync + 'static> DurableFilter<S> {
    /// Opens the filter with this state, and syncs its changes every second. If there is no state, builds a filter, and
    /// saves it.
    ///
    /// # Errors
    ///
    /// Returns an error if another process has the state open, or if the state or a journal cannot be read or written.
    pub fn open(path: impl AsRef<Path>, builder: Builder<S>) -> Result<Self, DurableError> {
        Self::open_with(path, SyncPolicy::default(), || builder.build())
    }

    /// The same with another [`SyncPolicy`], and with the filter that `make` returns if there is no state.
    ///
    /// # Errors
    ///
    /// Returns an error in the same cases as [`open`](Self::open), and the error of `make`.
    pub fn open_with(
        path: impl AsRef<Path>,
        policy: SyncPolicy,
        make: impl FnOnce() -> Result<ConcurrentCuckooFilter<S>, BuildError>,
    ) -> Result<Self, DurableError> {
        let claim = Claim::lay(path.as_ref(), Duration::ZERO)?;
        // The one name of the file, whatever becomes of the folder of this process.
        let path = claim.claimed();
        let path = &path;
        let failed = |doing| DurableError::journal(doing, path);
        let (mut found, mut without_header) = (Vec::new(), Vec::new());
        for journal in journals_of(path).map_err(failed("cannot list its journals"))? {
            let reader = Reader::open(&journal)
                .map_err(DurableError::journal("cannot read it", &journal))?;
            match reader {
                Some((header, reader)) => found.push((header, journal, reader)),
                None => without_header.push(journal),
            }
        }
        sort_journals(&mut found).map_err(DurableError::copied_journal)?;
        // A process has created it, and ended before it wrote the header.
        for journal in &without_header {
            fs::remove_file(journal).map_err(DurableError::journal("cannot remove it", journal))?;
        }
        let filter = match ConcurrentCuckooFilter::load(path) {
            Ok(filter) => filter,
            Err(error) if error.kind() == SnapshotErrorKind::NotFound => {
                if let Some((_, journal, _)) = found.iter().find(|(.., it)| !it.is_empty()) {
                    return Err(DurableError::other_state(journal));
                }
                let filter = make()?;
                save_state(&filter, path)?;
                filter
            }
            Err(error) => return Err(error.into()),
        };
        let End { sums, bytes, .. } = SnapshotInfo::end(path)?;
        let state = StateId { sums, bytes };
        // A journal that was renamed has another one in its header.
        let number = found.iter().map(|(header, path, _)| header.number.max(number_of(path))).max();
        let number = number.unwrap_or(0);
        let (chain, others) = chained(found, state);
        if chain.is_empty()
            && let Some((_, journal, _)) = others.iter().find(|(.., it)| !it.is_empty())
        {
            return Err(DurableError::other_state(journal));
        }
        // What is replayed is answered again, so it has to survive a power failure as far as anything that follows.
        for (_, journal, reader) in &chain {
            reader.sync().map_err(DurableError::journal("cannot sync it", journal))?;
        }
        sync_folder_of(path).map_err(failed("cannot sync its folder"))?;
        // Of before the state was replaced.
        let first = chain.first().map_or(u64::MAX, |(header, ..)| header.number);
        for (header, journal, reader) in &others {
            if header.number > first && !reader.is_empty() {
                return Err(DurableError::other_state(journal));
            }
            // Beside one of the state, it is known for what it is.
            if let Err(error) = fs::remove_file(journal)
                && chain.is_empty()
            {
                return Err(DurableError::journal("cannot remove it", journal)(error));
            }
        }
        let (counts, lost) = replay(&filter, &chain)?;
        // Without changes, there is nothing to follow, and no need for a checkpoint.
        let is_blank = chain.iter().all(|(.., reader)| reader.is_empty());
        let is_first = chain.is_empty() || (is_blank && others.is_empty());
        let previous = chain.last().map_or(0, |(header, ..)| header.key);
        let left = |(_, path, reader): Found| Journaled::Left { path, bytes: reader.bytes() };
        let mut journals: Vec<Journaled> = chain.into_iter().map(left).collect();
        let journal = journal_after(path, previous, number.saturating_add(1))
            .map_err(failed("cannot create a journal"))?;
        if is_first {
            journal.set_state(state).map_err(failed("cannot write a journal"))?;
            journals.drain(..).for_each(|it| drop(fs::remove_file(it.path())));
        }
        let streams = Streams::new(|stream| {
            let mut writer = Writer::new(&journal, stream);
            if !is_first {
                writer.follow(counts[stream]);
            }
            writer
        });
        journals.push(Journaled::Written(journal));
        let shared = Arc::new(Shared { filter, streams });
        let keeper = Keeper::new(Journals::new(path.clone(), journals), policy, claim, &shared);
        let keeper = keeper.map_err(failed("cannot start a thread"))?;
        let forgets = shared.filter.remembers().is_some();
        Ok(DurableFilter { shared, keeper, forgets, lost })
    }
}

/// A journal that was found, and what else is known of it.
type Found = (Header, PathBuf, Reader);

/// Sorts journals by their numbers. Of several copies of one journal, the one with changes comes last, so that
/// [`chained`] replays it. If two copies have changes, neither may be left out, so this returns their paths.
fn sort_journals(found: &mut [Found]) -> Result<(), [PathBuf; 2]> {
    found.sort_by_key(|(header, _, journal)| (header.number, header.key, !journal.is_empty()));
    for pair in found.windows(2) {
        let [(one, one_path, first), (other, other_path, second)] = pair else { continue };
        if one.key == other.key && !first.is_empty() && !second.is_empty() {
            return Err([one_path.clone(), other_path.clone()]);
        }
    }
    Ok(())
}

/// Returns the journals that are to be replayed on a state, in their order, and the others. These are left over from
/// before the state was replaced, or of another state.
fn chained(found: Vec<Found>, state: StateId) -> (Vec<Found>, Vec<Found>) {
    let (mut chain, mut others): (Vec<Found>, Vec<Found>) = Default::default();
    for next in found {
        if let Some(last) = chain.last_mut().filter(|last| last.0.key == next.0.key) {
            others.push(std::mem::replace(last, next));
        } else if next.0.state == state {
            // What came before led to the same state.
            others.append(&mut chain);
            chain.push(next);
        } else if chain.last().is_some_and(|(last, ..)| next.0.previous == last.key) {
            chain.push(next);
        } else {
            others.push(next);
        }
    }
    (chain, others)
}

/// Makes the changes of all journals again. Returns how many records of each stream the last one has, and how many are
/// lost behind damage.
fn replay<S: PersistentHasher + Sync>(
    filter: &ConcurrentCuckooFilter<S>,
    chain: &[Found],
) -> Result<(Vec<u64>, u64), DurableError> {
    // In another order, the same items may take a shard more.
    let limit = filter.max_bytes();
    filter.set_max_bytes(usize::MAX);
    let replayed = replay_all(filter, chain);
    filter.set_max_bytes(limit);
    replayed
}

fn replay_all<S: PersistentHasher + Sync>(
    filter: &ConcurrentCuckooFilter<S>,
    chain: &[Found],
) -> Result<(Vec<u64>, u64), DurableError> {
    // All that comes before the first journal is in the state.
    let all = Progress { place: usize::MAX, ..Progress::default() };
    let mut streams = vec![all; STREAMS];
    let mut lost = 0;
    for (_, path, reader) in chain {
        streams.iter_mut().for_each(Progress::go_on);
        let replayed = replay_one(filter, reader, &mut streams)
            .and_then(|()| reader.lost(streams.iter().map(|progress| progress.place)));
        lost += replayed.map_err(DurableError::journal("cannot read it", path))?;
    }
    match streams.iter().find_map(|stream| stream.refused.first()) {
        None => Ok((streams.iter().map(|stream| stream.place as u64).collect(), lost)),
        Some((_, full)) => {
            let text = format!(
                "the filter was so full that not all of its items fit when the changes in its journals are made \
                 again ({full}); load the state alone, which is as old as the last checkpoint, or build a larger \
                 filter"
            );
            Err(DurableError::new(DurableErrorKind::TooFull, text))
        }
    }
}

/// How far a stream was replayed.
#[derive(Clone, Default)]
struct Progress {
    /// The number of its records in this journal.
    place: usize,
    /// The same in the journal before.
    before: usize,
    /// Whether records of the journal before are missing that those of this one follow.
    is_broken: bool,
    /// The items for which there was no room yet.
    refused: Vec<(Mixed, Full)>,
}

impl Progress {
    /// Goes on in the next journal. Its process knew where this one ends; if it did not, because it wrote both, more is
    /// missing for it.
    fn go_on(&mut self) {
        (self.before, self.place, self.is_broken) = (self.place, 0, false);
    }
}

fn replay_one<S: PersistentHasher + Sync>(
    filter: &ConcurrentCuckooFilter<S>,
    reader: &Reader,
    streams: &mut [Progress],
) -> io::Result<()> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(STREAMS);
    loop {
        // Each stream up to its next change of all items, or to its end.
        let next = Mutex::new(streams.iter_mut().enumerate());
        let run = || -> io::Result<Option<(Change, Mixed)>> {
            let mut of_all = None;
            loop {
                let stream = next.lock().next();
                let Some((number, progress)) = stream else { return Ok(of_all) };
                of_all = replay_stream(filter, reader, number, progress)?.or(of_all);
            }
        };
        let runs: Vec<io::Result<_>> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..threads).map(|_| scope.spawn(run)).collect();
            let join = |thread: ScopedJoinHandle<'_, _>| {
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            threads.into_iter().map(join).collect()
        });
        let mut of_all = None;
        for run in runs {
            of_all = run?.or(of_all);
        }
        // By now, other streams have removed what they had of items like these.
        for Progress { refused, .. } in &mut *streams {
            refused.retain(|(hash, _)| filter.backend().insert_exhaustively(*hash).is_err());
        }
        match of_all {
            None => return Ok(()),
            Some((Change::Ticked, _)) => filter.tick(),
            Some((Change::TickedTo, number)) => {
                filter.begin_tick_to(number.0);
                while !filter.tick_in_parts(usize::MAX) {}
            }
            Some(_) => {
                filter.clear();
                streams.iter_mut().for_each(|stream| stream.refused.clear());
            }
        }
    }
}

/// Makes the changes of a stream again, up to the next change of all items, which it returns.
fn replay_stream<S: PersistentHasher>(
    filter: &ConcurrentCuckooFilter<S>,
    reader: &Reader,
    stream: usize,
    progress: &mut Progress,
) -> io::Result<Option<(Change, Mixed)>> {
    let backend = filter.backend();
    let Progress { place, before, is_broken, refused } = progress;
    let mut change_of_all = None;
    if *is_broken {
        return Ok(None);
    }
    *place = reader.changes(stream, *place, |hash, change| {
        match change {
            Change::Follows if hash.0 > *before as u64 => {
                *is_broken = true;
                return false;
            }
            Change::Follows => {}
            Change::Added => {
                if let Err(full) = backend.insert(hash) {
                    refused.push((hash, full));
                }
            }
            Change::Removed => {
                // The oldest copy goes, as it did before. If it is still to be added, there is no other.
                if !backend.remove(hash)
                    && let Some(at) = refused.iter().position(|(other, _)| other.0 == hash.0)
                {
                    let _ = refused.swap_remove(at);
                }
            }
            Change::Refreshed => drop(backend.refresh(hash)),
            Change::Ticked | Change::TickedTo | Change::Cleared => {
                change_of_all = Some((change, hash));
                return false;
            }
        }
        true
    })?;
    Ok(change_of_all)
}
