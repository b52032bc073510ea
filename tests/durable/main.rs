//! The promises of a filter with a journal.
//!
//! They are a program of their own: some tests fork, and a child has the locks of all filters that are open.
#![cfg(all(unix, feature = "durable"))]

#[path = "../common/mod.rs"]
mod common;

#[path = "../common/process.rs"]
mod process;

mod damage;
mod limits;
mod opening;

use koel::{
    ConcurrentCuckooFilter, DurableError, DurableFilter, DurableOptions, StableHash, SyncPolicy,
};
use process::Place;
use std::path::Path;
use std::time::Duration;

type Builder = koel::Builder<StableHash>;

fn bare() -> Builder {
    ConcurrentCuckooFilter::builder().hasher(StableHash::with_seed(7))
}

/// Fixed and growing, each once without and once with a window of three ticks.
fn builders() -> [Builder; 4] {
    let [fixed, growing] = [bare().capacity(300_000), bare().capacity(1_000).growing()]
        .map(|builder| builder.false_positive_rate(1e-7));
    [fixed.clone(), fixed.remembers(3), growing.clone(), growing.remembers(3)]
}

/// A folder for a state.
fn place() -> Place {
    Place::new("seen.koel")
}

/// Waits for no other process.
fn options(policy: SyncPolicy) -> DurableOptions {
    DurableOptions::default().sync(policy).wait(Duration::ZERO)
}

fn try_open(path: &Path, builder: &Builder) -> Result<DurableFilter, DurableError> {
    DurableFilter::open_with(path, options(SyncPolicy::Never), builder.clone())
}

#[track_caller]
fn open(path: &Path, builder: &Builder) -> DurableFilter {
    try_open(path, builder).expect("a filter")
}

/// Adds items, which are new.
#[track_caller]
fn add(seen: &DurableFilter, items: impl IntoIterator<Item = u64>) {
    items.into_iter().for_each(|item| assert!(seen.insert_if_absent(&item).expect("room")));
}

/// Removes items, which are there.
#[track_caller]
fn remove(seen: &DurableFilter, items: impl IntoIterator<Item = u64>) {
    items.into_iter().for_each(|item| assert!(seen.remove(&item).expect("a change")));
}

fn has(seen: &DurableFilter, items: impl IntoIterator<Item = u64>) -> bool {
    items.into_iter().all(|item| seen.contains(&item))
}

/// Opens a filter, adds items to it, and drops it, so that they are in its journal.
#[track_caller]
fn with_items(path: &Path, builder: &Builder, items: impl IntoIterator<Item = u64>) {
    add(&open(path, builder), items);
}
