//! Crawls that outlive a primary.

use crate::cluster::Cluster;
use crate::doubt::{block_on, open};
use crate::python::{examples, python};
use crate::seen::Options;
use crate::server::each_server;
use std::collections::VecDeque;
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::scope;

const WORKERS: usize = 3;
const PAGES: usize = 6_000;

/// A worker asks about the links of twenty pages at once, each of which has ten.
const BATCH: usize = 200;

/// Holds the outcome of a crawl against what a primary may have taken with it.
fn check(pages: usize, twice: usize, missed: usize) {
    eprintln!("{pages} pages, {twice} of them twice; {missed} missed");
    assert_eq!((pages, missed), (PAGES, 0));
    // A third of a batch of each worker was in doubt; and the primary took its last answers with it.
    assert!(twice <= WORKERS * BATCH * 2 / 3, "{twice} were fetched twice");
}

/// The links of a page. Two of them make a tree, so that each page can be reached from the first.
fn links(page: usize) -> impl Iterator<Item = usize> {
    let others = (0..8).map(move |link| (page * 8 + link).wrapping_mul(0x9e37_79b1) % PAGES);
    others.chain([2 * page + 1, 2 * page + 2]).filter(|page| *page < PAGES)
}

#[test]
fn a_crawl_in_rust_misses_nothing_when_a_primary_dies() {
    each_server(|kind| {
        let mut cluster = Cluster::with_node_timeout(kind, 2_000);
        let addresses = cluster.addresses();
        let fetched: Vec<_> = (0..PAGES).map(|_| AtomicUsize::new(0)).collect();
        let count = |is: fn(usize) -> bool| {
            fetched.iter().filter(|times| is(times.load(Ordering::Relaxed))).count()
        };
        let crawl = async |worker| {
            let options = Options { error_rate: 1e-7, ..Options::default() };
            let mut seen = open(&addresses, options).await.unwrap();
            let (mut frontier, mut found) = (VecDeque::new(), vec![worker]);
            loop {
                let items: Vec<_> = found.iter().map(usize::to_string).collect();
                let new = seen.insert_new(&items).await.unwrap();
                frontier.extend(found.drain(..).zip(new).filter(|page| page.1).map(|page| page.0));
                if frontier.is_empty() {
                    return;
                }
                for page in frontier.drain(..frontier.len().min(BATCH / 10)) {
                    fetched[page].fetch_add(1, Ordering::Relaxed);
                    found.extend(links(page));
                }
                found.sort_unstable();
                found.dedup();
                // As long as pages take.
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
        };
        scope(|scope| {
            for worker in 0..WORKERS {
                let crawl = &crawl;
                scope.spawn(move || block_on(crawl(worker)));
            }
            while count(|times| times > 0) < PAGES / 3 {
                std::thread::yield_now();
            }
            cluster.nodes[1].kill();
        });
        check(count(|times| times > 0), count(|times| times > 1), count(|times| times == 0));
    });
}

#[test]
fn a_crawl_in_python_misses_nothing_when_a_primary_dies() {
    each_server(|kind| {
        let Some(mut command) = python() else { return };
        let mut cluster = Cluster::with_node_timeout(kind, 2_000);
        command.arg(examples().join("crawl.py"));
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
        assert!(process.wait().expect("it ends").success(), "{last}");
        // "6000 pages in 5.3 s, 120 of them twice; 0 missed"
        let numbers: Vec<_> = last.split(' ').filter_map(|word| word.parse().ok()).collect();
        let [pages, twice, missed] = numbers[..] else { panic!("{last}") };
        check(pages, twice, missed);
    });
}
