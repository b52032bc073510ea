//! Crawls that outlive a primary.

use crate::cluster::Cluster;
use crate::python::{examples, python};
use crate::server::each_server;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

const WORKERS: usize = 3;
const PAGES: usize = 6_000;

/// A worker asks about the links of twenty pages at once, each of which has ten.
const BATCH: usize = 200;

/// The example, which cargo builds for the tests if it is not told which.
fn crawler() -> Command {
    let test = std::env::current_exe().expect("a path");
    let folder = test.parent().and_then(Path::parent).expect("a folder");
    let program = folder.join("examples/crawl");
    assert!(program.is_file(), "build it first: cargo build -p koel-redis --examples");
    Command::new(program)
}

fn check(mut cluster: Cluster, mut command: Command) {
    command.args(["--cluster", &cluster.addresses(), "--workers", &WORKERS.to_string()]);
    command.args(["--pages", &PAGES.to_string()]).stdout(Stdio::piped());
    let mut process = command.spawn().expect("the crawl starts");
    let mut last = String::new();
    for line in BufReader::new(process.stdout.take().expect("its output")).lines() {
        last = line.expect("text");
        if last == "2000 pages" {
            cluster.nodes[1].kill();
        }
    }
    assert!(process.wait().expect("it ends").success(), "{command:?}: {last}");
    // "6000 pages in 5.3 s, 120 of them twice; 0 missed"
    let numbers: Vec<_> = last.split(' ').filter_map(|word| word.parse::<usize>().ok()).collect();
    let [pages, twice, missed] = numbers[..] else { panic!("{command:?}: {last}") };
    eprintln!("{command:?}: {last}");
    assert_eq!((pages, missed), (PAGES, 0));
    // A third of a batch of each worker was in doubt; and the primary took its last answers with it.
    assert!(twice <= WORKERS * BATCH * 2 / 3, "{command:?}: {twice} were fetched twice");
}

#[test]
fn a_crawl_in_rust_misses_nothing_when_a_primary_dies() {
    each_server(|kind| check(Cluster::with_node_timeout(kind, 2_000), crawler()));
}

#[test]
fn a_crawl_in_python_misses_nothing_when_a_primary_dies() {
    each_server(|kind| {
        if let Some(mut python) = python() {
            python.arg(examples().join("crawl.py"));
            check(Cluster::with_node_timeout(kind, 2_000), python);
        }
    });
}
