//! `koel import`: makes a state of what a server dumped.

use crate::arguments::tools::Import;
use crate::commands::closing::{DONE, Ending};
use crate::commands::report::{Holds, Took};
use crate::failure::Failure;
use crate::journal::taking_in;
use crate::run::screen::Screen;
use crate::state::seen::{Seen, window_of};
use koel::{SnapshotError, SnapshotErrorKind};
use std::fmt::{self, Display};
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

pub fn import(options: &Import) -> Result<Ending, Failure> {
    let began = Instant::now();
    let Import { state, chunks, .. } = options;
    let (keeper, _) = taking_in::claim(state, &options.waiting)?;
    if state.exists() {
        return Err(Failure::new(format!(
            "{}: it exists; import into a new state, and merge both with koel merge",
            state.display()
        )));
    }
    let seen = match chunks.as_deref().filter(|path| *path != Path::new("-")) {
        None => assembled(&mut io::stdin().lock(), Path::new("standard input"))?,
        Some(path) => {
            let file = File::open(path).map_err(|error| Failure::about(path, &error))?;
            assembled(&mut BufReader::new(file), path)?
        }
    };
    window_of(&seen, state)?;
    keeper.save(&seen)?;
    if Screen::shows_summaries(options.quiet) {
        let known = seen.len();
        let report = Report { state: state.clone(), known, took: began.elapsed() };
        Screen::new(false, false, None).say(report);
    }
    Ok(DONE)
}

/// Reads pieces until the filter is complete. What follows is the server's own.
fn assembled(input: &mut impl Read, from: &Path) -> Result<Seen, Failure> {
    let refused = |error: SnapshotError| {
        Failure::new(match error.kind() {
            SnapshotErrorKind::Io => format!("{}: {error}", from.display()),
            _ => format!(
                "{}: {error}; pass the chunks that CF.SCANDUMP returned, all of them in their order",
                from.display()
            ),
        })
    };
    let (mut loader, mut is_first) = (Seen::loader(), true);
    while loader.next().is_some() {
        let is_there = loader.read_from(&mut *input).map_err(refused)?;
        let it_is = match (is_there, is_first) {
            (true, _) if loader.grows() == Some(false) => {
                "this filter has a fixed size (EXPANSION 0); only one that grows can be a state"
            }
            (true, _) => {
                is_first = false;
                continue;
            }
            (false, true) => {
                "it is empty; CF.SCANDUMP has no chunks of an empty filter, so there is nothing to import"
            }
            (false, false) => {
                "it ends before the filter is complete; dump it again, until the cursor is 0"
            }
        };
        return Err(Failure::new(format!("{}: {it_is}", from.display())));
    }
    loader.finish().map_err(refused)
}

struct Report {
    state: PathBuf,
    known: usize,
    took: Duration,
}

impl Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state.display().to_string();
        write!(f, "{}; {}", Holds(&state, self.known, false), Took(self.took.as_secs_f64()))
    }
}
