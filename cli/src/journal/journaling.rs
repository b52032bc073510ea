//! The journals of a run: one that is written to, and those before it that a state does not have yet.

use crate::failure::{Failure, Trouble};
use crate::journal::record::{self, Output};
use crate::lines::chunk::Lines;
use crate::lines::output::Sink;
use crate::state::keeper::Keeper;
use koel::files::{Header, Kind, StateId, folder_of, journal_of};
use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The journals may always be as long as this, together.
const LEAST: u64 = 64 << 20;

/// The journals beside a state that this process has claimed.
pub struct Journaling {
    /// The state, without links.
    state: PathBuf,
    /// The same as the user names it.
    name: PathBuf,
    output: Output,
    at: Mutex<At>,
}

struct At {
    /// The state that is there.
    id: StateId,
    /// The journals before the last one.
    older: Vec<PathBuf>,
    older_bytes: u64,
    last: Option<Journal>,
    /// The number of the last journal that there was, and its key.
    number: u64,
    key: u64,
    /// The number of the next batch.
    next: u64,
    /// Whether somebody was told that the journals are long.
    has_told: bool,
    is_closed: bool,
    /// Whether lines of a batch that is recorded are being written to a file.
    is_writing: bool,
    /// The journals before the last one that may not be synced.
    unsynced: Vec<File>,
    /// Whether the state is in place, and may not be after a power failure: then the journals stay.
    stays: bool,
}

/// The last journal.
struct Journal {
    file: File,
    path: PathBuf,
    header: Header,
    bytes: u64,
    has_batches: bool,
    /// Whether its name survives a power failure.
    is_listed: bool,
}

impl At {
    /// What is recorded from now on goes to this journal.
    fn go_on(&mut self, journal: Journal) {
        (self.number, self.key) = (journal.header.number, journal.header.key);
        if let Some(last) = self.last.replace(journal) {
            self.older_bytes += last.bytes;
            self.older.push(last.path);
            self.unsynced.push(last.file);
        }
    }
}

impl Journal {
    fn create(state: &Path, header: Header, output: &Output) -> io::Result<Journal> {
        let path = journal_of(state, header.number);
        let file = OpenOptions::new().write(true).create_new(true).open(&path)?;
        let bytes = [&header.bytes_of(Kind::Batches)[..], &output.record(header.key)].concat();
        let mut journal =
            Journal { file, path, header, bytes: 0, has_batches: false, is_listed: false };
        let written = journal.append(&bytes);
        if written.is_err() {
            let _ = fs::remove_file(&journal.path);
        }
        written.map(|()| journal)
    }

    /// Appends a record. After an error, the run ends: what comes after an incomplete record would not count.
    fn append(&mut self, record: &[u8]) -> io::Result<()> {
        self.file.write_all(record)?;
        self.bytes += record.len() as u64;
        Ok(())
    }
}

impl Journaling {
    /// The journals of a run that begins with this state, which has none.
    pub fn new(keeper: &Keeper, id: StateId, output: Output) -> Self {
        Self::after(keeper, id, output, Vec::new(), (0, 0))
    }

    /// Those that follow others, of which the last has this number and this key.
    pub fn after(
        keeper: &Keeper,
        id: StateId,
        output: Output,
        older: Vec<PathBuf>,
        (number, key): (u64, u64),
    ) -> Self {
        let at = At {
            id,
            older,
            older_bytes: 0,
            last: None,
            number,
            key,
            next: 0,
            has_told: false,
            is_closed: false,
            is_writing: false,
            unsynced: Vec::new(),
            stays: false,
        };
        let (state, name) = (keeper.real_path(), keeper.path().to_path_buf());
        Journaling { state, name, output, at: Mutex::new(at) }
    }

    fn at(&self) -> MutexGuard<'_, At> {
        // A panic ends the run, and what is recorded stays right.
        self.at.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn failed(&self, number: u64, error: &io::Error) -> Failure {
        let journal = self.shown(&journal_of(&self.state, number));
        Failure::of(format!("{}: cannot write its journal {journal}", self.name.display()), error)
    }

    /// The name of a journal, for messages.
    fn shown(&self, journal: &Path) -> String {
        journal.file_name().unwrap_or_default().display().to_string()
    }

    /// Writes the lines of a batch, and records them: before that if it is possible to see, after a kill, which of them
    /// were written. If the lines are written and cannot be recorded, that is trouble, too, but no error.
    pub fn write(
        &self,
        draft: &mut [u8],
        sink: &mut Sink,
        lines: Lines<'_>,
    ) -> Result<Option<Trouble>, Trouble> {
        let Some(start) = sink.place()? else {
            drop(self.open()?);
            sink.write_lines(lines)?;
            return Ok(self.record(draft, 0, false).err().map(Trouble::Failed));
        };
        let number = self.record(draft, start, lines.bytes() > 0)?;
        if lines.bytes() == 0 {
            return Ok(None);
        }
        sink.write_lines(lines).inspect_err(|_| self.counted())?;
        let mut at = self.at();
        if let (Some(journal), Ok(end)) = (&mut at.last, sink.end()) {
            let start = end.saturating_sub(lines.bytes());
            let marked = journal.append(&record::written(number, start, journal.header.key));
            let number = journal.header.number;
            return Ok(marked.err().map(|error| Trouble::Failed(self.failed(number, &error))));
        }
        Ok(None)
    }

    /// The batch that was being written is written and counted, or is not there.
    pub fn counted(&self) {
        self.at().is_writing = false;
    }

    /// Whether a batch that is recorded is being written to a file, so that nobody knows how much of it is there.
    pub fn is_writing(&self) -> bool {
        self.at().is_writing
    }

    /// Records a batch whose lines begin there, and whether they are about to be written to a file. Returns its number.
    fn record(&self, draft: &mut [u8], start: u64, is_writing: bool) -> Result<u64, Failure> {
        let mut at = self.open()?;
        let at = &mut *at;
        let number = at.next;
        if let Some(journal) = &mut at.last {
            record::complete(draft, number, start, journal.header.key);
            let appended = journal.append(draft);
            appended.map_err(|error| self.failed(journal.header.number, &error))?;
            journal.has_batches = true;
        }
        at.next += 1;
        at.is_writing = is_writing;
        Ok(number)
    }

    /// Makes sure that something can be recorded.
    fn open(&self) -> Result<MutexGuard<'_, At>, Failure> {
        let mut at = self.at();
        if at.is_closed {
            return Err(Failure::new("the run has ended"));
        }
        self.ready(&mut at)?;
        Ok(at)
    }

    /// Makes sure that there is a journal.
    fn ready(&self, at: &mut At) -> Result<(), Failure> {
        if at.last.is_none() {
            let created = self.create((at.number, at.key), at.id);
            at.go_on(created.map_err(|error| self.failed(at.number + 1, &error))?);
        }
        Ok(())
    }

    /// Creates the next journal, of a state that is there or, if the name is empty, will be.
    fn create(&self, (number, key): (u64, u64), state: StateId) -> io::Result<Journal> {
        let number = number + 1;
        let own = RandomState::new().hash_one(number).max(1);
        let header = Header { key: own, previous: key, state, number };
        Journal::create(&self.state, header, &self.output)
    }

    /// Whether the journals are so long that the state should be saved. Says so once.
    pub fn is_long(&self) -> bool {
        let mut at = self.at();
        let bytes = at.older_bytes + at.last.as_ref().map_or(0, |last| last.bytes);
        let is_long = bytes > at.id.bytes.max(LEAST) / 2;
        is_long && !std::mem::replace(&mut at.has_told, true)
    }

    /// Says again that the journals are long, if they are.
    pub fn tell_again(&self) {
        self.at().has_told = false;
    }

    /// The journal that has batches which the state does not have, if there is one.
    pub fn waiting(&self) -> Option<String> {
        let at = self.at();
        let last = at.last.as_ref().filter(|last| last.has_batches).map(|last| &last.path);
        at.older.first().or(last).map(|journal| self.shown(journal))
    }

    /// Makes what is recorded survive a power failure.
    pub fn sync(&self) -> Result<(), Failure> {
        let (file, number, is_listed, before) = {
            let mut at = self.at();
            let before = std::mem::take(&mut at.unsynced);
            let Some(journal) = &at.last else { return Ok(()) };
            let number = journal.header.number;
            let file = journal.file.try_clone().map_err(|error| self.failed(number, &error))?;
            (file, number, journal.is_listed, before)
        };
        // First those before: without them, what follows would not count.
        let before = before.iter().try_for_each(File::sync_data);
        let synced = before
            .and_then(|()| file.sync_data())
            .and_then(|()| if is_listed { Ok(()) } else { self.list() });
        synced.map_err(|error| self.failed(number, &error))?;
        let mut at = self.at();
        if let Some(journal) = at.last.as_mut().filter(|last| last.header.number == number) {
            journal.is_listed = true;
        }
        Ok(())
    }

    /// Makes the names of the journals survive a power failure.
    fn list(&self) -> io::Result<()> {
        match File::open(folder_of(&self.state)).and_then(|folder| folder.sync_all()) {
            // Some file systems have nothing to sync for a folder.
            Err(error)
                if [io::ErrorKind::InvalidInput, io::ErrorKind::Unsupported]
                    .contains(&error.kind()) =>
            {
                Ok(())
            }
            result => result,
        }
    }

    /// Records nothing any more.
    pub fn close(&self) {
        self.at().is_closed = true;
    }
}

/// A save of the state.
impl Journaling {
    /// Lets what is recorded from now on go to the next journal.
    pub fn begin_save(&self) -> Result<(), Failure> {
        let last = {
            let mut at = self.at();
            // The last one serves if an earlier save was given up, and nothing has come since.
            if at.last.as_ref().is_some_and(|last| !last.has_batches && !at.older.is_empty()) {
                return Ok(());
            }
            if at.older.is_empty() {
                self.ready(&mut at)?;
            }
            (at.number, at.key)
        };
        // Lines go on meanwhile. Nobody else creates journals once there is one.
        let created = self.create(last, StateId::default());
        let journal = created.map_err(|error| self.failed(last.0 + 1, &error))?;
        self.at().go_on(journal);
        Ok(())
    }

    /// Before the new state takes its place: says in the last journal that it belongs to that, too.
    pub fn belong(&self, id: StateId) -> Result<(), Failure> {
        {
            let mut at = self.at();
            let Some(journal) = &mut at.last else { return Ok(()) };
            journal.header.state = id;
            let bytes = journal.header.bytes_of(Kind::Batches);
            let written = journal.file.write_all_at(&bytes, 0);
            let number = journal.header.number;
            written.map_err(|error| self.failed(number, &error))?;
        }
        self.sync()
    }

    /// After that: removes the journals before.
    pub fn end_save(&self, id: StateId) {
        let older = {
            let mut at = self.at();
            (at.id, at.older_bytes, at.stays) = (id, 0, false);
            at.unsynced.clear();
            std::mem::take(&mut at.older)
        };
        // What cannot be removed is of no state, and removed by the next run.
        older.into_iter().for_each(|path| drop(fs::remove_file(path)));
    }

    /// The new state is in place, but a power failure may bring the old one back. So the journals stay.
    pub fn stay(&self) {
        self.at().stays = true;
    }

    /// Removes all journals: the state has everything.
    pub fn end(&self) {
        let mut at = self.at();
        at.is_closed = true;
        if at.stays {
            // The next run removes them, or takes them in.
            at.last = None;
            return;
        }
        let last = at.last.take().map(|last| last.path);
        at.older.drain(..).chain(last).for_each(|path| drop(fs::remove_file(path)));
    }
}

impl Drop for Journaling {
    /// Removes a journal that was created for a save that failed, and that nothing depends on.
    fn drop(&mut self) {
        let last = self.at().last.take();
        let is_needed =
            |last: &Journal| last.has_batches || last.header.state != StateId::default();
        if let Some(last) = last.filter(|last| !is_needed(last)) {
            let _ = fs::remove_file(last.path);
        }
    }
}
