//! Counts what each operation reads and writes of the memory that threads share, and compares the
//! counts with the tables of `benches/cores.md`.
//!
//! The counts are those of one thread: what an operation does when no other is in its way.

mod accesses;
mod workloads;

use accesses::Tally;
use koel_counted::counting::Note;
use koel_counted::{ConcurrentCuckooFilter, Room};
use std::collections::BTreeMap;
use std::fmt::Write;
use workloads::{Filter, Tallies, fixed, growing, operations};

/// The part of the operations of a kind that has to have the same counts. The others met a false
/// positive, or had something to do over again after a split.
const MOST: f64 = 0.97;

#[test]
fn the_page_has_the_counts_of_each_operation() {
    let (in_fixed, in_growing) = (typical(operations(&fixed())), typical(operations(&growing())));
    let mut text = String::from(
        "| operation | locks | loads of words | of versions | of the directory | swaps of locks \
         | stores to locks | to counts | to words | to versions |\n\
         |---|---|---|---|---|---|---|---|---|---|\n",
    );
    for (((_, name, locks, versions), fixed), (kind, growing)) in in_fixed.iter().zip(&in_growing) {
        assert_eq!((*name, *locks, *versions), (kind.1, kind.2, kind.3));
        write!(text, "| {name} | {locks} |").expect("a string takes all");
        for (fixed, growing) in fixed.cells().into_iter().zip(growing.cells()) {
            let both = format!("{fixed} / {growing}");
            write!(text, " {} |", if fixed == growing { fixed } else { both })
                .expect("a string takes all");
        }
        text.push('\n');
    }
    assert_eq!(in_fixed.len(), in_growing.len());
    assert_in_page(&text);
}

/// The counts that most operations of a kind have, by name and the numbers of locks and of stores to
/// versions.
fn typical(operations: Vec<Tallies>) -> BTreeMap<(usize, &'static str, u64, u64), Tally> {
    let mut kinds = BTreeMap::<_, BTreeMap<Tally, u64>>::new();
    for (number, (name, tallies)) in operations.into_iter().enumerate() {
        for tally in tallies {
            let counts = kinds.entry((number, name, tally.locks(), tally.versions())).or_default();
            *counts.entry(tally).or_default() += 1;
        }
    }
    let of_most = |((number, name, locks, versions), counts): (_, BTreeMap<Tally, u64>)| {
        let all: u64 = counts.values().sum();
        let (tally, times) = counts.iter().max_by_key(|(_, times)| **times).expect("a tally");
        let is_rare = all < 100;
        assert!(is_rare || *times as f64 >= MOST * all as f64, "{name}, {locks} locks: {counts:?}");
        (!is_rare).then_some(((number, name, locks, versions), *tally))
    };
    kinds.into_iter().filter_map(of_most).collect()
}

#[test]
fn the_page_has_the_means_of_each_workload() {
    let mut text = String::from(
        "| workload | words | of them written | versions | of them written | locks |\n\
         |---|---|---|---|---|---|\n",
    );
    let of_fixed = workloads::workloads(fixed).into_iter().map(|it| ("fixed", it));
    let of_growing = workloads::workloads(growing).into_iter().map(|it| ("growing", it));
    for (room, (name, touched, operations)) in of_fixed.chain(of_growing) {
        write!(text, "| {room}: {name} |").expect("a string takes all");
        for sum in touched.sums() {
            write!(text, " {:.2} |", sum as f64 / operations as f64).expect("a string takes all");
        }
        text.push('\n');
    }
    assert_in_page(&text);
}

#[test]
fn a_list_has_one_lock_which_lookups_take_too() {
    for (name, tallies) in workloads::listed() {
        for tally in tallies {
            assert_eq!(tally, Tally::of_other_swaps(2), "{name}");
        }
    }
}

#[test]
fn the_removal_of_an_item_older_than_a_split_changes_one_figure_of_its_shard() {
    let tallies = workloads::removals_of_old_items();
    assert!(tallies.iter().all(|tally| tally.other_swaps == 1 && tally.words() == 1));
}

#[test]
fn figures_take_no_longer_in_a_large_filter_unless_they_count_items() {
    let large = || ConcurrentCuckooFilter::builder().capacity(30_000_000);
    for builder in [large(), large().remembers(14)] {
        check_figures(&builder.clone().build().expect("memory"));
        check_figures(&builder.growing().false_positive_rate(0.001).build().expect("memory"));
    }
}

fn check_figures<R: Room>(filter: &Filter<R>) {
    let buckets = filter.buckets();
    for (name, most, notes) in workloads::figures(filter) {
        assert!(notes.len() <= most, "{name}: {} accesses, {buckets} buckets", notes.len());
        let is_word = |note: &Note| note.file == "table/mod.rs";
        assert!(!notes.iter().any(is_word), "{name} reads items");
    }
}

/// So an operation fetches both at once.
#[test]
fn a_lock_and_its_count_are_in_one_cache_line() {
    for notes in workloads::some_inserts() {
        let [locks, counts] = ["table/lock.rs", "count"].map(|kind| accesses::eights(&notes, kind));
        assert!(!counts.is_empty() && counts.is_subset(&locks), "{locks:?} {counts:?}");
    }
}

fn assert_in_page(table: &str) {
    let page = include_str!("../../../benches/cores.md");
    assert!(page.contains(table), "benches/cores.md should have this table:\n{table}");
}
