//! The list of the peers. Each is set up as its author would for speed.
//!
//! * `koel` has koel.
//! * `concurrent` has the peers that threads can share as they are.
//! * `sequential` has the single-threaded peers.
//! * `growing` has the peers that grow.

mod concurrent;
mod growing;
mod koel;
mod sequential;

use crate::csv::Held;
use crate::growth::{self, Steps};
use crate::peer::{Growing, Locked, Peer};
use crate::plan::Plan;
use crate::workloads::{self, Run, Streams};
use concurrent::{AtomicBloom, AtomicCuckoo, DashSet};
use growing::{Foreseen, Scalable};
use koel::{FromNothing, Koel};
pub use koel::{KOEL, KOEL_GROWING};
use sequential::{Autoscale, BloomLib, Cuckoofilter, Quotient};

/// A peer without its type, so that different ones fit one list.
pub struct Entry {
    pub name: String,
    pub rate: f64,
    pub run: fn(&Plan, &Streams) -> Run,
    pub only_crawl: fn(&Plan, &Streams) -> Run,
    /// Measures the bytes that the peer holds with this many items.
    pub held: fn(u64) -> usize,
}

impl Entry {
    fn of<P: Peer>() -> Entry {
        Entry {
            name: P::name(),
            rate: P::RATE,
            run: workloads::run::<P>,
            only_crawl: workloads::only_crawl::<P>,
            held: workloads::held::<P>,
        }
    }
}

pub fn all() -> Vec<Entry> {
    vec![
        Entry::of::<Koel>(),
        Entry::of::<FromNothing>(),
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

/// A set that grows, without its type, so that different ones fit one list.
pub struct GrowingEntry {
    pub name: &'static str,
    /// Measures the set at each doubling.
    pub run: fn(&Steps) -> Vec<growth::Measured>,
    /// Measures the bytes that the set holds at many numbers of items.
    pub held: fn(&Steps) -> Vec<Held>,
}

impl GrowingEntry {
    fn of<G: Growing>() -> GrowingEntry {
        GrowingEntry { name: G::NAME, run: growth::run::<G>, held: growth::held::<G> }
    }
}

pub fn all_growing() -> Vec<GrowingEntry> {
    vec![
        GrowingEntry::of::<Koel>(),
        GrowingEntry::of::<Foreseen>(),
        GrowingEntry::of::<Scalable>(),
        GrowingEntry::of::<Autoscale>(),
        GrowingEntry::of::<DashSet>(),
    ]
}
