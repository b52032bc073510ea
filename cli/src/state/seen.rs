//! What was seen: a filter, and the file that it is kept in between runs.

use crate::arguments::Made;
use crate::failure::Failure;
use crate::state::claim::Claim;
use crate::state::comparison::{Comparison, LineHash};
use crate::state::url_key::UrlRules;
use indicatif::BinaryBytes;
use koel::{ConcurrentCuckooFilter, GrowingCuckooFilter, SnapshotError, SnapshotErrorKind};
use std::path::{Path, PathBuf};

pub type Seen = GrowingCuckooFilter<LineHash>;

/// One in a million.
const DEFAULT_RATE: f64 = 1e-6;

/// Lines that a new filter has room for, unless others are expected.
const FIRST_CAPACITY: u64 = 50_000;

/// Growing takes time. So if it is known how much will come, a filter begins with room for half of the lines that this
/// may be; but not with more than this, some 60 MB, as there may be far fewer different ones.
const MOST_GUESSED: u64 = 10_000_000;
const BYTES_OF_LINE: u64 = 64;

/// How many times as many lines a filter takes before its rate may be higher than was asked for.
const EXPECTED_GROWTH: f64 = 1e6;

/// The same, if it was told how many lines to expect.
const EXPECTED_GROWTH_OF_KNOWN: f64 = 4.0;

impl Made {
    pub fn comparison(&self) -> Comparison {
        match self.url {
            false => Comparison::Bytes,
            true => Comparison::Urls(UrlRules {
                sort_query: self.sort_query,
                ignore_tracking: self.ignore_tracking,
            }),
        }
    }

    /// An empty filter, as these options ask for, for input of so many bytes.
    pub fn build_for(&self, bytes: u64) -> Result<Seen, Failure> {
        let guess = (bytes / BYTES_OF_LINE / 2).clamp(FIRST_CAPACITY, MOST_GUESSED);
        match self.capacity {
            // A guess is no reason to fail.
            None if self.max_memory.is_none() => self.build_with(guess, EXPECTED_GROWTH),
            None => self.build_with(FIRST_CAPACITY, EXPECTED_GROWTH),
            Some(lines) => self.build_with(lines.max(1), EXPECTED_GROWTH_OF_KNOWN),
        }
    }

    /// The same for input of which nothing is known, or for a state, which should be no larger than what is in it.
    pub fn build(&self) -> Result<Seen, Failure> {
        self.build_for(0)
    }

    fn build_with(&self, capacity: u64, growth: f64) -> Result<Seen, Failure> {
        let no_room = |error| Failure::new(format!("no room for what was seen: {error}"));
        let capacity = usize::try_from(capacity).map_err(|error| no_room(error.to_string()))?;
        ConcurrentCuckooFilter::builder()
            .capacity(capacity)
            .false_positive_rate(self.rate.unwrap_or(DEFAULT_RATE))
            .hasher(LineHash::random(self.comparison()))
            .growing()
            .expected_growth(growth)
            .max_bytes(self.most_bytes())
            .build()
            .map_err(|error| no_room(error.to_string()))
    }

    fn most_bytes(&self) -> usize {
        let most = self.max_memory.map(|most| usize::try_from(most).unwrap_or(usize::MAX));
        most.unwrap_or(usize::MAX)
    }

    /// Whether a state that is there is what these options ask for.
    fn accept(&self, mut seen: Seen, path: &Path) -> Result<Seen, Failure> {
        let (is, asked) = (seen.hasher().comparison(), self.comparison());
        // Without --url a state is used as it is meant.
        if asked != Comparison::Bytes && is != asked {
            return Err(Failure::new(format!(
                "{}: it compares {is}, and {asked} were asked for; use it without these options, or another state",
                path.display()
            )));
        }
        let rate = seen.stats().false_positive_rate_at_capacity();
        if self.rate.is_some_and(|asked| asked < rate) {
            return Err(Failure::new(format!(
                "{}: it was made for a rate of {rate:.1e}, which cannot be lowered; use it without --rate, or \
                 another state",
                path.display()
            )));
        }
        let (takes, most) = (seen.size_in_bytes(), self.most_bytes());
        if takes > most {
            return Err(Failure::new(format!(
                "{}: it takes {} of memory already; allow more with --max-memory",
                path.display(),
                BinaryBytes(takes as u64)
            )));
        }
        seen.set_max_bytes(most);
        Ok(seen)
    }
}

/// The file of a state that this process may replace, and nobody else as long as it has it.
pub struct Keeper {
    path: PathBuf,
    _claim: Claim,
}

impl Keeper {
    pub fn claim(path: &Path) -> Result<Keeper, Failure> {
        if path.as_os_str() == "-" {
            return Err(Failure::new("a state is a file, and cannot come from standard input"));
        }
        let _claim = Claim::lay(path)?;
        if path.metadata().is_ok_and(|file| file.is_file() && file.permissions().readonly()) {
            return Err(Failure::new(format!(
                "{}: it is read-only; allow that it is written to, or work on a copy",
                path.display()
            )));
        }
        Ok(Keeper { path: path.to_path_buf(), _claim })
    }

    /// What was seen in earlier runs, if there were any.
    pub fn load_or_make(&self, made: &Made) -> Result<Seen, Failure> {
        let seen = load_if_there(&self.path, made)?;
        if !self.path.exists() {
            // Better to know now that it cannot be saved.
            self.save(&seen)?;
        }
        Ok(seen)
    }

    pub fn load(&self) -> Result<Seen, Failure> {
        load(&self.path)
    }

    pub fn save(&self, seen: &Seen) -> Result<(), Failure> {
        match seen.save(&self.path) {
            Ok(_) => Ok(()),
            Err(error) if error.is_in_place() => Ok(()),
            Err(error) => Err(Failure::new(error)),
        }
    }
}

/// A state that will only be read, or what it would be if it were there.
pub fn load_if_there(path: &Path, made: &Made) -> Result<Seen, Failure> {
    match Seen::load(path) {
        Ok(seen) => made.accept(seen, path),
        Err(error) if error.kind() == SnapshotErrorKind::NotFound => made.build(),
        Err(error) => Err(cannot_use(&error)),
    }
}

/// A state that will only be read.
pub fn load(path: &Path) -> Result<Seen, Failure> {
    Seen::load(path).map_err(|error| cannot_use(&error))
}

/// An error of loading, in the words of a command.
fn cannot_use(error: &SnapshotError) -> Failure {
    let advice = match error.kind() {
        SnapshotErrorKind::WrongKind
        | SnapshotErrorKind::WrongHasher
        | SnapshotErrorKind::NotASnapshot => "; a state is what dedup or add has saved",
        SnapshotErrorKind::Incomplete | SnapshotErrorKind::Damaged => {
            ", or make it again with koel add from the lines that you have"
        }
        _ => "",
    };
    Failure::new(format!("{error}{advice}"))
}
