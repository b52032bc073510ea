//! The crawler of the examples is killed in the middle, and fetches no page again that it has finished.

use koel::{ConcurrentCuckooFilter, DurableFilter, StableHash};
use rand::RngExt;
use reliability::common::{alone, rounds};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

const WORKERS: usize = 8;

/// The folder of the programs that cargo makes of this workspace.
fn target() -> PathBuf {
    let test = std::env::current_exe().expect("a path");
    test.ancestors().nth(3).expect("a folder").to_owned()
}

/// Builds the example as the README runs it.
fn build() {
    let mut cargo = Command::new(std::env!("CARGO"));
    cargo.args(["build", "--release", "--locked", "-p", "koel", "--example", "crawler"]);
    cargo.arg("--target-dir").arg(target());
    assert!(cargo.status().expect("cargo").success(), "it cannot be built");
}

fn crawler(pages: usize, folder: &Path) -> Child {
    let program = target().join("release/examples/crawler");
    let mut command = Command::new(program);
    command.args([WORKERS.to_string(), pages.to_string()]).arg(folder);
    command.stdout(Stdio::null()).spawn().expect("the crawl starts")
}

fn text(folder: &Path, name: &str) -> String {
    fs::read_to_string(folder.join(name)).unwrap_or_default()
}

/// Returns how often each page was served, and how often after the worker that got it had asked for the next one.
fn served(log: &str) -> (BTreeMap<&str, usize>, usize) {
    let (mut times, mut repeated) = (BTreeMap::new(), 0);
    let mut finished = BTreeSet::new();
    for run in log.split("start\n") {
        let mut last = BTreeMap::new();
        for (worker, page) in run.lines().filter_map(|line| line.split_once(' ')) {
            *times.entry(page).or_default() += 1;
            repeated += usize::from(finished.contains(page));
            finished.extend(last.insert(worker, page));
        }
    }
    (times, repeated)
}

/// The links of a page that is done are in the frontier: those to the four pages below it, at least.
fn check_what_is_done(pages: usize, folder: &Path) {
    let text = text(folder, "frontier");
    let frontier: BTreeSet<&str> = text.lines().collect();
    let builder = ConcurrentCuckooFilter::builder().hasher(StableHash::random());
    let done = DurableFilter::open(folder.join("done.koel"), builder).expect("a filter");
    let url = |page| format!("https://site.example/articles/{page}");
    for page in (0..pages).filter(|&page| done.contains(&*url(page))) {
        for below in (4 * page + 1..=4 * page + 4).filter(|&below| below < pages) {
            assert!(frontier.contains(&*url(below)), "{page} is done, and {below} is lost");
        }
    }
}

#[test]
fn a_crawl_that_is_killed_fetches_no_page_again_that_it_has_finished() {
    let _alone = alone();
    build();
    let (crawls, kills, pages) = rounds((1, 10, 3_000), (10, 40, 20_000));
    for _ in 0..crawls {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path();
        for kill in 1..=kills {
            let mut crawl = crawler(pages, folder);
            // At any moment of its share of the crawl, of which something is left.
            let share = pages / (kills + 1);
            let until = share * (kill - 1) + rand::rng().random_range(1..=share);
            while text(folder, "served").lines().count() < until {
                let ended = crawl.try_wait().expect("a process");
                assert!(ended.is_none(), "it has ended before {until} pages: {ended:?}");
                sleep(Duration::from_micros(100));
            }
            crawl.kill().expect("a process");
            crawl.wait().expect("a process");
            check_what_is_done(pages, folder);
            let log = text(folder, "served");
            let (times, repeated) = served(&log);
            assert_eq!(repeated, 0, "pages that were fetched again, at kill {kill}");
            assert!(times.len() < pages, "kill {kill} came too late");
        }

        assert!(crawler(pages, folder).wait().expect("a process").success());
        let log = text(folder, "served");
        let (times, repeated) = served(&log);
        assert_eq!((times.len(), repeated), (pages, 0), "pages that were fetched, and again");
        let cut_off = times.values().filter(|&&times| times > 1).count();
        assert!(cut_off <= kills * WORKERS, "{cut_off} pages were fetched again");
    }
}
