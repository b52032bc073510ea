//! The measured figures, and how they are written to CSV files and read back.

use crate::json::{koel_version, listed, number, quoted};
use crate::machine::{Machine, Processor};
use std::fmt::Write;

/// The figures of a peer at a workload, over all repetitions. Rates are in million operations a
/// second.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub peer: String,
    pub workload: String,
    /// The bytes of a table of 16-bit slots that the items fill to 94 %.
    pub size: u64,
    pub threads: u64,
    pub median: f64,
    pub min: f64,
    pub max: f64,
    /// The number of repetitions that count.
    pub reps: u64,
    /// Whether the repetitions count although the machine gave none of them all cores.
    pub short_of_cores: bool,
    pub bits_per_item: f64,
    /// NaN if no absent key was looked up.
    pub false_positive_rate: f64,
    pub two_winners: u64,
    pub no_winner: u64,
    pub lost: u64,
    pub refused: u64,
    /// The number of answers that a filter of the peer's rate must not give.
    pub wrong: u64,
    /// Whether it was read from the CSV file of an earlier run, perhaps on another machine.
    pub is_earlier: bool,
}

/// The bytes that a peer holds when it contains this many items.
#[derive(Clone, Debug, PartialEq)]
pub struct Held {
    pub peer: String,
    pub items: u64,
    pub bytes: u64,
}

/// The figures of a set that has grown to this many items, over all repetitions. Rates are in
/// million operations a second. The rate of the fill is measured from the first item on.
#[derive(Clone, Debug, PartialEq)]
pub struct Grown {
    pub peer: String,
    pub items: u64,
    pub fill: f64,
    pub hit: f64,
    pub miss: f64,
    pub false_positive_rate: f64,
    pub bytes: u64,
    pub lost: u64,
}

const ROWS: &str = "peer,workload,size,threads,median,min,max,reps,short of cores,bits per item,\
                    false-positive rate,two winners,no winner,lost,refused,wrong";
const HELD: &str = "peer,items,bytes";
const GROWN: &str = "peer,items,fill,hit,miss,false-positive rate,bytes,lost";

pub fn text_of_rows(rows: &[Row]) -> String {
    let mut csv = format!("{ROWS}\n");
    for row in rows {
        let Row { peer, workload, size, threads, median, min, max, reps, .. } = row;
        let Row { short_of_cores, two_winners, no_winner, lost, refused, wrong, .. } = row;
        let (bits, rate) = (row.bits_per_item, row.false_positive_rate);
        let rate = if rate.is_nan() { String::new() } else { format!("{rate:e}") };
        writeln!(
            csv,
            "{peer},{workload},{size},{threads},{median},{min},{max},{reps},{short_of_cores},\
             {bits},{rate},{two_winners},{no_winner},{lost},{refused},{wrong}"
        )
        .expect("a string takes all");
    }
    csv
}

/// The same as JSON, with the machine of this run, and whether a row is of an earlier one.
pub fn json_of_rows(machine: &Machine, rows: &[Row]) -> String {
    let row = |row: &Row| {
        let rate = row.false_positive_rate;
        let rate = if rate.is_nan() { "null".into() } else { format!("{rate:e}") };
        format!(
            "{{\"peer\": {}, \"workload\": {}, \"size\": {}, \"threads\": {}, \"median\": {}, \"min\": {}, \"max\": {}, \
             \"reps\": {}, \"short_of_cores\": {}, \"bits_per_item\": {}, \"false_positive_rate\": {rate}, \
             \"two_winners\": {}, \"no_winner\": {}, \"lost\": {}, \"refused\": {}, \"wrong\": {}, \
             \"is_earlier\": {}}}",
            quoted(&row.peer),
            quoted(&row.workload),
            row.size,
            row.threads,
            number(Some(row.median)),
            number(Some(row.min)),
            number(Some(row.max)),
            row.reps,
            row.short_of_cores,
            number(Some(row.bits_per_item)),
            row.two_winners,
            row.no_winner,
            row.lost,
            row.refused,
            row.wrong,
            row.is_earlier,
        )
    };
    format!(
        "{{\n\"koel\": {},\n\"model\": {},\n\"processors\": [\n{}\n],\n\"throughput\": [\n{}\n]\n}}\n",
        koel_version(),
        quoted(&machine.model),
        listed(machine.processors.iter().map(Processor::json)),
        listed(rows.iter().map(row)),
    )
}

pub fn rows_from(csv: &str) -> Result<Vec<Row>, String> {
    let row = |mut fields: Fields<'_>| {
        Ok(Row {
            peer: fields.text()?,
            workload: fields.text()?,
            size: fields.number()?,
            threads: fields.number()?,
            median: fields.number()?,
            min: fields.number()?,
            max: fields.number()?,
            reps: fields.number()?,
            short_of_cores: fields.number()?,
            bits_per_item: fields.number()?,
            false_positive_rate: fields.number().unwrap_or(f64::NAN),
            two_winners: fields.number()?,
            no_winner: fields.number()?,
            lost: fields.number()?,
            refused: fields.number()?,
            wrong: fields.number()?,
            is_earlier: true,
        })
    };
    lines(csv).map(row).collect()
}

pub fn text_of_held(held: &[Held]) -> String {
    let lines = held.iter().map(|Held { peer, items, bytes }| format!("{peer},{items},{bytes}\n"));
    format!("{HELD}\n{}", lines.collect::<String>())
}

pub fn held_from(csv: &str) -> Result<Vec<Held>, String> {
    let held = |mut fields: Fields<'_>| {
        Ok(Held { peer: fields.text()?, items: fields.number()?, bytes: fields.number()? })
    };
    lines(csv).map(held).collect()
}

pub fn text_of_grown(grown: &[Grown]) -> String {
    let line = |grown: &Grown| {
        let Grown { peer, items, fill, hit, miss, false_positive_rate: rate, bytes, lost } = grown;
        format!("{peer},{items},{fill},{hit},{miss},{rate:e},{bytes},{lost}\n")
    };
    format!("{GROWN}\n{}", grown.iter().map(line).collect::<String>())
}

pub fn grown_from(csv: &str) -> Result<Vec<Grown>, String> {
    let grown = |mut fields: Fields<'_>| {
        Ok(Grown {
            peer: fields.text()?,
            items: fields.number()?,
            fill: fields.number()?,
            hit: fields.number()?,
            miss: fields.number()?,
            false_positive_rate: fields.number()?,
            bytes: fields.number()?,
            lost: fields.number()?,
        })
    };
    lines(csv).map(grown).collect()
}

/// Returns the lines after the heading.
fn lines(csv: &str) -> impl Iterator<Item = Fields<'_>> {
    csv.lines().skip(1).map(|line| Fields { line, rest: line.split(',') })
}

struct Fields<'a> {
    line: &'a str,
    rest: std::str::Split<'a, char>,
}

impl Fields<'_> {
    fn text(&mut self) -> Result<String, String> {
        self.rest.next().map(String::from).ok_or(format!("a field is missing in {}", self.line))
    }

    fn number<T: std::str::FromStr>(&mut self) -> Result<T, String> {
        let text = self.text()?;
        text.parse().map_err(|_| format!("{text} is not a number in {}", self.line))
    }
}

impl Row {
    /// Returns the number of faults that koel must not have: wrong answers, and refusals although
    /// there has to be room.
    pub fn bad(&self) -> u64 {
        self.wrong + self.refused
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    pub fn row() -> Row {
        Row {
            peer: "bloom-lib (64 shards)".into(),
            workload: "hit".into(),
            size: 2 << 20,
            threads: 2,
            median: 1.5,
            min: 1.25,
            max: 2.0 / 3.0,
            reps: 9,
            short_of_cores: true,
            bits_per_item: 17.1,
            false_positive_rate: 1.2e-4,
            two_winners: 1,
            no_winner: 2,
            lost: 3,
            refused: 4,
            wrong: 5,
            is_earlier: true,
        }
    }

    #[test]
    fn rows_survive_the_csv() {
        let without_rate = Row { false_positive_rate: f64::NAN, ..row() };
        let rows = rows_from(&text_of_rows(&[row(), without_rate])).unwrap();
        assert_eq!(rows[0], row());
        assert!(rows[1].false_positive_rate.is_nan());
        let held = [Held { peer: "koel".into(), items: 10, bytes: 208 }];
        assert_eq!(held_from(&text_of_held(&held)).unwrap(), held);
        let grown = [Grown {
            peer: "DashSet".into(),
            items: 4_096,
            fill: 20.5,
            hit: 30.0,
            miss: 1.0 / 3.0,
            false_positive_rate: 0.0,
            bytes: 80_000,
            lost: 0,
        }];
        assert_eq!(grown_from(&text_of_grown(&grown)).unwrap(), grown);
    }

    #[test]
    fn a_broken_csv_is_an_error() {
        assert!(rows_from("heading\nkoel,hit,many").is_err());
    }
}
