//! Measures koel, alone and beside its peers, and checks every answer on the way.
//!
//! `kit` is what all benches share: the command line, the machine and its threads, figures, memory and waits. Each
//! other module is a bench, and `--help` says what it measures.

mod all;
mod durable;
mod growth;
mod kit;
mod loads;
mod peers;
mod records;
mod snapshots;
mod waits;
mod windows;

use kit::arguments::{Arguments, Result};
use kit::machine::MACHINE;
use std::process::ExitCode;
use std::sync::LazyLock;

const HELP: &str = "\
usage: cargo run --release -p koel-bench -- BENCH [FLAGS]

Each bench writes a CSV file, of which `benches/draw.py` makes tables, which are printed, and pictures.

all        all benches that a page shows, hours of them; on a machine that does nothing else:
           otherwise it waits, unless --busy tells it to go on

koel beside its peers:
  peers      filters and sets that threads share: --sizes 2,32,128 (MiB), --threads 1,2, --reps 3;
             koel, for its own filters alone
  growth     sets that grow, on one thread: --reps 3, and --to 22,27 for 2^22 items of all sets,
             and 2^27 of koel alone;
             sets | errors, for all sets, or koel alone
  windows    sets that remember what was seen lately; burst, for its picture alone
  durable    sets that outlive their process; KOEL_SERVERS is a folder with redis-server,
             and KOEL_PYTHON a Python with Scrapy: without, they are left out

koel alone:
  snapshots        files | open
  waits            growth | saves | journal: how long single operations take meanwhile
  loads, dropped   how full tables get; how many new items are taken for known ones

for benches/dedup/files:
  records          make FOLDER FILES RECORDS | bloom MODE FROM TO BYTES ITEMS | check MODE FROM TO

  --out DIR     where results go (default: benches/results)
  --folder DIR  a folder on the disk that is measured (default: the present one)
  --test        a tiny run, into a scratch folder
";

fn main() -> ExitCode {
    LazyLock::force(&MACHINE);
    let mut words = std::env::args().skip(1);
    let bench = words.next().unwrap_or_default();
    let run: fn(Arguments) -> Result<()> = match &*bench {
        "all" => all::run,
        "dropped" => loads::dropped,
        "durable" => durable::run,
        "growth" => growth::run,
        "loads" => loads::loads,
        "peers" => peers::run,
        "records" => records::run,
        "snapshots" => snapshots::run,
        "waits" => waits::run,
        "windows" => windows::run,
        _ => {
            print!("{HELP}");
            return ExitCode::from(if bench == "--help" { 0 } else { 2 });
        }
    };
    match run(Arguments::new(words)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("koel-bench {bench}: {error}");
            ExitCode::FAILURE
        }
    }
}
