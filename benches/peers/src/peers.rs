//! The list of the peers. Each is set up as its author would for speed: koel in `koel`, those that
//! threads can share as they are in `concurrent`, those for one thread in `sequential`, and those
//! that grow in `growing`.

mod concurrent;
mod growing;
mod koel;
mod sequential;

use crate::csv::Held;
use crate::growth::{self, Steps};
use crate::peer::{Growing, Locked, Peer};
use crate::plan::Plan;
use crate::workloads::{self, Run};
use concurrent::{AtomicBloom, AtomicCuckoo, DashSet};
use growing::{Foreseen, GrowingKoel, Scalable};
pub use koel::KOEL;
use koel::Koel;
use sequential::{Autoscale, BloomLib, Cuckoofilter, Quotient};

/// A peer in a list of different ones.
pub struct Entry {
    pub name: String,
    pub rate: f64,
    pub run: fn(&Plan) -> Run,
    /// What it holds for this many items, in bytes.
    pub held: fn(u64) -> usize,
}

impl Entry {
    fn of<P: Peer>() -> Entry {
        Entry {
            name: P::name(),
            rate: P::RATE,
            run: workloads::run::<P>,
            held: workloads::held::<P>,
        }
    }
}

pub fn all() -> Vec<Entry> {
    vec![
        Entry::of::<Koel>(),
        Entry::of::<AtomicBloom>(),
        Entry::of::<AtomicCuckoo>(),
        Entry::of::<DashSet>(),
        Entry::of::<Locked<Cuckoofilter, 64>>(),
        Entry::of::<Locked<Autoscale, 64>>(),
        Entry::of::<Locked<BloomLib, 64>>(),
        Entry::of::<Locked<Quotient, 64>>(),
        Entry::of::<Locked<Cuckoofilter, 1>>(),
        Entry::of::<Locked<Autoscale, 1>>(),
        Entry::of::<Locked<BloomLib, 1>>(),
        Entry::of::<Locked<Quotient, 1>>(),
    ]
}

/// A set that grows, in a list of different ones.
pub struct GrowingEntry {
    pub name: &'static str,
    /// What is measured at each doubling.
    pub run: fn(&Steps) -> Vec<growth::Measured>,
    /// The bytes that it holds at many numbers of items.
    pub held: fn(&Steps) -> Vec<Held>,
}

impl GrowingEntry {
    fn of<G: Growing>() -> GrowingEntry {
        GrowingEntry { name: G::NAME, run: growth::run::<G>, held: growth::held::<G> }
    }
}

pub fn all_growing() -> Vec<GrowingEntry> {
    vec![
        GrowingEntry::of::<GrowingKoel>(),
        GrowingEntry::of::<Foreseen>(),
        GrowingEntry::of::<Scalable>(),
        GrowingEntry::of::<Autoscale>(),
        GrowingEntry::of::<DashSet>(),
    ]
}

/// For cuckoo filters that count slots: 95 % of them can be filled.
fn slots_for(items: u64) -> u64 {
    (items as f64 / 0.95).ceil() as u64
}
