//! From a state and its journal to a filter: which journal is replayed, as [`checkpoint`](super::checkpoint) says, and
//! how.

use crate::backend::Backend;
use crate::disk::claim::Claim;
use crate::disk::replace::{Replacement, if_there, sync_folder_of};
use crate::durable::checkpoint::{Journals, TakenIn, create_journal, left, save_state};
use crate::durable::error::{DurableError, DurableErrorKind};
use crate::durable::filter::DurableFilter;
use crate::durable::keeper::{Journaled, Stored, SyncPolicy, Threads};
use crate::durable::mismatch::check;
use crate::error::{BuildError, Full, repeated};
use crate::filter::ConcurrentCuckooFilter;
use crate::filter::builder::{Builder, Settings};
use crate::hash::{HashedBy, PersistentHasher};
use crate::journal::format::Header;
use crate::journal::reader::Reader;
use crate::journal::streams::{Change, STREAMS, Streams};
use crate::journal::writer::Writer;
use crate::layout::geometry::Mixed;
use crate::snapshot::header::Part;
use crate::snapshot::journals::journals_of;
use crate::snapshot::load::SnapshotInfo;
use crate::snapshot::{SnapshotError, SnapshotErrorKind};
use crate::sync::Mutex;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
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
    /// that is started again at once has to wait. The wait also delays the error if the other process goes on, or if
    /// this process has the state open itself. With [`Duration::ZERO`], the error comes at once.
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
    /// If there is a state, its filter keeps what it was made with. What was not set does not matter. What was set is an
    /// error if the filter does not have it:
    ///
    /// | setting | refused if the filter |
    /// |---|---|
    /// | [`growing`](Builder::growing), [`expected_growth`](Builder::expected_growth) | has a fixed size, or was made for less growth |
    /// | [`remembers`](Builder::remembers) | remembers items for another number of ticks, or for ever |
    /// | [`forgets_after`](Builder::forgets_after) | forgets after another time, never, or not by the system's clock |
    /// | [`false_positive_rate`](Builder::false_positive_rate) | was made for a higher rate |
    /// | [`capacity`](Builder::capacity) | has a fixed size, and a smaller capacity |
    /// | [`max_bytes`](Builder::max_bytes) | has a fixed size; otherwise, this [replaces the limit](Self::set_max_bytes) |
    /// | [`hasher`](Builder::hasher) | has a hasher of another type; it keeps its own keys |
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

    /// As [`open`](Self::open), with other [`DurableOptions`].
    pub fn open_with(
        path: impl AsRef<Path>,
        options: DurableOptions,
        builder: Builder<S>,
    ) -> Result<Self, DurableError> {
        let settings = builder.settings;
        Self::open_as(path.as_ref(), options, settings, || builder.build())
    }

    /// Opens whatever filter a state has, or else the filter that `make` returns. The caller compares what was opened
    /// with what it asks for.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open), and the error of `make`.
    ///
    /// ```
    /// use koel::{ConcurrentCuckooFilter, DurableFilter, DurableOptions, StableHash};
    ///
    /// # let folder = std::env::temp_dir().join(format!("koel-make-{}", std::process::id()));
    /// # std::fs::create_dir_all(&folder)?;
    /// let builder = ConcurrentCuckooFilter::builder().hasher(StableHash::random());
    /// let make = || builder.capacity(1_000).build();
    /// let seen = DurableFilter::open_or_make(folder.join("seen.koel"), DurableOptions::default(), make)?;
    /// assert!(seen.is_empty());
    /// # drop(seen);
    /// # std::fs::remove_dir_all(&folder)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
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
        let found = Found::beside(&path)?;
        let filter = match ConcurrentCuckooFilter::load_state(&path) {
            Err(error) if error.kind() == SnapshotErrorKind::NotFound => {
                found.journals.iter().try_for_each(is_of_no_state)?;
                let filter = make()?;
                save_state(filter.backend(), &filter.hashed_by(), &path, Part::state())?;
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
        let (hasher, filter) = (filter.hashed_by(), Arc::new(filter));
        let taken = take_in(filter.backend(), &hasher, &path, found)?;
        let lost = taken.lost;
        let streams = Streams::new(|stream| Writer::new(&taken.journal, stream))
            .map_err(SnapshotError::from)?;
        let mark = claim.mark().map_err(failed("cannot inspect its lock file"))?;
        let journals = Journals::new(path.clone(), mark, taken);
        let stored = Arc::clone(&filter) as Arc<dyn Stored>;
        let shared = Journaled::new(stored, hasher, streams, journals, options.policy);
        let shared = Arc::new(shared.map_err(failed("cannot tell its forks"))?);
        let forgets = filter.remembers().is_some();
        let threads = Threads::default();
        let mut opened = DurableFilter { filter, shared, threads, _claim: claim, forgets, lost };
        opened.threads.start(&opened.shared).map_err(failed("cannot start a thread"))?;
        // What is inserted now belongs to the present time.
        opened.keep_up()?;
        Ok(opened)
    }
}

/// The journals beside a state.
#[derive(Default)]
struct Found {
    journals: Vec<Reader>,
    /// Those without a header, whose process ended while it created them.
    blank: Vec<PathBuf>,
}

impl Found {
    fn beside(state: &Path) -> Result<Self, DurableError> {
        let mut found = Found::default();
        let journals = journals_of(state);
        for path in journals.map_err(DurableError::journal("cannot list its journals", state))? {
            match Reader::open(&path).map_err(DurableError::journal("cannot read it", &path))? {
                Some(journal) => found.journals.push(journal),
                None => found.blank.push(path),
            }
        }
        Ok(found)
    }
}

fn remove(journal: &Path) -> Result<(), DurableError> {
    let removed = if_there(fs::remove_file(journal));
    removed.map(drop).map_err(DurableError::journal("cannot remove it", journal))
}

/// Fails if this journal has changes, because they are of a state that is not there.
fn is_of_no_state(journal: &Reader) -> Result<(), DurableError> {
    if journal.is_empty() { Ok(()) } else { Err(DurableError::other_state(&journal.path)) }
}

/// Replays the journal of the state at this path, makes a checkpoint if it has changes, removes all journals, and begins
/// a new one.
fn take_in(
    backend: &Backend,
    hasher: &HashedBy,
    path: &Path,
    found: Found,
) -> Result<TakenIn, DurableError> {
    let failed = |doing| DurableError::journal(doing, path);
    let state = SnapshotInfo::state_at(path)?;
    let (own, others): (Vec<_>, Vec<_>) =
        found.journals.into_iter().partition(|journal| journal.header.state == state);
    let mut with_changes = own.iter().filter(|journal| !journal.is_empty());
    let journal = with_changes.next();
    if let Some((one, other)) = journal.zip(with_changes.next()) {
        return Err(DurableError::copied_journal(&one.path, &other.path));
    }
    for other in &others {
        let Header { state: of, previous, .. } = other.header;
        let is_next_or_old = |own: &Reader| previous == state || of == own.header.previous;
        if !own.iter().any(is_next_or_old) {
            is_of_no_state(other)?;
        }
    }
    // First, so that the present state does not give way to the one before, whose journal is removed now.
    sync_folder_of(path).map_err(failed("cannot sync its folder"))?;
    others
        .iter()
        .map(|other| &other.path)
        .chain(&found.blank)
        .try_for_each(|other| remove(other))?;
    let Some(journal) = journal else {
        // The state's own journal tells that the others are harmless, so they must be gone before that one is.
        if !others.is_empty() {
            sync_folder_of(path).map_err(failed("cannot sync its folder"))?;
        }
        own.iter().try_for_each(|journal| remove(&journal.path))?;
        // What a checkpoint that was killed has left.
        drop(Replacement::begin(path));
        let journal = create_journal(path, state, 0).map_err(failed("cannot create a journal"))?;
        return Ok(TakenIn { journal, old: None, lost: 0 });
    };
    own.iter().filter(|own| own.is_empty()).try_for_each(|empty| remove(&empty.path))?;
    let lost = replay(backend, journal)?;
    // Replayed changes may be seen and built upon, so they have to survive a power failure.
    let part = Part::state();
    let new = create_journal(path, part.state, state).map_err(failed("cannot create a journal"))?;
    save_state(backend, hasher, path, part).inspect_err(|error| {
        if !error.is_in_place() {
            let _ = fs::remove_file(new.path());
        }
    })?;
    let old = left(&journal.path);
    Ok(TakenIn { journal: new, old, lost })
}

/// Replays a journal. Returns the number of changes that are lost behind damage.
fn replay(backend: &Backend, journal: &Reader) -> Result<u64, DurableError> {
    // In another order, the same items may take one shard more.
    let limit = backend.max_bytes();
    backend.set_max_bytes(usize::MAX);
    let mut streams = repeated(Replayed::default(), STREAMS).map_err(SnapshotError::from)?;
    let lost = replay_all(backend, journal, &mut streams)
        .and_then(|()| journal.lost(streams.iter().map(|stream| stream.place)))
        .map_err(DurableError::journal("cannot read it", &journal.path))?;
    if let Some((_, full)) = streams.iter().find_map(|stream| stream.refused.first()) {
        let text = format!(
            "the filter was so full that not all of its items fit when the changes in its journal are made \
             again ({full}); load the state alone, with `SnapshotFile`, which is as old as the last checkpoint, or \
             build a larger filter"
        );
        return Err(DurableError::new(DurableErrorKind::TooFull, text));
    }
    backend.set_max_bytes(limit);
    Ok(lost)
}

#[derive(Clone, Default)]
struct Replayed {
    /// The end of its replayed changes.
    place: usize,
    /// The items for which there was no room yet.
    refused: Vec<(Mixed, Full)>,
}

/// Replays all streams at once, each up to its next change of all items. That is in all streams, so then it is made,
/// and they go on.
fn replay_all(backend: &Backend, reader: &Reader, streams: &mut [Replayed]) -> io::Result<()> {
    let threads = thread::available_parallelism().map_or(1, usize::from).min(STREAMS);
    loop {
        let of_all = Mutex::new(Ok(None));
        let next = Mutex::new(streams.iter_mut().enumerate());
        let run = || loop {
            let stream = next.lock().next();
            let Some((number, replayed)) = stream else { return };
            let change = replay_stream(backend, reader, number, replayed);
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
            refused.retain(|(hash, _)| !backend.insert_exhaustively(*hash));
        }
        let of_all = std::mem::replace(&mut *of_all.lock(), Ok(None));
        match of_all? {
            None => return Ok(()),
            Some((Change::Ticked, _)) => backend.tick(),
            Some((Change::TickedTo, number)) => {
                backend.begin_tick_toward(number.0);
                backend.finish_tick();
            }
            Some(_) => {
                backend.clear();
                streams.iter_mut().for_each(|stream| stream.refused.clear());
            }
        }
    }
}

/// Replays a stream up to its next change of all items, which it returns.
fn replay_stream(
    backend: &Backend,
    reader: &Reader,
    number: usize,
    Replayed { place, refused }: &mut Replayed,
) -> io::Result<Option<(Change, Mixed)>> {
    let mut change_of_all = None;
    reader.changes(number, place, |hash, change| {
        match change {
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
        change_of_all.is_none()
    })?;
    Ok(change_of_all)
}
