//! Draws a plot that is written as JSON: `koel-plot FILE < PLOT`.

use koel_plot::Plot;
use std::process::ExitCode;
use std::{env, fs, io};

fn main() -> ExitCode {
    let mut arguments = env::args_os().skip(1);
    let (Some(file), None) = (arguments.next(), arguments.next()) else {
        eprintln!(
            "usage: koel-plot FILE < PLOT\nDraws the plot, which is JSON, and writes it to FILE as SVG."
        );
        return ExitCode::from(2);
    };
    let plot: Plot = match serde_json::from_reader(io::stdin().lock()) {
        Ok(plot) => plot,
        Err(error) => {
            eprintln!("koel-plot: standard input is not a plot: {error}");
            return ExitCode::FAILURE;
        }
    };
    if let Err(error) = fs::write(&file, plot.svg()) {
        eprintln!("koel-plot: {}: {error}", file.display());
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}
