//! Measures koel, alone and beside its peers, and checks every answer on the way.
//!
//! `kit` is what all benches share: the command line, the machine and its threads, figures, memory and waits. Each
//! other module is a bench, and `--help` says what it measures.

mod durable;
mod growth;
mod kit;
mod loads;
mod peers;
mod ratios;
mod snapshots;
mod waits;
mod windows;

use kit::arguments::{Arguments, Result};
use kit::machine::MACHINE;
use std::process::ExitCode;
use std::sync::LazyLock;

const HELP: &str = "\
usage: cargo run --release -p koel-bench -- BENCH [FLAGS]

koel beside its peers. They write tables, CSV files and pictures:
  peers      filters and sets that threads share
    draw                              the table and pictures again, from the CSV file
    --sizes 2,32,128  --threads 1,2   table sizes in MiB, numbers of threads
    --reps 5  --minutes 60            how often, or else about how long it may take
  growth     sets that grow, on one thread
    sets | speed | draw               all sets; koel beside a filter of fixed size; the pictures again
    --to 22  --reps 3                 to 2^22 items; how often
  windows    sets that remember what was seen lately
    burst | draw                      the picture, or its drawing, alone
  durable    sets that outlive their process
    draw                              the table and picture again
    --folder DIR                      the folder on the disk that is measured
    (KOEL_SERVERS is a folder with redis-server, and KOEL_PYTHON a Python with Scrapy; without, they are left out.)

koel alone. They print tables:
  ratios     each operation; --load 94 in percent of the slots, --mib 2,128
  many       batches, loops, and the limit of the memory; --mib 2,128,1024
  snapshots  files | open; --folder DIR
  waits      growth | saves | journal: how long single operations take meanwhile; --folder DIR
  loads      how full tables get
  dropped    how many new items are taken for known ones

  --out DIR    where results go (default: below benches/results)
  --only koel  only sets (of those beside peers) whose names begin so, into a scratch folder
  --test       a tiny run, into a scratch folder
";

fn main() -> ExitCode {
    LazyLock::force(&MACHINE);
    let mut words = std::env::args().skip(1);
    let bench = words.next().unwrap_or_default();
    let run: fn(Arguments) -> Result<()> = match &*bench {
        "dropped" => loads::dropped,
        "durable" => durable::run,
        "growth" => growth::run,
        "loads" => loads::loads,
        "many" => ratios::many,
        "peers" => peers::run,
        "ratios" => ratios::ratios,
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
