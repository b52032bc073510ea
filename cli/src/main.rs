//! koel, the command.

mod arguments;
mod sample;

use arguments::{Arguments, Command};
use clap::Parser;
use std::io;

fn main() {
    match Arguments::parse().command {
        Command::Sample(sample) => {
            io::copy(&mut sample::Crawl::new(sample.lines), &mut io::stdout().lock()).unwrap();
        }
        _ => todo!(),
    }
}
