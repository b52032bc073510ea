//! The output of a run is its journal: what it has beyond the length that it had at the last save are the lines that
//! the state does not have.
//!
//! The length is noted in `.STATE.koel-output`, beside the state. The note exists only during a run with `--state` and
//! `--output`: the run creates it before it writes its first line, and removes it after its last save. If the note is
//! still there when a command claims the state, the run was killed. The command then
//!
//! 1. cuts off an incomplete last line from the output,
//! 2. adds the lines beyond the noted length to the filter,
//! 3. syncs the output, saves the state, and removes the note.
//!
//! A repeated run reads its input from the beginning, finds the lines that are in the output to be known, and writes
//! the rest. So the output becomes that of a run that nobody disturbed.
//!
//! # The order of a save
//!
//! Lines go on while the filter is copied, so the copy has all lines that were written before, and some that are not
//! written yet.
//!
//! ```text
//! S1  take the length of the output, L
//! S2  copy the filter to a new file: it has every line before L
//! S3  wait until every chunk of which the copy may have a part is written
//! S4  sync the output
//! S5  rename the new state, and sync its folder
//! S6  note L
//! ```
//!
//! A kill or a power failure between any two of these leaves a state and a note that is not younger. That is safe: the
//! lines between the older length and L are added again, which changes nothing. The note must never be younger than the
//! state, because the lines between would be in neither. A note is therefore one line that is appended to the file, and
//! the last complete line counts. The first one is on the disk before the first line of the output is written.
//!
//! A power failure may take lines from the end of the output that were not synced. The state does not have them, so
//! they are new again.
//!
//! # Other hands
//!
//! The lines that others append during a run count as the run's own after a kill. An output that is not the noted file,
//! or that is shorter than noted, or that has other bytes before the noted length, tells nothing: the lines that were
//! written since the last save are new again, and the user is told. A run has a shared lock on its output, and nothing
//! is cut off from a locked file.

use crate::failure::{Failure, locked};
use crate::lines::chunk::Chunk;
use crate::lines::cutter::{Cut, Cutter};
use crate::lines::input::{OpenInput, unpacked};
use crate::lines::output::{Sink, sync_folder_of};
use crate::lines::replacement::Replacement;
use crate::lines::rules::{Keys, Rules};
use crate::paths::is_same;
use crate::state::keeper::{Keeper, load};
use crate::state::seen::Seen;
use indicatif::{BinaryBytes, HumanCount};
use koel::disk::{beside, folder_of};
use koel::{PersistentHasher, StableHash, Window};
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::process::geteuid;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::fs::{self, File, Metadata, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::UNIX_EPOCH;

/// Number of bytes before the noted length by which an output is recognised.
const TAIL: u64 = 4_096;

/// A line of the note, as JSON.
#[derive(Clone, Serialize, Deserialize)]
struct Note {
    /// The output, without links.
    output: OsString,
    /// The number of that file on its device, which may itself have another number after a restart of the machine.
    inode: u64,
    /// When it was created, in nanoseconds since 1970, or 0 if the system does not tell: the number may be used again.
    created: u64,
    /// Number of bytes of the output of which the state has all lines.
    length: u64,
    /// The hash of the last bytes before that.
    tail: u64,
    /// Of a file that takes its place as a whole: the number of bytes, uncompressed, of which the state has all lines.
    /// The length is 0 then.
    #[serde(default)]
    whole: Option<u64>,
    /// The seed of the state: another state has another one.
    seed: u128,
    /// The limit of the filter's memory in this run.
    max_bytes: usize,
    rules: Rules,
}

fn note_of(state: &Path) -> PathBuf {
    beside(state, ".koel-output").expect("the path of a file")
}

fn created(about: &Metadata) -> u64 {
    let since = about.created().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    since.map_or(0, |since| since.as_nanos() as u64)
}

fn tail_of(output: &File, length: u64) -> io::Result<u64> {
    let mut tail = vec![0; length.min(TAIL) as usize];
    let start = length - tail.len() as u64;
    output.read_exact_at(&mut tail, start)?;
    Ok(StableHash::with_seed(0).hash_bytes(&tail))
}

/// The note of a run that is going on.
pub struct Noting {
    path: PathBuf,
    state: PathBuf,
    /// The output, for reading, with a shared lock. `None` if files take their places as a whole.
    output: Option<File>,
    at: Mutex<At>,
}

struct At {
    note: Note,
    /// The note, once there is one.
    file: Option<File>,
    /// The length of the output after the last write.
    written: u64,
}

impl Noting {
    /// Prepares the note of a run, into files that take their places as a whole or into a sink. `None` if that is not a
    /// regular file that was opened by its name.
    pub fn new(
        keeper: &Keeper,
        seen: &Seen,
        sink: &Sink,
        is_whole: bool,
        rules: Rules,
    ) -> Option<Noting> {
        let (mut path, mut output, mut about) = (OsString::new(), None, None);
        if !is_whole {
            let (name, file) = sink.kept()?;
            let file = file.try_clone().ok()?;
            // Not all file systems have locks.
            let _ = file.try_lock_shared();
            (path, about) = (name.as_os_str().to_owned(), Some(file.metadata().ok()?));
            output = Some(file);
        }
        let note = Note {
            output: path,
            inode: about.as_ref().map_or(0, Metadata::ino),
            created: about.as_ref().map_or(0, created),
            length: 0,
            tail: 0,
            whole: None,
            seed: seen.hasher().seed(),
            max_bytes: seen.max_bytes(),
            rules,
        };
        let written = about.map_or(0, |about| about.len());
        let at = Mutex::new(At { note, file: None, written });
        let state = keeper.real_path();
        Some(Noting { path: note_of(&state), state, output, at })
    }

    /// Notes the length of the output before the first line is written.
    pub fn begin(&self) -> Result<(), Failure> {
        let Some(output) = self.output.as_ref().filter(|_| locked(&self.at).file.is_none()) else {
            return Ok(());
        };
        self.put(|note| {
            note.length = output.metadata()?.len();
            note.tail = tail_of(output, note.length)?;
            Ok(())
        })
    }

    /// Notes a file before it takes its place as a whole. The state has the lines in its first `kept` bytes,
    /// uncompressed.
    pub fn places(&self, path: &Path, file: &File, kept: u64) -> Result<(), Failure> {
        file.sync_data().map_err(|error| Failure::about(path, &error))?;
        self.put(|note| {
            let (about, folder) = (file.metadata()?, folder_of(path).canonicalize()?);
            note.output = folder.join(path.file_name().unwrap_or_default()).into_os_string();
            (note.inode, note.created) = (about.ino(), created(&about));
            (note.tail, note.whole) = (tail_of(file, 0)?, Some(kept));
            Ok(())
        })
    }

    /// Notes that the state on the disk has all lines before this length.
    pub fn saved(&self, length: u64) -> Result<(), Failure> {
        let Some(output) = self.output.as_ref().filter(|_| locked(&self.at).file.is_some()) else {
            return Ok(());
        };
        self.put(|note| match tail_of(output, length) {
            // Somebody has made the output shorter, so what was noted stays.
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(()),
            tail => {
                (note.length, note.tail) = (length, tail?);
                Ok(())
            }
        })
    }

    /// Changes the note, and appends it to its file, which is created if it is not there.
    fn put(&self, change: impl FnOnce(&mut Note) -> io::Result<()>) -> Result<(), Failure> {
        let At { note, file, .. } = &mut *locked(&self.at);
        let put = change(note).and_then(|()| match file {
            Some(file) => append(note, file),
            None => self.create(note).map(|created| *file = Some(created)),
        });
        let what = "cannot note what is written";
        put.map_err(|error| Failure::of(format!("{}: {what}", self.path.display()), &error))
    }

    /// Begins the file of the note.
    fn create(&self, note: &Note) -> io::Result<File> {
        // A note that is there is that of lines that were taken in. A power failure may take back the state with
        // them.
        let there = opened(&self.path, OpenOptions::new().append(true))?;
        let is_new = there.is_none();
        let mut file = match there {
            Some((file, about)) => check_owner(&about, &self.state).map(|()| file)?,
            None => OpenOptions::new().append(true).create_new(true).open(&self.path)?,
        };
        if let Err(error) = append(note, &mut file) {
            if is_new {
                let _ = fs::remove_file(&self.path);
            }
            return Err(error);
        }
        sync_folder_of(&self.path);
        Ok(file)
    }

    /// Takes note, in memory, of where the last write has ended.
    pub fn wrote(&self, end: u64) {
        locked(&self.at).written = end;
    }

    /// Returns the length of the output up to which the filter has all lines.
    pub fn written(&self) -> u64 {
        locked(&self.at).written
    }

    /// Removes the note, because the state has everything.
    pub fn end(&self) {
        if locked(&self.at).file.take().is_some() {
            let _ = fs::remove_file(&self.path);
        }
    }

    /// Returns the output, or the folder of the outputs, if lines of it are noted.
    pub fn output(&self) -> Option<PathBuf> {
        let at = locked(&self.at);
        at.file.as_ref().map(|_| at.note.named())
    }
}

fn append(note: &Note, file: &mut File) -> io::Result<()> {
    let line = serde_json::to_string(note).map_err(io::Error::other)? + "\n";
    file.write_all(line.as_bytes())?;
    file.sync_all()
}

/// Opens a note that is there. It is asked what it is only once it is open, because another file may get its name at
/// any time.
fn opened(note: &Path, options: &mut OpenOptions) -> io::Result<Option<(File, Metadata)>> {
    let not_regular = || io::Error::other("it is not a regular file");
    // Without NONBLOCK, a pipe would wait for another process.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = match options.custom_flags(flags.bits() as i32).open(note) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) if Errno::from_io_error(&error) == Some(Errno::LOOP) => {
            return Err(not_regular());
        }
        opened => opened?,
    };
    let about = file.metadata()?;
    if about.is_file() { Ok(Some((file, about))) } else { Err(not_regular()) }
}

impl Note {
    /// Reads the lines of a note that count: the last complete one, and all of files that took their places as a whole.
    /// `None` if there is none, so that nothing was written after it. Also returns what the system says of the note.
    fn read(path: &Path) -> io::Result<Option<(Vec<Note>, Metadata)>> {
        let Some((mut file, about)) = opened(path, OpenOptions::new().read(true))? else {
            return Ok(None);
        };
        let mut text = Vec::new();
        file.read_to_end(&mut text)?;
        let lines =
            text.split_inclusive(|byte| *byte == b'\n').filter(|line| line.ends_with(b"\n"));
        let mut notes: Vec<Note> =
            lines.map_while(|line| serde_json::from_slice(line).ok()).collect();
        let last = notes.iter().rposition(|note| note.whole.is_none());
        let mut at = 0..;
        notes.retain(|note| at.next() == last || note.whole.is_some());
        Ok((!notes.is_empty()).then_some((notes, about)))
    }

    /// The output, or its folder if it is one of several.
    fn named(&self) -> PathBuf {
        let path = self.path();
        if self.whole.is_some() { folder_of(&path).to_path_buf() } else { path }
    }

    fn path(&self) -> PathBuf {
        PathBuf::from(&self.output)
    }

    /// Opens the output. `None` if it is not the file any more that it was.
    fn open(&self) -> io::Result<Option<File>> {
        // Without NONBLOCK, a pipe that has its name now would wait for another process.
        let flags = OFlags::NONBLOCK.bits() as i32;
        let file = match OpenOptions::new().read(true).custom_flags(flags).open(self.path()) {
            Err(error)
                if [ErrorKind::NotFound, ErrorKind::NotADirectory].contains(&error.kind()) =>
            {
                return Ok(None);
            }
            opened => opened?,
        };
        let about = file.metadata()?;
        let is_it = (about.ino(), created(&about)) == (self.inode, self.created);
        if !about.is_file() || !is_it || about.len() < self.length {
            return Ok(None);
        }
        Ok((tail_of(&file, self.length)? == self.tail).then_some(file))
    }

    /// Whether a kill came before the file took its place.
    fn is_unfinished(&self) -> bool {
        let unfinished = self.whole.and_then(|_| Replacement::unfinished_beside(&self.path()));
        let about = unfinished.and_then(|path| path.symlink_metadata().ok());
        about.is_some_and(|about| (about.ino(), created(&about)) == (self.inode, self.created))
    }

    /// Adds the lines that a killed run has written, and cuts off an incomplete last one. Returns their number, or
    /// `None` if the output is not the file any more that it was.
    fn take_in(&self, seen: &Seen) -> io::Result<Option<u64>> {
        let Some(output) = self.open()? else { return Ok(None) };
        // The last line came then, and no line is forgotten early.
        if let Some(window) = seen.window() {
            let written = output.metadata()?.modified()?.duration_since(UNIX_EPOCH);
            seen.tick_to(
                window
                    .number_at(written.map_or(Window::now(), |at| at.as_secs().min(Window::now()))),
            );
        }
        let mut file = output.try_clone()?;
        file.seek(SeekFrom::Start(self.length))?;
        let mut reader: Box<dyn Read + Send> = Box::new(file);
        if let Some(kept) = self.whole {
            reader = unpacked(reader, Some(&self.path()))?.0;
            io::copy(&mut reader.by_ref().take(kept), &mut io::sink())?;
        }
        let input = OpenInput { reader, is_live: false, form: None };
        let mut cutter = Cutter::new(input, self.rules.terminator);
        let mut keys = Keys::new(self.rules, *seen.hasher());
        let (mut chunk, mut lines) = (Chunk::default(), 0);
        let (mut length, mut incomplete) = (self.length, 0);
        // The state may have been saved with a lower limit.
        seen.set_max_bytes(self.max_bytes);
        loop {
            match cutter.fill(&mut chunk)? {
                Cut::Lines => {}
                Cut::TooLong => return Err(io::Error::other("it has a line that is too long")),
                Cut::End => break,
            }
            let mut complete: Vec<&[u8]> = chunk.iter().collect();
            if chunk.is_completed {
                incomplete = complete.pop().map_or(0, |line| line.len() as u64 - 1);
            }
            let hashes: Vec<_> = complete.iter().flat_map(|line| keys.hashes(line)).collect();
            let adds = || seen.insert_if_absent_many(&hashes).iter().all(Result::is_ok);
            if !adds() {
                // In another order, the same lines may take more. They are written, so they have to be known.
                seen.set_max_bytes(usize::MAX);
                if !adds() {
                    return Err(io::Error::other("out of memory"));
                }
            }
            lines += complete.len() as u64;
            length += chunk.bytes();
        }
        seen.set_max_bytes(self.max_bytes);
        if incomplete > 0 {
            self.cut_off(&output, length - incomplete, length)?;
        }
        output.sync_all()?;
        sync_folder_of(&self.path());
        Ok(Some(lines))
    }

    /// Cuts an output off there, unless another run writes to it.
    fn cut_off(&self, output: &File, end: u64, length: u64) -> io::Result<()> {
        let file = OpenOptions::new().write(true).open(self.path())?;
        if !is_same(&file.metadata()?, &output.metadata()?) {
            return Err(io::Error::other("another process has replaced it; try again"));
        }
        if let Err(TryLockError::WouldBlock) = file.try_lock() {
            return Err(io::Error::other(
                "another koel is writing to it, so the note beside the state is of a run that was not killed; wait for \
                 it to end, or use another state",
            ));
        }
        if file.metadata()?.len() != length {
            return Err(io::Error::other("another process writes to it; wait for it to end"));
        }
        file.set_len(end)
    }
}

/// Puts the lines into a state that a killed run has written. Notes what the user should know about that.
pub fn take_in(keeper: &Keeper, notes: &mut Vec<String>) -> Result<(), Failure> {
    let (state, path) = (keeper.real_path(), note_of(&keeper.real_path()));
    let remove = || match fs::remove_file(&path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(Failure::about(&path, &error)),
        _ => Ok(()),
    };
    let unreadable = |error| {
        let failure = Failure::of(format!("{}: cannot read this note", path.display()), &error);
        Failure::new(format!(
            "{failure}; it says what a killed run has written: restore it, or remove it, and the lines \
             that the run has written are new again"
        ))
    };
    let read = Note::read(&path).map_err(unreadable)?.filter(|_| state.exists());
    let Some((noted, about)) = read else { return remove() };
    check_owner(&about, &state).map_err(|error| Failure::about(&path, &error))?;
    let seen = load(&keeper.path)?;
    if noted.iter().any(|note| seen.hasher().seed() != note.seed) {
        return Err(Failure::new(format!(
            "{} is of another state than the one beside it; restore that state, or remove this file, and \
             the lines that a killed run has written are new again",
            path.display()
        )));
    }
    let (mut lines, mut max_bytes) = (0, 0);
    for note in &noted {
        let output = note.path();
        max_bytes = max_bytes.max(note.max_bytes);
        let taken_in = note.take_in(&seen).map_err(|error| {
            let what = "cannot take in what a killed run has written there";
            Failure::of(format!("{}: {what}", output.display()), &error)
        })?;
        match taken_in {
            Some(more) => lines += more,
            None if note.is_unfinished() => {}
            None => notes.push(format!(
                "{}: it is not the file any more to which a killed run has written; the lines that were not saved as \
                 seen by then are new again",
                output.display()
            )),
        }
    }
    if lines == 0 {
        return remove();
    }
    if keeper.save(&seen)? {
        remove()?;
    }
    let (state, takes) = (keeper.path.display(), seen.size_in_bytes());
    let lines = HumanCount(lines);
    let more = match takes > max_bytes {
        true => format!(
            "; it takes {} of memory now, more than that run allowed",
            BinaryBytes(takes as u64)
        ),
        false => String::new(),
    };
    notes.push(format!("{state}: took in {lines} lines of a run that was killed{more}"));
    Ok(())
}

/// Returns the output of a run that is going on, or was killed, and the number of its bytes that the state does not
/// have.
pub fn waiting(state: &Path) -> Option<(PathBuf, u64)> {
    let (noted, _) = Note::read(&note_of(state)).ok()??;
    let bytes_of = |note: &Note| Some(note.open().ok()??.metadata().ok()?.len() - note.length);
    let bytes: u64 = noted.iter().filter_map(bytes_of).sum();
    (bytes > 0).then(|| Some((noted.last()?.named(), bytes)))?
}

/// A note names the file from which something may be cut off, so not everybody may write one.
fn check_owner(note: &Metadata, state: &Path) -> io::Result<()> {
    let owner = note.uid();
    let is_of_state = state.metadata().is_ok_and(|about| about.uid() == owner);
    if owner == geteuid().as_raw() || is_of_state {
        return Ok(());
    }
    Err(io::Error::other(format!(
        "this note belongs to the user {owner}, who is not you and does not own the state; run koel as that user, or if \
         you trust it, change its owner"
    )))
}
