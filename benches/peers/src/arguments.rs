//! The command line.

use crate::machine::MACHINE;
use crate::peers;
use crate::workloads::WORKLOADS;
use std::path::PathBuf;

pub const HELP: &str = "\
usage: cargo run --release -p koel-peers -- [FLAGS]

  --sizes 2,32,128  table sizes, in MiB
  --threads 1,2     numbers of threads (default: powers of two, one cache full, one package full, all cores, all
                    processors)
  --reps N          repetitions (default: fewer for larger tables, and as many as --minutes allows)
  --minutes N       about how long it may take (default: 60), a fifth of it for the sets that grow. But everything is
                    done once, however long that takes
  --grow-to 22      sets that grow are measured up to 2^22 items, from a 1024th of that on
  --only NAME       only the peers, or else only the workloads, with NAME in their names;
                    or only growth, the sets that grow; or only fixed, all but these
  --out DIRECTORY   where results go (default: benches/peers/results)
  --plot-only       draw the plots again from the CSV files in the directory
  --test            a tiny run of everything, into a scratch directory
";

/// Names the measurement of growing sets, which is not a workload.
const GROWTH: &str = "growth";
/// Names all workloads of fixed filters together.
const FIXED: &str = "fixed";

#[derive(Debug)]
pub enum Request {
    Run(Arguments),
    Help,
}

#[derive(Debug, PartialEq)]
pub struct Arguments {
    /// Table sizes in bytes.
    pub sizes: Vec<u64>,
    pub threads: Vec<u64>,
    pub reps: Option<u64>,
    pub minutes: u64,
    /// Indices into the list of peers.
    pub peers: Vec<usize>,
    pub workloads: Vec<&'static str>,
    /// Whether the sets that grow are measured. They grow to two to the power of `grow_to`.
    pub growth: bool,
    pub grow_to: u32,
    pub out: PathBuf,
    pub plot_only: bool,
    pub test: bool,
}

impl Arguments {
    pub fn parse(mut args: impl Iterator<Item = String>) -> Result<Request, String> {
        let names: Vec<String> = peers::all().into_iter().map(|peer| peer.name).collect();
        let results = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/results"));
        let mut parsed = Arguments {
            sizes: vec![2 << 20, 32 << 20, 128 << 20],
            threads: default_threads(),
            reps: None,
            minutes: 60,
            peers: (0..names.len()).collect(),
            workloads: WORKLOADS.to_vec(),
            growth: true,
            grow_to: 22,
            out: results.clone(),
            plot_only: false,
            test: false,
        };
        while let Some(flag) = args.next() {
            let mut value = || args.next().ok_or(format!("{flag} needs a value"));
            match flag.as_str() {
                "--sizes" => {
                    let sizes = numbers(&flag, &value()?, 8_192)?;
                    parsed.sizes = sizes.into_iter().map(|size| size << 20).collect();
                }
                "--threads" => parsed.threads = numbers(&flag, &value()?, 1_024)?,
                "--reps" => parsed.reps = Some(number(&flag, &value()?, 10_000)?),
                "--minutes" => parsed.minutes = number(&flag, &value()?, 10_000)?.max(1),
                "--grow-to" => parsed.grow_to = number(&flag, &value()?, 32)?.max(10) as u32,
                "--only" => parsed.only(&value()?, &names)?,
                "--out" => parsed.out = PathBuf::from(value()?),
                "--plot-only" => parsed.plot_only = true,
                "--test" => parsed.test = true,
                "--help" | "-h" => return Ok(Request::Help),
                _ => return Err(format!("unknown flag {flag}")),
            }
        }
        if parsed.test {
            parsed.sizes = vec![64 << 10, 256 << 10];
            parsed.threads = vec![1, 2, 3];
            parsed.grow_to = 16;
            if parsed.out == results {
                parsed.out = std::env::temp_dir().join("koel-peers-test");
            }
        }
        Ok(Request::Run(parsed))
    }

    /// Returns whether some peers or workloads of the fixed filters are left out.
    pub fn is_part(&self) -> bool {
        self.workloads.len() < WORKLOADS.len() || self.peers.len() < peers::all().len()
    }

    /// Returns the note to the figures of a part.
    pub fn note(&self) -> String {
        let peers = if self.peers.len() < peers::all().len() { "some" } else { "all" };
        let workloads = self.workloads.join(", ");
        format!(
            "The last run measured {workloads}, for {peers} peers. The other figures are from \
             earlier runs.\n"
        )
    }

    fn only(&mut self, name: &str, names: &[String]) -> Result<(), String> {
        let peers: Vec<usize> = (0..names.len()).filter(|&at| names[at].contains(name)).collect();
        let workloads: Vec<_> =
            WORKLOADS.into_iter().filter(|known| known.contains(name)).collect();
        self.growth = name == GROWTH;
        if self.growth {
            self.workloads.clear();
        } else if name == FIXED {
            // All peers and workloads.
        } else if !peers.is_empty() {
            self.peers = peers;
        } else if !workloads.is_empty() {
            self.workloads = workloads;
        } else {
            let all = [&names.join(", "), &WORKLOADS.join(", "), GROWTH, FIXED].join("; ");
            return Err(format!("--only {name}: there are {all}"));
        }
        Ok(())
    }
}

fn default_threads() -> Vec<u64> {
    let counts = MACHINE.counts().into_iter().map(|count| count as u64);
    // On one processor, two threads at least take turns.
    if counts.len() < 2 { vec![1, 2] } else { counts.collect() }
}

fn numbers(flag: &str, list: &str, most: u64) -> Result<Vec<u64>, String> {
    let mut numbers =
        list.split(',').map(|one| number(flag, one, most)).collect::<Result<Vec<u64>, String>>()?;
    numbers.sort_unstable();
    numbers.dedup();
    Ok(numbers)
}

fn number(flag: &str, text: &str, most: u64) -> Result<u64, String> {
    match text.trim().parse() {
        Ok(number) if (1..=most).contains(&number) => Ok(number),
        _ => Err(format!("{flag} {text}: a number from 1 to {most} is needed")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Arguments, String> {
        match Arguments::parse(line.split_whitespace().map(String::from))? {
            Request::Run(arguments) => Ok(arguments),
            Request::Help => Err("help".into()),
        }
    }

    #[test]
    fn lists_are_sorted_and_sizes_are_mebibytes() {
        let arguments = parse("--sizes 32,2,2 --threads 2,1 --reps 5 --out there").unwrap();
        assert_eq!(arguments.sizes, [2 << 20, 32 << 20]);
        assert_eq!(arguments.threads, [1, 2]);
        assert_eq!((arguments.reps, arguments.out), (Some(5), PathBuf::from("there")));
    }

    #[test]
    fn only_is_a_peer_or_a_workload() {
        assert_eq!(parse("--only DashSet").unwrap().peers.len(), 1);
        assert_eq!(parse("--only bulk").unwrap().workloads, ["bulk fill", "bulk hit", "bulk miss"]);
        assert!(!parse("--only bulk").unwrap().growth);
    }

    #[test]
    fn only_growth_is_no_workload() {
        let arguments = parse("--only growth --grow-to 24").unwrap();
        assert!(arguments.growth && arguments.workloads.is_empty());
        assert_eq!(arguments.grow_to, 24);
    }

    #[test]
    fn only_fixed_is_all_but_growth() {
        let (fixed, all) = (parse("--only fixed").unwrap(), parse("").unwrap());
        assert_eq!(fixed, Arguments { growth: false, ..all });
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for line in [
            "--sizes",
            "--sizes 0",
            "--sizes 2,,3",
            "--sizes 2x",
            "--sizes 18446744073709551615",
            "--threads -1",
            "--threads 99999",
            "--reps 0",
            "--only nobody",
            "--grow-to 33",
            "--frobnicate",
            "2",
        ] {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}
