//! How koel's operations share many cores: measured on those that there are, and reckoned by a model whose parameters
//! are measured here, too.
//!
//! ```text
//! cargo run --release -p koel-cores
//! ```
//!
//! Reading order: `machine` → `crew` → `transfer` and `measured` → `model` → `reckoning` → `report`. The README has the
//! model, and its counts are read from there.

mod crew;
mod json;
mod machine;
mod measured;
mod model;
mod reckoning;
mod report;
mod transfer;

use machine::MACHINE;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const HELP: &str = "\
usage: cargo run --release -p koel-cores -- [FLAGS]

  --out DIRECTORY   where results go (default: benches/cores/results, or the present folder if that is not there)
  --test            some seconds: does it run? Results go to a scratch folder
  --help            this text
";

struct Arguments {
    out: PathBuf,
    test: bool,
}

fn main() -> ExitCode {
    let arguments = match parse(std::env::args().skip(1)) {
        Ok(Some(arguments)) => arguments,
        Ok(None) => {
            print!("{HELP}");
            return ExitCode::SUCCESS;
        }
        Err(message) => {
            eprintln!("koel-cores: {message}\n\n{HELP}");
            return ExitCode::from(2);
        }
    };
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("koel-cores: {message}");
            ExitCode::FAILURE
        }
    }
}

fn parse(mut args: impl Iterator<Item = String>) -> Result<Option<Arguments>, String> {
    let (mut out, mut test) = (None, false);
    while let Some(flag) = args.next() {
        match &*flag {
            "--out" => out = Some(PathBuf::from(args.next().ok_or("--out needs a folder")?)),
            "--test" => test = true,
            "--help" | "-h" => return Ok(None),
            _ => return Err(format!("unknown flag {flag}")),
        }
    }
    let results = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/results"));
    let usual = || match test {
        true => std::env::temp_dir().join("koel-cores-test"),
        // A static binary has gone to another machine.
        false if !results.exists() => PathBuf::from("."),
        false => results.into(),
    };
    Ok(Some(Arguments { out: out.unwrap_or_else(usual), test }))
}

fn run(Arguments { out, test }: &Arguments) -> Result<(), String> {
    fs::create_dir_all(out).map_err(|error| format!("{}: {error}", out.display()))?;
    let machine = &*MACHINE;
    eprintln!("{machine}");
    let report = reckoning::measure(machine, *test);
    let text = report::text(machine, &report);
    print!("{text}");
    let files = [
        ("cores.txt", text),
        ("cores.json", report::json(machine, &report)),
        ("cores.svg", report::svg(machine, &report)),
    ];
    for (name, content) in files {
        let path = out.join(name);
        fs::write(&path, content).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    eprintln!("results are in {}", out.display());
    Ok(())
}
