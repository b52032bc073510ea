//! From a state and its journals to a filter: which journals are replayed, as [`checkpoint`](super::checkpoint) says,
//! and how.

use crate::durable::checkpoint::{Chain, Journals, journal_after, save_state};
use crate::durable::claim::Claim;
use crate::durable::error::{DurableError, DurableErrorKind};
use crate::durable::filter::DurableFilter;
use crate::durable::keeper::{Journaled, SyncPolicy, Threads};
use crate::durable::mismatch::check;
use crate::error::{BuildError, Full};
use crate::filter::ConcurrentCuckooFilter;
use crate::filter::builder::{Builder, Settings};
use crate::hash::PersistentHasher;
use crate::journal::format::StateId;
use crate::journal::read::{Cursor, Reader};
use crate::journal::streams::{Change, STREAMS, Sink, Streams};
use crate::journal::write::Writer;
use crate::layout::geometry::Mixed;
use crate::snapshot::error::SnapshotErrorKind;
use crate::snapshot::format::End;
use crate::snapshot::journals::journals_of;
use crate::snapshot::load::SnapshotInfo;
use crate::snapshot::replace::sync_folder_of;
use crate::sync::Mutex;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// The options of [`DurableFilter::open_with`].
///
/// ```
/// use koel::{DurableOptions, SyncPolicy};
/// use std::time::Duration;
///
/// let careful = DurableOptions::default().sync(SyncPolicy::Each);
/// let impatient = DurableOptions::default().wait(Duration::ZERO);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "options do nothing until a filter is opened with them"]
pub struct DurableOptions {
    policy: SyncPolicy,
    wait: Duration,
}

impl Default for DurableOptions {
    /// Syncs changes every second, and waits five seconds for another process.
    fn default() -> Self {
        DurableOptions { policy: SyncPolicy::default(), wait: WAIT }
    }
}

impl DurableOptions {
    /// Sets when changes are made to survive a power failure.
    pub fn sync(self, policy: SyncPolicy) -> Self {
        DurableOptions { policy, ..self }
    }

    /// Sets the longest time to wait for another process that has the state open.
    ///
    /// A process that was killed has its state open until the system has taken back all of its memory, so a program
    /// that is started again at once has to wait for it. While it waits, it cannot tell whether the other process ends
    /// or goes on: the process may be one of another container. So the wait is short by default, because it delays the
    /// error if the other process goes on, or if this process has the state open itself. With [`Duration::ZERO`], that
    /// error comes at once.
    pub fn wait(self, most: Duration) -> Self {
        DurableOptions { wait: most, ..self }
    }
}

/// The longest wait for another process by default: longer than the system takes to end one with tens of gigabytes.
const WAIT: Duration = Duration::from_secs(5);

impl<S: PersistentHasher + Clone + Send + Sync + 'static> DurableFilter<S> {
    /// Opens the filter with this state, syncs its changes every second, and waits up to five seconds for another
    /// process that has the state open. If there is no state, builds a filter, and saves it.
    ///
    /// If there is a state, its filter keeps what it was made with. What the builder has set, and the filter does not
    /// have, is then an error. What was not set does not matter.
    ///
    /// * [`growing`](Builder::growing) and [`expected_growth`](Builder::expected_growth) are refused if the filter has
    ///   a fixed size, or was made for less growth.
    /// * [`remembers`](Builder::remembers) is refused if the filter remembers items for another number of ticks, or for
    ///   ever.
    /// * [`forgets_after`](Builder::forgets_after) is refused if the filter forgets after another time, never, or not
    ///   by the system's clock.
    /// * [`false_positive_rate`](Builder::false_positive_rate) is refused if the filter was made for a higher rate.
    /// * [`capacity`](Builder::capacity) is refused if the filter has a fixed size, and a smaller capacity.
    /// * [`max_bytes`](Builder::max_bytes) replaces the limit of a filter that grows, as
    ///   [`set_max_bytes`](Self::set_max_bytes) does. It is refused if the filter has a fixed size.
    /// * [`hasher`](Builder::hasher) has to be of the same type. The filter keeps its own keys.
    ///
    /// # Errors
    ///
    /// Returns an error if another process has the state open all that time, if the builder asks for another filter
    /// ([`OtherSettings`](DurableErrorKind::OtherSettings)), or if the state or a journal cannot be read or written.
    ///
    /// ```
    /// use koel::{ConcurrentCuckooFilter, DurableErrorKind, DurableFilter, StableHash};
    ///
    /// # let folder = std::env::temp_dir().join(format!("koel-other-{}", std::process::id()));
    /// # std::fs::create_dir_all(&folder)?;
    /// # let path = folder.join("seen.koel");
    /// let builder = ConcurrentCuckooFilter::builder().capacity(1_000).hasher(StableHash::random());
    /// DurableFilter::open(&path, builder.clone())?.close()?;
    ///
    /// let error = DurableFilter::open(&path, builder.growing()).unwrap_err();
    /// assert_eq!(error.kind(), DurableErrorKind::OtherSettings);
    /// # std::fs::remove_dir_all(&folder)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn open(path: impl AsRef<Path>, builder: Builder<S>) -> Result<Self, DurableError> {
        Self::open_with(path, DurableOptions::default(), builder)
    }

    /// The same with other [`DurableOptions`].
    ///
    /// # Errors
    ///
    /// Returns an error in the same cases as [`open`](Self::open).
    ///
    /// ```
    /// use koel::{ConcurrentCuckooFilter, DurableFilter, DurableOptions, StableHash, SyncPolicy};
    ///
    /// # let folder = std::env::temp_dir().join(format!("koel-options-{}", std::process::id()));
    /// # std::fs::create_dir_all(&folder)?;
    /// # let path = folder.join("seen.koel");
    /// let builder = ConcurrentCuckooFilter::builder().capacity(1_000).hasher(StableHash::random());
    /// let options = DurableOptions::default().sync(SyncPolicy::Each);
    /// let paid = DurableFilter::open_with(&path, options, builder)?;
    /// assert!(paid.insert_if_absent("invoice 1")?); // a power failure does not take it
    /// # drop(paid);
    /// # std::fs::remove_dir_all(&folder)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn open_with(
        path: impl AsRef<Path>,
        options: DurableOptions,
        builder: Builder<S>,
    ) -> Result<Self, DurableError> {
        let settings = builder.settings;
        Self::open_as(path.as_ref(), options, settings, || builder.build())
    }

    /// The same with the filter that `make` returns if there is no state. Nothing contradicts a state.
    ///
    /// # Errors
    ///
    /// Returns an error in the same cases as [`open`](Self::open), and the error of `make`.
    #[doc(hidden)]
    pub fn open_or_make(
        path: impl AsRef<Path>,
        options: DurableOptions,
        make: impl FnOnce() -> Result<ConcurrentCuckooFilter<S>, BuildError>,
    ) -> Result<Self, DurableError> {
        Self::open_as(path.as_ref(), options, Settings::default(), make)
    }

    fn open_as(
        path: &Path,
        options: DurableOptions,
        settings: Settings,
        make: impl FnOnce() -> Result<ConcurrentCuckooFilter<S>, BuildError>,
    ) -> Result<Self, DurableError> {
        let claim = Claim::lay(path, options.wait).map_err(DurableError::of_claim)?;
        // The real path, which stays right if this process changes its folder.
        let path = claim.claimed();
        let failed = |doing| DurableError::journal(doing, &path);
        let found = all_journals(&path)?;
        let number = found.iter().map(number_of).max().unwrap_or(0);
        let filter = match ConcurrentCuckooFilter::load_state(&path) {
            Err(error) if error.kind() == SnapshotErrorKind::NotFound => {
                other_state(&found)?;
                let filter = make()?;
                save_state(&filter, &path)?;
                filter
            }
            loaded => {
                let filter = loaded?;
                let checked = check(&settings, &filter.backend().layout(), filter.window());
                checked.map_err(|error| DurableError::other_settings(error).of_file(&path))?;
                if let Some(bytes) = settings.max_bytes {
                    filter.set_max_bytes(bytes);
                }
                filter
            }
        };
        let End { sums, bytes, .. } = SnapshotInfo::end(&path)?;
        let state = StateId { sums, bytes };
        let (chain, others) = chained(found, state);
        // Replayed changes may be seen and built upon, so they have to survive a power failure. (After a sync that
        // failed in another process, this may be in vain: the guide says so.)
        for journal in &chain {
            journal.sync().map_err(DurableError::journal("cannot sync it", &journal.path))?;
        }
        sync_folder_of(&path).map_err(failed("cannot sync its folder"))?;
        // The others have to be of earlier states.
        let first = chain.first().map(|found| found.header.number);
        let is_later = |found: &&Reader| first.is_none_or(|first| found.header.number > first);
        other_state(others.iter().filter(is_later))?;
        let removed = others.iter().try_for_each(|found| remove(&found.path));
        if chain.is_empty() {
            // In the chain of a later state, such a journal would be known as an older one. Alone, it would not.
            removed?;
        }
        let (counts, lost) = replay(&filter, &chain)?;
        // Without changes in older journals, the new one is the first of the state.
        let is_first =
            chain.is_empty() || (others.is_empty() && chain.iter().all(Reader::is_empty));
        let previous = chain.last().map_or(0, |found| found.header.key);
        let journal = journal_after(&path, previous, number.saturating_add(1))
            .map_err(failed("cannot create a journal"))?;
        let mut left = Vec::new();
        if is_first {
            journal.set_state(state).map_err(failed("cannot write a journal"))?;
            chain.iter().for_each(|found| drop(fs::remove_file(&found.path)));
        } else {
            left.extend(chain.into_iter().map(|found| (found.path.clone(), found.bytes())));
        }
        let streams = Streams::new(|stream| {
            let mut writer = Writer::new(&journal, stream);
            if !is_first {
                writer.follow(counts[stream]);
            }
            writer
        });
        let mark = claim.mark().map_err(failed("cannot inspect its lock file"))?;
        let journals = Journals::new(path.clone(), mark, Chain { left, written: vec![journal] });
        let forgets = filter.remembers().is_some();
        let shared = Journaled::new(filter, streams, journals, options.policy);
        let shared = Arc::new(shared.map_err(failed("cannot tell its forks"))?);
        let (threads, claim) = (Threads::default(), Mutex::new(Some(claim)));
        let mut opened = DurableFilter { shared, threads, claim, forgets, lost };
        opened.threads.start(&opened.shared).map_err(failed("cannot start a thread"))?;
        // What is inserted now belongs to the present time.
        opened.keep_up()?;
        Ok(opened)
    }
}

/// Opens all journals of a state, and sorts them by their numbers. Removes those without a header, whose process
/// ended while it created them.
///
/// Of several copies of one journal, the one with changes comes last, so that [`chained`] replays it. If two copies
/// have changes, neither may be left out, so this is an error.
fn all_journals(state: &Path) -> Result<Vec<Reader>, DurableError> {
    let mut found = Vec::new();
    let mut without_header = Vec::new();
    let journals = journals_of(state);
    for path in journals.map_err(DurableError::journal("cannot list its journals", state))? {
        match Reader::open(&path).map_err(DurableError::journal("cannot read it", &path))? {
            Some(journal) => found.push(journal),
            None => without_header.push(path),
        }
    }
    found.sort_by_key(|journal| (journal.header.number, journal.header.key, !journal.is_empty()));
    for pair in found.windows(2) {
        let [one, other] = pair else { continue };
        if one.header.key == other.header.key && !one.is_empty() {
            return Err(DurableError::copied_journal(&one.path, &other.path));
        }
    }
    without_header.iter().try_for_each(|path| remove(path))?;
    Ok(found)
}

fn remove(journal: &Path) -> Result<(), DurableError> {
    fs::remove_file(journal).map_err(DurableError::journal("cannot remove it", journal))
}

/// Returns the number of a journal: the one in its header, or in its name if that is higher, because it was renamed.
fn number_of(journal: &Reader) -> u64 {
    let in_name = journal.path.extension().and_then(OsStr::to_str);
    let in_name = in_name.and_then(|number| number.parse().ok()).unwrap_or(0);
    journal.header.number.max(in_name)
}

/// Returns an error if one of these journals has changes, because they are of a state that is not there.
fn other_state<'a>(journals: impl IntoIterator<Item = &'a Reader>) -> Result<(), DurableError> {
    match journals.into_iter().find(|found| !found.is_empty()) {
        Some(found) => Err(DurableError::other_state(&found.path)),
        None => Ok(()),
    }
}

/// Returns the [chain](super::checkpoint) of a state, and all other journals.
fn chained(found: Vec<Reader>, state: StateId) -> (Vec<Reader>, Vec<Reader>) {
    let (mut chain, mut others): (Vec<Reader>, Vec<Reader>) = Default::default();
    for next in found {
        match chain.last_mut() {
            // A copy.
            Some(last) if last.header.key == next.header.key => {
                others.push(std::mem::replace(last, next));
            }
            _ if next.header.state == state => {
                others.append(&mut chain);
                chain.push(next);
            }
            Some(last) if next.header.previous == last.header.key => chain.push(next),
            _ => others.push(next),
        }
    }
    (chain, others)
}

/// Replays all journals of a chain. Returns the number of records of each stream in the last one, and the number of
/// changes that are lost behind damage.
fn replay<S: PersistentHasher + Sync>(
    filter: &ConcurrentCuckooFilter<S>,
    chain: &[Reader],
) -> Result<(Vec<u64>, u64), DurableError> {
    // In another order, the same items may take one shard more.
    let limit = filter.max_bytes();
    filter.set_max_bytes(usize::MAX);
    // Everything before the first journal is in the state.
    let all = Cursor { changes: u64::MAX, ..Cursor::default() };
    let mut streams = vec![Replayed { cursor: all, ..Replayed::default() }; STREAMS];
    let mut lost = 0;
    for journal in chain {
        for stream in &mut streams {
            (stream.before, stream.cursor) = (stream.cursor.changes, Cursor::default());
            stream.is_broken = false;
        }
        let replayed = replay_one(filter, journal, &mut streams)
            .and_then(|()| journal.lost(streams.iter().map(|stream| stream.cursor)));
        lost += replayed.map_err(DurableError::journal("cannot read it", &journal.path))?;
    }
    if let Some((_, full)) = streams.iter().find_map(|stream| stream.refused.first()) {
        let text = format!(
            "the filter was so full that not all of its items fit when the changes in its journals are made \
             again ({full}); load the state alone, with `SnapshotFile`, which is as old as the last checkpoint, or \
             build a larger filter"
        );
        return Err(DurableError::new(DurableErrorKind::TooFull, text));
    }
    filter.set_max_bytes(limit);
    Ok((streams.iter().map(|stream| stream.cursor.changes).collect(), lost))
}

/// The progress of the replay of a stream.
#[derive(Clone, Default)]
struct Replayed {
    /// The end of its replayed changes in this journal.
    cursor: Cursor,
    /// The number of changes that were replayed of the journal before.
    before: u64,
    /// Whether the stream follows more changes than the journal before it has. Then nothing more of it is replayed from
    /// this journal. (The stream may go on in the next journal, which says how much of this one that follows.)
    is_broken: bool,
    /// The items for which there was no room yet.
    refused: Vec<(Mixed, Full)>,
}

/// Replays a journal: all streams at once, each up to its next change of all items. That is in all streams, so then it
/// is made, and they go on.
fn replay_one<S: PersistentHasher + Sync>(
    filter: &ConcurrentCuckooFilter<S>,
    reader: &Reader,
    streams: &mut [Replayed],
) -> io::Result<()> {
    let threads = thread::available_parallelism().map_or(1, usize::from).min(STREAMS);
    loop {
        let of_all = Mutex::new(Ok(None));
        let next = Mutex::new(streams.iter_mut().enumerate());
        let run = || loop {
            let stream = next.lock().next();
            let Some((number, replayed)) = stream else { return };
            let change = replay_stream(filter, reader, number, replayed);
            let mut of_all = of_all.lock();
            if of_all.is_ok() && !matches!(change, Ok(None)) {
                *of_all = change;
            }
        };
        thread::scope(|scope| {
            // If the system refuses another thread, fewer threads do the work.
            let others = (1..threads).map(|_| thread::Builder::new().spawn_scoped(scope, run));
            let _ = others.take_while(Result::is_ok).count();
            run();
        });
        // By now, other streams have removed their items that were in the way.
        for Replayed { refused, .. } in &mut *streams {
            refused.retain(|(hash, _)| !filter.backend().insert_exhaustively(*hash));
        }
        let of_all = std::mem::replace(&mut *of_all.lock(), Ok(None));
        match of_all? {
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

/// Replays a stream up to its next change of all items, which it returns.
fn replay_stream<S: PersistentHasher>(
    filter: &ConcurrentCuckooFilter<S>,
    reader: &Reader,
    number: usize,
    stream: &mut Replayed,
) -> io::Result<Option<(Change, Mixed)>> {
    let backend = filter.backend();
    let Replayed { cursor, before, is_broken, refused } = stream;
    let mut change_of_all = None;
    if *is_broken {
        return Ok(None);
    }
    reader.changes(number, cursor, |hash, change| {
        match change {
            Change::Follows => *is_broken = hash.0 > *before,
            Change::Added => {
                if let Err(full) = backend.insert(hash) {
                    refused.push((hash, full));
                }
            }
            Change::Removed => {
                // The oldest copy goes, as it did before. An item that was refused has no copy.
                if !backend.remove(hash)
                    && let Some(at) = refused.iter().position(|(other, _)| other.0 == hash.0)
                {
                    let _ = refused.swap_remove(at);
                }
            }
            Change::Refreshed => drop(backend.refresh(hash)),
            Change::Ticked | Change::TickedTo | Change::Cleared => {
                change_of_all = Some((change, hash));
            }
        }
        change_of_all.is_none() && !*is_broken
    })?;
    Ok(change_of_all)
}
