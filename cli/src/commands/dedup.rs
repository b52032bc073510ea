//! `koel dedup`: writes each line the first time it is seen.

use crate::arguments::dedup::Dedup;
use crate::commands::job::{Begun, Job};
use crate::commands::report::{Answer, Ending};
use crate::failure::Failure;
use crate::lines::input;
use crate::lines::streams::{check_output, is_standard_output};
use crate::run::shared::Operation;
use crate::state::keeper;
use crate::unsaved;
use std::time::Duration;

/// The shortest interval between checkpoints.
const SHORTEST_PERIOD: Duration = Duration::from_millis(10);

pub fn dedup(options: &Dedup) -> Result<Ending, Failure> {
    let begun = Begun::new(&options.files, &options.input)?;
    if is_standard_output(options.output.output.as_deref()) {
        // Lines that go nowhere must not be saved as seen.
        check_output()?;
    }
    // New lines that are not written must not be saved as seen.
    let writes_new = !options.output.count && !options.repeated;
    let state = options.state.as_deref();
    let claimed = state.filter(|_| writes_new).map(|state| unsaved::claim(state, &options.waiting));
    let (mut keeper, taken_in) = claimed.transpose()?.unzip();
    let mut notes: Vec<String> = taken_in.flatten().into_iter().collect();
    let (seen, ignored) = match (&mut keeper, state) {
        (Some(keeper), _) => keeper.load_or_make(&options.making)?,
        (None, Some(state)) => {
            notes.extend(unsaved::note(state));
            keeper::load_to_read(state, &options.making)?
        }
        (None, None) => {
            (options.making.build_for(input::total_bytes(&begun.sources).unwrap_or(0))?, None)
        }
    };
    notes.extend(ignored);
    let checkpoint = (options.checkpoint > 0.0)
        .then(|| Duration::from_secs_f64(options.checkpoint).max(SHORTEST_PERIOD));
    let job = Job {
        making: Some(&options.making),
        select: !options.repeated,
        is_lossless: options.lossless,
        limit: options.limit,
        checkpoint,
        output: Some(&options.output),
        kept: keeper.as_ref().map(|_| begun.rules.terminator),
        notes,
        yes_is: "new",
        answer: Answer::of_dedup,
        ..begun.job(Operation::Add(seen), keeper, state, &options.output.reporting)
    };
    job.run()
}
