//! What an earlier run has left beside a state becomes part of it, before the state is used.

use crate::arguments::common::Waiting;
use crate::failure::{Failure, without_numbers};
use crate::journal::journaling::Journaling;
use crate::journal::place::{Noted, There, look};
use crate::journal::record::{Output, Record, Records, next};
use crate::journal::replay::replay;
use crate::journal::saving::{NotSaved, save};
use crate::state::comparison::{Comparison, LineHash};
use crate::state::keeper::{Keeper, load};
use crate::state::refusals::{cannot_use, check_grows};
use indicatif::{BinaryBytes, HumanCount};
use koel::files::{
    Found, Header, Kind, chained, folder_of, has_changes, header_of, journals_of, number_of,
    open_journal, sort_journals, state_id,
};
use koel::{ConcurrentCuckooFilter, DurableFilter};
use rustix::process::geteuid;
use std::fs;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// More bytes than a header and the first record have.
const MOST_OF_OUTPUT: u64 = 16 << 10;

/// No state has so many journals in its life.
const MOST_JOURNALS: u64 = u64::MAX / 2;

/// What follows the header of a journal.
#[derive(Default)]
struct Left {
    output: Output,
    batches: Vec<Noted>,
    /// The last batch of the journal before, if it was written only then, and where.
    written: Option<(u64, u64)>,
    /// Whether more follows that cannot be read.
    is_damaged: bool,
}

fn note_written((batch, is_written): &mut Noted, start: u64) {
    (batch.start, *is_written) = (start, true);
}

/// Claims a state to change it, and puts into it what earlier runs have left beside it. Also returns what should be
/// known about that.
pub fn claim(path: &Path, waiting: &Waiting) -> Result<(Keeper, Option<String>), Failure> {
    let mut keeper = Keeper::claim(path, waiting)?;
    let mut left = Beside::of(&keeper.real_path())?;
    let mut damage = None;
    if !left.changes.is_empty() {
        drop(keeper);
        damage = take_in_changes(path, &left)?;
        keeper = Keeper::claim(path, waiting)?;
        left = Beside::of(&keeper.real_path())?;
        left.remove_without_changes()?;
    }
    for journal in &left.empty {
        remove(journal)?;
    }
    let notes: Vec<String> = damage.into_iter().chain(take_in_batches(&keeper, left)?).collect();
    Ok((keeper, (!notes.is_empty()).then(|| notes.join("; "))))
}

/// Says that there are newer changes beside a state that is only read.
pub fn note(path: &Path) -> Option<String> {
    let (journal, bytes) = waiting(path)?;
    Some(format!(
        "{}: newer changes, {} of them, are in {}, and not read here: another run is using the state, or was killed; \
         the next command that changes the state takes in what a killed one has left",
        path.display(),
        BinaryBytes(bytes),
        journal.display()
    ))
}

/// Fails if there are newer changes beside a state that is to be read as a whole.
pub fn check_whole(path: &Path) -> Result<(), Failure> {
    let Some((journal, _)) = waiting(path) else { return Ok(()) };
    Err(Failure::new(format!(
        "{}: newer changes are in {}, and would be left out; wait for the run that is using the state, or take in what \
         a killed one has left: koel add {0} < /dev/null",
        path.display(),
        journal.display()
    )))
}

/// The first journal with changes that a state does not have yet, and the bytes of all of them.
pub fn waiting(path: &Path) -> Option<(PathBuf, u64)> {
    // Opening a pipe would wait for another process.
    let real = fs::canonicalize(path).ok().filter(|real| real.is_file())?;
    let id = state_id(&real).ok()?;
    let mut found: Vec<Found<u64>> = Vec::new();
    for journal in journals_of(&real).ok()? {
        let (kind, header) = header_of(&journal).ok()??;
        let bytes = match kind {
            Kind::Changes if !has_changes(&journal).ok()? => 0,
            Kind::Changes => journal.metadata().ok()?.len(),
            Kind::Batches => bytes_of_batches(&journal, header).ok()?,
        };
        found.push((header, journal, bytes));
    }
    // Two copies with changes are for the command that takes them in to refuse.
    let _ = sort_journals(&mut found, |bytes| *bytes > 0);
    let (chain, _) = chained(found, id);
    let bytes = chain.iter().map(|(.., bytes)| bytes).sum();
    let first = chain.into_iter().find(|(.., bytes)| *bytes > 0)?;
    let name = first.1.file_name()?;
    Some((path.with_file_name(name), bytes))
}

/// The number of bytes that come after the first record.
fn bytes_of_batches(journal: &Path, header: Header) -> io::Result<u64> {
    let (mut start, file) = (Vec::new(), open_journal(journal)?);
    (&file).take(MOST_OF_OUTPUT).read_to_end(&mut start)?;
    let records = start.get(Header::BYTES..).unwrap_or_default();
    let Some((_, rest)) = next(records, header.key) else { return Ok(0) };
    Ok(file.metadata()?.len().saturating_sub((start.len() - rest.len()) as u64))
}

/// The journals beside a state.
struct Beside {
    /// Of a `koel dedup`.
    batches: Vec<(PathBuf, Header)>,
    /// Of another program.
    changes: Vec<PathBuf>,
    /// In which nothing has been recorded.
    empty: Vec<PathBuf>,
}

impl Beside {
    fn of(state: &Path) -> Result<Beside, Failure> {
        let mut beside = Beside { batches: Vec::new(), changes: Vec::new(), empty: Vec::new() };
        let cannot = |error: io::Error| {
            Failure::of(format!("{}: cannot list its journals", state.display()), &error)
        };
        for journal in journals_of(state).map_err(cannot)? {
            match header_of(&journal).map_err(|error| unreadable(&journal, &error))? {
                Some((Kind::Batches, header)) => beside.batches.push((journal, header)),
                Some((Kind::Changes, _)) => beside.changes.push(journal),
                None => beside.empty.push(journal),
            }
        }
        Ok(beside)
    }

    /// Removes the journals of another program, which has put their changes into the state.
    fn remove_without_changes(&self) -> Result<(), Failure> {
        for journal in &self.changes {
            if has_changes(journal).map_err(|error| unreadable(journal, &error))? {
                return Err(Failure::new(format!(
                    "{}: another program has changed the state meanwhile; try again",
                    journal.display()
                )));
            }
            remove(journal)?;
        }
        Ok(())
    }
}

fn unreadable(journal: &Path, error: &io::Error) -> Failure {
    let what = format!("{}: cannot read this journal", journal.display());
    Failure::new(format!(
        "{}; it has the newest changes of the state beside it: restore it, or remove it, and the changes with it",
        Failure::of(what, error)
    ))
}

fn of_another_state(journal: &Path) -> Failure {
    Failure::new(format!(
        "{} has changes of another state than the one beside it; restore that state, or remove this file, and the \
         changes with it",
        journal.display()
    ))
}

fn remove(journal: &Path) -> Result<(), Failure> {
    fs::remove_file(journal).map_err(|error| Failure::about(journal, &error))
}

/// Puts the changes that another program has left into the state, as that program would. Says if any are lost.
fn take_in_changes(path: &Path, left: &Beside) -> Result<Option<String>, Failure> {
    if !path.exists() {
        for journal in &left.changes {
            if has_changes(journal).map_err(|error| unreadable(journal, &error))? {
                return Err(of_another_state(journal));
            }
        }
        return Ok(None);
    }
    check_grows(path)?;
    // There is a state, so nothing is built.
    let builder = ConcurrentCuckooFilter::builder().hasher(LineHash::random(Comparison::Bytes));
    let failed = |error| Failure::new(format!("{}: {}", path.display(), without_numbers(error)));
    let seen = DurableFilter::open(path, builder).map_err(failed)?;
    let lost = seen.lost_changes();
    seen.close().map_err(failed)?;
    Ok((lost > 0).then(|| {
        format!(
            "{}: its journal was damaged, and {} {} behind the damage or in it {} lost",
            path.display(),
            HumanCount(lost),
            if lost == 1 { "change" } else { "changes" },
            if lost == 1 { "is" } else { "are" },
        )
    }))
}

/// A journal names the file from which something may be cut off, so not everybody may write one.
fn check_owner(journal: &Path, state: &Path) -> Result<(), Failure> {
    let about = open_journal(journal).and_then(|file| file.metadata());
    let owner = about.map_err(|error| unreadable(journal, &error))?.uid();
    let is_of_state = state.metadata().is_ok_and(|about| about.uid() == owner);
    if owner == geteuid().as_raw() || is_of_state {
        return Ok(());
    }
    Err(Failure::new(format!(
        "{}: this journal belongs to the user {owner}, who is not you and does not own the state; run koel as that user, \
         or if you trust it, change its owner",
        journal.display()
    )))
}

fn read(journal: &Path, header: Header) -> io::Result<Left> {
    let mut file = open_journal(journal)?;
    let start = file.seek(SeekFrom::Start(Header::BYTES as u64))?;
    let bytes = file.metadata()?.len().saturating_sub(start);
    let mut records = Records::new(BufReader::new(file), bytes, header.key);
    let mut left = Left::default();
    // If the first one is not that, it was killed when it had just created the file, or else everything in it is lost.
    let mut is_next = match records.next()? {
        Some(Record::Output(output)) => {
            left.output = output;
            true
        }
        _ => false,
    };
    while is_next && let Some(record) = records.next()? {
        match record {
            Record::Batch(batch) => left.batches.push((batch, false)),
            Record::Written { number, start } => match left.batches.last_mut() {
                Some(last) if last.0.number == number => note_written(last, start),
                Some(_) => {}
                None => left.written = Some((number, start)),
            },
            Record::Output(_) => is_next = false,
        }
    }
    left.is_damaged = records.end_in_damage()?;
    Ok(left)
}

/// Puts the lines into the state that a killed run has written.
fn take_in_batches(keeper: &Keeper, left: Beside) -> Result<Option<String>, Failure> {
    let state = keeper.real_path();
    let mut found: Vec<Found<Left>> = Vec::new();
    for (journal, header) in left.batches {
        check_owner(&journal, &state)?;
        let read = read(&journal, header).map_err(|error| unreadable(&journal, &error))?;
        found.push((header, journal, read));
    }
    if found.is_empty() {
        return Ok(None);
    }
    sort_journals(&mut found, |left| !left.batches.is_empty()).map_err(|[one, other]| {
        Failure::new(format!(
            "{} and {} are copies of one journal, and both have lines; leave the newer one here, and move the other \
             elsewhere",
            one.display(),
            other.display()
        ))
    })?;
    let key = found.last().map_or(0, |(header, ..)| header.key);
    // A journal that was renamed has another number in its header.
    let numbers = found.iter().map(|(header, path, _)| header.number.max(number_of(path)));
    let number = numbers.max().unwrap_or(0);
    if number > MOST_JOURNALS {
        return Err(Failure::new(format!(
            "{}: one of its journals has the number {number}, with which no journal begins; remove that journal, and \
             the changes with it",
            state.display()
        )));
    }
    let has_batches = |(.., left): &&Found<Left>| !left.batches.is_empty();
    if !state.exists() {
        if let Some((_, journal, _)) = found.iter().find(has_batches) {
            return Err(of_another_state(journal));
        }
        return found.iter().try_for_each(|(_, journal, _)| remove(journal)).map(|()| None);
    }
    let id = state_id(&state).map_err(|error| cannot_use(&state, &error))?;
    let (chain, others) = chained(found, id);
    // Those of before the state was saved are in it.
    let first = chain.first().map(|(header, ..)| header.number);
    let is_strange = |(header, ..): &&Found<Left>| first.is_none_or(|first| header.number > first);
    if let Some((_, journal, _)) = others.iter().filter(is_strange).find(has_batches) {
        return Err(of_another_state(journal));
    }
    // In an order in which they may be removed: what is left of them is still of this state, or empty.
    let others = others.iter().map(|(_, journal, _)| journal.clone());
    let of_state = chain.iter().rev().map(|(_, journal, _)| journal.clone());
    let journals: Vec<PathBuf> = others.chain(of_state).collect();
    let (mut batches, mut output): (Vec<Noted>, Output) = Default::default();
    let mut damaged = None;
    for (_, journal, left) in chain {
        if left.is_damaged && damaged.is_none() {
            damaged = Some(format!(
                "{}: this journal was damaged, and what comes after the damage counts for nothing: those of its lines \
                 that were written may be written again",
                journal.display()
            ));
        }
        if batches.is_empty() {
            output = left.output;
        }
        match (batches.last_mut(), left.written) {
            (Some(last), Some((number, start))) if last.0.number == number => {
                note_written(last, start);
            }
            _ => {}
        }
        batches.extend(left.batches);
    }
    // What comes after lost batches does not count.
    let first = batches.first().map_or(0, |(batch, _)| batch.number);
    let follows = |(batch, at): &(&Noted, u64)| first.checked_add(*at) == Some(batch.0.number);
    let in_order = batches.iter().zip(0..).take_while(follows).count();
    batches.truncate(in_order);
    if batches.is_empty() {
        return journals.iter().try_for_each(|journal| remove(journal)).map(|()| damaged);
    }
    let seen = load(&state)?;
    let There { whole, file, part } =
        look(&output, &batches, seen.hasher()).map_err(|error| cannot_look(&output, &error))?;
    if let Some(part) = part {
        let what = "cannot cut off what a killed run has left of its last lines";
        part.cut_off()
            .map_err(|error| Failure::of(format!("{}: {what}", part.path.display()), &error))?;
    }
    // Before the state says that its lines are there, and before the record of what was cut off is gone.
    if let (Some(file), Some(about)) = (file, &output.file) {
        file.sync_all().map_err(|error| cannot_look(&output, &error))?;
        // Some systems cannot sync folders.
        let _ = fs::File::open(folder_of(&about.path)).and_then(|folder| folder.sync_all());
    }
    if whole == 0 {
        return journals.iter().try_for_each(|journal| remove(journal)).map(|()| damaged);
    }
    replay(&seen, batches[..whole].iter().map(|(batch, _)| batch))?;
    let journaling = Journaling::after(keeper, id, Output::default(), journals, (number, key));
    match save(keeper, &seen, Some(&journaling), || true, || Ok(())) {
        Ok(_) => journaling.end(),
        Err(NotSaved::Failed(failure)) => return Err(failure),
        Err(NotSaved::GivenUp) => {}
    }
    let lines: usize = batches[..whole].iter().map(|(batch, _)| batch.added.len()).sum();
    let taken_in = format!(
        "{}: took in {} lines of a run that was killed",
        keeper.path().display(),
        HumanCount(lines as u64)
    );
    Ok(Some(damaged.map_or(taken_in.clone(), |damaged| format!("{damaged}; {taken_in}"))))
}

fn cannot_look(output: &Output, error: &io::Error) -> Failure {
    let path = output.file.as_ref().map(|file| file.path.display().to_string());
    let what = "cannot see what a killed run has written there";
    let failure = Failure::of(format!("{}: {what}", path.unwrap_or_default()), error);
    Failure::new(format!(
        "{failure}; make the file readable, or remove the journal of the state, and the lines in it are new again"
    ))
}
