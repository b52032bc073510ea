//! The figures as text.

use crate::peer::WINDOW;
use crate::stream::{History, Moment, Speed};
use crate::timing::median;
use std::fmt::Write;

/// The figures of a peer in a steady stream.
pub struct Row {
    pub name: &'static str,
    /// Bits for each key of the window, at the end of a tick, and the most of them.
    bits: f64,
    false_positive_rate: f64,
    stays: (u64, u64),
    pub missed: f64,
    /// By number of threads.
    pub speeds: Vec<(u64, Speed)>,
}

/// A peer in the picture.
#[derive(Debug, PartialEq)]
pub struct Line {
    pub name: String,
    pub moments: Vec<Moment>,
}

impl Row {
    /// The figures of the second half of a stream.
    pub fn of(name: &'static str, history: History) -> Row {
        let History { moments, stays, missed } = history;
        let late = &moments[moments.len() / 2..];
        let bits = late.iter().map(|moment| 8.0 * moment.bytes as f64 / moment.items as f64);
        let rates = late.iter().map(|moment| moment.false_positive_rate);
        Row {
            name,
            bits: bits.fold(0.0, f64::max),
            false_positive_rate: rates.sum::<f64>() / late.len() as f64,
            stays,
            missed,
            speeds: Vec::new(),
        }
    }

    fn median(&self, threads: u64, figure: fn(&Speed) -> f64) -> f64 {
        let of = self.speeds.iter().filter(|(of, _)| *of == threads);
        median(of.map(|(_, speed)| figure(speed)))
    }
}

pub fn text(machine: &str, keys: u64, rows: &[Row]) -> String {
    let mut text = format!(
        "{machine}. A stream of {keys} new keys a tick, which are to be remembered for {WINDOW} ticks.\n\
         Bits for each key of the window, at most; how many ticks a key stays, from when it came; keys of\n\
         the window that are missed, and absent ones that are found; milliseconds for a tick; million\n\
         operations a second of one thread and of two, medians: put if absent, of new keys; lookups of keys\n\
         of the window and of absent ones. moka, which has a clock of its own, gets a tenth of the keys.\n\n\
         {:30}{:>7}{:>8}{:>9}{:>10}{:>8}   put 1    2    hit 1    2   miss 1    2\n",
        "", "bits", "stay", "missed", "found", "tick"
    );
    for row in rows {
        let stays = format!("{}–{}", row.stays.0, row.stays.1);
        let _ = write!(
            text,
            "{:30}{:7.1}{stays:>8}{:>9}{:>8.4} %{:8.1}",
            row.name,
            row.bits,
            if row.missed == 0.0 { "none".into() } else { format!("{:.4}%", 100.0 * row.missed) },
            100.0 * row.false_positive_rate,
            row.median(1, |speed| speed.tick),
        );
        let figures: [fn(&Speed) -> f64; 3] = [|of| of.put, |of| of.hit, |of| of.miss];
        for figure in figures {
            let _ = write!(text, "{:8.1}{:5.0}", row.median(1, figure), row.median(2, figure));
        }
        text.push('\n');
    }
    text
}

pub fn csv(lines: &[Line]) -> String {
    let mut text = String::from("peer,tick,items,bytes,false_positive_rate\n");
    for Line { name, moments } in lines {
        for Moment { tick, items, bytes, false_positive_rate } in moments {
            let _ = writeln!(text, "\"{name}\",{tick},{items},{bytes},{false_positive_rate}");
        }
    }
    text
}

/// Reads what `csv` wrote.
pub fn lines_from(csv: &str) -> Result<Vec<Line>, String> {
    let mut lines: Vec<Line> = Vec::new();
    for row in csv.lines().skip(1) {
        let (name, moment) = moment_from(row).ok_or(format!("not a moment of a peer: {row}"))?;
        match lines.last_mut().filter(|line| line.name == name) {
            Some(line) => line.moments.push(moment),
            None => lines.push(Line { name: name.into(), moments: vec![moment] }),
        }
    }
    Ok(lines)
}

fn moment_from(row: &str) -> Option<(&str, Moment)> {
    let (name, figures) = row.strip_prefix('"')?.split_once("\",")?;
    let figures: Vec<&str> = figures.split(',').collect();
    let [tick, items, bytes, rate] = figures[..] else { return None };
    let moment = Moment {
        tick: tick.parse().ok()?,
        items: items.parse().ok()?,
        bytes: bytes.parse().ok()?,
        false_positive_rate: rate.parse().ok()?,
    };
    Some((name, moment))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_survive_the_csv() {
        let moment = |tick| Moment { tick, items: 50, bytes: 80, false_positive_rate: 1.0 / 3.0 };
        let line = |name: &str| Line { name: name.into(), moments: vec![moment(0), moment(1)] };
        let lines = vec![line("koel, growing"), line("moka")];
        assert_eq!(lines_from(&csv(&lines)).unwrap(), lines);
    }

    #[test]
    fn a_broken_csv_is_an_error() {
        for row in ["koel,0,1,2,3", "\"koel\",0,1,2", "\"koel\",0,1,2,3,4", "\"koel\",0,1,2,many"] {
            assert!(lines_from(&format!("heading\n{row}")).is_err(), "{row}");
        }
    }
}
