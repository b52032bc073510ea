//! Draws a plot that is written as JSON: `koel-plot FILE < PLOT`.

use koel_plot::Plot;
use std::process::ExitCode;
use std::{env, fs, io};

fn main() -> ExitCode {
    let Some(file) = env::args_os().nth(1) else {
        eprintln!("usage: koel-plot FILE < PLOT, which is JSON; FILE will be SVG");
        return ExitCode::from(2);
    };
    let plot = serde_json::from_reader(io::stdin().lock()).map_err(io::Error::from);
    match plot.and_then(|plot: Plot| fs::write(&file, plot.svg())) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("koel-plot: {}: {error}", file.display());
            ExitCode::FAILURE
        }
    }
}
