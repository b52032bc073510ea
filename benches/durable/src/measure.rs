//! The rounds: each kind in turn, each measurement in a process of its own.

use crate::process::{Figures, on_disk, start, watched};
use crate::set::{Group, Kind, Result};
use crate::worker::ANSWERED;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

/// All figures of a kind: what was measured, in each round.
pub type Measured = BTreeMap<String, Vec<f64>>;

pub struct Plan {
    pub items: u64,
    pub rounds: u64,
    /// How often each is killed while it adds, in each round, and after how long at most.
    pub kills: u64,
    pub longest: Duration,
    /// Where the sets are, each in a folder that goes when it was measured.
    pub folder: PathBuf,
}

impl Plan {
    /// The items that a kind gets: whole transactions.
    pub fn items_of(&self, kind: &Kind) -> u64 {
        (self.items / kind.of).max(1_000).next_multiple_of(1_000)
    }

    /// Measures the kinds.
    pub fn run(&self, kinds: &[&'static Kind]) -> Result<Vec<(&'static Kind, Measured)>> {
        let mut all: Vec<_> = kinds.iter().map(|kind| (*kind, Measured::new())).collect();
        for round in 0..self.rounds {
            for (kind, measured) in &mut all {
                eprint!("\rround {} of {}: {:50}", round + 1, self.rounds, kind.label);
                let scratch = tempfile::tempdir_in(&self.folder)?;
                let failed = |error| format!("{}: {error}", kind.name);
                let mut figures = self.life(kind, scratch.path()).map_err(failed)?;
                figures.remove("process");
                for (name, figure) in figures {
                    measured.entry(name).or_default().push(figure);
                }
            }
        }
        eprintln!();
        Ok(all)
    }

    /// Fills a set, kills its process, opens it twice, and then kills it in the middle of adds.
    fn life(&self, kind: &Kind, scratch: &Path) -> Result<Figures> {
        let items = self.items_of(kind);
        let folder = scratch.join("set");
        fs::create_dir(&folder)?;
        let (filled, most) = watched(&folder, || -> Result<_> {
            let mut work = start(kind, "fill", &folder, items)?;
            let figures = work.figures()?;
            let Some(process) = figures.get("process") else {
                work.end()?;
                return Err("it has ended too early".into());
            };
            work.kill(*process)?;
            Ok(figures)
        });
        let mut figures = filled?;
        if kind.group == Group::Everything {
            return Ok(figures);
        }
        figures.insert("most on disk".into(), most as f64 / items as f64);

        let open = || -> Result<Figures> {
            let mut work = start(kind, "open", &folder, items)?;
            let figures = work.figures()?;
            work.end()?;
            Ok(figures)
        };
        let killed = open()?;
        figures.insert("open after a kill".into(), killed["open"]);
        // What was taken for another item was never added, and may be found to be new now.
        let lost = (killed["lost"] - figures["taken"]).max(0.0);
        figures.insert("lost after the fill".into(), lost);
        start(kind, "settle", &folder, items)?.end()?;
        figures.insert("open".into(), open()?["open"]);
        figures.insert("on disk".into(), on_disk(&folder) as f64 / items as f64);

        // On more threads it is the same set.
        if kind.threads > 1 {
            return Ok(figures);
        }
        let (mut answered, mut lost) = (0, 0.0_f64);
        for kill in 0..self.kills {
            fs::remove_dir_all(&folder)?;
            fs::create_dir(&folder)?;
            let mut work = start(kind, "add", &folder, items)?;
            let figures = work.figures()?;
            let process = *figures.get("process").ok_or("it has ended too early")?;
            sleep(self.longest.mul_f64((kill as f64 + 0.7) / self.kills as f64));
            // Some are slow.
            while fs::metadata(scratch.join(ANSWERED)).map_or(0, |about| about.len()) == 0 {
                sleep(Duration::from_millis(1));
            }
            work.kill(process)?;
            let notes = fs::read(scratch.join(ANSWERED))?;
            fs::remove_file(scratch.join(ANSWERED))?;
            let [count, taken] = notes.as_chunks().0 else { return Err("no notes".into()) };
            let [count, taken] = [count, taken].map(|note| u64::from_le_bytes(*note));
            let mut work = start(kind, "open", &folder, count)?;
            lost = lost.max(work.figures()?["lost"] - taken as f64);
            work.end()?;
            answered += count;
        }
        figures.insert("answered".into(), answered as f64);
        figures.insert("lost".into(), lost);
        Ok(figures)
    }
}
