//! Measures koel and its peers, prints tables, and writes figures and plots.
//!
//! ```text
//! cargo run --release -p koel-peers
//! ```
//!
//! `--help` lists the flags, and the README describes what is measured. Reading order: `peer` →
//! `peers` → `workloads` → `plan`, `winners` and `crawl`, and `growth`, then `driver` → `csv` →
//! `report` and `plot`.
//!
//! What draws curves is in `koel-plot`, and what knows the machine is shared with `koel-cores`.

mod arguments;
mod csv;
mod driver;
mod growth;
#[path = "../../cores/src/json.rs"]
mod json;
#[path = "../../cores/src/machine.rs"]
#[allow(dead_code)] // not all of it is needed here
mod machine;
mod memory;
mod peer;
mod peers;
mod plan;
mod plot;
mod report;
#[allow(dead_code)] // `machine` is for the others
mod timing;
mod workloads;

use arguments::{Arguments, Request};
use csv::Row;
use machine::MACHINE;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::sync::LazyLock;

fn main() -> ExitCode {
    // Before any thread is bound to a processor.
    LazyLock::force(&MACHINE);
    timing::AT_START.get_or_init(|| |thread| MACHINE.pin(thread as usize));
    let arguments = match Arguments::parse(std::env::args().skip(1)) {
        Ok(Request::Run(arguments)) => arguments,
        Ok(Request::Help) => {
            print(arguments::HELP);
            return ExitCode::SUCCESS;
        }
        Err(message) => {
            eprintln!("koel-peers: {message}\n\n{}", arguments::HELP);
            return ExitCode::from(2);
        }
    };
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("koel-peers: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<(), String> {
    let most = arguments.threads.iter().copied().max().unwrap_or(1);
    timing::can_run(most).map_err(|error| format!("{most} threads: {error}"))?;
    let out = &arguments.out;
    fs::create_dir_all(out).map_err(|error| format!("{}: {error}", out.display()))?;
    if arguments.plot_only {
        let rows = csv::rows_from(&read(&out.join("results.csv"))?)?;
        let held = |name| held_in(out, name);
        let grown = csv::grown_from(&read(&out.join("growth.csv")).unwrap_or_default())?;
        let drawn = plot::all(&rows, &held("memory.csv")?).into_iter();
        let held = [held("growth-memory.csv")?, held(BEFORE)?].concat();
        let drawn = drawn.chain(plot::growth(&grown, &held));
        return draw(arguments, drawn);
    }

    // The figures of parts that are not measured stay as they are.
    let mut wrong = 0;
    if !arguments.workloads.is_empty() {
        let mut rows = driver::measure(arguments);
        let mut held = driver::sweep_memory(arguments);
        let mut note = String::new();
        if arguments.is_part() {
            let old = |name| read(&out.join(name)).unwrap_or_default();
            rows = driver::merged(csv::rows_from(&old("results.csv"))?, rows);
            held = csv::held_from(&old("memory.csv"))?;
            note = arguments.note();
        }
        write(&out.join("results.csv"), &csv::text_of_rows(&rows))?;
        write(&out.join("results.json"), &csv::json_of_rows(&MACHINE, &rows))?;
        let text = report::text(&MACHINE.to_string(), &note, &rows);
        print(&text);
        write(&out.join("table.txt"), &text)?;
        write(&out.join("memory.csv"), &csv::text_of_held(&held))?;
        draw(arguments, plot::all(&rows, &held))?;
        wrong +=
            rows.iter().filter(|row| row.peer.starts_with(peers::KOEL)).map(Row::bad).sum::<u64>();
    }
    if arguments.growth {
        let (grown, held) = driver::measure_growth(arguments);
        write(&out.join("growth.csv"), &csv::text_of_grown(&grown))?;
        write(&out.join("growth-memory.csv"), &csv::text_of_held(&held))?;
        let text = report::growth(&MACHINE.to_string(), &grown);
        print(&text);
        write(&out.join("growth.txt"), &text)?;
        draw(arguments, plot::growth(&grown, &[held, held_in(out, BEFORE)?].concat()))?;
        let koel = grown.iter().filter(|grown| grown.peer.starts_with(peers::KOEL));
        wrong += koel.map(|grown| grown.lost).sum::<u64>();
    }
    if wrong == 0 { Ok(()) } else { Err(format!("koel gave {wrong} wrong answers")) }
}

/// koel's memory before its shards were split one after another, drawn for comparison if it is there.
const BEFORE: &str = "growth-memory-before.csv";

fn held_in(out: &Path, name: &str) -> Result<Vec<csv::Held>, String> {
    csv::held_from(&read(&out.join(name)).unwrap_or_default())
}

fn draw(
    arguments: &Arguments,
    plots: impl IntoIterator<Item = (String, String)>,
) -> Result<(), String> {
    for (name, svg) in plots {
        write(&arguments.out.join(name), &svg)?;
    }
    eprintln!("results are in {}", arguments.out.display());
    Ok(())
}

/// Prints to standard output. Errors are ignored: a reader that closes the pipe has read enough.
fn print(text: &str) {
    drop(std::io::stdout().write_all(text.as_bytes()));
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}
