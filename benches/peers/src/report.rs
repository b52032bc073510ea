//! The figures as readable tables.

use crate::csv::{Grown, Row};
use crate::peers::KOEL;
use crate::workloads::WORKLOADS;
use std::collections::BTreeSet;

pub fn size_name(size: u64) -> String {
    if size < 1 << 20 { format!("{} KiB", size >> 10) } else { format!("{} MiB", size >> 20) }
}

/// Returns the report on the fixed filters, with a note on what was measured.
pub fn text(machine: &str, note: &str, rows: &[Row]) -> String {
    let cells: BTreeSet<(u64, u64)> = rows.iter().map(|row| (row.size, row.threads)).collect();
    let each = |print: fn(&str, &[&Row]) -> String| -> String {
        let print = |&(size, threads): &(u64, u64)| {
            let of = |row: &&Row| row.size == size && row.threads == threads;
            let plural = if threads == 1 { "" } else { "s" };
            let title = format!("{}, {threads} thread{plural}", size_name(size));
            print(&title, &rows.iter().filter(of).collect::<Vec<&Row>>())
        };
        cells.iter().map(print).collect()
    };
    format!(
        "{machine}. Million operations a second, medians.\n\
         An asterisk: the peer takes more than 1.3 times the memory of koel.\n{note}{}{}\n\
         koel : best peer whose answers were right; of all, and of those that take at most a \
         quarter more memory and err at most twice as often\n{}",
        each(table),
        quirks(rows),
        each(ratios)
    )
}

/// Returns the report on the sets that grow, at each doubling.
pub fn growth(machine: &str, grown: &[Grown]) -> String {
    let mut text = format!(
        "{machine}. Sets that grow, on one thread. Million operations a second, medians; the fill \
         is that of all items so far.\n"
    );
    let mut peer = "";
    for row in grown {
        if row.peer != peer {
            peer = &row.peer;
            let columns = "      fill       hit      miss   false positives  bytes/item";
            text += &format!("\n{peer:26}{columns}\n");
        }
        let Grown { items, fill, hit, miss, false_positive_rate, bytes, lost, .. } = row;
        let (percent, each) = (100.0 * false_positive_rate, *bytes as f64 / *items as f64);
        text += &format!("{items:26}{fill:10.1}{hit:10.1}{miss:10.1}{percent:16.4} %{each:12.2}");
        text += &if *lost == 0 { "\n".into() } else { format!("  {lost} lost!\n") };
    }
    text
}

fn table(title: &str, rows: &[&Row]) -> String {
    let mut text = format!("\n{title:36}");
    let shown: Vec<&str> =
        WORKLOADS.into_iter().filter(|name| rows.iter().any(|row| row.workload == *name)).collect();
    shown.iter().for_each(|name| text += &format!(" {name:>9}"));
    text += "  bits/item\n";
    let mut peers: Vec<&str> = rows.iter().map(|row| &*row.peer).collect();
    peers.dedup();
    for peer in peers {
        text += &format!("{peer:36}");
        for workload in &shown {
            let found = rows.iter().find(|row| row.peer == peer && row.workload == *workload);
            let figure = found.map_or("-".into(), |row| {
                format!("{:.1}{}", row.median, if row.bad() > 0 { "!" } else { "" })
            });
            text += &format!(" {figure:>width$}", width = workload.len().max(9));
        }
        let row = rows.iter().find(|row| row.peer == peer).expect("a peer has rows");
        let mark = if is_heavy(rows, row) { "*" } else { "" };
        text += &format!("  {:9.1}{mark}\n", row.bits_per_item);
    }
    text
}

/// Returns the notes to the figures: wrong answers and refusals, which have exclamation marks in
/// the tables, and measurements without all cores.
fn quirks(rows: &[Row]) -> String {
    let mut text = String::new();
    for row in rows.iter().filter(|row| row.bad() > 0 && !row.workload.starts_with("bulk")) {
        let Row { peer, workload, threads, lost, refused, wrong, .. } = row;
        let size = size_name(row.size);
        text += &format!(
            "! {peer}, {workload}, {size}, {threads} threads: {lost} lost, {refused} refused, \
             {} keys had two winners, {} had none, {wrong} wrong answers in all\n",
            row.two_winners, row.no_winner
        );
    }
    let short = rows.iter().filter(|row| row.short_of_cores).count();
    if short > 0 {
        let all = rows.iter().filter(|row| row.threads > 1).count();
        text += &format!(
            "{short} of {all} figures on several threads count although the machine never gave \
             all cores\n"
        );
    }
    if text.is_empty() { text } else { format!("\n{text}") }
}

fn ratios(title: &str, rows: &[&Row]) -> String {
    let mut text = format!("\n{title:31}{:48}of the small and exact\n", "of all");
    for koel in rows.iter().filter(|row| row.peer == KOEL) {
        let others = || {
            rows.iter().filter(|row| !row.peer.starts_with(KOEL) && row.workload == koel.workload)
        };
        let best = |peers: &mut dyn Iterator<Item = &&Row>| -> String {
            let best = peers.max_by(|a, b| a.median.total_cmp(&b.median));
            best.map_or("-".into(), |best| {
                let ratio = koel.median / best.median;
                format!("{ratio:5.2}  {} {:.1}", best.peer, best.median)
            })
        };
        let all = best(&mut others().filter(|row| row.bad() == 0));
        let alike = best(&mut others().filter(|row| row.bad() == 0 && is_alike(rows, koel, row)));
        text += &format!("  {:28} {all:47} {alike}\n", koel.workload);
        for row in others().filter(|row| row.bad() > 0 && row.median > koel.median) {
            text += &format!("{:31}({} has {:.1}, and wrong answers)\n", "", row.peer, row.median);
        }
    }
    text
}

/// Returns `true` if a peer takes more than 1.3 times the memory that koel takes for the same
/// items.
pub fn is_heavy(rows: &[&Row], peer: &Row) -> bool {
    let same = |row: &&&Row| row.size == peer.size && row.threads == peer.threads;
    let koel = rows.iter().filter(same).find(|row| row.peer == KOEL);
    koel.is_some_and(|koel| peer.bits_per_item > 1.3 * koel.bits_per_item)
}

/// Returns `true` if a peer takes at most a quarter more memory than koel, and its false-positive
/// rate is at most twice koel's.
fn is_alike(rows: &[&Row], koel: &Row, peer: &Row) -> bool {
    let rate = |name: &str| {
        let misses = rows.iter().find(|row| row.peer == name && row.workload == "miss");
        misses.map_or(0.0, |row| row.false_positive_rate)
    };
    peer.bits_per_item <= 1.25 * koel.bits_per_item
        && rate(&peer.peer) <= 2.0 * rate(&koel.peer) + 1e-5
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::csv::tests::row;

    #[test]
    fn a_wrong_peer_is_not_the_best() {
        let koel = Row { peer: KOEL.into(), wrong: 0, refused: 0, ..row() };
        let slower = Row { peer: "slower".into(), median: 0.5, ..koel.clone() };
        let text = ratios("", &[&koel, &row(), &slower]);
        assert!(text.contains("3.00  slower"), "{text}");
    }

    #[test]
    fn a_heavy_peer_takes_far_more_than_koel_at_its_size() {
        let koel = Row { peer: KOEL.into(), bits_per_item: 10.0, ..row() };
        let larger = Row { size: 2 * koel.size, bits_per_item: 20.0, ..koel.clone() };
        let peer = |size, bits_per_item| Row { size, bits_per_item, ..row() };
        let heavy = |peer: Row| is_heavy(&[&larger, &koel], &peer);
        assert!(heavy(peer(koel.size, 13.1)) && !heavy(peer(koel.size, 12.9)));
        assert!(!heavy(peer(larger.size, 13.1)));
    }
}
