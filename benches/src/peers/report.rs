//! The measured figures, and their tables.

use super::sets::KOEL;
use super::workloads::WORKLOADS;
use crate::kit::figures::Table;
use serde::{Deserialize, Serialize};

/// Stands for a peer: reads of one random line for each lookup.
pub const LIMIT: &str = "(one random line)";

/// The figures of a peer at a workload, over all repetitions. Rates are in million operations a second.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    pub peer: String,
    pub workload: String,
    /// The bytes of a table of 16-bit slots that the items fill to 94 %.
    pub size: u64,
    pub threads: u64,
    pub median: f64,
    /// Whether the repetitions count although the machine gave none of them all cores.
    pub short_of_cores: bool,
    pub bits_per_item: f64,
    /// Nothing if there were no absent keys.
    pub false_positive_rate: Option<f64>,
    pub two_winners: u64,
    pub lost: u64,
    pub refused: u64,
    /// The number of answers that a filter of the peer's rate must not give.
    pub wrong: u64,
}

impl Row {
    /// Returns the number of faults that koel must not have: wrong answers, and refusals although there has to be room.
    pub fn bad(&self) -> u64 {
        self.wrong + self.refused
    }
}

pub fn size_name(size: u64) -> String {
    if size < 1 << 20 { format!("{} KiB", size >> 10) } else { format!("{} MiB", size >> 20) }
}

/// Returns the report on the fixed filters, which begins with a note on the run.
pub fn text(note: &str, rows: &[Row]) -> String {
    let each = |print: fn(&str, &[&Row]) -> String| -> String {
        let print = |rows: &[Row]| {
            let Row { size, threads, .. } = rows[0];
            let plural = if threads == 1 { "" } else { "s" };
            let title = format!("{}, {threads} thread{plural}", size_name(size));
            print(&title, &rows.iter().collect::<Vec<&Row>>())
        };
        rows.chunk_by(|a, b| (a.size, a.threads) == (b.size, b.threads)).map(print).collect()
    };
    format!(
        "{note}\nMillion operations a second, medians. An asterisk: the peer takes more than 1.3 times the memory of \
         koel. An exclamation mark: some answers were wrong.\n{}\nkoel : best peer whose answers were right; of all, \
         and of those that take at most a quarter more memory and err at most twice as often. Batches are compared \
         with the loops of the others.\n{}",
        each(table),
        each(ratios)
    )
}

fn table(title: &str, rows: &[&Row]) -> String {
    let columns: Vec<&str> = WORKLOADS.into_iter().chain(["bits/item"]).collect();
    let mut table = Table::new(title, &columns);
    for of_peer in rows.chunk_by(|a, b| a.peer == b.peer) {
        let figure = |workload| {
            let found = of_peer.iter().find(|row| row.workload == workload);
            let mark = if found.is_some_and(|row| row.bad() > 0) { "!" } else { "" };
            found.map_or("-".into(), |row| format!("{:.1}{mark}", row.median))
        };
        let peer = of_peer[0];
        let mark = if is_heavy(rows, peer) { "*" } else { "" };
        let bits = match &*peer.peer {
            LIMIT => "-".into(),
            _ => format!("{:.1}{mark}", peer.bits_per_item),
        };
        table.row(&peer.peer, WORKLOADS.into_iter().map(figure).chain([bits]));
    }
    format!("\n{table}")
}

fn ratios(title: &str, rows: &[&Row]) -> String {
    let mut table = Table::new(title, &["of all", "", "of the small and exact", ""]);
    for koel in rows.iter().filter(|row| row.peer == KOEL) {
        let is_peer = |row: &&&Row| !row.peer.starts_with(KOEL) && row.peer != LIMIT;
        let loops = koel.workload.trim_start_matches("bulk ");
        let others = rows.iter().filter(is_peer).filter(|row| row.workload == loops);
        let right = others.filter(|row| row.bad() == 0);
        let best = |peers: &mut dyn Iterator<Item = &&Row>| {
            let best = peers.max_by(|a, b| a.median.total_cmp(&b.median));
            best.map_or(["-".into(), String::new()], |best| {
                let ratio = koel.median / best.median;
                [format!("{ratio:.2}"), format!("{} {:.1}", best.peer, best.median)]
            })
        };
        let all = best(&mut right.clone());
        let alike = best(&mut right.filter(|row| is_alike(rows, koel, row)));
        table.row(&koel.workload, all.into_iter().chain(alike));
    }
    format!("\n{table}")
}

/// Returns `true` if a peer takes more than 1.3 times the memory that koel takes for the same items.
fn is_heavy(rows: &[&Row], peer: &Row) -> bool {
    let same = |row: &&&Row| row.size == peer.size && row.threads == peer.threads;
    let koel = rows.iter().filter(same).find(|row| row.peer == KOEL);
    koel.is_some_and(|koel| peer.bits_per_item > 1.3 * koel.bits_per_item)
}

/// Returns `true` if a peer takes at most a quarter more memory than koel, and its false-positive rate is at most twice
/// koel's.
fn is_alike(rows: &[&Row], koel: &Row, peer: &Row) -> bool {
    let rate = |name: &str| {
        let misses = rows.iter().find(|row| row.peer == name && row.workload == "miss");
        misses.and_then(|row| row.false_positive_rate).unwrap_or(0.0)
    };
    peer.bits_per_item <= 1.25 * koel.bits_per_item
        && rate(&peer.peer) <= 2.0 * rate(&koel.peer) + 1e-5
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(peer: &str, median: f64, wrong: u64) -> Row {
        Row {
            peer: peer.into(),
            workload: "hit".into(),
            size: 2 << 20,
            threads: 2,
            median,
            short_of_cores: true,
            bits_per_item: 17.1,
            false_positive_rate: None,
            two_winners: 1,
            lost: 3,
            refused: 0,
            wrong,
        }
    }

    #[test]
    fn a_wrong_peer_is_not_the_best_and_nor_is_the_limit() {
        let rows =
            [row(KOEL, 1.5, 0), row("wrong", 1.6, 1), row("slow", 0.5, 0), row(LIMIT, 9.0, 0)];
        let text = ratios("", &rows.each_ref());
        assert!(text.contains("3.00  slow 0.5"), "{text}");
    }

    #[test]
    fn a_heavy_peer_takes_far_more_than_koel_at_its_size() {
        let of = |size, bits_per_item| Row { size, bits_per_item, ..row("peer", 1.0, 0) };
        let koel = |size, bits| Row { peer: KOEL.into(), ..of(size, bits) };
        let (small, large) = (koel(1, 10.0), koel(2, 20.0));
        let heavy = |peer: Row| is_heavy(&[&small, &large], &peer);
        assert!(heavy(of(1, 13.1)) && !heavy(of(1, 12.9)) && !heavy(of(2, 13.1)));
    }
}
