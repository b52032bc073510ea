//! `koel query`, `koel add` and `koel forget`: look up, add or remove the lines of a state.

use crate::arguments::membership::{Add, Forget, Query};
use crate::commands::job::{Begun, Job};
use crate::commands::report::Ending;
use crate::failure::Failure;
use crate::run::shared::Operation;
use crate::state::lookups::Lookups;
use crate::unsaved;

pub fn query(options: &Query) -> Result<Ending, Failure> {
    let begun = Begun::new(&options.files, &options.input)?;
    let notes = Vec::from_iter(unsaved::note(&options.state));
    let operation = Operation::Find(Box::new(Lookups::open(&options.state)?));
    let job = begun.job(operation, None, Some(&options.state), &options.output.reporting);
    Job { select: !options.invert, output: Some(&options.output), notes, ..job }.run()
}

pub fn add(options: &Add) -> Result<Ending, Failure> {
    let begun = Begun::new(&options.files, &options.input)?;
    let (mut keeper, taken_in) = unsaved::claim(&options.state, &options.waiting)?;
    let (seen, ignored) = keeper.load_or_make(&options.making)?;
    let notes = taken_in.into_iter().chain(ignored).collect();
    let operation = Operation::Add(seen);
    let job = begun.job(operation, Some(keeper), Some(&options.state), &options.reporting);
    Job { making: Some(&options.making), notes, ..job }.run()
}

pub fn forget(options: &Forget) -> Result<Ending, Failure> {
    let begun = Begun::new(&options.files, &options.input)?;
    let (keeper, taken_in) = unsaved::claim(&options.state, &options.waiting)?;
    let operation = Operation::Remove(keeper.load()?);
    let job = begun.job(operation, Some(keeper), Some(&options.state), &options.reporting);
    Job { notes: Vec::from_iter(taken_in), ..job }.run()
}
