//! koel, in memory and with its journal.

use crate::set::{Kind, Result, Set, item};
use crate::timing::share;
use koel::{Builder, ConcurrentCuckooFilter, DurableFilter, StableHash, SyncPolicy};
use std::ops::Range;
use std::path::Path;

/// One in a million, from a table that is made for an eighth of the items and grows.
pub fn builder(items: u64) -> Builder<StableHash> {
    let builder = ConcurrentCuckooFilter::builder().hasher(StableHash::random());
    builder.false_positive_rate(1e-6).capacity((items / 8).max(1) as usize).growing()
}

struct Memory {
    filter: ConcurrentCuckooFilter<StableHash>,
    threads: u64,
}

struct Durable {
    filter: DurableFilter,
    threads: u64,
    step: u64,
}

pub fn memory(kind: &Kind, _: &Path, items: u64) -> Result<Box<dyn Set>> {
    Ok(Box::new(Memory { filter: builder(items).build()?, threads: kind.threads }))
}

pub fn never(kind: &Kind, folder: &Path, items: u64) -> Result<Box<dyn Set>> {
    durable(kind, folder, items, SyncPolicy::Never)
}

pub fn every_second(kind: &Kind, folder: &Path, items: u64) -> Result<Box<dyn Set>> {
    durable(kind, folder, items, SyncPolicy::default())
}

pub fn each(kind: &Kind, folder: &Path, items: u64) -> Result<Box<dyn Set>> {
    durable(kind, folder, items, SyncPolicy::Each)
}

fn durable(kind: &Kind, folder: &Path, items: u64, policy: SyncPolicy) -> Result<Box<dyn Set>> {
    let filter =
        DurableFilter::open_with(folder.join("seen.koel"), policy, || builder(items).build())?;
    Ok(Box::new(Durable { filter, threads: kind.threads, step: kind.step }))
}

/// Shares the items out to threads, and adds up what these return.
fn on_threads(
    threads: u64,
    items: Range<u64>,
    work: impl Fn(Range<u64>) -> Result<u64> + Sync,
) -> Result<u64> {
    if threads == 1 {
        return work(items);
    }
    let (start, count) = (items.start, items.end - items.start);
    std::thread::scope(|scope| {
        let shares = (0..threads).map(|thread| share(count, threads, thread));
        let work = &work;
        let spawned: Vec<_> =
            shares.map(|it| scope.spawn(move || work(start + it.start..start + it.end))).collect();
        spawned.into_iter().map(|thread| thread.join().expect("no work panics")).sum()
    })
}

impl Set for Memory {
    fn add(&mut self, items: Range<u64>) -> Result<u64> {
        let filter = &self.filter;
        on_threads(self.threads, items, |mut items| {
            items.try_fold(0, |new, number| {
                Ok(new + u64::from(filter.insert_if_absent(&item(number))?))
            })
        })
    }

    fn look_up(&mut self, items: Range<u64>) -> Result<u64> {
        let filter = &self.filter;
        on_threads(self.threads, items, |items| {
            Ok(items.filter(|&number| filter.contains(&item(number))).count() as u64)
        })
    }
}

impl Set for Durable {
    fn add(&mut self, items: Range<u64>) -> Result<u64> {
        let (filter, step) = (&self.filter, self.step);
        on_threads(self.threads, items, |mut items| {
            if step == 1 {
                return items.try_fold(0, |new, number| {
                    Ok(new + u64::from(filter.insert_if_absent(&item(number))?))
                });
            }
            let mut new = 0;
            while !items.is_empty() {
                let batch: Vec<u64> = items.by_ref().take(step as usize).map(item).collect();
                for answer in filter.insert_if_absent_many(&batch)? {
                    new += u64::from(answer?);
                }
            }
            Ok(new)
        })
    }

    fn look_up(&mut self, items: Range<u64>) -> Result<u64> {
        let (filter, step) = (&self.filter, self.step);
        on_threads(self.threads, items, |mut items| {
            if step == 1 {
                return Ok(items.filter(|&number| filter.contains(&item(number))).count() as u64);
            }
            let mut found = 0;
            while !items.is_empty() {
                let batch: Vec<u64> = items.by_ref().take(step as usize).map(item).collect();
                found += filter.contains_many(&batch).into_iter().map(u64::from).sum::<u64>();
            }
            Ok(found)
        })
    }

    fn settle(&mut self) -> Result<()> {
        Ok(self.filter.checkpoint()?)
    }
}
